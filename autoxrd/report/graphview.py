"""Where each step of the decision graph is drawn: one row per attempt, one lane per branch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from autoxrd.report.format import fixed
from autoxrd.report.model import ReportInput, StepRecord
from autoxrd.report.parameters import accepted_path
from autoxrd.report.words import kind_words

__all__ = ["DrawnStep", "GraphDrawing", "GraphRow", "draw_graph", "draw_steps"]

ROW_HEIGHT = 46
LANE_WIDTH = 21
_LEFT = 26
_TOP = 34
_LABEL_GAP = 20
_WIDTH = 552
_FIGURES_WIDTH = 150
_CHARACTER_WIDTH = 7


@dataclass(frozen=True, slots=True)
class DrawnStep:
    """What the drawing needs of an attempt.

    Args:
        title: the action in words.
        parameters: names that it frees.
        rwp_before, rwp_after: as fractions; None where not known.
    """

    ordinal: int
    parent_state: str
    candidate_state: str | None
    accepted: bool
    title: str
    parameters: tuple[str, ...]
    rwp_before: float | None
    rwp_after: float | None


@dataclass(frozen=True, slots=True)
class GraphRow:
    """One attempt: its node, the edge from its parent, its label.

    Args:
        status: ``path`` (leads to the final state), ``branch`` (accepted, left later) or ``rejected``.
        edge: SVG path from the parent's node.
        rwp: Rwp of the candidate in percent, written.
        change: change of Rwp in percent points, written with its sign.
    """

    ordinal: int
    status: str
    x: int
    y: int
    edge: str
    title: str
    parameters: str
    rwp: str
    change: str
    label: str
    final: bool


@dataclass(frozen=True, slots=True)
class GraphDrawing:
    """The whole drawing, in pixels."""

    width: int
    height: int
    text_x: int
    root_x: int
    root_y: int
    root_rwp: str
    rows: tuple[GraphRow, ...]


def _edge(parent: tuple[int, int], child: tuple[int, int], *, late: bool) -> str:
    """Draw the edge between two nodes.

    Args:
        parent: where it starts.
        child: where it ends.
        late: follow the parent's lane down and leave it just above the child, so that several attempts from one
            state do not look like a chain; otherwise leave it just below the parent.
    """
    (x0, y0), (x1, y1) = parent, child
    if x0 == x1:
        return f"M{x0} {y0}V{y1}"
    turn = ROW_HEIGHT - 16
    start = y1 - turn if late else y0
    bend = f"C{x0} {start + turn // 2} {x1} {start + turn // 3} {x1} {start + turn}"
    return f"M{x0} {y0}V{start}{bend}" if late else f"M{x0} {y0}{bend}V{y1}"


def _branches(steps: Sequence[DrawnStep], path: set[int]) -> dict[int, int]:
    """Give each step a branch: 0 for the path; a rejected step has its parent's.

    A state's first accepted child off the path goes on in its branch, unless that is the path: then, and for every
    further child, a new branch begins.
    """
    of_state: dict[str, int] = {}
    continued: set[str] = set()
    branch: dict[int, int] = {}
    for step in steps:
        parent = of_state.get(step.parent_state, 0)
        if step.accepted and step.ordinal not in path:
            goes_on = parent != 0 and step.parent_state not in continued
            branch[step.ordinal] = parent if goes_on else 1 + max(of_state.values(), default=0)
            continued.add(step.parent_state)
        else:
            branch[step.ordinal] = parent
        if step.accepted and step.candidate_state:
            of_state[step.candidate_state] = branch[step.ordinal]
    return branch


def _lanes(steps: Sequence[DrawnStep], path: set[int]) -> dict[int, int]:
    """Give each step a lane: two per branch, its line and right of it its rejected attempts.

    Lane 0 is the path. A branch takes the first pair that is free from its parent's row to its own last row.
    """
    branch = _branches(steps, path)
    row = {s.candidate_state: i for i, s in enumerate(steps, start=1) if s.accepted and s.candidate_state}
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for i, step in enumerate(steps, start=1):
        first.setdefault(branch[step.ordinal], row.get(step.parent_state, 0))
        last[branch[step.ordinal]] = i
    pair, free_from = {0: 0}, {0: len(steps) + 1}
    for b in sorted(set(first) - {0}, key=lambda b: first[b]):
        pair[b] = next(k for k in range(len(first) + 1) if free_from.get(k, 0) <= first[b])
        free_from[pair[b]] = last[b] + 1
    return {s.ordinal: 2 * pair[branch[s.ordinal]] + (not s.accepted) for s in steps}


def _shortened(names: Sequence[str], text_x: int) -> str:
    """Cut the list of parameters where the column of figures begins; the step's own panel has all of it."""
    room = max(12, (_WIDTH - _FIGURES_WIDTH - text_x) // _CHARACTER_WIDTH)
    text = ", ".join(names)
    return text if len(text) <= room else text[: room - 1].rstrip(" ,.") + "…"


def _change(step: DrawnStep) -> str:
    if step.rwp_before is None or step.rwp_after is None:
        return ""
    change = 100 * (step.rwp_after - step.rwp_before)
    sign = "−" if change < -0.005 else "+" if change > 0.005 else "±"
    return f"{sign}{abs(change):.2f}"


def _row(
    step: DrawnStep,
    place: tuple[int, int],
    *,
    edge: str,
    text_x: int,
    on_path: bool,
    final: bool,
) -> GraphRow:
    title, rwp = step.title, fixed(step.rwp_after, 2, scale=100)
    outcome = "accepted" if step.accepted else "rejected"
    if step.accepted and not on_path:
        outcome = "accepted, on a branch that was left"
    return GraphRow(
        ordinal=step.ordinal,
        status="path" if on_path else "branch" if step.accepted else "rejected",
        x=place[0],
        y=place[1],
        edge=edge,
        title=title,
        parameters=_shortened(step.parameters, text_x),
        rwp=rwp,
        change=_change(step),
        label=f"Step {step.ordinal}, {title}: {outcome}; Rwp {rwp} percent",
        final=final,
    )


def draw_graph(inp: ReportInput) -> GraphDrawing:
    """Lay out every attempt of a report."""
    steps = sorted(map(_drawn, inp.steps), key=lambda s: s.ordinal)
    start = steps[0].rwp_before if steps else inp.state.quality.rwp
    return draw_steps(steps, final=inp.state_id, start_rwp=start)


def draw_steps(steps: Sequence[DrawnStep], *, final: str, start_rwp: float | None) -> GraphDrawing:
    """Lay out attempts in the order in which they were made, the accepted path as a straight line.

    Args:
        steps: by rising ordinal.
        final: state that the path leads to: the final one, or the current one of a job that goes on.
        start_rwp: of the root, as a fraction.
    """
    path = {s.ordinal for s in accepted_path(steps, final)}
    lanes = _lanes(steps, path)
    places: dict[str, tuple[int, int]] = {}
    rows = []
    root = (_LEFT, _TOP)
    text_x = _LEFT + LANE_WIDTH * max(lanes.values(), default=0) + _LABEL_GAP
    for i, step in enumerate(steps, start=1):
        place = (_LEFT + LANE_WIDTH * lanes[step.ordinal], _TOP + ROW_HEIGHT * i)
        is_final = step.accepted and step.candidate_state == final
        parent = places.get(step.parent_state, root)
        # Below another node of the parent's lane the edge would seem to come from that node.
        late = not step.accepted and not any(parent[1] < y and parent[0] == x for x, y in places.values())
        on_path = step.ordinal in path
        edge = _edge(parent, place, late=late)
        rows.append(_row(step, place, edge=edge, text_x=text_x, on_path=on_path, final=is_final))
        if step.accepted and step.candidate_state:
            places[step.candidate_state] = place
    return GraphDrawing(
        width=_WIDTH,
        height=_TOP + ROW_HEIGHT * len(steps) + 26,
        text_x=text_x,
        root_x=root[0],
        root_y=root[1],
        root_rwp=fixed(start_rwp, 2, scale=100),
        rows=tuple(rows),
    )


def _drawn(step: StepRecord) -> DrawnStep:
    return DrawnStep(
        ordinal=step.ordinal,
        parent_state=step.parent_state,
        candidate_state=step.candidate_state,
        accepted=step.accepted,
        title=kind_words(step.action.kind),
        parameters=step.action.parameters,
        rwp_before=step.rwp_before,
        rwp_after=step.rwp_after,
    )
