"""``autoxrd inspect``: what a pattern and structures are good for, before anything is refined."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from autoxrd.agent.answers import Coded
    from autoxrd.agent.inspection import InstrumentLook, PatternLook, StructureLook

__all__ = ["inspect"]


def inspect(
    pattern: Annotated[
        Path | None, typer.Argument(help="Measured pattern; may be left out.", show_default=False)
    ] = None,
    structure: Annotated[
        list[Path], typer.Option("--structure", "-s", help="CIF of a candidate phase; repeat for more.")
    ] = [],  # noqa: B006  # typer copies it
    instrument: Annotated[
        Path | None, typer.Option("--instrument", "-i", help="GSAS or GSAS-II instrument file.")
    ] = None,
    anode: Annotated[str | None, typer.Option("--anode", help="X-ray tube: Cu, Co, Mo, Cr, Fe, Ag.")] = None,
    wavelength: Annotated[str | None, typer.Option("--wavelength", "-w", help="Angstrom, as for refine.")] = None,
    radiation: Annotated[str | None, typer.Option("--radiation", help="xray or neutron.")] = None,
    geometry: Annotated[str | None, typer.Option("--geometry", help="bragg_brentano or debye_scherrer.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead.")] = False,
) -> None:
    """Read and check a pattern, structures and the instrument; nothing is refined. Exit code 2 when not usable."""
    from autoxrd.agent.inspection import InstrumentChoice, inspect_files
    from autoxrd.errors import UserInputError

    if pattern is None and not structure:
        raise UserInputError("inspect_what", "Give a pattern, or a CIF with --structure, or both.")
    choice = InstrumentChoice(instrument, anode, wavelength, radiation, geometry)
    found = inspect_files(pattern, structure, choice)
    if as_json:
        typer.echo(found.model_dump_json())
    else:
        if found.pattern is not None:
            _pattern(found.pattern)
        if found.instrument is not None:
            _instrument(found.instrument)
        for look in found.structures:
            _structure(look)
        for problem in found.problems:
            typer.echo(f"problem: {problem.text} ({problem.code})")
        typer.echo("usable" if found.usable else "not usable as it is")
    if not found.usable:
        raise typer.Exit(2)


def _pattern(look: PatternLook) -> None:
    unit = look.axis.partition("_")[2] if look.axis != "two_theta_deg" else "deg"
    sigma = "as measured" if look.sigma == "measured" else "assumed from counting"
    span = f"{look.first:g} to {look.last:g} {unit}, step {look.step:g}"
    typer.echo(f"{look.file} ({look.format}): {look.n_points} points, {span}")
    typer.echo(f"  sigma {sigma}; highest point {look.highest:g}; strongest line {look.steps_per_width:.1f} steps wide")
    _notes(look.notices)


def _instrument(look: InstrumentLook) -> None:
    lines = ", ".join(f"{w:g}" for w in look.wavelengths_angstrom)
    profile = "profile known" if look.profile_known else "profile unknown"
    beam = f"{lines} angstrom" if lines else "time of flight"
    typer.echo(f"{look.radiation} {beam}, {look.geometry.replace('_', '-')}, {profile}")
    _notes(look.notices)


def _structure(look: StructureLook) -> None:
    cell = " ".join(f"{value:g}" for value in look.cell)
    typer.echo(f"{look.name}: {look.formula or 'no formula'}, {look.space_group}, {cell}, {look.density:.3f} g/cm3")
    for atom in look.atoms:
        u_iso = "-" if atom.u_iso is None else f"{atom.u_iso:g}"
        place = f"{atom.x:.5f} {atom.y:.5f} {atom.z:.5f} in {atom.multiplicity} places"
        typer.echo(f"  {atom.label} {atom.species} {place}, occupancy {atom.occupancy:g}, Uiso {u_iso}")
    for violation in look.violations:
        typer.echo(f"  {violation.severity} violation: {violation.text} ({violation.code})")
    _notes(look.notices)


def _notes(notices: Iterable[Coded]) -> None:
    for notice in notices:
        typer.echo(f"  note: {notice.text} ({notice.code})")
