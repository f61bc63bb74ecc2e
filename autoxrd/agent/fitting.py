"""From an action to an engine command, and from an engine's result to a recorded state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase

from autoxrd.agent.estimating import Seen, estimated_values
from autoxrd.agent.job import Job
from autoxrd.agent.starting import Start
from autoxrd.domain.action import Action, ActionKind, Bound, Stage
from autoxrd.domain.histogram import Histogram
from autoxrd.domain.state import Feature, FitState
from autoxrd.engines.encoding import structure_json
from autoxrd.engines.protocol import Edit, EngineCommand, EngineResult, EngineSession, Snapshot
from autoxrd.errors import EngineError, PlannerError
from autoxrd.gates.known import known_cell_features
from autoxrd.gates.matching import returning
from autoxrd.gates.policy import plausibility_limits
from autoxrd.gates.shapes import ESTIMATE, LISTS, Shape, shape_of
from autoxrd.primitives import canonical_json
from autoxrd.science.absolute import absolute_quantities
from autoxrd.science.inputs import MeasureContext
from autoxrd.science.observe import measure
from autoxrd.science.several import measure_several
from autoxrd.science.statistics import weighted_profile_r

__all__ = [
    "NOT_EXECUTED",
    "PROFILE_MATCH",
    "command_for",
    "measure_state",
    "prepared",
    "reachable_rwp",
    "released_after",
    "reshaping",
]

NOT_EXECUTED = frozenset({ActionKind.SWITCH_PROFILE})
"""Kinds that the rules know and no engine command carries out: to run them would do something else than they say."""

PROFILE_MATCH = EngineCommand(cycles=20, mode="lebail", gains=False)
"""Intensities free, everything else as it is."""
_STEP_CYCLES = 40
_FAR_FWHM = 1.0
"""Lines further off than this, as a mean, are not what least squares reach."""
_JOINT_CYCLES = 100
_LEAVING = {ActionKind.REMOVE_PHASE: ("phase",), ActionKind.ADD_PHASE: ("replaces",)}
"""Settings of an action that name a phase which leaves the model."""


def prepared(session: EngineSession, job: Job) -> Snapshot:
    """Return the first snapshot of a job, of one histogram or of several."""
    known = {"known_cells": [known.phase for known in job.known_cells]} if job.known_cells else {}
    if job.others:
        histograms = tuple(replace(h, settings={**h.settings, **known}) for h in job.histograms)
        return session.prepare_several(histograms, job.first_structures)
    return session.prepare(job.pattern, job.instrument, job.first_structures, {**job.engine_settings, **known})


def released_after(action: Action, parent: FitState) -> tuple[str, ...]:
    """Return what is free after an action: cumulative, less what a freeze, a removed phase or a rival takes away.

    What a profile match moved is held again where it found it: beside the structure it was not free.
    """
    if action.kind is ActionKind.FREEZE:
        return tuple(s for s in parent.released if s not in action.parameters)
    if action.kind is ActionKind.PROFILE_MATCH:
        return tuple(dict.fromkeys((*parent.released, *returning(parent))))
    kept = tuple(s for s in parent.released if s not in action.instead_of)
    for key in _LEAVING.get(action.kind, ()):
        if key in action.settings:
            kept = tuple(s for s in kept if not s.startswith(f"phase.{action.settings[key]}."))
    return tuple(dict.fromkeys((*kept, *action.parameters)))


def _released(action: Action | None, parent: FitState | None, begun: Start | None) -> tuple[str, ...]:
    if action is not None and parent is not None:
        return released_after(action, parent)
    return begun.released if begun is not None else ()


def _bounds(action: Action | None, parent: FitState | None, begun: Start | None) -> tuple[Bound, ...]:
    held = parent.bounds if parent is not None else begun.bounds if begun is not None else ()
    return tuple({b.selector: b for b in (*held, *(action.bounds if action is not None else ()))}.values())


def command_for(action: Action, parent: FitState, job: Job, seen: Seen) -> EngineCommand:
    """Return the engine command of an action; a phase to be added is taken from the job's candidates.

    Args:
        action: what to do.
        parent: state that it starts from.
        job: its job.
        seen: the points that the parent used, asked for where a background is estimated from them.

    Raises:
        PlannerError: ``phase_unknown``.
        UserInputError: ``estimate_impossible``.
    """
    released = released_after(action, parent)
    bounds = {b.selector: b for b in (*parent.bounds, *action.bounds)}
    edits = _edits(action, parent, job, seen)
    cycles = _JOINT_CYCLES if action.kind is ActionKind.JOINT else _STEP_CYCLES
    return EngineCommand(
        released=released,
        bounds=tuple(bounds.values()),
        cycles=cycles,
        edits=edits,
        mode=job.mode,
        match_first=action.parameters if action.kind is ActionKind.PROFILE_MATCH else (),
    )


def _edits(action: Action, parent: FitState, job: Job, seen: Seen) -> tuple[Edit, ...]:
    settings = action.settings
    if action.instead_of:
        return (Edit("neutral", {"selectors": list(action.instead_of), "successors": list(action.parameters)}),)
    if action.kind is ActionKind.PROFILE_MATCH:
        return _stretched(action, parent)
    shape = shape_of(action)
    if shape is not None:
        return (reshaping(action, shape, job, seen),)
    if action.kind is ActionKind.EXCLUDE_REGION and "lower_deg" in settings:
        ends = {"lower_deg": settings["lower_deg"], "upper_deg": settings["upper_deg"]}
        return (Edit("exclude", ends | _place(action)),)
    if action.kind is ActionKind.REMOVE_PHASE and "phase" in settings:
        return (Edit("remove_phase", {"phase": settings["phase"]}),)
    if action.kind is ActionKind.ADD_PHASE:
        return (_addition(action, parent, job),)
    return ()


def _stretched(action: Action, parent: FitState) -> tuple[Edit, ...]:
    """Let the cells that a profile match frees start where their lines were found, where they are far from them.

    Least squares reach a line that is overlapped; the measures of the parent look for it over the whole pattern.
    """
    rms, alone = parent.features.get("position.rms"), parent.features.get("position.alone.cell")
    if rms is None or alone is None or (rms.value or 0.0) <= _FAR_FWHM or alone.significance is None:
        return ()
    rivals = (parent.features.get(f"position.alone.{cause}") for cause in ("zero", "displacement"))
    if any(rival is not None and (rival.significance or 0.0) > alone.significance for rival in rivals):
        return ()
    found = []
    for phase in parent.phases:
        own = parent.features.get(f"position.cell.{phase.name}") if len(parent.phases) > 1 else alone
        named = any(fnmatchcase(f"phase.{phase.name}.cell", selector) for selector in action.parameters)
        if named and own is not None and own.value is not None:
            found.append(Edit("stretch", {"phase": phase.name, "strain": own.value}))
    return tuple(found)


def reshaping(action: Action, shape: Shape, job: Job, seen: Seen) -> Edit:
    """Describe the form that the model shall have: the settings that belong to it, under the engine's names.

    Args:
        action: whose settings ask for the form.
        shape: the form.
        job: its job.
        seen: the points that a background is estimated from.

    Raises:
        UserInputError: ``estimate_impossible``.
    """
    settings = action.settings
    if shape.mark == ESTIMATE:
        name = settings.get("histogram")
        histogram = next((h for h in job.histograms if h.name == name), job.histograms[0])
        return Edit(shape.edit, estimated_values(settings, histogram.pattern.axis, seen) | _place(action))
    values: dict[str, float | int | str | tuple[float, ...] | list[str]] = {}
    for key, value in settings.items():
        if key in shape.needed or key in shape.optional:
            name = shape.names.get(key, key)
            values[name] = str(value).split() if name in LISTS else value
    return Edit(shape.edit, values | _place(action))


def _place(action: Action) -> dict[str, float | int | str | tuple[float, ...] | list[str]]:
    """Return which of several histograms an action's edit is about."""
    return {"histogram": str(action.settings["histogram"])} if "histogram" in action.settings else {}


