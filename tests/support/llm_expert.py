"""A scripted expert behind the test server: it reads the observation in the prompt and ranks as the rules do.

It knows nothing but what prompts told it (earlier ones too, as a person at the machine would) and the structures.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from autoxrd.domain.action import Action, ActionKind
from autoxrd.domain.decision import Decision
from autoxrd.domain.instrument import EmissionLine, Geometry, Instrument, Radiation
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
from autoxrd.domain.structure import CrystalStructure
from autoxrd.planners.protocol import AttemptView, Finish, GraphView, JobContext, Proposal
from autoxrd.planners.rules import RulesPlanner
from autoxrd.planners.rules.writing import joint_action
from tests.support.llm_server import Answer, Asked

__all__ = ["Expert", "observation_of", "propose_answer"]

_FENCED = re.compile(r"<(data-[0-9a-f]{12})>\n(.*?)\n</\1>", re.DOTALL)
NO_REVIEW = {"abstain": False, "reason": "", "warnings": []}


def observation_of(asked: Asked) -> dict[str, Any]:
    """Return the first fenced object of the conversation: the observation."""
    for message in asked.messages:
        content = message["content"]
        text = content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)
        found = _FENCED.search(text) if message["role"] == "user" else None
        if found:
            return json.loads(found.group(2))  # type: ignore[no-any-return]
    raise AssertionError("no observation in the prompt")


def propose_answer(*actions: Mapping[str, Any]) -> dict[str, Any]:
    """Return a ``propose`` move."""
    return {"move": "propose", "actions": [dict(action) for action in actions], "request": None, "finish": None}


def finish_answer(state: str, claim: str = "accepted") -> dict[str, Any]:
    """Return a ``finish`` move."""
    end = {"state": state, "claim": claim, "reason": "Nothing significant is left.", "caveats": []}
    return {"move": "finish", "actions": None, "request": None, "finish": end}


def written(action: Action) -> dict[str, Any]:
    """Return an action in the answer's form; its ids are the labels of the observation."""
    axis = action.settings.get("axis")
    return {
        "kind": action.kind.value,
        "from": action.parent,
        "parameters": [] if action.kind is ActionKind.JOINT else list(action.parameters),
        "bounds": [],
        "terms": action.settings.get("terms"),
        "phase": None,
        "axis": [int(index) for index in axis] if isinstance(axis, tuple) else None,
        "equal": True if "equal" in action.settings else None,
        "instead_of": list(action.instead_of),
        "rationale": action.rationale[:400],
        "evidence": [e.model_dump(exclude={"source"}) for e in action.evidence],
        "predictions": [p.model_dump() for p in action.predictions],
    }


class Expert:
    """Answers as the rules planner would, from what it was sent."""

    def __init__(self, structures: Sequence[CrystalStructure]) -> None:
        self._structures = tuple(structures)
        self._states: dict[str, FitState] = {}
        self._attempts: dict[int, AttemptView] = {}
        self._proposed: dict[int, Action] = {}

    def __call__(self, asked: Asked) -> Answer:
        """Answer one request."""
        if asked.tool == "review" or "You review the result" in str(asked.messages[0]["content"]):
            return Answer(content=NO_REVIEW)
        return Answer(content=self.move(observation_of(asked)))

    def move(self, seen: Mapping[str, Any]) -> dict[str, Any]:
        """Return the expert's move for an observation."""
        view = self._view(seen)
        proposal = RulesPlanner().propose(view, _context(seen, self._structures))
        if isinstance(proposal, Finish):
            return finish_answer(proposal.state)
        assert isinstance(proposal, Proposal)
        self._proposed[len(view.attempts) + 1] = proposal.action
        return propose_answer(written(proposal.action))

    def _view(self, seen: Mapping[str, Any]) -> GraphView:
        self._states[str(seen["state"])] = _state(seen)
        for row in seen["attempts"]:
            if row["n"] not in self._attempts:
                self._learn(row)
        return GraphView("s0", dict(self._states), [self._attempts[n] for n in sorted(self._attempts)])

    def _learn(self, row: Mapping[str, Any]) -> None:
        number, parent = int(row["n"]), str(row["from"])
        candidate = f"s{number}" if row["accepted"] else f"x{number}"
        action = self._proposed.get(number)
        if action is None or action.kind.value != row["kind"]:
            action = joint_action(self._states[parent], parent, self._states[parent].released)
        if candidate not in self._states:
            faults = tuple(Violation(code="fault", subject=subject) for subject in row.get("faulty", ()))
            self._states[candidate] = self._states[parent].model_copy(update={"violations": faults})
        decision = Decision(
            accepted=row["accepted"],
            numerically_better=None,
            mechanism_supported=None,
            admissible=None,
            reasons=tuple(r for r in row.get("reasons", ()) if r != "correlation_too_high"),
            policy_name="?",
            policy_hash="?",
        )
        if "correlation_too_high" in row.get("reasons", ()):
            decision = decision.model_copy(update={"reasons": (*decision.reasons, "correlation_too_high")})
        self._attempts[number] = AttemptView(number, parent, action, decision, candidate)


