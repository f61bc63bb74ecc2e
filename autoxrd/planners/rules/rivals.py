"""Which of two models moves the lines? The finished model is asked again with the other one in its place.

In Bragg-Brentano geometry a zero offset and a specimen displacement are rivals; elsewhere a zero offset and the axial
divergence, where the two and the cell cannot be had together. One of them is freed early. Only with the cell and the
profile free do the two laws differ by what the data can show (a wrong cell or an asymmetric profile mimics either), so
at the end of the job one step takes it out and frees the other: whoever fits better stays. That the two cells differ is
part of the uncertainty, and is told.
"""

from __future__ import annotations

import math

from autoxrd.domain.action import Action, ActionKind, Evidence, Prediction, Stage
from autoxrd.domain.instrument import Geometry
from autoxrd.domain.state import FitState
from autoxrd.gates.known import known_cells
from autoxrd.gates.metrics import GAIN_PREFIX
from autoxrd.planners.protocol import AttemptView, GraphView, JobContext
from autoxrd.planners.rules.lengths import of_tube
from autoxrd.planners.rules.thresholds import Thresholds

__all__ = ["rival_action", "rival_attempt", "rival_note", "wavelength_note"]

_NAMES = {
    "instrument.zero": "zero offset",
    "sample.displacement": "specimen displacement",
    "profile.SH/L": "axial divergence",
}
_KINDS = {
    "instrument.zero": ActionKind.ZERO,
    "sample.displacement": ActionKind.DISPLACEMENT,
    "profile.SH/L": ActionKind.ASYMMETRY,
}


def _models(geometry: Geometry) -> tuple[str, str]:
    if geometry is Geometry.BRAGG_BRENTANO:
        return ("instrument.zero", "sample.displacement")
    return ("instrument.zero", "profile.SH/L")


def rival_attempt(tip: str, view: GraphView) -> AttemptView | None:
    """Return the attempt to put one position model in the place of the other, on the way to a state or from it."""
    line = [*view.path(tip), *view.children(tip), *(a for s in view.path(tip) for a in view.children(s.parent))]
    return next((a for a in line if a.action.instead_of), None)


def rival_action(tip: str, view: GraphView, context: JobContext, thresholds: Thresholds) -> Action | None:
    """Write the step that asks the rival model, once a path; None where there is none to ask."""
    if rival_attempt(tip, view) is not None:
        return None
    state, models = view.states[tip], _models(context.instrument.geometry)
    free = [name for name in models if name in state.released]
    if len(free) != 1:
        return None
    other = next(name for name in models if name not in free)
    if context.instrument.geometry is not Geometry.BRAGG_BRENTANO and not _refused(other, view):
        return None
    gain = state.features.get(GAIN_PREFIX + other)
    if gain is None or not gain.available or not (gain.value or 0.0) > 0.0:
        return None
    radius = context.instrument.goniometer_radius_mm
    return _action(tip, state, other, free[0], float(gain.value or 0.0), radius, thresholds)


def _refused(selector: str, view: GraphView) -> bool:
    """Return whether a model was refused beside the other because too much correlates."""
    return any(selector in a.action.parameters and "correlation_too_high" in a.decision.reasons for a in view.attempts)


def _less_usual(state: FitState, other: str, present: str, radius_mm: float | None, thresholds: Thresholds) -> float:
    """Return by how much -2 ln of the prior probability is larger for the other model than for the present one.

    The other's value is taken as what moves a line at 60 degrees as far.
    """
    here = next((p.value for p in state.parameters if p.name == present), None)
    if here is None or {other, present} != {"instrument.zero", "sample.displacement"}:
        return 0.0
    radius_mm = radius_mm or thresholds.usual_radius
    degrees_per_mm = math.degrees(2.0 * math.cos(math.radians(30.0)) / radius_mm)
    zero = here if present == "instrument.zero" else here * degrees_per_mm
    as_zero, as_displacement = zero / thresholds.usual_zero, zero / degrees_per_mm / thresholds.usual_displacement
    difference = as_zero**2 - as_displacement**2
    return difference if other == "instrument.zero" else -difference


def _action(
    tip: str, state: FitState, other: str, present: str, gain: float, radius_mm: float | None, thresholds: Thresholds
) -> Action:
    """Predict a fall of chi^2 that the information criterion would call very strong."""
    rwp, quality = state.quality.rwp, state.quality
    wanted = max(thresholds.rival_evidence + _less_usual(state, other, present, radius_mm, thresholds), 1.0)
    share = wanted * thresholds.serial_inflation**2 / max(quality.n_points - quality.n_parameters, 1)
    fall = rwp * (1.0 - math.sqrt(1.0 - min(share, 0.5)))
    return Action(
        kind=_KINDS[other],
        stage=Stage.INSTRUMENT,
        parameters=(other,),
        settings={"instead_of": present},
        rationale=(
            f"A {_NAMES[other]} moves the lines almost as the {_NAMES[present]} does and leads to another cell. With"
            " cell and profile free the data can tell: the same model with the one in the place of the other."
        ),
        evidence=(
            Evidence(feature="rwp", value=rwp, comparison=">", threshold=0.0, source=tip),
            Evidence(feature=GAIN_PREFIX + other, value=gain, comparison=">", threshold=0.0, source=tip),
        ),
        predictions=(
            Prediction(metric=GAIN_PREFIX + other, direction="decrease", minimum_effect=0.3 * gain),
            Prediction(metric="rwp", direction="decrease", minimum_effect=fall),
        ),
        parent=tip,
    )


