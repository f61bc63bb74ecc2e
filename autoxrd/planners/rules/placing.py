"""Are lines so far off that no release reaches them? Then a profile match from where they are found goes first."""

from __future__ import annotations

from autoxrd.domain.action import Action, ActionKind, Evidence, Prediction, Stage
from autoxrd.domain.state import Feature, FitState
from autoxrd.gates.known import known_cells
from autoxrd.gates.matching import is_match
from autoxrd.planners.protocol import GraphView
from autoxrd.planners.rules.memory import refused
from autoxrd.planners.rules.thresholds import Thresholds

__all__ = ["placing_action"]

_RMS, _ALONE = "position.rms", "position.alone."


def placing_action(tip: str, view: GraphView, thresholds: Thresholds) -> Action | None:
    """Write the profile match that brings cells in; None where lines are near, or it was tried on this path.

    A line that is off by more than its width has no gradient towards its place, so that no release promises anything,
    yet the measures find it over the whole pattern. Intensities are let go because those of a structure out of place,
    doubtful or textured would lead astray (Le Bail 2005, doi:10.1154/1.2135315).

    Args:
        tip: the state that stands.
        view: the graph.
        thresholds: of judgement.
    """
    state = view.states[tip]
    rms, cell = state.features.get(_RMS), state.features.get(f"{_ALONE}cell")
    if is_match(state) or rms is None or cell is None or (rms.value or 0.0) <= thresholds.far_rms:
        return None
    tried = (*view.path(tip), *refused(tip, view))
    if any(attempt.action.kind is ActionKind.PROFILE_MATCH for attempt in tried) or not _is_the_cell(state, cell):
        return None
    cells = tuple(
        f"phase.{phase.name}.cell"
        for phase in state.phases
        if phase.name not in known_cells(state)
        and (own := state.features.get(f"position.cell.{phase.name}")) is not None
        and own.available
    )
    return _written(tip, state, cells, rms, cell, thresholds) if cells else None


def _is_the_cell(state: FitState, cell: Feature) -> bool:
    """Return whether a cell alone explains more of the offsets than a zero or a displacement alone."""
    rivals = (state.features.get(f"{_ALONE}{cause}") for cause in ("zero", "displacement"))
    most = max(((rival.significance or 0.0) for rival in rivals if rival is not None), default=0.0)
    return cell.value is not None and (cell.significance or 0.0) > most


def _written(
    tip: str, state: FitState, cells: tuple[str, ...], rms: Feature, cell: Feature, thresholds: Thresholds
) -> Action:
    off, strain = rms.value or 0.0, cell.value or 0.0
    return Action(
        kind=ActionKind.PROFILE_MATCH,
        stage=Stage.PROFILE_MATCH,
        parameters=("background", *cells),
        rationale=(
            f"Lines stand {off:.3g} widths off, further than any release reaches, and a cell alone explains it best"
            f" ({100 * strain:.2g} % in d). With free intensities the lines are brought in from where they were found;"
            " then the structure is fitted there. Rule: lines first; Le Bail 2005, doi:10.1154/1.2135315."
        ),
        evidence=(
            Evidence(feature=_RMS, value=off, comparison=">", threshold=thresholds.far_rms, source=tip),
            Evidence(feature=f"{_ALONE}cell", value=strain, comparison="abs>", threshold=0.5 * abs(strain), source=tip),
        ),
        predictions=(
            Prediction(metric=_RMS, direction="decrease", minimum_effect=thresholds.fraction_promised * off),
            Prediction(metric="rwp", direction="decrease", minimum_effect=thresholds.placed_rwp * state.quality.rwp),
        ),
        parent=tip,
    )
