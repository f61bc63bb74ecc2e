"""The ``export`` command for several histograms: one GSAS-II project with all of them, reflections of each."""

from __future__ import annotations

import contextlib
import io
import random
from pathlib import Path
from typing import Any

import numpy as np
from axg_export import Notices, compare_figures, write_reflections
from axg_joint import STRAIN, JointState, bare, encode_any, joint_catalog
from axg_model import Model, build_model, cell_of, phase_entry, set_parameters
from axg_names import build_catalog
from axg_pattern import Computed, Engine
from axg_project import G2sc, Written, add_histogram, computed_once, forget_place, put_atoms, put_linked
from axr_wire import Refused
from GSASII import GSASIIlattice as G2lat
from GSASII import GSASIIspc as G2spc

__all__ = ["export_joint"]

_RECIPROCAL = ("D11", "D22", "D33", "D12", "D13", "D23")
"""GSAS-II's strains in the order of its reciprocal metric."""


def export_joint(state: JointState, kinds: list[str], folder: Path) -> tuple[list[str], Notices]:
    """Write files and return their names, and what is to be said of them.

    Args:
        state: the state to export.
        kinds: ``hkl`` and ``native``.
        folder: where to, existing.

    Raises:
        Refused: a kind is unknown, or cannot be written.
    """
    unknown = [kind for kind in kinds if kind not in ("hkl", "native")]
    if unknown:
        raise Refused("input", "export_unknown", f"Unknown export kinds {unknown}; known are hkl, native.")
    models = [build_model(member) for member in state.members]
    seen = [Engine(model).compute(model.state.values) for model in models]
    notices: Notices = []
    if "hkl" in kinds:
        for name, model, part in zip(state.names, models, seen, strict=True):
            write_reflections(folder / f"reflections_{name}.csv", model, part, {})
    if "native" in kinds:
        _native(state, models, seen, folder, notices)
    return sorted(path.name for path in folder.iterdir()), notices


def _native(state: JointState, models: list[Model], seen: list[Computed], folder: Path, notices: Notices) -> None:
    catalog = joint_catalog(state, [build_catalog(model) for model in models])
    released = {name for pattern in state.last.get("released", ()) for name in catalog.match(pattern)}
    try:
        written = _project(state, models, released, folder)
    except Exception as error:  # whatever GSAS-II raises: the state is whole, only its project is missing
        raise Refused("internal", "export_failed", f"GSAS-II cannot write its project: {str(error)[:300]}") from error
    (folder / "snapshot.bin").write_bytes(encode_any(state))
    observed = np.concatenate([model.y for model in models])
    sigma = np.concatenate([model.sigma for model in models])
    compare_figures(folder, observed, sigma, np.concatenate([part.y for part in seen]), written, notices)


def _project(state: JointState, models: list[Model], released: set[str], folder: Path) -> Written:
    """Write ``refinement.gpx`` and ``refinement.lst``, and let GSAS-II compute all patterns once."""
    path = folder / "refinement.gpx"
    own = [{bare(name)[1] for name in released if bare(name)[0] in ("", mine)} for mine in state.names]
    random.seed(0)
    with contextlib.redirect_stdout(io.StringIO()):
        project = G2sc.G2Project(newgpx=str(path))
        histograms = [
            add_histogram(project, model.state, free, folder / f"histogram_{name}.xye")
            for name, model, free in zip(state.names, models, own, strict=True)
        ]
        for number in range(len(models[0].state.phases)):
            _phase(project, histograms, state, models, number, own)
        answer = computed_once(project, path)
    forget_place(project, folder)
    for left in (*folder.glob("refinement.bak*.gpx"), *folder.glob("histogram_*.xye")):
        left.unlink()
    return answer


def _phase(
    project: Any, histograms: list[Any], state: JointState, models: list[Model], number: int, own: list[set[str]]
) -> None:
    first = models[0].state
    phase = first.phases[number]
    entry = phase_entry(phase, first, number)
    data = put_atoms(project, histograms, entry, phase, own[0])
    strains = [cell_of(member.phases[number], member.values) for member in state.members]
    for place, (histogram, model) in enumerate(zip(histograms, models, strict=True)):
        set_parameters(model, model.state.values)
        linked = data["Histograms"][histogram.name]
        # widths and textures have the form that they have in this histogram
        put_linked(linked, model.state.phases[number], model.parameters, number, own[place])
        shift = np.array(G2lat.cell2A(strains[place])) - np.array(G2lat.cell2A(strains[0]))
        names = G2spc.HStrainNames(entry["General"]["SGData"])
        free = f"phase.{phase.name}.{STRAIN}" in own[place]
        # a cubic phase has a further one, of no cell: eA
        known = dict(zip(_RECIPROCAL, shift.tolist(), strict=True))
        linked["HStrain"] = [[known.get(name, 0.0) for name in names], [free and name in known for name in names]]
