"""What may a client ask for? The request of a job, strict: an unknown field is an error, never ignored."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

__all__ = [
    "MAX_STRUCTURES",
    "Budgets",
    "ExternalStandard",
    "FitSettings",
    "InputReference",
    "Inputs",
    "JobRequest",
    "KnownCell",
    "Measurement",
    "ModelWishes",
    "SeriesPlace",
    "Standard",
]

MAX_STRUCTURES = 50
"""Structures and candidates of one job, together."""

Text = Annotated[str, Field(max_length=500)]
Facts = Annotated[dict[Annotated[str, Field(max_length=64)], Text | float | int | bool | None], Field(max_length=50)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Degrees = Annotated[float, Field(ge=-180.0, le=360.0, allow_inf_nan=False)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Measurement(_Strict):
    """What no file says about the measurement."""

    anode: Annotated[str, Field(max_length=8)] | None = None
    """X-ray tube: Cu, Co, Mo, Cr, Fe, Ag."""
    wavelength: Annotated[str, Field(max_length=64)] | None = None
    """Angstrom: ``1.5406`` or ``1.5406,1.5444:0.5`` (second line:ratio)."""
    radiation: Literal["xray", "neutron"] | None = None
    geometry: Literal["bragg_brentano", "debye_scherrer"] | None = None
    monochromator_two_theta_deg: Annotated[float, Field(gt=0.0, lt=180.0)] | None = None


class FitSettings(_Strict):
    """What is fitted."""

    two_theta_limits_deg: tuple[Degrees, Degrees] | None = None
    excluded_regions_deg: Annotated[tuple[tuple[Degrees, Degrees], ...], Field(max_length=100)] = ()
    background_terms: Annotated[int, Field(ge=1, le=36)] | None = None
    form_factors: Literal["neutral", "as_given"] = "neutral"
    profile_match: bool = False
    """Fit the lines of the cells without a structural model (Le Bail, Pawley); a CIF needs no atoms then."""


class Standard(_Strict):
    """An internal standard: a phase of the specimen whose amount was weighed."""

    phase: Annotated[str, Field(min_length=1, max_length=200)]
    """Its name in the job, or the name of its CIF."""
    weight_percent: Annotated[float, Field(gt=0.0, lt=100.0)]
    """Of the whole specimen."""
    crystallinity_percent: Annotated[float, Field(gt=0.0, le=100.0)] = 100.0


class ExternalStandard(_Strict):
    """A specimen of known crystallinity that was measured alike and refined in an earlier job of yours."""

    job: Annotated[str, Field(pattern=r"^[0-9a-f-]{36}$")]
    """Id of that job, which must be completed; afterwards it may be deleted."""
    crystallinity_percent: Annotated[float, Field(gt=0.0, le=100.0)] = 100.0
    """Of the standard."""
    mass_absorption_cm2_g: Annotated[float, Field(gt=0.0, lt=1e4)] | None = None
    """Of the specimen, cm2/g."""
    composition: Annotated[str, Field(min_length=1, max_length=2000)] | None = None
    """Or what the specimen consists of, formulas with percent by weight: ``Al2O3:50,SiO2:50``."""
    intensity_ratio: Annotated[float, Field(gt=1e-6, lt=1e6)] | None = None
    """Counting time times tube current of the specimen over those of the standard; by the files, else 1."""


class KnownCell(_Strict):
    """A phase of the specimen whose cell is certified: it is held, and what moves lines is fitted to it."""

    phase: Annotated[str, Field(min_length=1, max_length=200)]
    """Its name in the job, or the name of its CIF."""
    cell: Annotated[tuple[Annotated[float, Field(gt=0.0, allow_inf_nan=False)], ...], Field(max_length=6)] = ()
    """The cell parameters that its symmetry leaves free, in the order a b c alpha beta gamma, angstrom and degrees;
    none takes the cell of its CIF."""


class Budgets(_Strict):
    """Where the job stops although something may be left to gain; None is no limit of its own."""

    steps: Annotated[int, Field(ge=1, le=10_000)] = 60
    wall_seconds: Annotated[float, Field(gt=0.0, le=7 * 86400.0)] = 3600.0
    """Time in which a step of the job ran."""
    engine_seconds: Annotated[float, Field(gt=0.0)] | None = None
    model_calls: Annotated[int, Field(ge=0)] | None = None
    """Requests to the language model; this and the next two can only be less than what the service allows a job."""
    model_tokens: Annotated[int, Field(ge=0)] | None = None
    money_usd: Annotated[float, Field(ge=0.0, allow_inf_nan=False)] | None = None
    """Needs a model whose price is known: with an unknown price nothing is sent."""


class ModelWishes(_Strict):
    """What a job asks of the language model; which model that is, the service says."""

    on_outage: Literal["rules", "wait"] = "rules"
    """Where the model cannot be reached: the rules go on, or the job waits until somebody resumes it."""
    note: Annotated[str, Field(max_length=2000)] = ""
    """What you know of the sample; the model reads it as data."""


class InputReference(_Strict):
    """A file that was uploaded before."""

    artifact: Sha256
    name: Annotated[str, Field(min_length=1, max_length=200)]
    """For its format, and for the report."""


class Inputs(_Strict):
    """The files of a job that is sent as JSON; in a multipart request they are parts."""

    pattern: InputReference
    structures: Annotated[tuple[InputReference, ...], Field(max_length=MAX_STRUCTURES)] = ()
    """Phases believed to be in the specimen; with candidates there may be none."""
    candidates: Annotated[tuple[InputReference, ...], Field(max_length=MAX_STRUCTURES)] = ()
    """Phases that may be in it; with the structures 50 at most."""
    instrument: InputReference | None = None

    @model_validator(mode="after")
    def _some(self) -> Inputs:
        if not 1 <= len(self.structures) + len(self.candidates) <= MAX_STRUCTURES:
            raise ValueError(f"name 1 to {MAX_STRUCTURES} structures and candidates together")
        return self


class SeriesPlace(_Strict):
    """Where a pattern stands among others of one specimen; the jobs of one name are shown side by side."""

    name: Annotated[str, Field(min_length=1, max_length=100)]
    value: Annotated[float, Field(allow_inf_nan=False)] | None = None
    """What was varied: a temperature, a time."""
    quantity: Annotated[str, Field(max_length=40)] = ""
    unit: Annotated[str, Field(max_length=20)] = ""


class JobRequest(_Strict):
    """A refinement to be done."""

    title: Annotated[str, Field(max_length=200)] = ""
    sample: Facts = Field(default_factory=dict)
    """What the sample is; kept with the job, never used by a planner."""
    proposal: Facts = Field(default_factory=dict)
    session: Facts = Field(default_factory=dict)
    measurement: Measurement = Measurement()
    fit: FitSettings = FitSettings()
    standard: Standard | None = None
    """Gives the fractions of the whole specimen and the amorphous content."""
    external_standard: ExternalStandard | None = None
    """The same by a standard that was measured apart; one of the two at most."""
    known_cells: Annotated[tuple[KnownCell, ...], Field(max_length=50)] = ()
    """Internal standards for line positions."""
    engine: Annotated[str, Field(max_length=64)] = "rietx"
    planner: Annotated[str, Field(max_length=64)] = "rules"
    policy: Annotated[str, Field(max_length=64)] = "default"
    """A policy that the service ships (`GET /api/v1/profiles`)."""
    model: ModelWishes = ModelWishes()
    """For the planners ``llm`` and ``hybrid``."""
    budgets: Budgets = Budgets()
    series: SeriesPlace | None = None
    priority: Annotated[int, Field(ge=-10, le=10)] = 0
    """Among the jobs of one owner; owners among each other are served fairly."""
    review: Literal["none", "each_step"] = "none"
    """``each_step``: the job waits before each step until a person accepts or rejects it, or adds another action."""
    callback: Annotated[str, Field(max_length=2000)] | None = None
    """Address of one of your webhooks that is to be told of this job (`POST /api/v1/webhooks`)."""
    reproducible: bool = False
    """Leave dates and durations out of the report, so that equal jobs give equal bytes."""
    inputs: Inputs | None = None

    @model_validator(mode="after")
    def _sound(self) -> JobRequest:
        if self.fit.profile_match and self.standard is not None:
            raise ValueError("a profile match knows no amounts: it goes without an internal standard")
        place = self.series
        texts = [self.title, self.model.note, *((place.name, place.quantity, place.unit) if place else ())]
        texts += [ref.name for ref in self.references().values()]
        for facts in (self.sample, self.proposal, self.session):
            texts += [*facts, *(v for v in facts.values() if isinstance(v, str))]
        if any(not (char.isprintable() or char in "\n\t") for text in texts for char in text):
            raise ValueError("titles, names and facts are printable text")
        return self

    def references(self) -> dict[str, InputReference]:
        """Return the named uploads by role: ``pattern``, ``structure.1``, ``candidate.1``, ..., ``instrument``."""
        if self.inputs is None:
            return {}
        found = {"pattern": self.inputs.pattern}
        found |= {f"structure.{i}": ref for i, ref in enumerate(self.inputs.structures, 1)}
        found |= {f"candidate.{i}": ref for i, ref in enumerate(self.inputs.candidates, 1)}
        if self.inputs.instrument is not None:
            found["instrument"] = self.inputs.instrument
        return found
