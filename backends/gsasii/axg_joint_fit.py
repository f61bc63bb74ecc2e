"""The ``prepare``, ``execute`` and ``export`` commands for several histograms of one sample."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from axg_axial import AXIAL_FLOOR, axial_start
from axg_fit import (
    AXIAL_SEED,
    arrays_of,
    ending,
    figures,
    freed_by,
    note_absent,
    note_unmatched,
    record_of,
    short_notices,
)
from axg_joint import JointState, first_strains, full, joint_catalog, local
from axg_joint_edits import apply_joint_edits
from axg_joint_gains import joint_gains
from axg_joint_report import Whole, joint_parameters, joint_phases, joint_uncertainties, member_meta
from axg_joint_solve import JointResiduals, joint_guard, joint_strains
from axg_model import build_model
from axg_names import Catalog, Column, build_catalog
from axg_pattern import Engine
from axg_prepare import prepare
from axg_report import reflection_arrays
from axg_solve import Kit, Outcome, limits_of, refine
from axg_version import version
from axr_wire import Refused, read_arrays

__all__ = ["execute_joint", "prepare_joint"]

_KIT = Kit(JointResiduals, joint_guard, joint_strains, "degrees (angstrom over the time of flight)")

_Result = tuple[JointState, dict[str, Any], dict[str, np.ndarray]]


def prepare_joint(request: dict[str, Any], folder: Path) -> JointState:
    """Return the first state of several histograms.

    Args:
        request: ``histograms``, each with ``name``, ``axis``, ``instrument`` and ``settings``; ``structures`` of all.
        folder: with the arrays of each, ``pattern.N.npz``.

    Raises:
        Refused: the input cannot be refined by this engine.
    """
    given = request["histograms"]
    names = tuple(str(item["name"]) for item in given)
    if len(names) < 2 or len(set(names)) != len(names) or not all(name.replace("_", "").isalnum() for name in names):
        raise Refused("input", "histograms_invalid", "Several histograms have different names of letters and digits.")
    members, notices = [], []
    for number, item in enumerate(given):
        single = {key: item[key] for key in ("axis", "instrument", "settings")}
        try:
            member = prepare(
                {**single, "structures": request["structures"]}, read_arrays(folder / f"pattern.{number}.npz")
            )
        except Refused as error:
            raise Refused(error.kind, error.code, f"Histogram {names[number]}: {error.detail}") from error
        notices += [(code, f"Histogram {names[number]}: {text}") for code, text in member.notices]
        members.append(replace(member, notices=()))
    return JointState(names, tuple(members), first_strains(names, members), tuple(dict.fromkeys(notices)))


def execute_joint(state: JointState, command: dict[str, Any]) -> _Result:
    """Carry out a command on a state of several histograms.

    Returns:
        The new state, the result's description (JSON) and its arrays.

    Raises:
        Refused: the command cannot be carried out.
    """
    state = apply_joint_edits(state, command["edits"])
    if command["mode"] != "rietveld":
        raise Refused("input", "mode_unknown", "Several histograms are refined with structures only.")
    catalog = _catalog(state)
    columns = catalog.freed(command["released"])
    state = _seed_axial(state, columns)
    limits = limits_of(catalog, state.values, command["bounds"])
    outcome = Outcome()
    note_unmatched(catalog, command["released"], outcome)
    if columns and command["cycles"] > 0:
        state = refine(state, columns, limits, command, outcome, _KIT)
    columns = [column for column in columns if column.name not in outcome.absent]
    note_absent(outcome)
    if columns and command["cycles"] > 0:
        state = replace(state, last=record_of(command, catalog, outcome))
    return _reported(state, command, columns, limits, outcome)


def _catalog(state: JointState) -> Catalog:
    return joint_catalog(state, [build_catalog(build_model(member)) for member in state.members])


def _seed_axial(state: JointState, columns: list[Column]) -> JointState:
    """Start the axial divergence of a histogram where it gains most, when it is released from GSAS-II's floor."""
    for number, histogram in enumerate(state.names):
        own = full(histogram, "profile.S/L")
        if not any(column.name == own for column in columns) or state.values[own] > AXIAL_FLOOR:
            continue
        beside = [c for column in columns if (c := local(column, number, state, state.values)) is not None]
        start = max(axial_start(state.members[number], beside), AXIAL_SEED)
        state = replace(state.with_values({own: start, full(histogram, "profile.H/L"): start}), last={})
    return state


def _reported(
    state: JointState,
    command: dict[str, Any],
    columns: list[Column],
    limits: dict[str, tuple[float, float]],
    outcome: Outcome,
) -> _Result:
    whole = _whole(state, columns, limits, outcome)
    gained, axials = joint_gains(whole) if command["gains"] else (None, [])
    parameters, phases = joint_parameters(whole), joint_phases(whole)
    if gained is not None:
        parameters += joint_uncertainties(whole, gained.problem, axials, parameters)
    notes = [] if gained is None else gained.notes
    meta = {
        "parameters": parameters,
        "phases": phases,
        "covariance_names": outcome.names,
        "convergence": ending(outcome),
        "engine_r": figures(*whole.pattern(), len(outcome.names)),
        "notices": [list(item) for item in short_notices([*state.notices, *outcome.notices, *whole.notices(), *notes])],
        "gains": {} if gained is None else gained.gains,
        "gain_counts": {} if gained is None else gained.counts,
        "selectors": freed_by(command, whole.catalog),
        "engine_version": version(),
        "mode": state.mode,
        "esd_kind": "gof_scaled",
        "histograms": {name: member_meta(whole, number) for number, name in enumerate(state.names)},
    }
    return state, meta, _arrays(whole)


def _whole(state: JointState, columns: list[Column], limits: dict[str, tuple[float, float]], outcome: Outcome) -> Whole:
    models = [build_model(member) for member in state.members]
    catalogs = [build_catalog(model) for model in models]
    seen = [Engine(model).compute(model.state.values) for model in models]
    reflections = [reflection_arrays(model, part) for model, part in zip(models, seen, strict=True)]
    catalog = joint_catalog(state, catalogs)
    return Whole(state, models, catalogs, catalog, seen, reflections, columns, limits, outcome)


def _arrays(whole: Whole) -> dict[str, np.ndarray]:
    """Return the covariance, and the curves and reflections of each histogram under its number."""
    arrays = {"covariance": whole.outcome.covariance}
    for number, (model, seen) in enumerate(zip(whole.models, whole.seen, strict=True)):
        own = arrays_of(model, seen, whole.reflections[number], whole.outcomes[number][0].covariance)
        arrays |= {f"{number}.{key}": value for key, value in own.items()}
    return arrays
