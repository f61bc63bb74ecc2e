"""The ``export`` command: files for people and for other programs, from a state and the record of its fit."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from axg_lebail import intensity_esds
from axg_model import Model, build_model
from axg_names import build_catalog
from axg_pattern import Computed, Engine
from axg_report import reflection_arrays
from axg_state import State, encode
from axr_wire import Refused, write_json

if TYPE_CHECKING:
    from axg_project import Written

__all__ = ["KINDS", "Notices", "compare_figures", "export", "write_reflections"]

Notices = list[tuple[str, str]]
DIFFERENCE = 0.01
"""Relative difference of Rwp that is told as a warning."""


@dataclass(frozen=True)
class _Job:
    """What every writer needs."""

    state: State
    engine: Engine
    seen: Computed
    folder: Path
    notices: Notices


def export(state: State, kinds: list[str], folder: Path) -> tuple[list[str], Notices]:
    """Write files and return their names.

    Args:
        state: the state to export.
        kinds: which of ``KINDS``.
        folder: where to, existing.

    Raises:
        Refused: a kind is unknown, or cannot be written.
    """
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise Refused("input", "export_unknown", f"Unknown export kinds {unknown}; known are {list(KINDS)}.")
    engine = Engine(build_model(state))
    job = _Job(state, engine, engine.compute(state.values), folder, [])
    for kind in kinds:
        KINDS[kind](job)
    return sorted(path.name for path in folder.iterdir()), job.notices


def _hkl(job: _Job) -> None:
    """Write the reflections as a table."""
    write_reflections(job.folder / "reflections.csv", job.engine.model, job.seen, _matched_esds(job))


def write_reflections(path: Path, model: Model, seen: Computed, esds: dict[tuple[int, ...], float]) -> None:
    """Write the reflections of a pattern as a table.

    Args:
        path: the file.
        model: GSAS-II's dictionaries.
        seen: the pattern.
        esds: of F^2 by phase and indices, of a profile match; empty else.
    """
    rows = reflection_arrays(model, seen)
    with path.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle)
        head = ["phase", "line", "h", "k", "l", "multiplicity", "d_angstrom"]
        head += ["two_theta_deg", "fwhm_deg"] if model.state.flight is None else ["tof_us", "fwhm_us"]
        writer.writerow([*head, "f2_calc", "intensity", *(["f2_esd"] if esds else [])])
        for number in range(len(rows["position"])):
            name = model.state.phases[int(rows["phase"][number])].name
            figures = [float(rows[key][number]) for key in ("d_angstrom", "position", "fwhm", "f2_calc", "intensity")]
            indices = [int(index) for index in rows["hkl"][number]]
            if esds:
                figures.append(esds[(int(rows["phase"][number]), *indices)])
            counted = [int(rows["line"][number]), *indices, int(rows["multiplicity"][number])]
            writer.writerow([name, *counted, *(f"{figure:.8g}" for figure in figures)])


def _matched_esds(job: _Job) -> dict[tuple[int, ...], float]:
    """Return the esd of every F^2 of a profile match by phase and indices; nothing for a structure's."""
    state = job.state
    if state.mode != "lebail":
        return {}
    columns = tuple(build_catalog(job.engine.model).freed(state.last.get("released", ())))
    found, _ = intensity_esds(Engine(job.engine.model), state.values, columns)
    return {
        (index, *(int(item) for item in hkl)): float(esd)
        for index, (structure, esds) in enumerate(zip(job.engine.structures, found, strict=True))
        for hkl, esd in zip(structure.hkl, esds, strict=True)
    }


def _native(job: _Job) -> None:
    """Write GSAS-II's project and listing, and our snapshot, which goes on in AutoXRD."""
    from axg_project import write_project  # here: it loads GSAS-II's scripting and all its readers

    catalog = build_catalog(job.engine.model)
    released = {name for pattern in job.state.last.get("released", ()) for name in catalog.match(pattern)}
    try:
        written = write_project(job.engine.model, released, job.folder)
    except Exception as error:  # whatever GSAS-II raises: the state is whole, only its project is missing
        raise Refused("internal", "export_failed", f"GSAS-II cannot write its project: {str(error)[:300]}") from error
    (job.folder / "snapshot.bin").write_bytes(encode(job.state))
    model = job.engine.model
    compare_figures(job.folder, model.y, model.sigma, job.seen.y, written, job.notices)


def compare_figures(
    folder: Path, y: np.ndarray, sigma: np.ndarray, calculated: np.ndarray, written: Written, notices: Notices
) -> None:
    """Write what GSAS-II says of the same state beside our figure, and tell where they differ."""
    theirs, problem = written.r_weighted, written.problem
    weight = sigma**-2.0
    ours = float(np.sqrt(np.sum(weight * (y - calculated) ** 2) / np.sum(weight * y**2)))
    write_json(folder / "gsasii-check.json", {"rwp": ours, "rwp_gsasii": theirs, "problem": problem})
    if theirs is None:
        notices.append(("gsasii_r_missing", f"GSAS-II gave no R factor of this state: {problem}"))
    elif abs(theirs - ours) > DIFFERENCE * ours:
        text = f"GSAS-II's Rwp of this state is {100 * theirs:.3f} %, ours {100 * ours:.3f} %."
        notices.append(("gsasii_r_differs", text))


KINDS: dict[str, Callable[[_Job], None]] = {"hkl": _hkl, "native": _native}
