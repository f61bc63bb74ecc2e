"""From file names and options to a checked job; nothing is written before everything has been read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from autoxrd.agent.certified import certified, find_phase
from autoxrd.agent.external import ExternalRequest, Specimen, external_standard
from autoxrd.agent.job import Budget, Job, SourceFile
from autoxrd.domain.histogram import Histogram
from autoxrd.domain.instrument import Instrument, Radiation
from autoxrd.domain.pattern import AxisKind, Notice, Pattern
from autoxrd.domain.standard import InternalStandard, KnownCell, Standard
from autoxrd.domain.structure import CrystalStructure
from autoxrd.engines.protocol import Capabilities
from autoxrd.engines.registry import get_engine
from autoxrd.errors import EngineUnavailable, UserInputError
from autoxrd.gates.policy import load_policy
from autoxrd.io import (
    as_refined,
    assess_pattern,
    axis_of,
    name_structures,
    read_pattern,
    read_structures,
    resolve_instrument,
)
from autoxrd.io.source import input_error
from autoxrd.planners.llm.settings import settings_from
from autoxrd.planners.registry import PlannerInfo, planner_info

__all__ = ["Measured", "Request", "load_job"]

_FORM_FACTORS = ("neutral", "as_given")


@dataclass(frozen=True, slots=True)
class Measured:
    """A pattern, how it was measured, and what of it is used.

    Args:
        pattern, instrument: files.
        anode, wavelength, radiation, geometry, monochromator_two_theta_deg: what no file says.
        two_theta_limits: range to fit, degrees (microseconds over the time of flight).
        excluded_regions: regions to leave out, same unit.
        background_terms: number of background coefficients; None lets the engine's default stand.
    """

    pattern: Path
    instrument: Path | None = None
    anode: str | None = None
    wavelength: str | None = None
    radiation: str | None = None
    geometry: str | None = None
    monochromator_two_theta_deg: float | None = None
    two_theta_limits: tuple[float, float] | None = None
    excluded_regions: tuple[tuple[float, float], ...] = ()
    background_terms: int | None = None


@dataclass(frozen=True, slots=True)
class Request(Measured):
    """What a user asks for.

    Args:
        structures: files of the structures that are believed to be there.
        candidates: files of structures that may be there; with candidates no structure is needed.
        form_factors: ``neutral`` or ``as_given`` (ions where the CIF has them).
        planner_settings: how a planner that asks a language model asks it (`LlmSettings`).
        standard: the phase whose amount was weighed, by its name in the job or the name of its CIF.
        external: a standard that was measured and refined apart.
        known_cells: the phases whose cell is certified, named in the same way.
        others: further patterns of the same sample, refined together with the first.
        profile_match: fit the lines of the cells without a structural model (Le Bail, Pawley).
    """

    structures: tuple[Path, ...] = ()
    candidates: tuple[Path, ...] = ()
    form_factors: str = "neutral"
    engine: str = "rietx"
    planner: str = "rules"
    planner_settings: Mapping[str, Any] = field(default_factory=dict)
    policy: str = "default"
    budget: Budget = field(default_factory=Budget)
    standard: InternalStandard | None = None
    external: ExternalRequest | None = None
    known_cells: tuple[KnownCell, ...] = ()
    others: tuple[Measured, ...] = ()
    profile_match: bool = False


def load_job(request: Request) -> tuple[Job, tuple[SourceFile, ...]]:
    """Read and check everything.

    Raises:
        UserInputError: an input cannot be used; the sentence names the file and says what was expected.
        EngineUnavailable: the engine cannot be used here.
        NotFound: no such engine or planner.
        PolicyError: the policy is not valid.
    """
    policy = load_policy(request.policy)
    engine = get_engine(request.engine)
    usable, version = engine.available()
    if not usable:
        raise EngineUnavailable("engine_unavailable", f"The engine {request.engine} cannot be used: {version}.")
    planner = planner_info(request.planner)
    settings = _planner_settings(planner, request.planner_settings)
    _check_together(request, planner, engine.capabilities())
    axes = engine.capabilities().axes
    pattern, instrument = _measured(request, request, axes)
    structures, candidates = _structures(request.structures, request.candidates, lattice=request.profile_match)
    known, structures, said = certified(request.known_cells, structures)
    others, told = _others(request, axes)
    engine_settings = _engine_settings(request, pattern, request.form_factors) | _seeds(instrument)
    phases = (*structures, *candidates)
    specimen = Specimen(pattern, instrument, phases, engine.capabilities(), version, engine_settings)
    standard, measured = _standard(request, specimen)
    job = Job(
        pattern=pattern,
        instrument=replace(instrument, notices=()),
        structures=structures,
        candidates=candidates,
        policy=policy,
        engine=request.engine,
        engine_version=version,
        planner=planner.name,
        planner_version=planner.version,
        engine_settings=engine_settings,
        budget=request.budget,
        notices=(*_notices(pattern, instrument.notices, (*structures, *candidates)), *said, *told, *measured),
        planner_settings=settings,
        standard=standard,
        known_cells=known,
        others=others,
        profile_match=request.profile_match,
    )
    return job, _sources(request)


def _check_together(request: Request, planner: PlannerInfo, can: Capabilities) -> None:
    """Refuse what does not go together, by name."""
    if request.profile_match:
        _check_match(request, planner)
    if request.others:
        _check_several(request, can)


def _check_match(request: Request, planner: PlannerInfo) -> None:
    """Refuse what a profile match cannot have: it knows no structure, so no amounts and no choice between phases."""
    refused = {
        "--candidate": (bool(request.candidates), "phases are told from one another by their structures"),
        "--standard": (request.standard is not None, "amounts come from structures"),
        "--external-standard": (request.external is not None, "amounts come from structures"),
        "--with": (bool(request.others), "what several patterns share is a structure"),
    }
    for option, (given, why) in refused.items():
        if given:
            raise UserInputError("profile_match_alone", f"{option} does not go with --profile-match: {why}.")
    if planner.needs_model:
        text = f"The planner {planner.name!r} knows structures only; a profile match is made by 'rules' or by hand."
        raise UserInputError("profile_match_planner", text)


def _measured(given: Measured, request: Request, axes: Sequence[str]) -> tuple[Pattern, Instrument]:
    """Read a pattern with its instrument."""
    pattern = read_pattern(given.pattern, axis=axis_of(given.instrument))
    _check_axis(pattern, axes, request)
    instrument = resolve_instrument(
        pattern,
        file=given.instrument,
        anode=given.anode,
        wavelength=given.wavelength,
        radiation=given.radiation,
        geometry=given.geometry,
        monochromator_two_theta_deg=given.monochromator_two_theta_deg,
    )
    return as_refined(pattern, instrument), instrument


def _check_several(request: Request, can: Capabilities) -> None:
    """Refuse what a fit of several histograms cannot have yet."""
    if not can.several:
        text = f"The engine {request.engine} refines one pattern at a time; gsasii refines several together."
        raise UserInputError("histograms_unsupported", text)
    if request.planner != "rules":
        text = f"The planner {request.planner!r} knows one pattern only; several are refined by 'rules' or by hand."
        raise UserInputError("histograms_unsupported", text)
    if request.candidates:
        text = "Candidates are looked for in one pattern: find the phases first, and name them as structures."
        raise UserInputError("histograms_unsupported", text)
    if request.standard is not None or request.external is not None:
        text = "A standard, internal or external, is evaluated for one pattern at a time."
        raise UserInputError("histograms_unsupported", text)


def _others(request: Request, axes: Sequence[str]) -> tuple[tuple[Histogram, ...], tuple[Notice, ...]]:
    """Read the further patterns; they are named by their place, from 2."""
    found, told = [], []
    for number, given in enumerate(request.others, 2):
        pattern, instrument = _measured(given, request, axes)
        settings = _engine_settings(given, pattern, request.form_factors) | _seeds(instrument)
        found.append(Histogram(str(number), pattern, replace(instrument, notices=()), settings))
        told += [Notice(n.code, f"Histogram {number}: {n.text}") for n in _notices(pattern, instrument.notices, ())]
    return tuple(found), tuple(told)


def _check_axis(pattern: Pattern, axes: Sequence[str], request: Request) -> None:
    """Refuse a time-of-flight pattern where the engine knows none; Q and d are turned into 2theta."""
    if pattern.axis is not AxisKind.TOF:
        return
    name = pattern.source_name or "the pattern"
    if pattern.axis.value not in axes:
        sentence = f"is a time-of-flight pattern, which the engine {request.engine} does not refine; use gsasii."
        raise input_error("axis_unsupported", name, sentence)
    if request.candidates:
        sentence = "is a time-of-flight pattern: candidates are looked for over 2theta only; name them as structures."
        raise input_error("axis_unsupported", name, sentence)


def _planner_settings(planner: PlannerInfo, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings in full, defaults included: the record must say what was done, not what was typed."""
    if not planner.needs_model:
        return {}
    if not given.get("model"):
        raise UserInputError("model_missing", f"The planner {planner.name!r} asks a language model: name it, --model.")
    return settings_from(dict(given)).model_dump(mode="json")


