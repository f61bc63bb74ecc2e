"""A GSAS-II project of a state, to go on by hand: written by GSAS-II, from our numbers, with what was free flagged.

GSAS-II then computes the pattern once, without refining, so that its own R factor stands beside ours. What it
says is told, not believed: the figures of a state are ours.
"""

from __future__ import annotations

import contextlib
import io
import math
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from axg_broadening import gsasii_harmonic
from axg_model import Model, background_entry, instrument_entry, phase_entry, sample_entry, set_parameters, shape_entry
from axg_quantities import FLIGHT_POSITION, FLIGHT_SHAPE
from axg_state import PhaseModel, State
from GSASII import GSASIIscriptable as G2sc
from GSASII import GSASIIstrIO as G2strIO
from GSASII import GSASIIstrMain as G2strMain

__all__ = [
    "G2sc",
    "Written",
    "add_histogram",
    "computed_once",
    "forget_place",
    "put_atoms",
    "put_linked",
    "write_project",
]

_LINEAR = {"profile.U": "U", "profile.V": "V", "profile.W": "W", "profile.X": "X", "profile.Y": "Y", "profile.Z": "Z"}
_INSTRUMENT = {"instrument.zero": "Zero", "profile.SH/L": "SH/L", "instrument.ka2_ratio": "I(L2)/I(L1)", **_LINEAR}
_INSTRUMENT |= {f"instrument.{key}": key for key in FLIGHT_POSITION} | {f"profile.{key}": key for key in FLIGHT_SHAPE}
_SAMPLE = {"sample.displacement": "Shift", "sample.transparency": "Transparency", "absorption": "Absorption"}
_SAMPLE |= {"sample.roughness": "SurfRoughB"}
_SAMPLE |= {"sample.offset_across": "DisplaceX", "sample.offset_along": "DisplaceY"}


@dataclass(frozen=True)
class Written:
    """What GSAS-II made of it.

    Args:
        r_weighted: GSAS-II's weighted profile R factor, a fraction; None where it could not compute one.
        problem: what it said then.
    """

    r_weighted: float | None
    problem: str = ""


class _G2Dialog:
    """Stands in for a progress window: with one, GSAS-II returns its result; the letters G2 in its name matter."""

    def Update(self, *_: object, **__: object) -> tuple[bool, bool]:  # noqa: N802 (GSAS-II's name)
        return True, False

    def AdvanceCycle(self, *_: object) -> None:  # noqa: N802
        return None

    def SetHistogram(self, *_: object) -> None:  # noqa: N802
        return None


def write_project(model: Model, released: set[str], folder: Path) -> Written:
    """Write ``refinement.gpx`` and ``refinement.lst`` into a folder.

    Args:
        model: GSAS-II's dictionaries of the state.
        released: concrete selectors that were free.
        folder: where to, existing.
    """
    state, path = model.state, folder / "refinement.gpx"
    random.seed(0)
    with contextlib.redirect_stdout(io.StringIO()):
        project = G2sc.G2Project(newgpx=str(path))
        histogram = add_histogram(project, state, released, folder / "pattern.xye")
        for number, phase in enumerate(state.phases):
            _phase(project, histogram, model, number, released)
            assert phase.name in project.data["Phases"]
        answer = computed_once(project, path)
    forget_place(project, folder)
    for left in folder.glob("refinement.bak*.gpx"):
        left.unlink()
    (folder / "pattern.xye").unlink()
    return answer


def computed_once(project: Any, path: Path) -> Written:
    """Let GSAS-II compute a project that is complete, and refine nothing."""
    project.data["Controls"]["data"]["max cyc"] = 0
    project.data["Covariance"] = {"data": {}}
    project.index_ids()
    answer = _evaluated(path)
    project.reload()
    return answer


def add_histogram(project: Any, state: State, released: set[str], source: Path) -> Any:
    """Add the pattern from a file of ours, and put our arrays and weights in place of what GSAS-II read."""
    rows = np.stack([state.x, state.y, state.sigma], axis=1)
    if state.flight is not None:  # GSAS-II drops the last point of these
        rows = np.vstack([rows, rows[-1] + [rows[-1, 0] - rows[-2, 0], 0.0, 0.0]])
    np.savetxt(source, rows, fmt="%.10g")
    entry = instrument_entry(state)
    for name, key in _INSTRUMENT.items():
        if key in entry:
            entry[key][2] = name in released
    histogram = project.add_powder_histogram(str(source), [entry, {}], fmthint="xye")
    arrays = histogram.data["data"][1]
    if len(arrays[0]) != state.x.size:
        raise ValueError("GSAS-II did not read as many points as were written")
    # a mask alone would leave the excluded points in GSAS-II's denominators
    arrays[0][:], arrays[1][:] = state.x, state.y
    arrays[2][:] = np.where(state.used(), state.sigma**-2.0, 0.0)
    used = state.x[state.used()]
    histogram.Limits("lower", float(used[0]))
    histogram.Limits("upper", float(used[-1]))
    if state.excluded:
        histogram.Excluded([[max(a, float(state.x[0])), min(b, float(state.x[-1]))] for a, b in state.excluded])
    sample = sample_entry(state)
    for name, key in _SAMPLE.items():
        if key in sample:
            sample[key] = [sample[key][0], name in released]
    histogram.data["Sample Parameters"].update(sample)
    histogram.data["Background"] = background_entry(state, free=released)
    return histogram


