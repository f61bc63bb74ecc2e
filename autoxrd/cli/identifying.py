"""``autoxrd identify``: which of the candidates are in a pattern?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from autoxrd.agent.identify import Identification

__all__ = ["identify"]

_WORDS = {
    "found": "The candidates explain the pattern.",
    "partly": "The candidates explain part of the pattern: strong lines are left.",
    "none": "None of the candidates explains the pattern.",
}


def identify(
    pattern: Annotated[Path, typer.Argument(help="Measured pattern.", show_default=False)],
    candidate: Annotated[
        list[Path], typer.Option("--candidate", "-c", help="CIF of a phase that may be there; repeat for more.")
    ],
    instrument: Annotated[Path | None, typer.Option("--instrument", "-i", help="GSAS .prm or .instprm file.")] = None,
    anode: Annotated[str | None, typer.Option("--anode", help="X-ray tube: Cu, Co, Mo, Cr, Fe, Ag.")] = None,
    wavelength: Annotated[str | None, typer.Option("--wavelength", "-w", help="Angstrom, as for refine.")] = None,
    radiation: Annotated[str | None, typer.Option("--radiation", help="xray or neutron.")] = None,
    geometry: Annotated[str | None, typer.Option("--geometry", help="bragg_brentano or debye_scherrer.")] = None,
    engine: Annotated[str, typer.Option("--engine", help="Engine that calculates the candidates' lines.")] = "rietx",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead.")] = False,
) -> None:
    """Rank sets of candidate phases by how well their lines explain a pattern, and stop there.

    Exit code 3 where none of the candidates explains it. ``autoxrd refine --candidate`` goes on from here.
    """
    from autoxrd.agent.identify import identify as find
    from autoxrd.agent.inputs import Request, load_job
    from autoxrd.engines.registry import get_engine

    request = Request(
        pattern=pattern,
        candidates=tuple(candidate),
        instrument=instrument,
        anode=anode,
        wavelength=wavelength,
        radiation=radiation,
        geometry=geometry,
        engine=engine,
    )
    session = get_engine(engine).start()
    try:
        job, _ = load_job(request)
        found = find(job, session)
    finally:
        session.close()
    if as_json:
        typer.echo(json.dumps(found.as_dict()))
    else:
        _print(found)
    if found.answer == "none":
        raise typer.Exit(3)


def _print(found: Identification) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    console.print(f"[bold]{_WORDS[found.answer]}[/]")
    if found.sets:
        table = Table("", "phases", "explained", "criterion", "cell change", title_justify="left")
        for rank, one in enumerate(found.sets, 1):
            strains = ", ".join(f"{100 * s:+.2f} %" for s in one.strains)
            table.add_row(str(rank), " + ".join(one.phases), f"{one.explained:.1%}", f"{one.behind:+.1f}", strains)
        console.print(table)
        console.print(
            "[dim]explained: share of the signal, texture and grain statistics allowed for. criterion: difference of "
            "the Bayesian information criterion to the best set; below 10 the smaller set is ranked first.[/]"
        )
    for rival in found.rivals:
        word = "cannot be told from" if rival.inseparable else "is much like"
        console.print(f"{rival.phase} {word} {rival.rival}; what would tell them apart: {rival.difference}.")
    if found.left:
        lines = ", ".join(f"{x.two_theta_deg:.2f}° ({x.relative_height:.0%})" for x in found.left)
        console.print(f"Not explained (2θ, height relative to the highest line): {lines}")
