"""What the page shows of each attempt: the claim, the forecast, the measurement, the ruling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from autoxrd.domain.action import Bound, Evidence
from autoxrd.domain.decision import Decision, GateCheck, PredictionOutcome
from autoxrd.report.format import fixed, pretty
from autoxrd.report.model import ReportInput, StepRecord
from autoxrd.report.parameters import accepted_path
from autoxrd.report.words import humanised, kind_words

__all__ = ["GateMatrix", "StepView", "gate_matrix", "step_view", "step_views"]

_COMPARISONS = {">": ">", "<": "<", ">=": "≥", "<=": "≤", "abs>": "|value| >"}
_DIRECTIONS = {"decrease": "falls by", "increase": "rises by", "toward_zero": "moves towards 0 by"}


@dataclass(frozen=True, slots=True)
class EvidenceView:
    """A checked claim about the state that the step started from."""

    feature: str
    value: str
    claim: str
    source: str


@dataclass(frozen=True, slots=True)
class PredictionView:
    """A forecast and what was measured."""

    metric: str
    forecast: str
    before: str
    after: str
    effect: str
    met: bool
    of_mechanism: bool


@dataclass(frozen=True, slots=True)
class GateView:
    """One rule of the gate with the numbers it compared."""

    group: str
    rule: str
    passed: bool
    measured: str
    limit: str
    text: str
    codes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StepView:
    """One attempt as written on the page."""

    ordinal: int
    title: str
    stage: str
    status: str
    """``path``, ``branch`` or ``rejected``."""
    status_words: str
    planner: str
    rationale: str
    parameters: tuple[str, ...]
    bounds: tuple[str, ...]
    settings: tuple[tuple[str, str], ...]
    parent: str
    candidate: str
    rwp_before: str
    rwp_after: str
    gof_after: str
    n_free: str
    seconds: str
    error: str
    questions: tuple[tuple[str, str], ...]
    """Question and ``yes``, ``no`` or ``not asked``."""
    evidence: tuple[EvidenceView, ...]
    predictions: tuple[PredictionView, ...]
    gates: tuple[GateView, ...]
    reasons: tuple[tuple[str, str], ...]
    violations: tuple[str, ...]
    utility: str
    policy: str


def _signed(value: float | None) -> str:
    return pretty(value, digits=4)


def _evidence(e: Evidence) -> EvidenceView:
    claim = f"{_COMPARISONS.get(e.comparison, e.comparison)} {_signed(e.threshold)}"
    return EvidenceView(e.feature, _signed(e.value), claim, e.source)


def _prediction(o: PredictionOutcome) -> PredictionView:
    p = o.prediction
    forecast = f"{_DIRECTIONS.get(p.direction, p.direction)} at least {_signed(p.minimum_effect)}"
    return PredictionView(
        p.metric, forecast, _signed(o.before), _signed(o.after), _signed(o.effect), o.met, o.of_mechanism
    )


def _gate(c: GateCheck) -> GateView:
    group = humanised(c.rule.split(".")[0])
    return GateView(group, humanised(c.rule), c.passed, _signed(c.measured), _signed(c.limit), c.text, c.codes)


def _bound(b: Bound) -> str:
    return f"{b.selector}: {_signed(b.lower)} … {_signed(b.upper)}"


def _answer(value: bool | None) -> str:
    return "not asked" if value is None else "yes" if value else "no"


def _questions(d: Decision) -> tuple[tuple[str, str], ...]:
    return (
        ("Numerically better?", _answer(d.numerically_better)),
        ("Did what was predicted happen?", _answer(d.mechanism_supported)),
        ("Physically and statistically admissible?", _answer(d.admissible)),
    )


def _utility(d: Decision) -> str:
    if d.utility_before is None or d.utility_after is None:
        return ""
    return f"{fixed(d.utility_before, 3)} → {fixed(d.utility_after, 3)}".replace("-", "−")


def step_view(step: StepRecord, *, planner: str, on_path: bool) -> StepView:
    """Write one attempt for reading.

    Args:
        step: the attempt.
        planner: who proposed it where the attempt itself does not say.
        on_path: whether it leads to the final state, or to the current one of a job that goes on.
    """
    a, d = step.action, step.decision
    status = "path" if on_path else "branch" if step.accepted else "rejected"
    words = {"path": "Accepted", "branch": "Accepted, branch left later", "rejected": "Rejected"}[status]
    after = step.quality_after
    return StepView(
        ordinal=step.ordinal,
        title=kind_words(a.kind),
        stage=humanised(a.stage.value),
        status=status,
        status_words=words,
        planner=step.planner or planner,
        rationale=a.rationale,
        parameters=a.parameters,
        bounds=tuple(_bound(b) for b in a.bounds),
        settings=tuple((k, str(v)) for k, v in sorted(a.settings.items())),
        parent=step.parent_state,
        candidate=step.candidate_state or "none",
        rwp_before=fixed(step.rwp_before, 3, scale=100),
        rwp_after=fixed(step.rwp_after, 3, scale=100),
        gof_after=fixed(after.gof if after else None, 2),
        n_free=str(after.n_parameters) if after else "–",
        seconds=fixed(step.seconds, 1),
        error=step.error,
        questions=_questions(d),
        evidence=tuple(_evidence(e) for e in a.evidence),
        predictions=tuple(_prediction(o) for o in d.predictions),
        gates=tuple(_gate(c) for c in d.checks),
        reasons=tuple((code, d.details.get(code, humanised(code))) for code in d.reasons),
        violations=tuple(v.text or f"{humanised(v.code)}: {v.subject}" for v in step.violations),
        utility=_utility(d),
        policy=f"{d.policy_name}, {d.policy_hash[:12]}",
    )


def step_views(inp: ReportInput) -> tuple[StepView, ...]:
    """Return every attempt in order."""
    path = {s.ordinal for s in accepted_path(inp.steps, inp.state_id)}
    steps = sorted(inp.steps, key=lambda s: s.ordinal)
    return tuple(step_view(s, planner=inp.job.planner, on_path=s.ordinal in path) for s in steps)


@dataclass(frozen=True, slots=True)
class GateMatrix:
    """Every rule against every attempt.

    Args:
        rules: in the order in which the gate names them.
        rows: ordinal, title, status of the step, and per rule True, False or None where it was not asked.
    """

    rules: tuple[str, ...]
    rows: tuple[tuple[int, str, str, tuple[bool | None, ...]], ...]


def gate_matrix(views: Sequence[StepView]) -> GateMatrix:
    """Gather the gate's rulings; parts of one rule (``preflight.evidence``) share its column and must all hold."""
    rules = tuple(dict.fromkeys(g.group for v in views for g in v.gates))
    rows = []
    for view in views:
        rulings: dict[str, bool] = {}
        for g in view.gates:
            rulings[g.group] = rulings.get(g.group, True) and g.passed
        rows.append((view.ordinal, view.title, view.status, tuple(rulings.get(rule) for rule in rules)))
    return GateMatrix(rules, tuple(rows))
