"""The CSV tables: profile, reflections, parameters. UTF-8, comma, header line, guarded text cells."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence

from autoxrd.domain.instrument import Instrument
from autoxrd.report.model import ReportInput
from autoxrd.report.parameters import parameter_rows

__all__ = ["guarded", "parameters_csv", "profile_csv", "reflections_csv", "write_csv"]

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet runs a text cell that starts so (OWASP, CSV injection)."""


def guarded(text: str) -> str:
    """Return a text cell that no spreadsheet takes for a formula: a leading apostrophe where needed."""
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        # 12 digits: more than any measurement has, and no 12.000000000000002.
        return f"{value:.12g}" if math.isfinite(value) else ""
    return guarded(str(value))


def write_csv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    """Write a table: UTF-8, comma, header line; text that a spreadsheet would run is guarded."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([guarded(h) for h in header])
    writer.writerows([_cell(v) for v in row] for row in rows)
    return out.getvalue().encode()


def profile_csv(inp: ReportInput) -> bytes:
    """Write the fit point by point: x, obs, sigma, calc, background, diff, one Bragg column per phase.

    ``x`` is on the job's axis; intensities are in the pattern's unit; ``diff`` is obs minus calc.
    """
    a = inp.arrays
    columns = [a.x, a.y_obs, a.sigma, a.y_calc, a.background, a.difference, *a.phase_patterns]
    header = ["x", "obs", "sigma", "calc", "background", "diff", *(p.name for p in inp.state.phases)]
    return write_csv(header, zip(*(c.tolist() for c in columns), strict=True))


def line_name(instrument: Instrument, index: int) -> str:
    """Name an emission line by its wavelength in angstrom."""
    waves = instrument.wavelengths_angstrom
    return f"{waves[index]:.7g}" if 0 <= index < len(waves) else str(index)


def reflections_csv(inp: ReportInput) -> bytes:
    """Write the reflections of all phases and lines; ``line`` is the wavelength in angstrom as the job started.

    Of a profile match ``f2`` is measured, on a scale of its own, and has an esd; zero where there is no intensity.
    """
    r = inp.reflections
    names = [p.name for p in inp.state.phases]
    header = [
        "phase",
        "h",
        "k",
        "l",
        "multiplicity",
        "d",
        "two_theta" if inp.job.instrument.flight is None else "tof",
        "line",
        "fwhm",
        "intensity",
        "f2",
    ]
    esds = r.f2_esd
    header += [] if esds is None else ["f2_esd"]
    rows = (
        [
            names[int(r.phase[i])], *(int(v) for v in r.hkl[i]), int(r.multiplicity[i]), float(r.d_angstrom[i]),
            float(r.position[i]), line_name(inp.job.instrument, int(r.line[i])), float(r.fwhm[i]),
            float(r.intensity[i]), float(r.f2_calc[i]), *([] if esds is None else [float(esds[i])]),
        ]
        for i in range(r.phase.size)
    )  # fmt: skip
    return write_csv(header, rows)


def parameters_csv(inp: ReportInput) -> bytes:
    """Write every refined and derived quantity, keyed by phase and atom label."""
    header = [
        "name", "phase", "atom", "quantity", "value", "esd", "uncertainty", "unit", "lower", "upper",
        "released_in_step", "derived",
    ]  # fmt: skip
    return write_csv(header, ([getattr(row, name) for name in header] for row in parameter_rows(inp)))
