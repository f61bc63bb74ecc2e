"""Small states and actions for the gate's tests: a plain good fit, with what a test wants changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from autoxrd.domain.action import Action, ActionKind, Bound, Evidence, Prediction, Stage
from autoxrd.domain.decision import GateCheck
from autoxrd.domain.state import (
    Complexity,
    Convergence,
    Feature,
    FitState,
    MeasuredValue,
    ParameterValue,
    PhaseSummary,
    Quality,
    UnexplainedPeak,
    Violation,
)
from autoxrd.gates.preflight import PREFLIGHT_RULES

PARENT_ID = "0123456789abcdef"

NAMES = (
    "phase.fap.scale",
    "background.0",
    "background.1",
    "background.2",
    "instrument.zero",
    "instrument.wavelength",
    "sample.displacement",
    "profile.U",
    "profile.V",
    "profile.W",
    "profile.S/L",
    "profile.H/L",
    "phase.fap.cell.a",
    "phase.fap.cell.b",
    "phase.fap.cell.c",
    "phase.fap.cell.volume",
    "phase.fap.weight_fraction",
    "phase.fap.preferred_orientation",
    "phase.fap.atom.Ca1.x",
    "phase.fap.atom.Ca1.y",
    "phase.fap.atom.Ca1.z",
    "phase.fap.atom.Ca1.uiso",
    "phase.fap.atom.Ca1.occupancy",
    "phase.fap.atom.O1'.x",
    "phase.fap.atom.O1'.y",
    "phase.fap.atom.O1'.z",
    "phase.fap.atom.O1'.uiso",
    "phase.fap.atom.O1'.occupancy",
)

FEATURES = {
    "position.zero": 0.05,
    "position.displacement": 0.02,
    "position.cell.fap": 2e-4,
    "position.cell": 2e-4,
    "position.rms": 0.3,
    "position.separable": 1.0,
    "width.low": 0.20,
    "width.trend": -0.1,
    "asymmetry.low_angle": 0.08,
    "intensity.angle_trend": 0.4,
    "intensity.angle_trend.fap": 0.4,
    "intensity.scatter.fap": 3.0,
    "intensity.texture.fap": 0.3,
    "intensity.scale.fap": 0.2,
    "background.slow": 0.1,
    "bias_low": -0.02,
    "unexplained_peak_ratio": 0.01,
    "missing_peak_ratio": 0.0,
    "candidate.nac": 0.1,
    "structured_fraction": 0.1,
    "release_gain.instrument.zero": 0.30,
    "release_gain.phase.fap.uiso": 0.05,
}


def parameters(
    names: Sequence[str] = NAMES, *, values: Mapping[str, float] | None = None, free: Sequence[str] = ()
) -> tuple[ParameterValue, ...]:
    """Parameters by name; the coordinates of different atoms differ so that they are different sites."""
    told = dict(values or {})
    atoms = list(dict.fromkeys(name.split(".atom.")[1].rpartition(".")[0] for name in names if ".atom." in name))
    result = []
    for name in names:
        value = told.get(name, 1.0)
        if ".atom." in name and name not in told:
            label, _, quantity = name.split(".atom.")[1].rpartition(".")
            value = 0.1 * (atoms.index(label) + 1) if quantity in "xyz" else (0.01 if quantity == "uiso" else 1.0)
        derived = name.endswith((".volume", ".weight_fraction", "cell.b"))
        result.append(ParameterValue(name=name, value=value, esd=0.001, released=name in free, derived=derived))
    return tuple(result)


def state(
    *,
    rwp: float = 0.10,
    rexp: float = 0.05,
    features: Mapping[str, float | Feature | None] | None = None,
    violations: Sequence[Violation] = (),
    released: Sequence[str] = ("phase.*.scale", "background.*"),
    free: Sequence[str] = (),
    n_free: int = 4,
    max_correlation: float | None = 0.5,
    pair: tuple[str, str] | None = ("phase.fap.scale", "background.0"),
    background_max_correlation: float | None = 0.9,
    converged: bool = True,
    dropped: Sequence[str] = (),
    shift: float | None = 0.01,
    n_points: int = 5000,
    abs_residual: float = 0.06,
    names: Sequence[str] = NAMES,
    values: Mapping[str, float] | None = None,
    bounds: Sequence[Bound] = (),
    unexplained_peaks: Sequence[UnexplainedPeak] = (),
    rwp_no_background: float = 0.12,
    phases: Sequence[PhaseSummary] | None = None,
    stage: Stage = Stage.INSTRUMENT,
    **quality: Any,
) -> FitState:
    """A converged fit of one phase; chi2 is consistent with Rwp on weights of one."""
    recorded: dict[str, Feature] = {}
    for name, value in {**FEATURES, **(features or {})}.items():
        if isinstance(value, Feature):
            recorded[name] = value
        elif value is not None:
            # the oracle is written for a ratio that is known exactly
            exact = name == "unexplained_peak_ratio"
            recorded[name] = Feature(value=value, esd=None if exact else abs(value) / 10 or 0.001)
    figures: dict[str, Any] = {
        "rp": 0.8 * rwp,
        "rwp": rwp,
        "rexp": rexp,
        "gof": rwp / rexp,
        "chi2": (rwp / rexp) ** 2 * n_points,
        "rwp_no_background": rwp_no_background,
        "n_points": n_points,
        "n_parameters": n_free,
        "abs_residual": abs_residual,
        "r_bragg": {"fap": 0.05},
    }
    figures.update(quality)
    cell = {key: MeasuredValue(value=9.37, esd=0.001) for key in ("a", "b", "c")}
    one = PhaseSummary(
        name="fap", space_group="P 63/m", weight_fraction=MeasuredValue(value=1.0, esd=0.0), cell=cell, r_bragg=0.05
    )
    return FitState(
        stage=stage,
        engine="fake",
        engine_version="1",
        snapshot="s" * 64,
        arrays="a" * 64,
        quality=Quality(**figures),
        features=recorded,
        violations=tuple(violations),
        complexity=Complexity(
            n_free=n_free,
            n_points=n_points,
            max_correlation=max_correlation,
            max_correlation_pair=pair,
            background_max_correlation=background_max_correlation,
        ),
        convergence=Convergence(converged=converged, cycles=5, max_shift_over_esd=shift, dropped=tuple(dropped)),
        parameters=parameters(names, values=values, free=free),
        phases=(one,) if phases is None else tuple(phases),
        unexplained_peaks=tuple(unexplained_peaks),
        released=tuple(released),
        bounds=tuple(bounds),
    )


def evidence(feature: str = "position.zero", value: float = 0.05, **changes: Any) -> Evidence:
    """A claim that holds on the plain state."""
    content: dict[str, Any] = {"comparison": "abs>", "threshold": 0.01, "source": PARENT_ID}
    return Evidence(feature=feature, value=value, **{**content, **changes})


def prediction(metric: str = "position.zero", direction: str = "toward_zero", minimum: float = 0.02) -> Prediction:
    """A prediction that can fail."""
    return Prediction(metric=metric, direction=direction, minimum_effect=minimum)  # type: ignore[arg-type]


def action(
    kind: ActionKind | str = ActionKind.ZERO,
    selectors: Sequence[str] = ("instrument.zero",),
    *,
    stage: Stage = Stage.INSTRUMENT,
    claims: Sequence[Evidence] | None = None,
    predictions: Sequence[Prediction] | None = None,
    bounds: Sequence[Bound] = (),
    settings: dict[str, Any] | None = None,
    parent: str = PARENT_ID,
) -> Action:
    """A zero-shift action that passes preflight on the plain state."""
    return Action(
        kind=ActionKind(kind),
        stage=stage,
        parameters=tuple(selectors),
        bounds=tuple(bounds),
        settings=settings or {},
        rationale="because",
        evidence=tuple(claims) if claims is not None else (evidence(),),
        predictions=tuple(predictions) if predictions is not None else (prediction(),),
        parent=parent,
    )


def passed() -> tuple[GateCheck, ...]:
    """A preflight in which every check was made and passed."""
    return tuple(GateCheck(rule=rule, passed=True) for rule in PREFLIGHT_RULES)
