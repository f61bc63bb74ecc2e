"""With which of the candidates does a job start, and what would the others explain of a state?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from autoxrd.agent.job import Job
from autoxrd.domain.screening import Screened
from autoxrd.domain.state import Feature
from autoxrd.domain.structure import CrystalStructure
from autoxrd.engines.protocol import EngineCommand, EngineResult, EngineSession
from autoxrd.errors import UserInputError
from autoxrd.science.matching import CandidateLines, MatchedSet, MatchSettings, first_choice, lines_of
from autoxrd.science.matching.overview import Observed, Search, fwhm_along, search_for
from autoxrd.science.matching.state import candidate_features

__all__ = ["Candidates", "evaluated_search", "screened", "settled"]

_KEPT = 12
"""Ranked sets that are kept on record."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """The line patterns of a job's candidates, as its engine calculates them.

    Args:
        lines: by name.
        wavelengths: of the emission lines, angstrom.
        settings: tolerances of the matching.
    """

    lines: Mapping[str, CandidateLines]
    wavelengths: tuple[float, ...]
    settings: MatchSettings

    @classmethod
    def evaluated(cls, job: Job, session: EngineSession, settings: MatchSettings | None = None) -> Candidates:
        """Have the engine calculate the candidates of a job (one command; nothing where there are none)."""
        chosen = settings or MatchSettings()
        wavelengths = job.instrument.wavelengths_angstrom
        if not job.candidates:
            return cls({}, wavelengths, chosen)
        return cls(_lines(_evaluate(job, job.candidates, session), job.candidates, wavelengths), wavelengths, chosen)

    def features(self, result: EngineResult) -> dict[str, Feature]:
        """Return what the candidates outside a model would explain of what it leaves."""
        return candidate_features(result, self.lines, self.wavelengths, self.settings) if self.lines else {}


def _evaluate(job: Job, structures: Sequence[CrystalStructure], session: EngineSession) -> EngineResult:
    snapshot = session.prepare(job.pattern, job.instrument, structures, job.engine_settings)
    return session.execute(snapshot, EngineCommand(cycles=0, gains=False))[1]


def _lines(
    result: EngineResult, structures: Sequence[CrystalStructure], wavelengths: tuple[float, ...]
) -> dict[str, CandidateLines]:
    return {s.name: lines_of(result.reflections, i, s.name, wavelengths) for i, s in enumerate(structures)}


def settled(job: Job, session: EngineSession, settings: MatchSettings | None = None) -> Job:
    """Return the job with its candidates ranked and, where no structure is given, the phases that it starts with.

    Structures that the user believes to be there always start; candidates beside them are added by the planner, with
    evidence. Without any, the smallest set of candidates that is not clearly worse than the best one starts.
    """
    if not job.candidates:
        return job
    chosen = settings or MatchSettings()
    search = evaluated_search(job, session, chosen)
    ranked = search.ranked()
    job = replace(job, screening=tuple(screened(one, ranked[0]) for one in ranked[:_KEPT]))
    if job.structures:
        return job
    first = first_choice(ranked, chosen)
    names = first.names if first else (_most_intense(search.bank.lines),)
    return replace(job, structures=tuple(s for s in job.candidates if s.name in names))


def evaluated_search(job: Job, session: EngineSession, settings: MatchSettings) -> Search:
    """Have the engine calculate all phases of a job, and prepare the search for them in its pattern."""
    result = _evaluate(job, job.phases, session)
    lines = _lines(result, job.phases, job.instrument.wavelengths_angstrom)
    observed = Observed(result.x, result.y_obs, result.sigma, fwhm_along(result.x, result.reflections))
    usable = [one for one in lines.values() if one.sine.size]
    if not usable:
        raise UserInputError("no_line_in_range", "No candidate has a line in the range of the pattern.")
    return search_for(observed, usable, job.instrument.geometry, settings)


def screened(one: MatchedSet, best: MatchedSet) -> Screened:
    """Return a ranked set as it is kept on record."""
    return Screened(
        phases=tuple(m.name for m in one.members),
        explained=one.explained,
        behind=one.criterion - best.criterion,
        strains=tuple(m.strain for m in one.members),
        shift_deg=one.shift_deg,
    )


def _most_intense(lines: Mapping[str, CandidateLines]) -> str:
    """Return a candidate to start with where none explains anything: the job will say so."""
    return max(sorted(lines), key=lambda name: float(np.sum(lines[name].area)))