def _phase(project: Any, histogram: Any, model: Model, number: int, released: set[str]) -> None:
    state = model.state
    phase = state.phases[number]
    data = put_atoms(project, [histogram], phase_entry(phase, state, number), phase, released)
    set_parameters(model, state.values)
    put_linked(data["Histograms"][histogram.name], phase, model.parameters, number, released)


def put_atoms(
    project: Any, histograms: list[Any], entry: dict[str, Any], phase: PhaseModel, released: set[str]
) -> dict[str, Any]:
    """Add a phase with its cell and atoms, linked to histograms, and return GSAS-II's entry of it."""
    prefix, group = f"phase.{phase.name}", entry["General"]["SGData"]
    cell = [float(value) for value in entry["General"]["Cell"][1:7]]
    added = project.add_phase(None, phasename=phase.name, spacegroup=group["SpGrp"], cell=cell, histograms=histograms)
    data: dict[str, Any] = added.data
    data["General"]["SGData"] = group
    data["General"]["Cell"][0] = f"{prefix}.cell" in released
    data["Atoms"] = entry["Atoms"]
    for row in data["Atoms"]:
        base = f"{prefix}.atom.{row[0]}"
        flags = {"F": "occupancy", "X": "position", "U": "uiso"}
        row[2] = "".join(flag for flag, name in flags.items() if f"{base}.{name}" in released)
    G2sc.SetupGeneral(data, None)
    return data


def put_linked(
    linked: dict[str, Any], phase: PhaseModel, numbers: dict[str, Any], number: int, released: set[str]
) -> None:
    """Put what a phase has of one histogram into GSAS-II's entry: scale, widths, texture, extinction."""
    prefix = f"phase.{phase.name}"
    linked["Scale"] = [numbers[f"{number}:0:Scale"], f"{prefix}.scale" in released]
    linked["Extinction"] = [numbers[f"{number}:0:Extinction"], f"{prefix}.extinction" in released]
    _lines_entry(linked, phase, numbers, number, released)
    linked["Use"] = True


def _lines_entry(
    linked: dict[str, Any], phase: PhaseModel, numbers: dict[str, Any], number: int, released: set[str]
) -> None:
    """Put the numbers of widths and texture into GSAS-II's entry, in the form that the phase has."""
    prefix, both = f"phase.{phase.name}", f"{number}:0:"
    shape_entry(linked, phase)
    for key, quantity, axis in (("Size", "size", phase.size_axis), ("Mustrain", "strain", phase.strain_axis)):
        free = f"{prefix}.{quantity}" in released
        linked[key][1][0], linked[key][2][0] = numbers[f"{both}{key};i"], free
        if axis is not None:
            linked[key][1][1], linked[key][2][1] = numbers[f"{both}{key};a"], free
    for k in range(len(phase.stephens)):
        linked["Mustrain"][4][k] = numbers[f"{both}Mustrain;{k}"]
        linked["Mustrain"][5][k] = f"{prefix}.strain" in released
    free = f"{prefix}.preferred_orientation" in released
    linked["Pref.Ori."][1:3] = [numbers[f"{both}MD"], free]
    for name in map(gsasii_harmonic, phase.harmonics):
        linked["Pref.Ori."][5][name] = numbers[f"{both}{name}"]


def _evaluated(path: Path) -> Written:
    """Let GSAS-II compute the pattern without refining; believe the return value, not a stored result."""
    error, _ = G2strIO.ReadCheckConstraints(str(path))
    if error:
        return Written(None, str(error)[:300])
    done, figures = G2strMain.Refine(str(path), dlg=_G2Dialog(), makeBack=False)
    value = figures.get("Rwp")
    if not done or value is None or not math.isfinite(value):
        return Written(None, str(figures.get("msg", ""))[:300])
    return Written(0.01 * float(value))


def forget_place(project: Any, folder: Path) -> None:
    """Take the folder of this machine out of the files: a project travels."""
    with contextlib.redirect_stdout(io.StringIO()):
        project.data["Controls"]["data"]["LastSavedAs"] = "refinement.gpx"
        for phase in project.data["Phases"].values():
            if isinstance(phase, dict) and "General" in phase:
                phase["General"]["Mydir"] = ""
        project.save()
    listing = folder / "refinement.lst"
    if listing.is_file():
        text = listing.read_text(encoding="utf-8", errors="replace")
        listing.write_text(text.replace(f"{folder}/", ""), encoding="utf-8")
