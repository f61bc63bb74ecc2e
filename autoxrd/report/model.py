"""What a report is made from: one frozen value that the job fills and every renderer reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from autoxrd.domain.action import Action
from autoxrd.domain.decision import Decision
from autoxrd.domain.instrument import Instrument
from autoxrd.domain.pattern import AxisKind, FloatArray, Notice, SigmaOrigin
from autoxrd.domain.screening import Screened
from autoxrd.domain.standard import KnownCell, Standard
from autoxrd.domain.state import FitState, Quality, Violation
from autoxrd.domain.structure import CrystalStructure
from autoxrd.errors import PolicyError

__all__ = ["FitArrays", "JobInfo", "ReflectionColumns", "ReportInput", "StepRecord", "Verdict"]


class Verdict(StrEnum):
    """How a job ended, as the reader is told."""

    ACCEPTED = "accepted"
    ACCEPTED_WITH_WARNINGS = "accepted_with_warnings"
    ABSTAINED = "abstained"
    FAILED = "failed"


class ReflectionColumns(Protocol):
    """The reflection table of the final state, arrays of equal length m.

    Satisfied by :class:`autoxrd.engines.protocol.ReflectionTable`, whose docstring gives the meaning
    and unit of each column; named again here so that the report needs no engine.
    """

    @property
    def phase(self) -> NDArray[np.int64]: ...  # noqa: D102
    @property
    def line(self) -> NDArray[np.int64]: ...  # noqa: D102
    @property
    def hkl(self) -> NDArray[np.int64]: ...  # noqa: D102
    @property
    def d_angstrom(self) -> FloatArray: ...  # noqa: D102
    @property
    def position(self) -> FloatArray: ...  # noqa: D102
    @property
    def fwhm(self) -> FloatArray: ...  # noqa: D102
    @property
    def intensity(self) -> FloatArray: ...  # noqa: D102
    @property
    def f2_calc(self) -> FloatArray: ...  # noqa: D102
    @property
    def multiplicity(self) -> NDArray[np.int64]: ...  # noqa: D102
    @property
    def f2_esd(self) -> FloatArray | None: ...  # noqa: D102


@dataclass(frozen=True, slots=True, kw_only=True)
class JobInfo:
    """What was asked, with what, and by which versions.

    Args:
        pattern_name: base name of the pattern's file, untrusted text.
        pattern_sha256: SHA-256 of the file's bytes.
        pattern_format: file format as the reader recognised it.
        pattern_title: title line of the file, untrusted text.
        instrument: the instrument the job started from.
        structures: the candidate structures as given, in phase order.
        planner: who proposed the actions, e.g. ``rules``.
        policy_name, policy_hash: the gate policy that judged them.
        versions: name -> version of what computed the result (``autoxrd``, ``rietx``, ``python``, ``numpy``, ...).
        command: the command line that repeats the job, untrusted text.
        created: ISO 8601 time of the job's start, UTC; empty leaves every date out of the report.
        excluded_regions: (lower, upper) on the pattern's axis.
        standard: the phase whose amount was weighed, or what was measured apart.
        known_cells: the phases whose cell is certified.
        detection_esds: a weight fraction below this many esds is not detected, by the policy.
        fraction_error: standard uncertainty of a weight fraction beside its esd, by the policy.
        external_error: relative standard uncertainty of what an external standard gives beside its esd, by the policy.
        profile_match: intensities are free: no structure was refined.
        candidate_sets: the ranking of the candidates by their lines, best first; empty where there were none.
    """

    pattern_name: str
    pattern_sha256: str
    pattern_format: str
    instrument: Instrument
    structures: tuple[CrystalStructure, ...]
    planner: str
    policy_name: str
    policy_hash: str
    pattern_title: str = ""
    axis: AxisKind = AxisKind.TWO_THETA
    sigma_origin: SigmaOrigin = SigmaOrigin.COUNTING
    versions: Mapping[str, str] = field(default_factory=dict)
    command: str = ""
    created: str = ""
    excluded_regions: tuple[tuple[float, float], ...] = ()
    standard: Standard | None = None
    known_cells: tuple[KnownCell, ...] = ()
    detection_esds: float = 3.0
    fraction_error: float = 0.01
    external_error: float = 0.025
    profile_match: bool = False
    candidate_sets: tuple[Screened, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FitArrays:
    """The final fit on the points that were used; arrays have shape (n,).

    Args:
        x: abscissa on the job's axis, increasing.
        y_obs, sigma, y_calc, background: intensities in the pattern's own unit; ``y_calc`` includes the background.
        phase_patterns: shape (n_phases, n), Bragg contribution of each phase of the final state, in its order.
    """

    x: FloatArray
    y_obs: FloatArray
    sigma: FloatArray
    y_calc: FloatArray
    background: FloatArray
    phase_patterns: FloatArray

    @property
    def difference(self) -> FloatArray:
        """Observed minus calculated, shape (n,)."""
        return self.y_obs - self.y_calc

    @property
    def normalised(self) -> FloatArray:
        """(Observed minus calculated) / sigma, shape (n,)."""
        return self.difference / self.sigma


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """One attempt: the action that was proposed and what became of it.

    Args:
        ordinal: position in the job, from 1, rejected attempts counted.
        action: the proposal with its evidence and predictions.
        decision: the gate's verdict with checks and measured effects.
        parent_state: id of the state it started from.
        candidate_state: id of the state it led to; None where no candidate came out.
        quality_before, quality_after: of the parent and the candidate on the same points; None where not known.
        violations: of the candidate.
        planner: who proposed it; empty means the job's planner.
        error: what the engine said where it gave no candidate.
        seconds: engine time of the attempt.
    """

    ordinal: int
    action: Action
    decision: Decision
    parent_state: str
    candidate_state: str | None = None
    quality_before: Quality | None = None
    quality_after: Quality | None = None
    violations: tuple[Violation, ...] = ()
    planner: str = ""
    error: str = ""
    seconds: float = 0.0

    @property
    def accepted(self) -> bool:
        """Whether the candidate became a state to go on from."""
        return self.decision.accepted

    @property
    def rwp_before(self) -> float | None:
        """Rwp of the parent, fraction."""
        return self.quality_before.rwp if self.quality_before else None

    @property
    def rwp_after(self) -> float | None:
        """Rwp of the candidate, fraction."""
        return self.quality_after.rwp if self.quality_after else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportInput:
    """All that the report is made from.

    Args:
        job: what was asked, with what.
        verdict: how it ended.
        reasons: why, code and sentence each; the most important first.
        warnings: what the reader must know before using the figures.
        qc_notices: what the readers said of pattern, instrument and structures.
        state: the final state.
        state_id: its id.
        graph_root: hash over the whole decision graph, as the store computes it.
        arrays: the fit that belongs to the final state.
        reflections: the reflections that belong to it; ``phase`` indexes ``state.phases``.
        structures: the refined structure of each phase, in the order of ``state.phases``.
        steps: every attempt in order.
        graph: the decision graph as the store exports it; written to graph.json as it is.
        engine_files: files of the engine's own making, base name -> bytes.
        engine_seconds: time spent inside the engine.
        wall_seconds: time of the whole job.
        histograms: by name, where there are several: the same input as each of them sees it, under bare names. What
            stands in ``job``, ``arrays`` and ``reflections`` of the whole is then the first one's.

    Raises:
        PolicyError: ``report_input_invalid`` when shapes or counts contradict each other.
    """

    job: JobInfo
    verdict: Verdict
    reasons: tuple[Notice, ...]
    warnings: tuple[Notice, ...]
    state: FitState
    state_id: str
    graph_root: str
    arrays: FitArrays
    reflections: ReflectionColumns
    structures: tuple[CrystalStructure, ...]
    steps: tuple[StepRecord, ...]
    graph: Mapping[str, object]
    qc_notices: tuple[Notice, ...] = ()
    engine_files: Mapping[str, bytes] = field(default_factory=dict)
    engine_seconds: float = 0.0
    wall_seconds: float = 0.0
    histograms: Mapping[str, ReportInput] = field(default_factory=dict)

    def __post_init__(self) -> None:
        n = self.arrays.x.size
        n_phases = len(self.state.phases)
        names = ("y_obs", "sigma", "y_calc", "background")
        wrong = [name for name in names if getattr(self.arrays, name).shape != (n,)]
        if self.arrays.phase_patterns.shape != (n_phases, n):
            wrong.append("phase_patterns")
        if tuple(s.name for s in self.structures) != tuple(p.name for p in self.state.phases):
            wrong.append("structures")
        if self.reflections.phase.size and not 0 <= int(self.reflections.phase.max()) < n_phases:
            wrong.append("reflections")
        if wrong:
            raise PolicyError(
                "report_input_invalid",
                f"The report's input contradicts itself in: {', '.join(wrong)}.",
                context={"fields": wrong, "n_points": int(n), "n_phases": n_phases},
            )
