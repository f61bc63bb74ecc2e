"""What a planner may propose: one typed action with evidence and falsifiable predictions."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

__all__ = ["Action", "ActionKind", "Bound", "Evidence", "Prediction", "Stage"]


class Stage(StrEnum):
    """Where in the curriculum a job stands."""

    QC = "qc"
    PROFILE_MATCH = "profile_match"
    INSTRUMENT = "instrument"
    STRUCTURE = "structure"
    MICROSTRUCTURE = "microstructure"
    FINAL_AUDIT = "final_audit"


class ActionKind(StrEnum):
    """What an action does; DESIGN section 6."""

    SCALE = "scale"
    BACKGROUND = "background"
    ZERO = "zero"
    DISPLACEMENT = "displacement"
    LATTICE = "lattice"
    PROFILE = "profile"
    ASYMMETRY = "asymmetry"
    POSITIONS = "positions"
    DISPLACEMENT_PARAMETERS = "displacement_parameters"
    OCCUPANCY = "occupancy"
    PREFERRED_ORIENTATION = "preferred_orientation"
    SIZE_STRAIN = "size_strain"
    ABSORPTION = "absorption"
    FREEZE = "freeze"
    ADD_PHASE = "add_phase"
    REMOVE_PHASE = "remove_phase"
    EXCLUDE_REGION = "exclude_region"
    SWITCH_PROFILE = "switch_profile"
    BACKGROUND_MODEL = "background_model"
    PROFILE_MATCH = "profile_match"
    JOINT = "joint"


class _Frozen(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Evidence(_Frozen):
    """A claim about a recorded feature that preflight looks up and checks."""

    feature: Annotated[str, Field(min_length=1, max_length=120)]
    value: FiniteFloat
    """The feature's value as the planner saw it; must agree with the record to 1 %."""
    comparison: Literal[">", "<", ">=", "<=", "abs>"]
    threshold: FiniteFloat
    source: str
    """Id of the state whose record holds the feature."""


class Prediction(_Frozen):
    """A falsifiable statement about what the action will change."""

    metric: Annotated[str, Field(min_length=1, max_length=120)]
    direction: Literal["decrease", "increase", "toward_zero"]
    """``toward_zero``: the absolute value falls."""
    minimum_effect: Annotated[FiniteFloat, Field(gt=0)]


class Bound(_Frozen):
    """Limits of a parameter in its own unit; the engine must honour them."""

    selector: str
    lower: FiniteFloat
    upper: FiniteFloat


class Action(_Frozen):
    """One typed proposal. Released sets are cumulative except for ``freeze``."""

    kind: ActionKind
    stage: Stage
    parameters: tuple[str, ...]
    """Selectors (DESIGN section 5) that this action releases, or holds for ``freeze``."""
    bounds: tuple[Bound, ...] = ()
    settings: dict[str, int | float | str | tuple[float, ...]] = Field(default_factory=dict)
    """Other content of the kind: ``terms`` of a background, the region of an exclusion, ``axis`` of a texture.
    ``instead_of``: selectors, parted by spaces, whose effect this one replaces."""
    rationale: Annotated[str, Field(max_length=2000)]
    evidence: Annotated[tuple[Evidence, ...], Field(min_length=1)]
    predictions: Annotated[tuple[Prediction, ...], Field(min_length=1)]
    parent: str
    """Id of the state it starts from."""

    @property
    def instead_of(self) -> tuple[str, ...]:
        """Return the selectors whose effect leaves the model for this one: held at zero from here on."""
        return tuple(str(self.settings.get("instead_of", "")).split())