def _context(seen: Mapping[str, Any], structures: tuple[CrystalStructure, ...]) -> JobContext:
    job = seen["job"]
    instrument = Instrument(
        radiation=Radiation(job["radiation"]),
        geometry=Geometry(job["geometry"]),
        lines=tuple(EmissionLine(w) for w in job["wavelengths_angstrom"]),
        profile_calibrated=job["instrument_profile_calibrated"],
    )
    return JobContext(instrument, structures, job["utility_price_of_one_parameter"])


def _features(seen: Mapping[str, Any]) -> dict[str, Feature]:
    features = {
        name: Feature(value=value, esd=esd, significance=significance, unit=unit)
        for name, (value, esd, significance, unit) in seen["features"].items()
    }
    for selector, drop, significance, n_used, _ in seen["gains"]["rows"]:
        features[f"release_gain.{selector}"] = Feature(value=drop, significance=significance, n_used=n_used)
    terms = seen["may_propose"].get("background_model", {}).get("terms")
    more = seen["features"].get("release_gain.background.more")
    if terms and more:
        features["release_gain.background.more"] = Feature(
            value=more[0], significance=more[2], n_used=(terms[1] - terms[0] + 1) // 2
        )
    for phase, axes in seen["may_propose"].get("preferred_orientation", {}).get("axes", {}).items():
        for rank, axis in enumerate(axes):
            name = f"release_gain.phase.{phase}.preferred_orientation@{','.join(map(str, axis))}"
            features[name] = Feature(value=1.0 / (1 + rank))
    return features


def _state(seen: Mapping[str, Any]) -> FitState:
    metrics, fit = seen["metrics"], seen["fit"]
    pair = fit["max_correlation_pair"]
    return FitState(
        stage="instrument",
        engine="?",
        engine_version="?",
        snapshot="?",
        arrays="?",
        quality=Quality(**metrics, n_points=fit["n_points"], n_parameters=fit["n_free"]),
        features=_features(seen),
        violations=tuple(Violation(code=v["code"], subject=v["subject"]) for v in seen["violations"]),
        complexity=Complexity(
            n_free=fit["n_free"], n_points=fit["n_points"], max_correlation_pair=tuple(pair) if pair else None
        ),
        convergence=Convergence(converged=fit["converged"], cycles=1, max_shift_over_esd=fit["max_shift_over_esd"]),
        parameters=tuple(ParameterValue(name=f"background.{i}", value=0.0) for i in range(fit["background_terms"])),
        phases=tuple(
            PhaseSummary(
                name=p["phase"],
                space_group="?",
                weight_fraction=None,
                cell={k: MeasuredValue(value=v) for k, v in zip("abc", p["cell_angstrom_deg"], strict=False)},
                intensity_share=p["intensity_share"],
            )
            for p in seen["phases"]
        ),
        released=tuple(seen["released"]),
    )