def _structures(
    given: Sequence[Path], candidates: Sequence[Path], *, lattice: bool = False
) -> tuple[tuple[CrystalStructure, ...], tuple[CrystalStructure, ...]]:
    """Read the structures believed to be there, and the candidates; names are unique over both."""
    if not given and not candidates:
        raise UserInputError(
            "structure_missing",
            "No structure was given; name at least one CIF with --structure, or several with --candidate.",
        )
    first = [structure for path in given for structure in read_structures(path, lattice=lattice)]
    named = name_structures([*first, *(structure for path in candidates for structure in read_structures(path))])
    return named[: len(first)], named[len(first) :]


def _standard(request: Request, specimen: Specimen) -> tuple[Standard | None, tuple[Notice, ...]]:
    """Return the standard, internal or external, with what a person should know of it."""
    if request.external is None:
        return _weighed(request.standard, specimen.structures), ()
    if request.standard is not None:
        text = "Both an internal and an external standard were given: name the one that the fractions shall follow."
        raise UserInputError("standard_twice", text)
    return external_standard(request.external, specimen)


def _weighed(given: InternalStandard | None, structures: Sequence[CrystalStructure]) -> InternalStandard | None:
    """Return the standard under the name that its phase has in the job."""
    if given is None:
        return None
    return replace(given, phase=find_phase(given.phase, structures, what="The standard", code="standard_unknown").name)


