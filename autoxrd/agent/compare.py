"""Do two engines agree? The accepted path of a job carried out on another engine, parameters side by side."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from autoxrd.agent.estimating import observed_of_result
from autoxrd.agent.events import Listener, Prepared, nobody
from autoxrd.agent.fitting import command_for, prepared
from autoxrd.agent.job import Job
from autoxrd.agent.starting import root_command
from autoxrd.domain.action import Action
from autoxrd.domain.state import FitState, ParameterValue
from autoxrd.engines.protocol import EngineResult
from autoxrd.engines.registry import get_engine
from autoxrd.errors import NotFound, UserInputError
from autoxrd.science.statistics import weighted_profile_r
from autoxrd.store.graph import Graph

__all__ = ["AGREEMENT", "Agreement", "Comparison", "Row", "compare_engines"]


@dataclass(frozen=True, slots=True)
class Agreement:
    """When two values count as equal.

    Args:
        esds: combined standard uncertainties.
        cell_ppm: relative difference of a cell length, whatever its esd. Fits of one pattern by different laboratories
            scatter more than that (Hill & Cranswick 1994, doi:10.1107/S0021889894000646).
        fraction: difference of a weight fraction, whatever its esd.
    """

    esds: float = 3.0
    cell_ppm: float = 50.0
    fraction: float = 0.007


AGREEMENT = Agreement()


@dataclass(frozen=True, slots=True)
class _Assumption:
    """Something that the engines do differently, and the parameters that it moves."""

    text: str
    engines: frozenset[str]
    moves: tuple[str, ...]


_ASSUMPTIONS = (
    _Assumption(
        "scattering: rietx has form factors of five Gaussians (Waasmaier & Kirfel 1995), GSAS-II those of four of the "
        "International Tables",
        frozenset({"rietx", "gsasii"}),
        ("phase.*.atom.*", "phase.*.weight_fraction", "phase.*.preferred_orientation"),
    ),
    _Assumption(
        "second line: GSAS-II places it by the derivative of Bragg's law, rietx by the law itself: at high angles the "
        "difference is a few thousandths of a degree",
        frozenset({"rietx", "gsasii"}),
        ("phase.*.cell.*", "profile.*", "instrument.*", "sample.*"),
    ),
    _Assumption(
        "esds: those of rietx are raised for serial correlation (Berar & Lelann), those of GSAS-II by the goodness of "
        "fit alone",
        frozenset({"rietx", "gsasii"}),
        ("*",),
    ),
)
_UNLIKE = ("phase.*.scale", "phase.*.density", "phase.*.cell.volume", "background.*")
"""Not compared: scale factors have each engine's own unit; a background has meaning as a curve only."""


@dataclass(frozen=True, slots=True)
class Row:
    """One parameter on both engines.

    Args:
        difference_esds: second less first in combined esds, None without esds.
        difference_ppm: relative difference, for a cell length.
        agree: within `Agreement`.
    """

    name: str
    unit: str
    first: float
    first_esd: float | None
    second: float
    second_esd: float | None
    difference_esds: float | None
    difference_ppm: float | None
    agree: bool


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two engines on one path.

    Args:
        engines: names, the job's own first.
        rwp: weighted profile R of each, fractions.
        converged: of each.
        rows: parameters that both have and that were free, or derived.
        assumptions: which model differences can explain the rows that do not agree.
    """

    engines: tuple[str, str]
    rwp: tuple[float, float]
    converged: tuple[bool, bool]
    rows: tuple[Row, ...]
    assumptions: tuple[str, ...]
    seconds: float

    def as_dict(self) -> dict[str, object]:
        """Return JSON content."""
        return asdict(self)


def compare_engines(directory: Path, other: str, *, listener: Listener = nobody) -> Comparison:
    """Carry out the accepted path of a finished job on another engine.

    Args:
        directory: the job.
        other: name of the other engine.
        listener: is told when the other engine is ready.

    Raises:
        NotFound: there is no finished job, or no such engine.
        UserInputError: the other engine cannot use the input or a step.
        EngineError: the other engine failed.
    """
    began = time.monotonic()
    with Graph.open(directory, read_only=True) as graph:
        finish, root = graph.finished(), graph.root()
        if finish is None or root is None:
            raise NotFound("job_not_finished", f"{directory} holds no finished job: resume it first.")
        job = Job.from_record(graph.job, graph.artifacts)
        if other == job.engine:
            raise UserInputError("engine_same", f"The job was made with {other} already; name another engine.")
        if job.others and not get_engine(other).capabilities().several:
            text = f"The engine {other} refines one pattern at a time, the job has {len(job.histograms)}."
            raise UserInputError("histograms_unsupported", text)
        path = [(a.action, state) for a, state in graph.accepted_path(finish.final_state)]
        states = (graph.state(root), path[-1][1] if path else graph.state(root))
    result = _carried_out(job, other, states[0], path, listener)
    return _compared((job.engine, other), states[1], result, time.monotonic() - began)


def _carried_out(
    job: Job, other: str, root: FitState, path: Sequence[tuple[Action, FitState]], listener: Listener
) -> EngineResult:
    session = get_engine(other).start()
    try:
        snapshot = prepared(session, job)
        snapshot, result = session.execute(snapshot, replace(root_command(job.start, job.mode), gains=False))
        listener(Prepared(other, root))
        parent = root
        for action, state in path:
            snapshot, result = session.execute(snapshot, command_for(action, parent, job, observed_of_result(result)))
            parent = state
        return result
    finally:
        session.close()


def _compared(engines: tuple[str, str], state: FitState, result: EngineResult, seconds: float) -> Comparison:
    mine = {p.name: p for p in state.parameters}
    rows = tuple(_row(mine[p.name], p) for p in result.parameters if p.name in mine and _comparable(mine[p.name], p))
    unlike = [row.name for row in rows if not row.agree]
    reasons = tuple(
        item.text
        for item in _ASSUMPTIONS
        if item.engines == set(engines) and any(fnmatchcase(name, glob) for name in unlike for glob in item.moves)
    )
    return Comparison(
        engines=engines,
        rwp=(state.quality.rwp, weighted_profile_r(result.y_obs, result.sigma, result.y_calc)),
        converged=(state.convergence.converged, result.convergence.converged),
        rows=rows,
        assumptions=reasons,
        seconds=seconds,
    )


def _comparable(first: ParameterValue, second: ParameterValue) -> bool:
    told = first.released or (first.derived and first.esd is not None) or first.name.endswith("weight_fraction")
    unlike = any(fnmatchcase(first.name, glob) for glob in _UNLIKE)
    return told and not unlike and first.unit == second.unit


def _row(first: ParameterValue, second: ParameterValue) -> Row:
    distance = second.value - first.value
    combined = math.hypot(first.esd or 0.0, second.esd or 0.0)
    esds = distance / combined if combined > 0.0 else None
    ppm = 1e6 * distance / first.value if first.name.endswith((".cell.a", ".cell.b", ".cell.c")) else None
    agree = distance == 0.0 or (esds is not None and abs(esds) <= AGREEMENT.esds)
    agree = agree or (ppm is not None and abs(ppm) <= AGREEMENT.cell_ppm)
    agree = agree or (first.name.endswith(".weight_fraction") and abs(distance) <= AGREEMENT.fraction)
    return Row(first.name, first.unit, first.value, first.esd, second.value, second.esd, esds, ppm, agree)
