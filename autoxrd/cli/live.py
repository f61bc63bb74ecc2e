"""What a person sees in the terminal while a job runs, and when it has ended."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from autoxrd.agent.events import JobEvent, Prepared, StepDone, StepLost, StepStarted
from autoxrd.domain.standard import (
    AMORPHOUS,
    AMORPHOUS_WITHOUT_STANDARD,
    MASS_ABSORPTION,
    ExternalStandard,
    absolute_name,
)

if TYPE_CHECKING:
    from rich.status import Status

    from autoxrd.agent.job import Job
    from autoxrd.agent.replay import ReplayOutcome
    from autoxrd.agent.run import Finished
    from autoxrd.domain.action import Action
    from autoxrd.domain.state import ParameterValue
    from autoxrd.report.model import ReportInput

__all__ = ["Progress", "print_finished", "print_replay"]

_VERDICT = {
    "accepted": ("bold green", "ACCEPTED"),
    "accepted_with_warnings": ("bold yellow", "ACCEPTED WITH WARNINGS"),
    "abstained": ("bold red", "ABSTAINED: the job does not vouch for this model"),
    "failed": ("bold red", "FAILED"),
}


class Progress:
    """Prints one block a step to standard error; nothing when quiet.

    Args:
        quiet: print nothing.
        job: for the heading.
    """

    def __init__(self, *, quiet: bool, job: Job | None = None) -> None:
        self._console = Console(stderr=True, highlight=False, quiet=quiet)
        self._job = job
        self._status: Status | None = None

    def __enter__(self) -> Self:
        if self._job is not None:
            self._heading(self._job)
        self._status = self._console.status("Preparing the model ...")
        self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.stop()

    def tell(self, event: JobEvent) -> None:
        """Show an event."""
        if isinstance(event, Prepared):
            self._console.print(f"[dim]   start[/]  Rwp {100 * event.state.quality.rwp:.2f} %")
        elif isinstance(event, StepStarted):
            self._set(f"step {event.ordinal}: {event.action.kind.value} {_parameters(event.action)}")
        elif isinstance(event, StepDone):
            self._step(event)
        elif isinstance(event, StepLost):
            self._console.print(f"[dim]{event.ordinal:4d}[/] [red]lost[/] {escape(event.code)}: {escape(event.text)}")

    def _heading(self, job: Job) -> None:
        names = ", ".join(s.name for s in job.structures)
        for histogram in job.histograms:
            pattern, instrument = histogram.pattern, histogram.instrument
            flight = instrument.flight
            lines = ", ".join(f"{w:g}" for w in instrument.wavelengths_angstrom)
            beam = f"{lines} angstrom" if flight is None else f"time of flight at {flight.two_theta_deg:g} deg"
            unit = "deg" if flight is None else "us"
            place = f"histogram {histogram.name}, " if job.others else ""
            last = histogram.name == job.histograms[-1].name
            phases = f"; phases: {escape(names)}" if last else ""
            self._console.print(
                f"{place}[bold]{escape(pattern.source_name)}[/]: {pattern.n_points} points, "
                f"{pattern.x[0]:g} to {pattern.x[-1]:g} {unit}, {instrument.radiation.value} {beam}, "
                f"{instrument.geometry.value.replace('_', '-')}{phases}"
            )
        for notice in job.notices:
            self._console.print(f"  [yellow]note[/] {escape(notice.text)}", soft_wrap=False)

    def _set(self, text: str) -> None:
        if self._status is not None:
            self._status.update(escape(text))

    def _step(self, event: StepDone) -> None:
        mark = "[green]accepted[/]" if event.decision.accepted else "[red]rejected[/]"
        before = f"{100 * event.parent.quality.rwp:.2f}"
        after = f"{100 * event.candidate.quality.rwp:.2f}" if event.candidate else "-"
        action = event.action
        self._console.print(
            f"[dim]{event.ordinal:4d}[/] {mark} [dim]{action.stage.value}[/] [bold]{action.kind.value}[/] "
            f"{escape(_parameters(action))}  Rwp {before} -> {after} %  [dim]{event.seconds:.1f} s[/]"
        )
        room = max(40, self._console.width - 8)
        self._console.print(f"       [dim]{escape(_shorten(_why(action), room))}[/]")
        if not event.decision.accepted:
            for code in event.decision.reasons[:3]:
                text = event.decision.details.get(code, "")
                left = max(20, room - len(code) - 1)
                self._console.print(f"       [red]{code}[/] [dim]{escape(_shorten(text, left))}[/]")


def _why(action: Action) -> str:
    """Return what argues for an action in one line: its rationale's first sentence and its evidence."""
    claims = ", ".join(f"{e.feature.removeprefix('release_gain.')} {e.value:.2g}" for e in action.evidence[:2])
    return f"{action.rationale.split('. ')[0].rstrip('.')} ({claims})"