def _addition(action: Action, parent: FitState, job: Job) -> Edit:
    """Describe the phase that comes in; its cell starts where its lines were found in the parent state."""
    name = str(action.settings["phase"])
    structure = next((s for s in job.phases if s.name == name), None)
    if structure is None:
        known = ", ".join(s.name for s in job.phases)
        raise PlannerError("phase_unknown", f"There is no candidate {name!r} to add; the job has {known}.")
    replaces = str(action.settings.get("replaces", ""))
    place = f".for.{replaces}" if replaces else ""
    strain = parent.features.get(f"candidate.{name}{place}.strain")
    return Edit(
        "add_phase",
        {
            "structure": canonical_json(structure_json(structure)),
            "form_factors": str(job.engine_settings.get("form_factors", "neutral")),
            "strain": strain.value if strain is not None and strain.value is not None else 0.0,
            "replaces": replaces,
        },
    )


def reachable_rwp(session: EngineSession, snapshot: Snapshot) -> Feature:
    """Measure the Rwp of a profile match from a state: intensities free, everything else as it is.

    The structure's Rwp close to it means that the misfit left is profile, background or data; far above it, that the
    structural model has room (Le Bail 2005, doi:10.1154/1.2135315). Nothing of the state changes.
    """
    try:
        _, result = session.execute(snapshot, PROFILE_MATCH)
    except EngineError as error:
        return Feature(value=None, available=False, reason=f"the profile match failed: {error.detail}")
    if not result.convergence.converged:
        reason = f"the profile match did not converge ({result.convergence.status or 'no status'})"
        return Feature(value=None, available=False, reason=reason)
    return Feature(value=weighted_profile_r(result.y_obs, result.sigma, result.y_calc), n_used=result.x.size)


