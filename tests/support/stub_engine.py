"""An engine that answers in milliseconds: what is freed jumps to its true value, or does harm. For tests of planners.

The pattern is simulated (`tests.science.simulate`), so that everything the measures and the gate see is consistent;
only the least squares is left out.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from autoxrd.agent.estimating import Observed
from autoxrd.agent.job import Budget, Job
from autoxrd.domain.pattern import Pattern
from autoxrd.domain.state import Convergence, ParameterValue
from autoxrd.domain.structure import CrystalStructure
from autoxrd.engines.protocol import EngineCommand, EngineResult, Exported, Snapshot
from autoxrd.gates.policy import load_policy
from tests.science.simulate import FLUORITE, ZINCITE, Model, Phase, instrument, simulate, structure

__all__ = ["TRUE_RELEASES", "StubSession", "stub_job", "unseen"]


def unseen(histogram: str) -> Observed:
    """Stand for the points of a state, for actions that need none."""
    raise AssertionError(f"nobody asks for the points of {histogram}")


NAME = "fluorite"
START = Model(
    (replace(FLUORITE, scale=0.6),), lower=25.0, upper=75.0, step=0.04, background=(50.0, 0.0), displacement_mm=0.0
)
TRUE_PHASE = replace(FLUORITE, cell=(5.4665, 5.4665, 5.4665, 90.0, 90.0, 90.0), size_deg=0.08, scale=1.0)
TRUTH = replace(START, phases=(TRUE_PHASE,), background=(70.0, -15.0), displacement_mm=0.05)
IMPURE = replace(TRUTH, phases=(TRUE_PHASE, replace(ZINCITE, scale=4.0)))

PHASE = f"phase.{NAME}"
TRUE_RELEASES = ("background", f"{PHASE}.scale", "sample.displacement", f"{PHASE}.cell", f"{PHASE}.size")
"""What mends the model."""

HARMFUL = {
    f"{PHASE}.atom.Si1.occupancy": 1.7,
    f"{PHASE}.atom.Si1.uiso": -0.02,
    f"{PHASE}.strain": 0.0,
    "profile.W": 0.006,
    "instrument.zero": 0.0,
    f"{PHASE}.preferred_orientation": 1.0,
    "profile.SH/L": 0.0,
}
"""What promises much and gives nothing, with the value that it then has; the first two break a law of physics."""


@dataclass
class StubSession:
    """A session of the stub engine.

    Args:
        truth: what was measured.
    """

    truth: Model = TRUTH
    engine_seconds: float = 0.0
    commands: int = 0

    def prepare(self, *_: Any) -> Snapshot:
        return Snapshot("stub", b"[]")

    def execute(self, snapshot: Snapshot, command: EngineCommand) -> tuple[Snapshot, EngineResult]:
        self.commands += 1
        released = tuple(sorted(command.released))
        return Snapshot("stub", json.dumps(released).encode()), _result(self.truth, released)

    def export(self, snapshot: Snapshot, kinds: Sequence[str]) -> Exported:
        return Exported({})

    def close(self) -> None:
        """Nothing to end."""


def stub_job(planner: str = "llm", *, steps: int = 20, **settings: Any) -> Job:
    """A job on the stub's pattern."""
    x, y = _observed(TRUTH)
    return Job(
        pattern=Pattern(x=x, y=y, sigma=np.sqrt(np.maximum(y, 1.0)), source_name="stub.xy", source_sha256="0" * 64),
        instrument=instrument(START),
        structures=_structures(),
        policy=load_policy("default"),
        engine="rietx",
        engine_version="stub",
        planner=planner,
        planner_version="1",
        budget=Budget(steps=steps),
        planner_settings={"model": "openai/stub", "answer": "tool", **settings},
    )


def _structures() -> tuple[CrystalStructure, ...]:
    return tuple(structure(phase) for phase in START.phases)


@lru_cache(maxsize=4)
def _observed(truth: Model) -> tuple[np.ndarray, np.ndarray]:
    result = simulate(truth, truth, seed=4)
    return result.x, result.y_obs


def _freed(truth: Model, released: tuple[str, ...]) -> Model:
    """The model with what is freed at its true value."""
    true = truth.phases[0]
    phase: Phase = START.phases[0]
    if f"{PHASE}.scale" in released:
        phase = replace(phase, scale=true.scale)
    if f"{PHASE}.cell" in released:
        phase = replace(phase, cell=true.cell)
    if f"{PHASE}.size" in released:
        phase = replace(phase, size_deg=true.size_deg)
    model = replace(START, phases=(phase,))
    if "background" in released:
        model = replace(model, background=truth.background)
    if "sample.displacement" in released:
        model = replace(model, displacement_mm=truth.displacement_mm)
    return model


@lru_cache(maxsize=512)
def _fit(truth: Model, released: tuple[str, ...]) -> EngineResult:
    model = _freed(truth, tuple(name for name in released if name in TRUE_RELEASES))
    x, y = _observed(truth)
    result = simulate(model, model, seed=None)
    return replace(result, x=x, y_obs=y, sigma=np.sqrt(np.maximum(y, 1.0)))


def _chi2(result: EngineResult) -> float:
    return float(np.sum(((result.y_obs - result.y_calc) / result.sigma) ** 2))


@lru_cache(maxsize=512)
def _result(truth: Model, released: tuple[str, ...]) -> EngineResult:
    true = tuple(name for name in released if name in TRUE_RELEASES)
    now = _fit(truth, true)
    chi2 = _chi2(now)
    gains = {
        name: max(0.0, chi2 - _chi2(_fit(truth, tuple(sorted((*true, name))))))
        for name in TRUE_RELEASES
        if name not in released
    }
    gains |= {name: 0.15 * chi2 for name in HARMFUL if name not in released}
    parameters = _parameters(now, released)
    free = tuple(p.name for p in parameters if p.released)
    esds = [p.esd or 1e-3 for p in parameters if p.released]
    return replace(
        now,
        parameters=parameters,
        covariance_names=free,
        covariance=np.diag(np.square(esds)) if free else np.zeros((0, 0)),
        convergence=Convergence(
            converged=True, cycles=3, max_shift_over_esd=0.01 if free else None, status="converged"
        ),
        gains=gains,
        gain_counts={name: 2 if name == "background" else 1 for name in gains},
        selectors={name: (name,) for name in released},
        engine="stub",
        engine_version="1",
    )


def _parameters(result: EngineResult, released: tuple[str, ...]) -> tuple[ParameterValue, ...]:
    atom = f"{PHASE}.atom.Si1"
    values = {p.name: p.value for p in result.parameters}
    values |= {f"{PHASE}.cell.{edge}": result.phases[0].cell[edge].value for edge in ("a", "b", "c")}
    values |= {"instrument.zero": 0.0, "sample.displacement": 0.0, "profile.W": 0.006, "profile.S/L": 0.0}
    values |= {f"{PHASE}.size": 0.05, f"{PHASE}.strain": 0.05, f"{PHASE}.preferred_orientation": 1.0}
    values |= {f"{atom}.{axis}": 0.0 for axis in "xyz"} | {f"{atom}.occupancy": 1.0, f"{atom}.uiso": 0.006}
    values |= {name: HARMFUL[name] for name in released if name in HARMFUL and name in values}
    return tuple(
        ParameterValue(name=name, value=value, esd=1e-3 if _is_free(name, released) else None,
                       released=_is_free(name, released))
        for name, value in values.items()
    )  # fmt: skip


def _is_free(name: str, released: tuple[str, ...]) -> bool:
    return any(name == selector or name.startswith(f"{selector}.") for selector in released)