def rival_note(tip: str, view: GraphView, thresholds: Thresholds) -> tuple[str, str] | None:
    """Tell how far the two position models are apart, and what they do to the cell."""
    attempt = rival_attempt(tip, view)
    if attempt is None or attempt.candidate is None:
        return None
    present, other = attempt.action.instead_of[0], attempt.action.parameters[0]
    before, after = view.states[attempt.parent], view.states[attempt.candidate]
    kept, left = ((other, after), (present, before)) if attempt.accepted else ((present, before), (other, after))
    behind = _behind(kept[1], left[1], thresholds)
    cells = [
        f"{mine.name} a = {mine.cell['a'].value:.5f} against {theirs.cell['a'].value:.5f} angstrom"
        for mine, theirs in zip(kept[1].phases, left[1].phases, strict=True)
        if mine.cell["a"].value != theirs.cell["a"].value  # a held one is the same under both
    ]
    names, rwps = [_NAMES[name] for name, _ in (kept, left)], [f"{100 * s.quality.rwp:.2f} %" for _, s in (kept, left)]
    text = (
        f"{names[0]} (Rwp {rwps[0]}) and {names[1]} (Rwp {rwps[1]}) were both tried with cell and profile free;"
        f" {names[0]} was kept (difference of the information criterion {behind:.1f})."
        f" Under the two models: {'; '.join(cells) or 'the same cells'}."
    )
    if behind < thresholds.rival_evidence and _cells_differ(kept[1], left[1], thresholds):
        text += " The data hardly tell them apart: take the difference as uncertainty."
        return ("position_model_ambiguous", text)
    return ("position_model", text)


def wavelength_note(tip: str, view: GraphView, context: JobContext) -> tuple[str, str] | None:
    """Tell that cells go with the wavelength or DIFC, where that is not one of a tube and the cell was free.

    Where the cell of a phase is certified, its lines say what the lengths go with.
    """
    state, given = view.states[tip], context.instrument.wavelengths_angstrom[:1]
    if known_cells(state):
        return None
    if context.instrument.flight is not None:
        return _flight_note(state)
    if not given or of_tube(context.instrument) or not any(name.endswith(".cell") for name in state.released):
        return None
    changes = [f"{phase.name} a by {0.001 * phase.cell['a'].value / given[0]:.4f} angstrom" for phase in state.phases]
    text = (
        f"The pattern cannot tell the wavelength from the cell: {given[0]:g} angstrom was taken as given."
        f" Another one changes all cell lengths in proportion, 0.001 angstrom {', '.join(changes)}."
    )
    return ("cell_depends_on_wavelength", text)


def _flight_note(state: FitState) -> tuple[str, str] | None:
    """Tell that cells go with DIFC, which the calibration file states and which was not refined."""
    if not any(name.endswith(".cell") for name in state.released) or "instrument.difC" in state.released:
        return None
    text = (
        "The pattern cannot tell DIFC from the cell: the calibration file's value was taken as given."
        " Where it is wrong by 0.01 %, which is usual, all cell lengths are wrong by 0.01 %; their ratios are not."
    )
    return ("difc_or_cell_ambiguous", text)


def _cells_differ(kept: FitState, left: FitState, thresholds: Thresholds) -> bool:
    """Return whether the choice matters to a reader: a cell length moves by more than its uncertainty covers."""
    return any(
        abs(mine.cell[key].value - theirs.cell[key].value) > thresholds.cell_esds * (mine.cell[key].esd or 0.0)
        for mine, theirs in zip(kept.phases, left.phases, strict=True)
        for key in ("a", "b", "c")
        if mine.cell[key].esd
    )


def _behind(kept: FitState, left: FitState, thresholds: Thresholds) -> float:
    """Return how much worse the model that was left is by the Bayesian criterion.

    Residuals are serially correlated: chi^2 in units of the better model's reduced chi^2 and the number of points are
    both divided by the square of the esd inflation.
    """
    scale = max(min(kept.quality.gof, left.quality.gof) ** 2, 1e-12)
    dilution = thresholds.serial_inflation**2
    fall = (left.quality.chi2 - kept.quality.chi2) / scale / dilution
    more = left.quality.n_parameters - kept.quality.n_parameters
    return fall + more * math.log(max(kept.quality.n_points / dilution, 2.0))