def _context(histogram: Histogram, job: Job, matched: int | None = None) -> MeasureContext:
    return MeasureContext(
        instrument=histogram.instrument,
        initial={s.name: s for s in job.phases},
        axis=histogram.pattern.axis,
        sigma_origin=histogram.pattern.sigma_origin,
        limits=plausibility_limits(job.policy),
        matched=matched,
    )


def measure_state(
    result: EngineResult,
    job: Job,
    *,
    stage: Stage,
    parent: FitState | None,
    action: Action | None,
    files: Mapping[str, str],
) -> FitState:
    """Measure a result and return the state to be recorded.

    Args:
        result: what the engine gave.
        job: its job.
        stage: stage of the action, ``qc`` for the root.
        parent: state before; None for the root.
        action: what was done; None for the root.
        files: artifact ids of ``snapshot``, ``arrays`` and ``structures``.
    """
    matched = result.matched if job.profile_match else None
    contexts = {histogram.name: _context(histogram, job, matched) for histogram in job.histograms}
    if result.histograms:
        measures = measure_several(result, contexts)
    else:
        measures = measure(result, next(iter(contexts.values())))
    begun = job.start if parent is None else None
    return FitState(
        stage=stage,
        engine=result.engine,
        engine_version=result.engine_version,
        snapshot=files["snapshot"],
        arrays=files["arrays"],
        quality=measures.quality,
        features=dict(measures.features) | known_cell_features([k.phase for k in job.known_cells], measures.phases),
        violations=measures.violations,
        complexity=measures.complexity,
        convergence=result.convergence,
        parameters=(*result.parameters, *absolute_quantities(result, job.standard)),
        phases=measures.phases,
        unexplained_peaks=measures.unexplained_peaks,
        released=_released(action, parent, begun),
        bounds=_bounds(action, parent, begun),
        notices=(*((n.code, n.text) for n in result.notices), *measures.notices),
        files={"structures": files["structures"]},
    )
