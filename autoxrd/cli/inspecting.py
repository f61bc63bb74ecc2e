"""``autoxrd graph``, ``verify`` and ``doctor``: the commands that look and check."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.tree import Tree

    from autoxrd.primitives import StateId
    from autoxrd.store.records import Attempt, Node

__all__ = ["doctor", "graph", "verify"]

_Directory = Annotated[Path, typer.Argument(help="Directory of a job.", show_default=False)]
_Json = Annotated[bool, typer.Option("--json", help="Print JSON instead.")]


def graph(
    directory: _Directory,
    as_json: _Json = False,
    why: Annotated[bool, typer.Option("--why", help="Show evidence, predictions and their measured effect.")] = False,
) -> None:
    """Draw the decision graph: what was tried from each state, and what became of it."""
    from autoxrd.store.graph import Graph

    with Graph.open(directory, read_only=True) as opened:
        if as_json:
            typer.echo(json.dumps(opened.export()))
            return
        nodes, attempts, finish = {n.id: n for n in opened.states()}, opened.attempts(), opened.finished()
        root = opened.root_hash()
    _print_graph(nodes, attempts, finish.final_state if finish else None, root, why)


def _print_graph(
    nodes: Mapping[StateId, Node], attempts: Sequence[Attempt], final: str | None, root_hash: str, why: bool
) -> None:
    from rich.console import Console
    from rich.tree import Tree

    console = Console(highlight=False)
    root = next((n for n in nodes.values() if n.parent is None), None)
    if root is None:
        console.print("The job has no state yet.")
        return
    tree = Tree(f"[bold]root[/] {root.id[:8]}  Rwp {100 * root.state.quality.rwp:.2f} %")
    branches: dict[str, Tree] = {root.id: tree}
    chained = {a.parent for a in attempts if a.accepted}
    for attempt in attempts:
        parent = branches[attempt.parent]
        line = parent.add(_label(attempt, nodes, final))
        if why:
            _add_reasons(line, attempt)
        if attempt.accepted and attempt.candidate is not None:
            # A chain of accepted steps reads as a list, not as a staircase.
            only = len([a for a in attempts if a.accepted and a.parent == attempt.parent]) == 1
            branches[attempt.candidate] = parent if only and attempt.parent in chained else line
    console.print(tree)
    console.print(f"[dim]graph root {root_hash}[/]", soft_wrap=True)


def _label(attempt: Attempt, nodes: Mapping[StateId, Node], final: str | None) -> str:
    from rich.markup import escape

    before = nodes[attempt.parent].state.quality.rwp
    after = nodes[attempt.candidate].state.quality.rwp if attempt.candidate else None
    mark = "[green]✓[/]" if attempt.accepted else "[red]✗[/]"
    names = [name.removeprefix("phase.") for name in attempt.action.parameters]
    shown = f"all {len(names)}" if attempt.action.kind.value == "joint" else ", ".join(names[:2])
    if "terms" in attempt.action.settings:
        shown = f"to {attempt.action.settings['terms']} terms"
    more = f" +{len(names) - 2}" if len(names) > 2 and attempt.action.kind.value != "joint" else ""
    to = f"{100 * after:.2f}" if after is not None else "-"
    text = f"{mark} {attempt.ordinal} [bold]{attempt.action.kind.value}[/] {escape(shown)}{more}  "
    text += f"{100 * before:.2f} -> {to} %"
    if attempt.candidate is not None:
        text += f"  [dim]{attempt.candidate[:8]}[/]"
    if not attempt.accepted:
        text += f"  [red]{', '.join(attempt.decision.reasons[:2])}[/]"
    if final is not None and attempt.candidate == final:
        text += "  [bold green]final[/]"
    return text


def _add_reasons(line: Tree, attempt: Attempt) -> None:
    from rich.markup import escape

    line.add(f"[dim]{escape(attempt.action.rationale)}[/]")
    for claim in attempt.action.evidence:
        line.add(f"evidence: {escape(claim.feature)} = {claim.value:.4g} {claim.comparison} {claim.threshold:.4g}")
    for outcome in attempt.decision.predictions:
        effect = "not measured" if outcome.effect is None else f"{outcome.effect:.4g}"
        met = "[green]met[/]" if outcome.met else "[red]not met[/]"
        told = outcome.prediction
        line.add(
            f"prediction: {escape(told.metric)} {told.direction} by {told.minimum_effect:.3g}; measured {effect}: {met}"
        )
    for code, text in attempt.decision.details.items():
        line.add(f"[red]{code}[/] {escape(text)}")


def verify(directory: _Directory, as_json: _Json = False) -> None:
    """Recompute every hash, chain, file and decision of a job; exit code 3 when anything differs."""
    from autoxrd.agent.controller import rejudge
    from autoxrd.store.verify import verify as check

    report = check(directory, judge=rejudge)
    if as_json:
        findings = [{"code": f.code, "row": f.row, "text": f.text, "severity": f.severity} for f in report.findings]
        typer.echo(json.dumps({"ok": report.ok, "graph_root": report.graph_root, "findings": findings}))
    else:
        for finding in report.findings:
            typer.echo(f"{finding.code}: {finding.row}: {finding.text}")
        typer.echo(
            f"{'OK' if report.ok else 'NOT OK'}: {report.n_states} states, {report.n_edges} attempts, "
            f"{report.n_artifacts} artifacts, {report.judged} decisions recomputed; graph root {report.graph_root}"
        )
    if not report.ok:
        raise typer.Exit(3)


def doctor(as_json: _Json = False) -> None:
    """Say which engines, planners and services are usable here, and why the others are not."""
    from autoxrd.cli.health import examine

    checks = examine()
    if as_json:
        typer.echo(json.dumps([check.as_dict() for check in checks]))
        return
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    table = Table(box=None, pad_edge=False)
    for heading in ("", "kind", "name", "what"):
        table.add_column(heading)
    for check in checks:
        table.add_row("[green]ok[/]" if check.usable else "[yellow]--[/]", check.kind, check.name, check.text)
    console.print(table)
