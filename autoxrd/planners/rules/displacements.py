"""Do the atoms of a phase vibrate differently along different directions? Asked of the finished fit, once for a phase.

Six parameters for an atom are what a single pattern hardly holds; several histograms of one sample, neutrons over a
long range of spacings among them, do (McCusker et al. 1999, doi:10.1107/S0021889898009856).
"""

from __future__ import annotations

import math

from autoxrd.domain.action import Action, ActionKind, Bound, Evidence, Prediction, Stage
from autoxrd.domain.state import Feature, FitState
from autoxrd.domain.structure import CrystalStructure
from autoxrd.gates.metrics import GAIN_PREFIX
from autoxrd.planners.protocol import GraphView, JobContext
from autoxrd.planners.rules.bounding import QUANTITY_BOUNDS
from autoxrd.planners.rules.options import pays
from autoxrd.planners.rules.thresholds import Thresholds

__all__ = ["anisotropic_action"]

_MODEL = "anisotropic"


def anisotropic_action(tip: str, view: GraphView, context: JobContext, thresholds: Thresholds) -> Action | None:
    """Write the step that gives the atoms of a phase six displacement parameters each; None where none pays.

    Args:
        tip: the state that stands.
        view: the graph: what was tried for a phase is not tried again.
        context: for the atoms of the phases, and the price of a parameter.
        thresholds: of judgement. A phase among others must rule the pattern.
    """
    state = view.states[tip]
    tried = {a.action.settings.get("phase") for a in view.attempts if a.action.settings.get("model") == _MODEL}
    for phase in state.phases:
        feature = state.features.get(f"{GAIN_PREFIX}phase.{phase.name}.uiso@{_MODEL}")
        rules = len(state.phases) == 1 or (phase.intensity_share or 0.0) >= thresholds.ruling_share
        if feature is None or phase.name in tried or not rules or not _pays(feature, state, context, thresholds):
            continue
        structure = next((s for s in context.structures if s.name == phase.name), None)
        if structure is not None:
            return _written(tip, state, structure, feature, thresholds)
    return None


def _pays(feature: Feature, state: FitState, context: JobContext, thresholds: Thresholds) -> bool:
    if not feature.available or not feature.n_used:
        return False
    seen = (feature.significance or 0.0) >= thresholds.gain_per_parameter
    return seen and pays(feature.value or 0.0, feature.n_used, state, context, thresholds)


def _written(
    tip: str, state: FitState, structure: CrystalStructure, feature: Feature, thresholds: Thresholds
) -> Action:
    phase, value = structure.name, feature.value or 0.0
    selector, labels = f"phase.{phase}.uiso", [atom.label for atom in structure.atoms]
    gain = f"{GAIN_PREFIX}{selector}@{_MODEL}"
    fall = thresholds.fraction_rwp * state.quality.rwp * (1.0 - math.sqrt(1.0 - min(value, 0.999)))
    lower, upper = QUANTITY_BOUNDS["uiso"]
    return Action(
        kind=ActionKind.DISPLACEMENT_PARAMETERS,
        stage=Stage.STRUCTURE,
        parameters=(selector,),
        # of the means: what stands off the diagonal of a tensor may be negative
        bounds=tuple(Bound(selector=f"phase.{phase}.atom.{label}.uiso", lower=lower, upper=upper) for label in labels),
        settings={"phase": phase, "atoms": " ".join(labels), "model": _MODEL},
        rationale=(
            f"Atoms of {phase} vibrate differently along different directions: anisotropic displacement parameters"
            f" ({feature.n_used} more) promise to lower chi^2 by {100 * value:.2g} %. Rule: anisotropic displacements;"
            " McCusker et al. 1999, doi:10.1107/S0021889898009856."
        ),
        evidence=(
            Evidence(feature=gain, value=value, comparison=">", threshold=thresholds.relative_drop / 4, source=tip),
        ),
        predictions=(
            Prediction(metric=gain, direction="decrease", minimum_effect=thresholds.fraction_promised * value),
            Prediction(metric="rwp", direction="decrease", minimum_effect=fall),
        ),
        parent=tip,
    )
