"""``autoxrd pcr check``: does a FullProf control file release what it should?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    name="pcr",
    help="Check FullProf control files (.pcr). None is written, and FullProf is not run.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.callback()
def _group() -> None:
    """Check FullProf control files (.pcr). None is written, and FullProf is not run."""


@app.command()
def check(
    file: Annotated[Path, typer.Argument(help="A .pcr file, constant wavelength, one pattern.", show_default=False)],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead.")] = False,
) -> None:
    """List what a file releases, and its faults. Exit code 3 with faults, 2 where the file cannot be walked."""
    from autoxrd.io.pcr import check_pcr

    report = check_pcr(file)
    if as_json:
        import dataclasses
        import json

        typer.echo(json.dumps(dataclasses.asdict(report)))
    else:
        typer.echo(f"{len(report.phases)} phases, {report.n_slots} parameters, {report.maxs} refined: {report.title}")
        for group in report.released:
            members = ", ".join(name if factor == 1 else f"{factor:g} x {name}" for name, factor in group.members)
            typer.echo(f"  {group.number}: {members}")
        for notice in report.notices:
            typer.echo(f"note: {notice.text} ({notice.code})")
        for fault in report.faults:
            typer.echo(f"fault: {fault.text} ({fault.code})")
        typer.echo("no fault was found" if not report.faults else "do not run this file")
    if report.faults:
        raise typer.Exit(3)
