"""``autoxrd compare-engines``: the same accepted steps on two engines, parameter by parameter."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from autoxrd.agent.compare import Comparison, Row

__all__ = ["compare_engines"]


def compare_engines(
    pattern: Annotated[Path, typer.Argument(help="Measured pattern, or the directory of a finished job.")],
    structure: Annotated[
        list[Path], typer.Option("--structure", "-s", help="CIF of a candidate phase; repeat for more.")
    ] = [],  # noqa: B006  # typer copies it
    instrument: Annotated[Path | None, typer.Option("--instrument", "-i", help="GSAS or GSAS-II file.")] = None,
    anode: Annotated[str | None, typer.Option("--anode", help="X-ray tube: Cu, Co, Mo, Cr, Fe, Ag.")] = None,
    wavelength: Annotated[str | None, typer.Option("--wavelength", "-w", help="Angstrom, as for refine.")] = None,
    radiation: Annotated[str | None, typer.Option("--radiation", help="xray or neutron.")] = None,
    geometry: Annotated[str | None, typer.Option("--geometry", help="bragg_brentano or debye_scherrer.")] = None,
    fit_range: Annotated[str | None, typer.Option("--range", help="2theta range to fit, deg: 20,150.")] = None,
    engine: Annotated[str, typer.Option("--engine", help="Engine whose accepted steps are taken.")] = "rietx",
    other: Annotated[str, typer.Option("--with", help="Engine that repeats them.")] = "gsasii",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Directory of the job that is made.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead.")] = False,
) -> None:
    """Refine with one engine, repeat the accepted steps on another, and tabulate the differences in esds.

    Exit code 3 where a parameter differs by more than three combined esds (a cell: and 50 ppm; a fraction: and 0.7 %).
    """
    from autoxrd.agent.compare import compare_engines as compare
    from autoxrd.engines.registry import get_engine
    from autoxrd.errors import EngineUnavailable

    usable, reason = get_engine(other).available()
    if not usable:
        raise EngineUnavailable("engine_unavailable", f"The engine {other} cannot be used: {reason}.")
    directory = pattern
    if not pattern.is_dir():
        choices = {"instrument": instrument, "anode": anode, "wavelength": wavelength, "radiation": radiation}
        directory = _refined(pattern, structure, out, fit_range, engine=engine, geometry=geometry, **choices)
    found = compare(directory, other)
    if as_json:
        typer.echo(json.dumps(found.as_dict()))
    else:
        _print(found)
    if not all(row.agree for row in found.rows):
        raise typer.Exit(3)


def _refined(pattern: Path, structures: list[Path], out: Path | None, fit_range: str | None, **choices: Any) -> Path:
    """Refine with the first engine and return the job's directory."""
    from autoxrd.agent.inputs import Request, load_job
    from autoxrd.agent.run import start_job
    from autoxrd.cli.reading import limits_pair
    from autoxrd.cli.refining import command_line, free_directory

    limits = limits_pair(fit_range, "--range") if fit_range else None
    request = Request(pattern=pattern, structures=tuple(structures), two_theta_limits=limits, **choices)
    job, sources = load_job(request)
    directory = out or free_directory(pattern.stem)
    start_job(job, directory, sources=sources, command=command_line())
    return directory


def _print(found: Comparison) -> None:
    first, second = found.engines
    typer.echo(f"{'':44s} {first:>22s} {second:>22s}   difference")
    typer.echo(f"{'Rwp (%)':44s} {100 * found.rwp[0]:22.3f} {100 * found.rwp[1]:22.3f}")
    for row in found.rows:
        typer.echo(f"{row.name:44s} {_value(row.first, row.first_esd)} {_value(row.second, row.second_esd)}{_off(row)}")
    for text in found.assumptions:
        typer.echo(f"may explain what differs: {text}")


def _value(value: float, esd: float | None) -> str:
    from autoxrd.report.format import value_with_esd

    return f"{value_with_esd(value, esd):>22s}"


def _off(row: Row) -> str:
    parts = [] if row.difference_esds is None else [f"{row.difference_esds:+.1f} esd"]
    parts += [] if row.difference_ppm is None else [f"{row.difference_ppm:+.0f} ppm"]
    return "   " + ", ".join(parts) + ("" if row.agree else "   differs")