def _parameters(action: Action) -> str:
    names = action.parameters
    if "terms" in action.settings:
        return f"to {action.settings['terms']} terms"
    if action.kind.value == "joint":
        return f"all {len(names)} released selectors"
    shown = ", ".join(name.removeprefix("phase.") for name in names[:3])
    return shown + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _shorten(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def print_finished(finished: Finished, directory: Path) -> None:
    """Print verdict, key numbers, phases, warnings and where the report lies."""
    from autoxrd.report.format import value_with_esd

    console = Console(highlight=False)
    report = finished.report
    style, words = _VERDICT[report.verdict.value]
    quality = report.state.quality
    console.print(f"\n[{style}]{words}[/]")
    console.print(
        f"Rwp {100 * quality.rwp:.2f} %  Rexp {100 * quality.rexp:.2f} %  GoF {quality.gof:.2f}  "
        f"{quality.n_points} points, {quality.n_parameters} parameters, "
        f"{sum(s.accepted for s in report.steps)} steps accepted, "
        f"{sum(not s.accepted for s in report.steps)} rejected, {report.wall_seconds:.0f} s"
    )
    _print_kind(console, report)
    table = Table(box=None, pad_edge=False)
    for heading in ("phase", "space group", "a", "b", "c", "weight %", "R_Bragg %"):
        table.add_column(heading, justify="left" if heading in ("phase", "space group") else "right")
    for phase in report.state.phases:
        cells = [value_with_esd(phase.cell[k].value, phase.cell[k].esd) for k in ("a", "b", "c")]
        weight = phase.weight_fraction
        share = "-"
        if weight is not None:
            share = value_with_esd(100 * weight.value, None if weight.esd is None else 100 * weight.esd)
        r_bragg = "-" if phase.r_bragg is None else f"{100 * phase.r_bragg:.2f}"
        table.add_row(escape(phase.name), escape(phase.space_group), *cells, share, r_bragg)
    console.print(table)
    certified = [known.phase for known in report.job.known_cells]
    if certified:
        console.print(f"Certified cell, held, to which the others are fitted: {escape(', '.join(certified))}")
    if report.histograms:
        console.print(_histograms(report))
    _print_whole(console, report)
    for notice in report.reasons:
        console.print(f"[red]because[/] {escape(notice.text)} [dim]({notice.code})[/]")
    for notice in report.warnings:
        console.print(f"[yellow]warning[/] {escape(notice.text)} [dim]({notice.code})[/]")
    console.print(f"Report: {escape(str(finished.files['html']))}", soft_wrap=True)
    console.print(f"Look further: autoxrd graph {escape(str(directory))}", soft_wrap=True)


def _print_kind(console: Console, report: ReportInput) -> None:
    """Say that a profile match is one: its figures are not those of a structure."""
    if report.job.profile_match:
        console.print("A profile match: intensities are free, so that only positions and shapes of lines are tested.")


def _histograms(report: ReportInput) -> Table:
    """Return the table of several histograms: what each says of the fit and of the phases."""
    from autoxrd.report.format import value_with_esd

    table = Table(box=None, pad_edge=False)
    for heading in ("histogram", "pattern", "Rwp %", "GoF", "points", "phase", "weight %"):
        table.add_column(heading, justify="left" if heading in ("histogram", "pattern", "phase") else "right")
    for name, seen in report.histograms.items():
        quality = seen.state.quality
        head = [
            name,
            escape(seen.job.pattern_name),
            f"{100 * quality.rwp:.2f}",
            f"{quality.gof:.2f}",
            str(quality.n_points),
        ]
        for phase in seen.state.phases:
            share, weight = "-", phase.weight_fraction
            if weight is not None:
                share = value_with_esd(100 * weight.value, None if weight.esd is None else 100 * weight.esd)
            table.add_row(*head, escape(phase.name), share)
            head = [""] * len(head)
    return table


def _print_whole(console: Console, report: ReportInput) -> None:
    """Print the fractions of the whole specimen where a standard gives them."""
    values = {p.name: p for p in report.state.parameters}
    if AMORPHOUS not in values or report.job.standard is None:
        return
    parts = [f"{escape(p.name)} {_percent(values.get(absolute_name(p.name)))} %" for p in report.state.phases]
    parts.append(f"amorphous or not identified {_percent(values[AMORPHOUS])} %")
    console.print(f"Of the whole specimen: {', '.join(parts)}")
    standard = report.job.standard
    if isinstance(standard, ExternalStandard):
        console.print(f"By the external standard {escape(standard.label)}, {_conditions(standard, values)}")
        return
    rest = _percent(values.get(AMORPHOUS_WITHOUT_STANDARD))
    console.print(f"Amorphous before the standard ({escape(standard.phase)}) was added: {rest} %")


def _conditions(standard: ExternalStandard, values: Mapping[str, ParameterValue]) -> str:
    absorption = values.get(MASS_ABSORPTION)
    value = "-" if absorption is None else f"{absorption.value:.4g}"
    told = f"mass absorption {value} cm2/g ({standard.absorption_origin}), "
    return f"{told}intensity {standard.intensity_ratio:.5g} times the standard's ({standard.intensity_origin})"


def _percent(value: ParameterValue | None) -> str:
    from autoxrd.report.format import value_with_esd

    if value is None:
        return "-"
    return value_with_esd(100 * value.value, None if value.esd is None else 100 * value.esd, digits=4)


def print_replay(outcome: ReplayOutcome) -> None:
    """Print the comparison of a replay."""
    console = Console(highlight=False)
    table = Table(box=None, pad_edge=False)
    for heading in ("step", "state", "Rwp recorded %", "Rwp replayed %", "largest difference", "to the bit"):
        table.add_column(heading)
    for step in outcome.steps:
        table.add_row(
            step.label,
            step.state,
            f"{100 * step.rwp_recorded:.6f}",
            f"{100 * step.rwp_replayed:.6f}",
            f"{step.largest_difference:.1e}",
            "yes" if step.identical else "[red]no[/]",
        )
    console.print(table)
    words = "[bold green]The path gives the same figures again.[/]"
    if not outcome.equal:
        words = "[bold red]The path gives other figures than recorded.[/]"
    console.print(f"{words} ({outcome.seconds:.0f} s)")
