"""What does another job say as an external standard? Read once, when a job is made: its record then holds all of it."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from autoxrd.agent.codec import decode_structures, load_arrays
from autoxrd.domain.instrument import Geometry, Instrument, Radiation
from autoxrd.domain.pattern import FloatArray, Notice, Pattern
from autoxrd.domain.standard import ExternalStandard
from autoxrd.domain.state import FitState, ParameterValue, PhaseSummary
from autoxrd.domain.structure import CrystalStructure
from autoxrd.engines.protocol import Capabilities
from autoxrd.errors import NotFound, UserInputError
from autoxrd.io import read_pattern
from autoxrd.io.attenuation import composition_absorption, element_counts, mass_absorption
from autoxrd.primitives import safe_name
from autoxrd.science.external import standard_constant
from autoxrd.store.graph import Graph
from autoxrd.store.reading import GraphReader
from autoxrd.store.records import JobRecord
from autoxrd.store.verify import verify

__all__ = ["ExternalRequest", "Specimen", "external_standard"]

_SAME_WAVELENGTH = 2e-4
"""Relative difference of two tables of one tube's lines."""
_SAME_SHARE = 0.02
"""Of the intensity of a second line, and of the polarisation: so much changes a scale factor by less than a percent."""
_TEXTURED = 0.25
"""Distance of a March-Dollase coefficient from 1 beyond which it is told: of the pure patterns of the CPD round robin
brucite with 0.66 gave 10 % too little of everything, corundum with 0.95 and magnetite with 0.82 did not."""
_INTENSITY_RANGE = (1e-6, 1e6)


@dataclass(frozen=True, slots=True)
class ExternalRequest:
    """What a user says of an external standard.

    Args:
        job: directory of the job that refined it.
        crystallinity: share of the standard that diffracts, above 0 and at most 1.
        mass_absorption_cm2_g: of the specimen; None where a composition or nothing tells it.
        composition: of the specimen, formulas with percent by weight.
        intensity_ratio: counting time times incident intensity of the specimen over those of the standard; None where
            the files tell, or both are alike.
    """

    job: Path
    crystallinity: float = 1.0
    mass_absorption_cm2_g: float | None = None
    composition: str | None = None
    intensity_ratio: float | None = None

    def __post_init__(self) -> None:
        if not 0.0 < self.crystallinity <= 1.0:
            text = f"crystallinity must be above 0 and at most 100 %, not {100 * self.crystallinity:g}"
            raise UserInputError("standard_invalid", f"The standard's {text}.")
        if self.mass_absorption_cm2_g is not None and self.composition is not None:
            text = "The specimen's mass absorption is stated, or follows from its composition: give one of the two."
            raise UserInputError("mass_absorption_twice", text)
        if self.mass_absorption_cm2_g is not None and not 0.0 < self.mass_absorption_cm2_g < 1e4:
            text = f"must be above 0 cm2/g (corundum, Cu: 31.6), not {self.mass_absorption_cm2_g:g}"
            raise UserInputError("mass_absorption_invalid", f"The mass absorption coefficient {text}.")
        lowest, highest = _INTENSITY_RANGE
        if self.intensity_ratio is not None and not lowest < self.intensity_ratio < highest:
            text = f"The intensity ratio must be above 0, not {self.intensity_ratio:g}: specimen over standard."
            raise UserInputError("intensity_ratio_invalid", text)


@dataclass(frozen=True, slots=True)
class Specimen:
    """What of a new job must agree with the standard's.

    Args:
        pattern: of the specimen.
        instrument: that measured it.
        structures: all phases that the job may have.
        engine: who refines it.
        engine_version: of the engine as installed.
        engine_settings: of ``prepare``.
    """

    pattern: Pattern
    instrument: Instrument
    structures: tuple[CrystalStructure, ...]
    engine: Capabilities
    engine_version: str
    engine_settings: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Fit:
    """The final state of the standard as its record has it."""

    phases: tuple[PhaseSummary, ...]
    parameters: tuple[ParameterValue, ...]
    covariance_names: Sequence[str]
    covariance: FloatArray


def external_standard(request: ExternalRequest, specimen: Specimen) -> tuple[ExternalStandard, tuple[Notice, ...]]:
    """Read a standard's job and return what it says, with what a person should know of it.

    Raises:
        UserInputError: ``external_standard_missing``, ``external_standard_damaged``, ``external_standard_unfinished``,
            ``external_standard_abstained``, ``external_standard_geometry``, ``external_standard_differs``,
            ``external_standard_unusable``; ``composition_invalid``, ``mass_absorption_unknown``.
    """
    _check_geometry(specimen.instrument)
    try:
        report = verify(request.job, judge=None)
        with Graph.open(request.job, read_only=True) as graph:
            if not report.ok:
                text = "does not verify, so that its numbers cannot be trusted: see 'autoxrd verify'"
                raise _refusal("damaged", request, text)
            return _read(graph, request, specimen)
    except NotFound as error:
        raise UserInputError("external_standard_missing", f"The external standard: {error.detail}") from error


