"""What does the model see of a job? Numbers with names and units, what was tried, and what may be tried next.

The size is bounded whatever the pattern, the number of phases or the length of the job: lists are cut to their most
telling entries, and cut further until the whole fits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from autoxrd.domain.action import ActionKind
from autoxrd.domain.state import FitState, PhaseSummary
from autoxrd.gates.audit import final_audit
from autoxrd.gates.metrics import GAIN_PREFIX, background_terms
from autoxrd.gates.policy_model import Policy
from autoxrd.gates.tables import MORE_BACKGROUND
from autoxrd.planners.llm.fencing import clean_text
from autoxrd.planners.llm.legal import Legal
from autoxrd.planners.protocol import AttemptView, GraphView, JobContext
from autoxrd.planners.rules.options import EQUAL_UISO
from autoxrd.primitives import canonical_json

__all__ = ["LARGEST_OBSERVATION", "label_of", "labels", "observe", "state_facts"]

LARGEST_OBSERVATION = 11_000
"""Characters of the observation's JSON. Numbers and dotted names take 2.0 to 2.3 characters a token (cl100k_base and
o200k_base, measured on real jobs), so this stays below 6 000 tokens."""

_CUTS = (
    {"gains": 36, "features": 48, "attempts": 12, "states": 14, "peaks": 8, "released": 24, "violations": 8},
    {"gains": 24, "features": 36, "attempts": 8, "states": 8, "peaks": 5, "released": 16, "violations": 5},
    {"gains": 14, "features": 24, "attempts": 5, "states": 5, "peaks": 3, "released": 10, "violations": 3},
    {"gains": 8, "features": 12, "attempts": 3, "states": 3, "peaks": 1, "released": 5, "violations": 2},
)
"""Most entries of each list; the next row is taken while the observation is too long."""

_QUALITY = ("rwp", "rexp", "gof", "chi2", "rp", "rwp_no_background", "abs_residual")
_QUIET = ("range.", "durbin_watson", "lag1", GAIN_PREFIX, *_QUALITY)
"""Features shown elsewhere, or of no use for a choice."""

_MORE = GAIN_PREFIX + MORE_BACKGROUND


def labels(view: GraphView) -> dict[str, str]:
    """Return the short name of each state that can be gone on from -> its id: s0 is the root, sN came of attempt N."""
    named = {"s0": view.root}
    for attempt in view.attempts:
        if attempt.accepted and attempt.candidate and attempt.candidate not in named.values():
            named[f"s{attempt.ordinal}"] = attempt.candidate
    return named


def label_of(state_id: str, view: GraphView) -> str:
    """Return a state's short name, empty where it has none (a rejected candidate)."""
    return next((label for label, known in labels(view).items() if known == state_id), "")


def observe(view: GraphView, state_id: str, legal: Legal, context: JobContext, policy: Policy) -> dict[str, Any]:
    """Return the observation of a state as JSON content, never longer than `LARGEST_OBSERVATION`."""
    content: dict[str, Any] = {}
    for most in _CUTS:
        content = _content(view, state_id, legal, context, policy, most)
        if len(canonical_json(content)) <= LARGEST_OBSERVATION:
            break
    return content


def _content(
    view: GraphView, state_id: str, legal: Legal, context: JobContext, policy: Policy, most: Mapping[str, int]
) -> dict[str, Any]:
    state = view.states[state_id]
    return {
        "job": _job(context),
        "state": label_of(state_id, view),
        "stage": legal.stage.value,
        **state_facts(state, most),
        "audit": _audit(state, view, state_id, policy),
        "may_propose": _may_propose(legal),
        "gains": _gains(legal, most["gains"]),
        "states": _states(view, most["states"]),
        "attempts": [_attempt(a, view) for a in view.attempts[-most["attempts"] :]],
        "attempts_not_shown": max(0, len(view.attempts) - most["attempts"]),
    }


