"""How do jobs of a service look in a terminal of 100 columns? Lines for people, or JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from autoxrd.client import Client, Event, Job, Review

__all__ = ["followed", "print_job", "print_jobs", "print_reviews"]

WIDTH = 100
_STATE = {"completed": "green", "failed": "red", "crashed": "red", "cancelled": "dim"}


def followed(client: Client, job_id: str, *, as_json: bool, timeout_seconds: float | None = None) -> None:
    """Show a job's events to its end, then how it stands; leave with 3 where it abstained, 1 where it failed."""
    console = _console()

    def tell(event: Event) -> None:
        if as_json:
            typer.echo(json.dumps(dict(event.raw)))
        else:
            line = _line(event)
            if line:
                console.print(line, overflow="ellipsis", no_wrap=True)

    job = client.wait(job_id, progress=tell, timeout_seconds=timeout_seconds)
    if not as_json:
        print_job(job, as_json=False)
    if job.state in {"failed", "crashed", "cancelled"}:
        raise typer.Exit(1)
    if job.verdict == "abstained":
        raise typer.Exit(3)


def print_job(job: Job, *, as_json: bool) -> None:
    """Show how one job stands."""
    if as_json:
        typer.echo(json.dumps(dict(job.raw)))
        return
    colour = _STATE.get(job.state, "bold")
    parts = [job.id, f"[{colour}]{job.state}[/]", job.verdict or "", _percent(job.rwp), escape(job.title)]
    console = _console()
    console.print("  ".join(part for part in parts if part), overflow="ellipsis", no_wrap=True)
    if job.error is not None:
        console.print(f"  [red]{escape(str(job.error.get('code')))}[/] {escape(str(job.error.get('detail')))}")


def print_jobs(jobs: Sequence[Job], *, as_json: bool) -> None:
    """Show a list of jobs."""
    if as_json:
        typer.echo(json.dumps([dict(job.raw) for job in jobs]))
        return
    table = Table(box=None, pad_edge=False, width=WIDTH, header_style="bold")
    table.add_column("job", no_wrap=True, min_width=36)
    table.add_column("state", no_wrap=True, width=10)
    table.add_column("verdict", no_wrap=True, width=10, overflow="ellipsis")
    table.add_column("Rwp", no_wrap=True, justify="right", width=8)
    table.add_column("steps", no_wrap=True, justify="right", width=5)
    table.add_column("title", no_wrap=True, overflow="ellipsis")
    for job in jobs:
        steps = f"{job.used.get('steps', 0):.0f}"
        state = f"[{_STATE.get(job.state, 'bold')}]{job.state}[/]"
        table.add_row(job.id, state, job.verdict or "", _percent(job.rwp), steps, escape(job.title))
    _console().print(table)


def print_reviews(reviews: Sequence[Review], *, as_json: bool) -> None:
    """Show questions and answers about single steps."""
    if as_json:
        typer.echo(json.dumps([dict(review.raw) for review in reviews]))
        return
    console = _console()
    for review in reviews:
        action, became = review.action, "" if review.attempt is None else f"  step {review.attempt}"
        said = f"  {review.decision}" if review.decision else ""
        console.print(f"[bold]{review.status}[/]{said}  {escape(str(action.get('kind')))}{became}  [dim]{review.id}[/]")
        for text in (action.get("rationale"), review.note, review.reason):
            if text:
                console.print(f"    {escape(str(text))}", overflow="ellipsis", no_wrap=True)


def _console() -> Console:
    return Console(width=WIDTH, highlight=False, soft_wrap=False)


def _line(event: Event) -> str:
    data = event.data
    if event.kind == "step.recorded":
        colour = {"accepted": "green", "rejected": "red"}.get(str(data.get("status")), "dim")
        why = "" if data.get("status") != "rejected" else "  " + escape(", ".join(data.get("reasons") or []))
        return (
            f"[dim]{data.get('ordinal', 0):4d}[/] [{colour}]{data.get('status', '')!s:8}[/] "
            f"[bold]{escape(str(data.get('kind')))}[/]  {_percent(data.get('rwp'))}{why}"
        )
    if event.kind == "step.started":
        return f"[dim]{data.get('ordinal', 0):4d} tries    {escape(str(data.get('kind')))}[/]"
    if event.kind == "job.state":
        return f"     [dim]{data.get('from')} -> {data.get('to')}[/]" if data.get("to") != "running" else ""
    if event.kind == "job.concluded":
        return f"     [bold]{escape(str(data.get('verdict')))}[/]"
    return f"     [dim]{escape(event.kind)}[/]"


def _percent(rwp: float | None) -> str:
    return "" if rwp is None else f"{100 * rwp:.2f} %"