def _read(
    graph: GraphReader, request: ExternalRequest, specimen: Specimen
) -> tuple[ExternalStandard, tuple[Notice, ...]]:
    record, (state_id, verdict) = graph.job, _outcome(graph, request)
    _check_alike(record, request, specimen)
    state = graph.state(state_id)
    wavelength = specimen.instrument.lines[0].wavelength_angstrom
    constant, absorption = _constant(graph, state, request, specimen, wavelength)
    ratio, origin = _intensity_ratio(request, specimen.pattern, graph, record)
    sample, where = _sample_absorption(request, wavelength)
    standard = ExternalStandard(
        phases=tuple(phase.name for phase in state.phases),
        constant=constant[0],
        constant_esd=constant[1],
        volume_power=specimen.engine.scale_volume_power or 0,
        crystallinity=request.crystallinity,
        mass_absorption_cm2_g=absorption,
        intensity_ratio=ratio,
        intensity_origin=origin,
        phase_absorption_cm2_g=_absorptions(specimen.structures, wavelength) if sample is None else {},
        sample_absorption_cm2_g=sample,
        absorption_origin=where,
        composition=request.composition or "",
        wavelengths_angstrom=specimen.instrument.wavelengths_angstrom,
        source=_source(graph, record, state, state_id) | {"verdict": str(verdict["verdict"])},
    )
    return standard, _notices(verdict, state)


def _outcome(graph: GraphReader, request: ExternalRequest) -> tuple[str, Mapping[str, Any]]:
    """Return the final state's id and what the job said of it."""
    finish = graph.finished()
    if finish is None or finish.final_state is None:
        raise _refusal("unfinished", request, "is not finished: resume it first")
    if finish.verdict["verdict"] == "abstained":
        codes = ", ".join(str(code) for code, _ in finish.verdict["reasons"][:3])
        text = f"abstained ({codes}): nobody vouches for its scale factor; refine it anew"
        raise _refusal("abstained", request, text)
    return str(finish.final_state), finish.verdict


def _source(graph: GraphReader, record: JobRecord, state: FitState, state_id: str) -> dict[str, str]:
    pattern = record.histograms[0].pattern
    return {
        "graph_root": graph.root_hash(),
        "state": state_id,
        "pattern": str(pattern.get("source_name", "")),
        "pattern_sha256": str(pattern.get("source_sha256", "")),
        "engine": state.engine,
        "engine_version": state.engine_version,
    }


def _notices(verdict: Mapping[str, Any], state: FitState) -> tuple[Notice, ...]:
    """Say what makes the standard's scale factor doubtful, and with it every fraction of the specimen."""
    found = []
    codes = list(dict.fromkeys(str(code) for code, _ in verdict["warnings"]))
    if codes:
        text = f"The external standard was accepted with warnings: {', '.join(codes[:8])}"
        found.append(Notice("external_standard_warned", f"{text}; they hold for every fraction of the specimen too."))
    march = [
        p for p in state.parameters if p.name.endswith(".preferred_orientation") and abs(p.value - 1.0) > _TEXTURED
    ]
    if march:
        text = (
            f"The external standard is textured (March-Dollase coefficient {march[0].value:.2f}): its scale factor, and"
            " every fraction by it, is as good as the model of the texture. Take a standard without."
        )
        found.append(Notice("external_standard_textured", text))
    return tuple(found)


def _constant(
    graph: GraphReader, state: FitState, request: ExternalRequest, specimen: Specimen, wavelength: float
) -> tuple[tuple[float, float | None], float]:
    """Return the standard's constant with its esd, and its mass absorption coefficient."""
    arrays = load_arrays(graph.artifacts.get(state.arrays))
    names = [str(name) for name in arrays["covariance_names"] if name]
    covariance = np.asarray(arrays["covariance"], dtype=np.float64)
    fit = _Fit(state.phases, state.parameters, names, covariance)
    structures = decode_structures(graph.artifacts.get(state.files["structures"]))
    try:
        known = _absorptions(structures, wavelength)
    except UserInputError as error:
        raise _refusal("unusable", request, f"cannot be one: {error.detail}") from error
    found = standard_constant(
        fit,
        phase_absorption_cm2_g=known,
        volume_power=specimen.engine.scale_volume_power or 0,
        crystallinity=request.crystallinity,
    )
    if found is None or found[0].esd is None:
        text = "has no refined scale factor of each of its phases: refine a pattern of the pure standard"
        raise _refusal("unusable", request, text)
    return (found[0].value, found[0].esd), found[1]