def state_facts(state: FitState, most: Mapping[str, int] = _CUTS[0]) -> dict[str, Any]:
    """Return what a state's record says, cut to the most telling."""
    quality, complexity = state.quality, state.complexity
    pair = complexity.max_correlation_pair
    return {
        "metrics": {name: _digits(getattr(quality, name)) for name in _QUALITY},
        "features": _features(state, most["features"]),
        "fit": {
            "n_points": quality.n_points,
            "n_free": complexity.n_free,
            "converged": state.convergence.converged,
            "max_shift_over_esd": _digits(state.convergence.max_shift_over_esd),
            "max_correlation": _digits(complexity.max_correlation),
            "max_correlation_pair": list(pair) if pair else None,
            "background_terms": background_terms(state),
        },
        "phases": [_phase(phase) for phase in state.phases[:8]],
        "released": _shortened(state.released, most["released"]),
        "violations": [
            {"code": v.code, "subject": v.subject[:64], "value": _digits(v.value), "severity": v.severity}
            for v in state.violations[: most["violations"]]
        ],
        "unexplained_peaks_two_theta_deg_and_area_share": [
            [_digits(peak.two_theta_deg), _digits(peak.area_share)]
            for peak in sorted(state.unexplained_peaks, key=lambda p: -p.area_share)[: most["peaks"]]
        ],
    }


def _digits(value: float | None) -> float | None:
    """Five digits: enough for evidence (which must agree to 1 %), and fewer tokens than sixteen."""
    return None if value is None else float(f"{value:.5g}")


def _shortened(names: Sequence[str], most: int) -> list[str]:
    return [*names[:most], *([f"and {len(names) - most} more"] if len(names) > most else [])]


def _job(context: JobContext) -> dict[str, Any]:
    instrument = context.instrument
    return {
        "radiation": instrument.radiation.value,
        "geometry": instrument.geometry.value,
        "wavelengths_angstrom": [_digits(w) for w in instrument.wavelengths_angstrom],
        "instrument_profile_calibrated": instrument.profile_calibrated,
        "utility_price_of_one_parameter": context.parameter_price,
        "structures": [
            {
                "phase": structure.name,
                "title": clean_text(structure.title, 60),
                "space_group": structure.space_group,
                "elements": sorted({atom.element for atom in structure.atoms})[:12],
                "n_atoms": len(structure.atoms),
            }
            for structure in context.structures[:8]
        ],
        "texts": {name: clean_text(text, 300) for name, text in context.texts},
    }


def _features(state: FitState, most: int) -> dict[str, list[Any]]:
    """Return name -> [value, esd, significance, unit], the most significant first."""
    shown = [
        (name, feature)
        for name, feature in state.features.items()
        if feature.available and feature.value is not None and not name.startswith(_QUIET)
    ]
    shown.sort(key=lambda item: (-(item[1].significance or 0.0), item[0]))
    # gains of what is no selector stand here and not under the gains
    beside = [n for n in state.features if n == _MORE or (n.startswith(GAIN_PREFIX) and n.endswith(EQUAL_UISO))]
    shown[:0] = [(n, state.features[n]) for n in beside[:8] if state.features[n].available]
    return {
        name: [_digits(f.value), _digits(f.esd), _digits(f.significance), f.unit[:16]]
        for name, f in sorted(shown[:most])
    }


def _phase(phase: PhaseSummary) -> dict[str, Any]:
    fraction = phase.weight_fraction
    return {
        "phase": phase.name,
        "cell_angstrom_deg": [
            _digits(phase.cell[key].value) for key in ("a", "b", "c", "alpha", "beta", "gamma") if key in phase.cell
        ],
        "weight_fraction": _digits(fraction.value) if fraction else None,
        "r_bragg": _digits(phase.r_bragg),
        "intensity_share": _digits(phase.intensity_share),
    }


def _audit(state: FitState, view: GraphView, state_id: str, policy: Policy) -> dict[str, Any]:
    """Say what the final audit would say if the job ended here."""
    path = view.path(state_id)
    audit = final_audit(state, policy=policy, last_kind=path[-1].action.kind if path else None)
    return {
        "verdict_if_the_job_ended_here": audit.verdict,
        "reasons": [finding.code for finding in audit.reasons][:8],
        "warnings": [finding.code for finding in audit.warnings][:8],
    }


