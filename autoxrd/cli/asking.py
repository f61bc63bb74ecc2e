"""``autoxrd features``, ``diagnose`` and ``audit``: what the record says of a state."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from autoxrd.agent.answers import Coded, StateHead
    from autoxrd.domain.state import Feature

__all__ = ["audit", "diagnose", "features"]

_Directory = Annotated[Path, typer.Argument(help="Directory of a job.", show_default=False)]
_State = Annotated[
    str | None,
    typer.Argument(help="root, current, final, or an id (4 digits do); the final or else the current state."),
]
_Json = Annotated[bool, typer.Option("--json", help="Print JSON instead.")]
_MOST_RELEASES = 8


def features(
    directory: _Directory,
    state: _State = None,
    as_json: _Json = False,
    match: Annotated[
        str, typer.Option("--match", help="Only features that this pattern fits, e.g. 'position.*'.")
    ] = "*",
) -> None:
    """List the measured features of a state: value, uncertainty, significance, or why it cannot be told."""
    from fnmatch import fnmatchcase

    from autoxrd.agent.asking import ask_features
    from autoxrd.gates.metrics import GAIN_PREFIX
    from autoxrd.store.graph import Graph

    with Graph.open(directory, read_only=True) as graph:
        answer = ask_features(graph, state)
    chosen = {name: f for name, f in answer.features.items() if fnmatchcase(name, match)}
    answer = answer.model_copy(update={"features": chosen})
    if as_json:
        typer.echo(answer.model_dump_json())
        return
    _head(answer.state)
    width = max((len(name) for name in chosen), default=0)
    for name, feature in chosen.items():
        typer.echo(f"{name:{width}}  {_feature_text(feature, gain=name.startswith(GAIN_PREFIX))}")
    if not chosen:
        typer.echo(f"No feature fits {match!r}: 'autoxrd features {directory}' lists all.")


def _feature_text(feature: Feature, *, gain: bool) -> str:
    if not feature.available or feature.value is None:
        return f"cannot tell: {feature.reason}"
    text = f"{feature.value:.4g}"
    if feature.esd is not None:
        text += f" +- {feature.esd:.2g}"
    if feature.unit:
        text += f" {feature.unit}"
    if feature.significance is not None:
        text += f"  (F = {feature.significance:.1f})" if gain else f"  ({feature.significance:.1f} sigma)"
    return text


def _head(state: StateHead) -> None:
    quality = state.quality
    final = ", final" if state.final else ""
    typer.echo(
        f"state {state.id} ({state.status}{final}, {state.stage.value}): Rwp {100 * quality.rwp:.2f} %, "
        f"GoF {quality.gof:.2f}, {quality.n_parameters} parameters free"
    )


def _coded(label: str, items: Iterable[Coded]) -> None:
    for item in items:
        typer.echo(f"{label}: {item.text} ({item.code})")


def diagnose(directory: _Directory, state: _State = None, as_json: _Json = False) -> None:
    """Name the causes that the residual of a state speaks for, and what each further release promises."""
    from autoxrd.agent.asking import ask_diagnosis
    from autoxrd.store.graph import Graph

    with Graph.open(directory, read_only=True) as graph:
        answer = ask_diagnosis(graph, state)
    if as_json:
        typer.echo(answer.model_dump_json())
        return
    _head(answer.state)
    if not answer.causes:
        typer.echo("No cause is significant: what is left looks like noise to every measure.")
    for cause in answer.causes:
        rival = ", which the data cannot tell from it" if cause.rival else ""
        typer.echo(f"cause: {cause.cause} ({cause.feature}, {cause.significance:.1f} sigma){rival}")
    for peak in answer.unexplained_peaks:
        typer.echo(
            f"unexplained peak: {peak.two_theta_deg:.3f} {answer.axis_unit}, d = {peak.d_angstrom:.4f} angstrom, "
            f"{100 * peak.area_share:.1f} % of the observed peak area"
        )
    for release in [r for r in answer.releases if r.gain > 0][:_MOST_RELEASES]:
        f_value = "" if release.f_value is None else f" (F = {release.f_value:.1f} per parameter)"
        typer.echo(f"release {release.selector}: would lower chi2 by {100 * release.gain:.2f} %{f_value}")
    for violation in answer.violations:
        typer.echo(f"{violation.severity} violation: {violation.text or violation.subject} ({violation.code})")
    _coded("caution", answer.cautions)


def audit(directory: _Directory, state: _State = None, as_json: _Json = False) -> None:
    """Say what the final audit finds in a state; exit code 3 when it abstains. The job is not changed."""
    from autoxrd.agent.asking import ask_audit
    from autoxrd.agent.job import Job
    from autoxrd.store.graph import Graph

    with Graph.open(directory, read_only=True) as graph:
        answer = ask_audit(graph, Job.from_record(graph.job, graph.artifacts), state)
    if as_json:
        typer.echo(answer.model_dump_json())
    else:
        _head(answer.state)
        typer.echo(f"verdict: {answer.verdict}")
        _coded("because", answer.reasons)
        _coded("warning", answer.warnings)
        _coded("note", answer.notes)
    if answer.verdict == "abstained":
        raise typer.Exit(3)
