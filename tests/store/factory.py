"""Synthetic jobs, states, actions and decisions of realistic size, deterministic in their seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from autoxrd.domain.action import Action, ActionKind, Evidence, Prediction, Stage
from autoxrd.domain.decision import Decision, GateCheck, PredictionOutcome
from autoxrd.domain.state import (
    Complexity,
    Convergence,
    Feature,
    FitState,
    MeasuredValue,
    ParameterValue,
    PhaseSummary,
    Quality,
    Violation,
)
from autoxrd.primitives import content_hash
from autoxrd.store.artifacts import ArtifactStore
from autoxrd.store.graph import ARTIFACTS_NAME, Graph
from autoxrd.store.records import HistogramRecord, JobRecord

POLICY: dict[str, Any] = {"name": "default", "version": "1", "limits": {"rwp_ratio": 1.02, "max_correlation": 0.98}}


def artifact_store(directory: Path) -> ArtifactStore:
    return ArtifactStore(directory / ARTIFACTS_NAME)


def make_job(store: ArtifactStore, *, title: str = "synthetic") -> JobRecord:
    pattern = store.put(b"# x y\n10.0 100\n10.1 102\n" + title.encode())
    structure = store.put(b"data_corundum\n_cell_length_a 4.759\n")
    return JobRecord(
        histograms=(
            HistogramRecord(
                name="main",
                pattern={"title": title, "format": "xy", "n_points": 2, "source_sha256": pattern},
                instrument={"radiation": "xray", "geometry": "bragg_brentano", "lines": ((1.5405929, 1.0),)},
            ),
        ),
        structures=({"name": "corundum", "space_group": "R -3 c:H", "source_sha256": structure},),
        settings={"cycles": 60},
        engine={"name": "rietx", "version": "1.10.0"},
        planner={"name": "rules", "version": "1"},
        policy=POLICY,
        files={"pattern": pattern, "structure.corundum": structure},
    )


def make_state(
    store: ArtifactStore, seed: int = 0, *, rwp: float | None = None, features: int = 80, parameters: int = 60
) -> FitState:
    """A state with artifacts of its own; equal arguments give equal states."""
    rng = random.Random(seed)
    rwp = rng.uniform(0.05, 0.5) if rwp is None else rwp
    return FitState(
        stage=Stage.INSTRUMENT,
        engine="rietx",
        engine_version="1.10.0",
        snapshot=store.put(b"snapshot " + rng.randbytes(2000)),
        arrays=store.put(b"arrays " + rng.randbytes(5000)),
        quality=Quality(
            rp=0.8 * rwp,
            rwp=rwp,
            rexp=0.03,
            gof=rwp / 0.03,
            chi2=rng.uniform(1e3, 1e5),
            rwp_no_background=1.3 * rwp,
            n_points=6000,
            n_parameters=17,
            abs_residual=0.7 * rwp,
            r_bragg={"corundum": rng.random()},
        ),
        features={
            f"release_gain.phase.corundum.atom.A{i}.uiso": Feature(
                value=rng.gauss(0, 1), esd=rng.random(), significance=rng.random() * 9, n_used=rng.randrange(1, 99)
            )
            for i in range(features)
        },
        violations=(Violation(code="at_bound", subject="profile.U", value=0.0, limit=0.0, severity="soft"),),
        complexity=Complexity(
            n_free=17, n_points=6000, max_correlation=0.93, max_correlation_pair=("profile.U", "profile.W")
        ),
        convergence=Convergence(converged=True, cycles=7, max_shift_over_esd=0.01, status="converged"),
        parameters=tuple(
            ParameterValue(name=f"phase.corundum.atom.A{i}.x", value=rng.random(), esd=rng.random() / 1e4, unit="1")
            for i in range(parameters)
        ),
        phases=(
            PhaseSummary(
                name="corundum",
                space_group="R -3 c:H",
                weight_fraction=MeasuredValue(value=1.0),
                cell={"a": MeasuredValue(value=4.759 + rng.random() / 1e3, esd=1e-4)},
            ),
        ),
        released=("phase.*.scale", "background.*"),
        files={"native": store.put(b"native " + rng.randbytes(300))},
    )


def make_action(parent: str, kind: ActionKind = ActionKind.ZERO, *, rationale: str = "offset at all angles") -> Action:
    return Action(
        kind=kind,
        stage=Stage.INSTRUMENT,
        parameters=("instrument.zero",),
        settings={"terms": 6, "region": (10.0, 12.5)},
        rationale=rationale,
        evidence=(Evidence(feature="position.zero", value=0.05, comparison="abs>", threshold=0.01, source=parent),),
        predictions=(Prediction(metric="position.zero", direction="toward_zero", minimum_effect=0.02),),
        parent=parent,
    )


def judge(action: Action, before: FitState, after: FitState, policy: dict[str, Any]) -> Decision:
    """A gate in miniature: a pure function of the recorded figures."""
    ratio = after.quality.rwp / before.quality.rwp
    better = ratio < 1
    accepted = ratio <= policy["limits"]["rwp_ratio"]
    return Decision(
        accepted=accepted,
        numerically_better=better,
        mechanism_supported=True,
        admissible=True,
        reasons=() if accepted else ("rwp_rose",),
        checks=(
            GateCheck(rule="rwp", passed=accepted, measured=ratio, limit=policy["limits"]["rwp_ratio"], text="Rwp"),
        ),
        predictions=tuple(
            PredictionOutcome(prediction=p, before=0.05, after=0.01, effect=0.04, met=True, of_mechanism=True)
            for p in action.predictions
        ),
        utility_before=-before.quality.gof,
        utility_after=-after.quality.gof,
        policy_name=policy["name"],
        policy_hash=content_hash(policy),
    )


def failed_decision() -> Decision:
    """What a gate says when the engine gave nothing."""
    return Decision(
        accepted=False,
        numerically_better=None,
        mechanism_supported=None,
        admissible=None,
        reasons=("engine_failed",),
        policy_name=POLICY["name"],
        policy_hash=content_hash(POLICY),
    )


def try_step(
    graph: Graph, seed: int, *, rwp: float, parent: str | None = None, rationale: str = "as seen", size: int = 80
) -> str:
    """Record one attempt that the miniature gate judges; return the candidate's id."""
    origin = graph.current() if parent is None else parent
    assert origin is not None
    before, after = graph.state(origin), make_state(graph.artifacts, seed, rwp=rwp, features=size, parameters=size)
    action = make_action(origin, rationale=rationale)
    attempt = graph.record(
        origin, action, judge(action, before, after, POLICY), after, planner={"name": "rules"}, telemetry={"seconds": 1}
    )
    assert attempt.candidate is not None
    return attempt.candidate


