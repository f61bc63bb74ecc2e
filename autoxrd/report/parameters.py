"""The parameter table: which phase and atom a name belongs to, and which step released it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from autoxrd.domain.action import ActionKind
from autoxrd.domain.naming import split_name
from autoxrd.gates.selectors import resolve_all
from autoxrd.report.model import ReportInput, StepRecord

__all__ = ["ParameterRow", "PathStep", "accepted_path", "parameter_rows"]

_ATOM = re.compile(r"^phase\.(?P<phase>[^.]+)\.atom\.(?P<atom>.+)\.(?P<quantity>[^.]+)$")
_PHASE = re.compile(r"^phase\.(?P<phase>[^.]+)\.(?P<quantity>.+)$")
_UNITS = {
    "cell.a": "angstrom", "cell.b": "angstrom", "cell.c": "angstrom", "cell.alpha": "deg", "cell.beta": "deg",
    "cell.gamma": "deg", "cell.volume": "angstrom^3", "density": "g/cm^3", "uiso": "angstrom^2", "size": "deg",
    "strain": "deg", "size_gauss": "deg", "strain_gauss": "deg", "crystallite_size_nm": "nm",
    "microstrain_percent": "%", "instrument.zero": "deg", "instrument.wavelength": "angstrom",
    "sample.displacement": "mm", "sample.offset_along": "mm", "sample.offset_across": "mm", "profile.U": "deg^2",
    "profile.V": "deg^2", "profile.W": "deg^2", "profile.X": "deg", "profile.Y": "deg",
}  # fmt: skip
"""Units of the engine-neutral names (DESIGN section 5) in ASCII, used where the engine gives none."""
_UNCERTAINTY = ".uncertainty"


@dataclass(frozen=True, slots=True)
class ParameterRow:
    """One line of parameters.csv.

    Args:
        phase, atom: empty where the quantity belongs to neither.
        quantity: what is left of the name, e.g. ``cell.a`` or ``uiso``.
        uncertainty: standard uncertainty when what the fit held is let go within what it plausibly is; None where the
            engine does not tell.
        released_in_step: ordinal of the accepted step that freed it, None where it was never freed.
    """

    name: str
    phase: str
    atom: str
    quantity: str
    value: float
    esd: float | None
    uncertainty: float | None
    unit: str
    lower: float | None
    upper: float | None
    released: bool
    released_in_step: int | None
    derived: bool


def _split(name: str) -> tuple[str, str, str]:
    if match := _ATOM.match(name):
        return match["phase"], match["atom"], match["quantity"]
    if match := _PHASE.match(name):
        return match["phase"], "", match["quantity"]
    return "", "", name


class PathStep(Protocol):
    """What a path needs to know of an attempt."""

    @property
    def ordinal(self) -> int: ...  # noqa: D102
    @property
    def parent_state(self) -> str: ...  # noqa: D102
    @property
    def candidate_state(self) -> str | None: ...  # noqa: D102
    @property
    def accepted(self) -> bool: ...  # noqa: D102


PathStepT = TypeVar("PathStepT", bound=PathStep)


def accepted_path(steps: Sequence[PathStepT], final: str) -> tuple[PathStepT, ...]:
    """Return the accepted steps that lead from the root to the final state, in order."""
    by_child = {s.candidate_state: s for s in steps if s.accepted and s.candidate_state}
    path: list[PathStepT] = []
    state = final
    while state in by_child and len(path) < len(steps):
        path.append(by_child[state])
        state = by_child[state].parent_state
    return tuple(reversed(path))


def _released_in(names: Sequence[str], path: Sequence[StepRecord]) -> dict[str, int]:
    """Find, by parameter name, the step from which it has been free without a break."""
    since: dict[str, int] = {}
    for step in path:
        for name in resolve_all(step.action.parameters, names):
            if step.action.kind is ActionKind.FREEZE:
                since.pop(name, None)
            else:
                since.setdefault(name, step.ordinal)
    return since


def uncertainties(inp: ReportInput) -> dict[str, float]:
    """Return the standard uncertainty by parameter, where the engine tells it."""
    found = (p for p in inp.state.parameters if p.name.endswith(_UNCERTAINTY))
    return {p.name.removesuffix(_UNCERTAINTY): p.value for p in found}


def parameter_rows(inp: ReportInput) -> tuple[ParameterRow, ...]:
    """Return every parameter and derived quantity of the final state, in the state's order.

    Uncertainties, which engines give as quantities beside the parameters, stand in their parameters' rows.
    """
    path = accepted_path(inp.steps, inp.state_id)
    free = [p.name for p in inp.state.parameters if p.released or (p.derived and p.esd is not None)]
    since = _released_in(free, path)
    stated = uncertainties(inp)
    rows = []
    for p in inp.state.parameters:
        if p.name.endswith(_UNCERTAINTY):
            continue
        histogram, bared = split_name(p.name)
        phase, atom, quantity = _split(bared)
        rows.append(
            ParameterRow(
                name=p.name,
                phase=phase,
                atom=atom,
                quantity=f"histogram.{histogram}.{quantity}" if histogram else quantity,
                value=p.value,
                esd=p.esd,
                uncertainty=stated.get(p.name),
                unit=p.unit or _UNITS.get(quantity, ""),
                lower=p.lower,
                upper=p.upper,
                released=p.released,
                released_in_step=since.get(p.name),
                derived=p.derived,
            )
        )
    return tuple(rows)
