"""How is one pattern of a series refined? From its neighbour's model where there is one, and from the structures.

Everything stands in the folders of the jobs: asked again, this module reads what is finished and goes on with what is
not, so that a series can be interrupted anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from autoxrd.agent.codec import decode_structures
from autoxrd.agent.estimating import estimated_again, observed_of_start
from autoxrd.agent.fitting import reshaping
from autoxrd.agent.inputs import Request, load_job
from autoxrd.agent.job import Job
from autoxrd.agent.run import resume_job, start_job
from autoxrd.agent.starting import start_from
from autoxrd.domain.action import Action
from autoxrd.engines.protocol import Edit, EngineSession
from autoxrd.errors import EngineError, UserInputError
from autoxrd.gates.shapes import shape_of
from autoxrd.gates.utility import utility
from autoxrd.primitives import safe_name, sha256_hex
from autoxrd.report.series_model import PatternRow, StartedFrom
from autoxrd.series.jumps import JumpLimits, jumps
from autoxrd.series.ordering import Place
from autoxrd.series.rows import failed_row, row_of, seen_phases
from autoxrd.store.graph import DATABASE_NAME, Graph

__all__ = ["refine_place"]

_RANKS = {"accepted": 0, "accepted_with_warnings": 0, "abstained": 1, "failed": 2}


def refine_place(
    request: Request, place: Place, folder: Path, before: PatternRow | None, session: EngineSession
) -> PatternRow:
    """Refine one pattern and return its row.

    Args:
        request: what to do, with this pattern's file.
        place: where it stands in the series.
        folder: of the series; each job has a folder in it.
        before: row of the neighbour; None for the first of a chunk.
        session: a live engine.
    """
    name = f"{place.number:03d}-{safe_name(place.path.stem)[:60]}"
    if before is None or not before.accepted:
        return _row(request, place, folder / name, "structures", None, session)
    own = _row(request, place, folder / name, "neighbour", folder / before.job, session)
    why = jumps(before, own)
    if not why:
        return own
    anew = _row(request, place, folder / f"{name}-restart", "structures", None, session)
    better, other = (anew, own) if _prefers(_standing(anew, folder), _standing(own, folder)) else (own, anew)
    return better.model_copy(update={"restarted_because": why, "other_job": other.job})


def _prefers(anew: _Standing, own: _Standing) -> bool:
    """Return whether the result from the structures takes the place of the one that follows its neighbour.

    Of two that are as good as each other the neighbour's stays: the rivals of a model (zero offset or displacement)
    would else take turns along a series, and the trend would show them and not the specimen.
    """
    if anew.rank != own.rank:
        return anew.rank < own.rank
    return own.cost - anew.cost > JumpLimits().worth


@dataclass(frozen=True, slots=True)
class _Standing:
    """How good a result is.

    Args:
        rank: of the verdict, 0 for an accepted one.
        cost: what the policy's utility charges the final state.
    """

    rank: int
    cost: float


def _standing(row: PatternRow, folder: Path) -> _Standing:
    cost = 0.0
    if row.verdict != "failed":
        with Graph.open(folder / row.job, read_only=True) as graph:
            finish = graph.finished()
            assert finish is not None  # it has a row
            job = Job.from_record(graph.job, graph.artifacts)
            cost = -utility(graph.state(str(finish.final_state)), policy=job.policy)
    return _Standing(_RANKS[row.verdict], cost)


def _row(
    request: Request,
    place: Place,
    directory: Path,
    started_from: StartedFrom,
    neighbour: Path | None,
    session: EngineSession,
) -> PatternRow:
    try:
        _run(request, directory, neighbour, session)
        return row_of(directory, place, started_from=started_from)
    except (UserInputError, EngineError) as error:
        # one pattern that cannot be used must not end the series
        return failed_row(
            place,
            started_from=started_from,
            sha256=_sha256(place.path),
            code=error.code,
            error=error.detail,
            job=directory.name if directory.exists() else "",
        )


def _sha256(path: Path) -> str:
    try:
        return sha256_hex(path.read_bytes())
    except OSError:
        return ""


def _run(request: Request, directory: Path, neighbour: Path | None, session: EngineSession) -> None:
    """Run a job to its end, or on to it; do nothing where it has ended."""
    if (directory / DATABASE_NAME).exists():
        if not _finished(directory):
            resume_job(directory)
        return
    job, sources = load_job(request)
    if neighbour is not None:
        job = _started_from(job, neighbour)
    start_job(job, directory, sources=sources, session=session, command=f"autoxrd series ... {request.pattern.name}")


def _finished(directory: Path) -> bool:
    with Graph.open(directory, read_only=True) as graph:
        return graph.finished() is not None


def _started_from(job: Job, neighbour: Path) -> Job:
    """Return the job with the final model of a neighbour's as its start."""
    with Graph.open(neighbour, read_only=True) as graph:
        finish = graph.finished()
        assert finish is not None and finish.final_state is not None  # noqa: PT018 - an accepted row
        state_id = finish.final_state
        state = graph.state(state_id)
        theirs = Job.from_record(graph.job, graph.artifacts)
        path = [attempt.action for attempt, _ in graph.accepted_path(state_id)]
        refined = decode_structures(graph.artifacts.get(state.files["structures"]))
        pattern = str(graph.job.histograms[0].pattern["source_sha256"])
        source = {"graph_root": graph.root_hash(), "state": state_id, "pattern_sha256": pattern}
        esds = job.policy.audit.phase_significance
    seen = seen_phases(state, esds)
    if not seen:
        return job
    start = start_from(state, refined, _shapes(job, theirs, path), kept=seen, held=_held(theirs, path), source=source)
    # what the neighbour does not show is asked for like a candidate: by its lines, wherever its cell has gone
    unseen = (s for s in job.structures if s.name not in seen)
    candidates = tuple({s.name: s for s in (*job.candidates, *unseen)}.values())
    structures = tuple(s for s in job.phases if s.name in seen)
    return replace(job, structures=structures, candidates=candidates, start=start)


def _shapes(job: Job, theirs: Job, path: Sequence[Action]) -> tuple[Edit, ...]:
    """Return how the form of a model came about, that of its own start included.

    A background that was estimated from the other pattern is estimated from this one.
    """
    points, axis = observed_of_start(job.pattern, job.engine_settings), job.pattern.axis
    edits = () if theirs.start is None else theirs.start.edits
    begun = (estimated_again(edit, axis, points) for edit in edits if edit.kind != "value")
    shaped = ((action, shape_of(action)) for action in path)
    return (*begun, *(reshaping(action, shape, job, points) for action, shape in shaped if shape is not None))


def _held(job: Job, path: Sequence[Action]) -> frozenset[str]:
    """Return the parameters that a start or an exchange of effects has set, whether they are free now or not."""
    begun = () if job.start is None else tuple(edit for edit in job.start.edits if edit.kind == "value")
    gone = (name for action in path for name in action.instead_of)
    return frozenset((*(str(edit.values["selector"]) for edit in begun), *gone))
