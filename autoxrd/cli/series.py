"""``autoxrd series``: many patterns of one specimen, each from its neighbour's model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from autoxrd.cli.grouping import takes
from autoxrd.cli.refining import Common, free_directory, interruptible, request_of

if TYPE_CHECKING:
    from rich.console import Console

    from autoxrd.report.series_model import PatternRow, SeriesReport
    from autoxrd.series.run import SeriesRequest

__all__ = ["series"]

_TONES = {"accepted": "green", "accepted_with_warnings": "yellow", "abstained": "red", "failed": "bold red"}


@dataclass(frozen=True, slots=True)
class Arranged:
    """How the patterns follow each other."""

    order: Annotated[
        str, typer.Option("--order", help="file (as given), name, temperature or time (header, --values or file name).")
    ] = "file"
    values: Annotated[
        Path | None, typer.Option("--values", help="Table 'file,value': temperature in K or time in s of each pattern.")
    ] = None
    parallel: Annotated[
        int, typer.Option("--parallel", help="Chunks of neighbours refined side by side.", min=1, max=64)
    ] = 1


@dataclass(frozen=True, slots=True)
class Chosen:
    """Who works on each pattern, by which rules and how long."""

    engine: Annotated[str, typer.Option("--engine", help="Engine that computes.")] = "rietx"
    planner: Annotated[str, typer.Option("--planner", help="Who proposes; one that asks no model.")] = "rules"
    policy: Annotated[str, typer.Option("--policy", help="Rules of the gate: default, strict or a TOML file.")] = (
        "default"
    )
    max_steps: Annotated[int, typer.Option("--max-steps", help="Budget of attempts for each pattern.", min=1)] = 60
    time_limit: Annotated[float, typer.Option("--time-limit", help="Budget for each pattern, s.", min=1.0)] = 3600.0


@takes(measured=Common, arranged=Arranged, chosen=Chosen)
def series(
    *,
    patterns: Annotated[list[Path], typer.Argument(help="Measured patterns, two or more.")],
    measured: Common,
    arranged: Arranged,
    chosen: Chosen,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for jobs, table and page.", show_default="autoxrd-series")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print series.json on standard output, nothing else.")
    ] = False,
) -> None:
    """Refine a temperature or time series: one normal job for each pattern, one table and one page for all.

    Each job starts from the final model of its neighbour where that was accepted, and passes the same gates. Where
    something jumps, it is refined from the structures too. The same command again goes on with an interrupted series.
    """
    from rich.console import Console

    from autoxrd.series.run import run_series

    request = _request(patterns, measured, arranged, chosen)
    target = out or free_directory("series")
    console = Console(stderr=True, highlight=False, quiet=as_json)
    again = f"Interrupted. The same command with --out {target} goes on."
    with interruptible(again):
        report = run_series(request, target, listener=lambda row, done, count: _tell(console, row, done, count))
    _conclude(report, target, as_json)


def _request(patterns: list[Path], measured: Common, arranged: Arranged, chosen: Chosen) -> SeriesRequest:
    from autoxrd.agent.job import Budget
    from autoxrd.errors import UserInputError
    from autoxrd.series.ordering import ORDERS, read_values
    from autoxrd.series.run import SeriesRequest

    order = next((known for known in ORDERS if known == arranged.order), None)
    if order is None:
        text = f"--order is one of {', '.join(ORDERS)}, not {arranged.order!r:.40}."
        raise UserInputError("series_order", text)
    each = request_of(
        measured,
        patterns[0],
        engine=chosen.engine,
        planner=chosen.planner,
        policy=chosen.policy,
        budget=Budget(steps=chosen.max_steps, wall_seconds=chosen.time_limit),
    )
    values = {} if arranged.values is None else read_values(arranged.values)
    return SeriesRequest(tuple(patterns), each, order, values, arranged.parallel)


def _tell(console: Console, row: PatternRow, done: int, count: int) -> None:
    from rich.markup import escape

    tone = _TONES[row.verdict]
    figures = "" if row.rwp_percent is None else f"  Rwp {row.rwp_percent:.2f} %  GoF {row.gof or 0.0:.2f}"
    start = f"from {'its neighbour' if row.started_from == 'neighbour' else 'the structures'}"
    if row.restarted_because:
        start += f", tried anew: {', '.join(row.restarted_because)}"
    place = "" if row.value is None else f" ({row.value:g})"
    console.print(
        f"[dim]{done:4d}/{count}[/] {escape(row.name)}{place} [{tone}]{row.verdict}[/]{figures}  [dim]{start}[/]"
    )
    if row.error:
        console.print(f"          [red]{escape(row.error)}[/]")


def _conclude(report: SeriesReport, folder: Path, as_json: bool) -> None:
    """Print how the series ended; exit code 3 where not every pattern was accepted."""
    if as_json:
        typer.echo(report.model_dump_json())
    else:
        typer.echo(
            f"{report.accepted} of {len(report.patterns)} patterns accepted, {report.abstained} abstained, "
            f"{report.failed} failed; {report.restarted} refined from the structures too; {report.wall_seconds:.0f} s"
        )
        typer.echo(f"Page: {folder / report.files['html']}\nTable: {folder / report.files['csv']}")
    if report.accepted < len(report.patterns):
        raise typer.Exit(3)