def _may_propose(legal: Legal) -> dict[str, Any]:
    """Return the kinds with what else each needs; the selectors stand under ``gains``."""
    content: dict[str, Any] = {kind.value: {} for kind in legal.stages}
    for kind in legal.stages:
        allowed = [s for s in legal.selectors(kind) if s in legal.ranges]
        ranges = {s.rsplit(".", 1)[-1]: legal.ranges[s] for s in allowed}
        if ranges:
            content[kind.value]["bounds_within"] = {name: [r.lower, r.upper] for name, r in sorted(ranges.items())}
    if ActionKind.BACKGROUND_MODEL in legal.stages and legal.terms is not None:
        content[ActionKind.BACKGROUND_MODEL.value]["terms"] = list(legal.terms)
    if ActionKind.DISPLACEMENT_PARAMETERS in legal.stages and legal.equal:
        content[ActionKind.DISPLACEMENT_PARAMETERS.value]["equal"] = list(legal.equal[:8])
    if legal.replaceable:
        content["instead_of"] = list(legal.replaceable[:12])
    if ActionKind.PREFERRED_ORIENTATION in legal.stages:
        axes = {phase: [list(axis) for axis in shown[:3]] for phase, shown in list(legal.axes.items())[:8]}
        content[ActionKind.PREFERRED_ORIENTATION.value]["axes"] = axes
    return content


def _gains(legal: Legal, most: int) -> dict[str, Any]:
    """Return the selectors that can be freed with what each promises."""
    return {
        "columns": ["selector", "drop_of_chi2", "significance", "n_parameters", "kinds"],
        "rows": [
            [g.selector, _digits(g.drop), _digits(g.significance), g.n_parameters, [k.value for k in g.kinds]]
            for g in legal.gains[:most]
        ],
        "not_shown": max(0, len(legal.gains) - most),
    }


def _states(view: GraphView, most: int) -> list[dict[str, Any]]:
    """Return the states that can be gone on from: the root, and the latest ones."""
    named = labels(view)
    parents = {a.candidate: (label_of(a.parent, view), a.action.kind.value) for a in view.attempts if a.accepted}
    chosen = list(named.items())
    if len(chosen) > most:
        chosen = [chosen[0], *chosen[-(most - 1) :]]
    rows = []
    for label, state_id in chosen:
        quality = view.states[state_id].quality
        came_from, by = parents.get(state_id, ("", ""))
        figures = {"rwp": _digits(quality.rwp), "gof": _digits(quality.gof), "n_free": quality.n_parameters}
        rows.append({"state": label, "from": came_from, "by": by, **figures})
    return rows


def _attempt(attempt: AttemptView, view: GraphView) -> dict[str, Any]:
    """Return one attempt: what was tried, and the codes of why it was refused."""
    content: dict[str, Any] = {
        "n": attempt.ordinal,
        "from": label_of(attempt.parent, view),
        "kind": attempt.action.kind.value,
        "parameters": _shortened(attempt.action.parameters, 4),
        "accepted": attempt.accepted,
    }
    if attempt.action.settings:
        content["settings"] = {key: _plain(value) for key, value in list(attempt.action.settings.items())[:3]}
    if not attempt.accepted:
        content["reasons"] = list(attempt.decision.reasons[:6])
        content["faulty"] = _faulty(attempt, view)
    if attempt.candidate is not None:
        content["rwp_after"] = _digits(view.states[attempt.candidate].quality.rwp)
    return content


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value[:40] if isinstance(value, str) else value


def _faulty(attempt: AttemptView, view: GraphView) -> list[str]:
    """Return what a rejected candidate's new violations and its largest correlation were about."""
    if attempt.candidate is None:
        return []
    candidate, parent = view.states[attempt.candidate], view.states[attempt.parent]
    known = {violation.key for violation in parent.violations}
    subjects = [v.subject for v in candidate.violations if v.key not in known]
    if "correlation_too_high" in attempt.decision.reasons:
        subjects += candidate.complexity.max_correlation_pair or ()
    return [subject[:64] for subject in dict.fromkeys(subjects)][:4]