def build_graph(
    directory: Path, *, finish: bool = True, size: int = 80, before_step: Callable[[Graph, int], None] | None = None
) -> Graph:
    """Make a job with an accepted path, two rejections, an engine failure and, unless told otherwise, an end.

    Args:
        size: number of features and of parameters of each state.
        before_step: called with the graph and the number of the step about to be recorded.
    """
    store = artifact_store(directory)
    graph = Graph.create(directory, make_job(store))
    graph.add_event("started", {"autoxrd": "0.1.0"})
    graph.add_root(make_state(store, 0, rwp=0.6, features=size, parameters=size), {"seconds": 2.5})
    for seed, rwp in enumerate((0.4, 0.55, 0.3, 0.2, 0.5), start=1):
        if before_step is not None:
            before_step(graph, seed)
        try_step(graph, seed, rwp=rwp, size=size)
    current = graph.current()
    assert current is not None
    graph.record(
        current,
        make_action(current, ActionKind.JOINT),
        failed_decision(),
        planner={"name": "rules"},
        error={"code": "engine_timeout", "detail": "The engine passed its wall clock."},
        files={"log": store.put(b"cycle 1\ncycle 2\n")},
    )
    if finish:
        graph.finish(current, {"verdict": "accepted", "reasons": []})
    return graph
