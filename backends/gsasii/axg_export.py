"""The ``export`` command: files for people and for other programs, from a state and the record of its fit."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from axg_model import build_model
from axg_pattern import Computed, Engine
from axg_report import reflection_arrays
from axg_state import State, encode
from axr_wire import Refused

__all__ = ["KINDS", "export"]

Notices = list[tuple[str, str]]


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
    rows = reflection_arrays(job.engine.model, job.seen)
    with (job.folder / "reflections.csv").open("w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle)
        head = ["phase", "line", "h", "k", "l", "multiplicity", "d_angstrom", "two_theta_deg", "fwhm_deg", "f2_calc"]
        writer.writerow([*head, "intensity"])
        for number in range(len(rows["position"])):
            name = job.state.phases[int(rows["phase"][number])].name
            figures = [float(rows[key][number]) for key in ("d_angstrom", "position", "fwhm", "f2_calc", "intensity")]
            indices = [int(index) for index in rows["hkl"][number]]
            counted = [int(rows["line"][number]), *indices, int(rows["multiplicity"][number])]
            writer.writerow([name, *counted, *(f"{figure:.8g}" for figure in figures)])


def _native(job: _Job) -> None:
    """Write our snapshot, which goes on in AutoXRD."""
    (job.folder / "snapshot.bin").write_bytes(encode(job.state))


def _safe(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_+-]", "_", name)[:80]


KINDS: dict[str, Callable[[_Job], None]] = {"hkl": _hkl, "native": _native}