def _absorptions(structures: Sequence[CrystalStructure], wavelength: float) -> dict[str, float]:
    return {s.name: mass_absorption(element_counts(s), wavelength) for s in structures}


def _sample_absorption(
    request: ExternalRequest, wavelength: float
) -> tuple[float | None, Literal["given", "composition", "phases"]]:
    if request.mass_absorption_cm2_g is not None:
        return request.mass_absorption_cm2_g, "given"
    if request.composition is not None:
        return composition_absorption(request.composition, wavelength), "composition"
    return None, "phases"


def _intensity_ratio(
    request: ExternalRequest, pattern: Pattern, graph: GraphReader, record: JobRecord
) -> tuple[float, Literal["given", "files", "assumed"]]:
    """Return how much longer or stronger the specimen was measured: as stated, else by the times of both files."""
    if request.intensity_ratio is not None:
        return request.intensity_ratio, "given"
    mine = pattern.hints.intensity_seconds
    other = None if mine is None else _seconds_of(graph, record)
    if mine is None or other is None:
        return 1.0, "assumed"
    return mine / other, "files"


def _seconds_of(graph: GraphReader, record: JobRecord) -> float | None:
    """Read the standard's file again for its time: a record keeps the arrays, and the file as it was given."""
    source = record.files.get("source.pattern")
    if source is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / safe_name(str(record.histograms[0].pattern.get("source_name", "pattern")))
        path.write_bytes(graph.artifacts.get(source))
        try:
            return read_pattern(path).hints.intensity_seconds
        except UserInputError:
            return None


def _check_geometry(instrument: Instrument) -> None:
    """Only of a thick flat specimen in reflection does the intensity go with 1/mu and with nothing else."""
    if instrument.radiation is Radiation.XRAY and instrument.geometry is Geometry.BRAGG_BRENTANO and instrument.lines:
        return
    text = (
        "An external standard needs X-rays in reflection (Bragg-Brentano), where the intensity goes with one over the"
        " mass absorption; in other geometries mix a weighed standard in, --standard PHASE=WT%."
    )
    raise UserInputError("external_standard_geometry", text)


def _check_alike(record: JobRecord, request: ExternalRequest, specimen: Specimen) -> None:
    """Refuse a standard whose scale factor has another meaning than the specimen's."""
    if len(record.histograms) > 1:
        raise _refusal("unusable", request, "has several histograms: refine one pattern of the standard")
    if specimen.engine.scale_volume_power is None:
        text = f"cannot be used: it is not known how the scale factors of {specimen.engine.name} count"
        raise _refusal("unusable", request, text)
    engine = f"{record.engine['name']} {record.engine['version']}"
    if engine != f"{specimen.engine.name} {specimen.engine_version}":
        text = f"was refined by {engine}, the specimen by {specimen.engine.name} {specimen.engine_version}"
        raise _refusal("differs", request, f"{text}: refine both with one engine of one version")
    if record.settings["engine"].get("form_factors") != specimen.engine_settings.get("form_factors"):
        text = "was refined with other form factors: give the same --form-factors for both"
        raise _refusal("differs", request, text)
    theirs, ours = record.histograms[0].instrument, specimen.instrument
    if theirs["radiation"] != ours.radiation.value or theirs["geometry"] != ours.geometry.value:
        text = f"was measured as {theirs['radiation']}, {theirs['geometry']}, not as {ours.radiation.value}"
        raise _refusal("differs", request, f"{text}, {ours.geometry.value}: measure both alike")
    lines = [(float(line["wavelength_angstrom"]), float(line["relative_intensity"])) for line in theirs["lines"]]
    own = [(line.wavelength_angstrom, line.relative_intensity) for line in ours.lines]
    same = len(lines) == len(own) and all(
        abs(a / b - 1.0) <= _SAME_WAVELENGTH and abs(i - j) <= _SAME_SHARE
        for (a, i), (b, j) in zip(lines, own, strict=True)
    )
    if not same:
        text = f"has the wavelengths {_listed(lines)} angstrom, the specimen {_listed(own)}"
        raise _refusal("differs", request, f"{text}: measure both with one tube, and state the same lines")
    if abs(float(theirs["polarization"]) - ours.polarization) > _SAME_SHARE:
        text = f"has the polarisation {float(theirs['polarization']):.3f}, the specimen {ours.polarization:.3f}"
        raise _refusal("differs", request, f"{text}: give the same --monochromator for both")


def _listed(lines: Sequence[tuple[float, float]]) -> str:
    return ", ".join(f"{wavelength:g} ({share:g})" for wavelength, share in lines)


def _refusal(kind: str, request: ExternalRequest, text: str) -> UserInputError:
    return UserInputError(f"external_standard_{kind}", f"The external standard {request.job.name[:80]} {text}.")