def _engine_settings(given: Measured, pattern: Pattern, form_factors: str) -> dict[str, Any]:
    if form_factors not in _FORM_FACTORS:
        known = " or ".join(_FORM_FACTORS)
        raise UserInputError("form_factors_unknown", f"The form factors are {known}, not {form_factors!r}.")
    settings: dict[str, Any] = {"form_factors": form_factors}
    if given.background_terms is not None:
        if not 1 <= given.background_terms <= 36:
            raise UserInputError("background_terms_range", "The number of background terms must be 1 to 36.")
        settings["background_terms"] = given.background_terms
    if given.two_theta_limits is not None:
        settings["two_theta_limits"] = _region(given.two_theta_limits, pattern, "--range")
    if given.excluded_regions:
        settings["excluded_regions"] = [_region(r, pattern, "--exclude") for r in given.excluded_regions]
    return settings


def _seeds(instrument: Instrument) -> dict[str, Any]:
    """With an unknown profile the Lorentzian width starts in the phases: that is where the rules release it."""
    return {"size_seed": True} if instrument.profile is None and instrument.radiation is Radiation.XRAY else {}


def _unit(pattern: Pattern) -> str:
    return "microseconds" if pattern.axis is AxisKind.TOF else "degrees"


def _region(region: tuple[float, float], pattern: Pattern, option: str) -> list[float]:
    lower, upper = region
    if not lower < upper or upper <= pattern.x[0] or lower >= pattern.x[-1]:
        raise UserInputError(
            "range_invalid",
            f"{option} {lower:g},{upper:g} is not a region of {pattern.source_name}, "
            f"which runs from {pattern.x[0]:g} to {pattern.x[-1]:g} {_unit(pattern)}.",
        )
    return [float(lower), float(upper)]


def _notices(
    pattern: Pattern, instrument: Sequence[Notice], structures: Sequence[CrystalStructure]
) -> tuple[Notice, ...]:
    own = (Notice(n.code, f"{s.name}: {n.text}") for s in structures for n in s.notices)
    return tuple(dict.fromkeys((*pattern.notices, *assess_pattern(pattern), *instrument, *own)))


def _sources(request: Request) -> tuple[SourceFile, ...]:
    sources = [SourceFile("pattern", request.pattern.read_bytes())]
    sources += [SourceFile(f"structure.{i}", path.read_bytes()) for i, path in enumerate(request.structures, 1)]
    sources += [SourceFile(f"candidate.{i}", path.read_bytes()) for i, path in enumerate(request.candidates, 1)]
    if request.instrument is not None:
        sources.append(SourceFile("instrument", request.instrument.read_bytes()))
    for number, given in enumerate(request.others, 2):
        sources.append(SourceFile(f"pattern.{number}", given.pattern.read_bytes()))
        if given.instrument is not None:
            sources.append(SourceFile(f"instrument.{number}", given.instrument.read_bytes()))
    return tuple(sources)
