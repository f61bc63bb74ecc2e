"""When are the rules not enough? The expert plans, and asks the model where it is stuck or unsure, and at the end."""

from __future__ import annotations

from collections.abc import Sequence

from autoxrd.gates.audit import final_audit
from autoxrd.gates.policy import load_policy
from autoxrd.gates.policy_model import Policy
from autoxrd.planners.llm.planner import LlmPlanner, ModelDesk, sourced
from autoxrd.planners.llm.ports import Exchange
from autoxrd.planners.llm.reviewing import reviewed
from autoxrd.planners.llm.standing import given_up, place_of, queued_action
from autoxrd.planners.protocol import Finish, Forfeit, GraphView, JobContext, Planner, Proposal
from autoxrd.planners.rules import RulesPlanner

__all__ = ["HybridPlanner"]

REFUSALS_IN_A_ROW = 2
"""Refused attempts in a row after which the rules count as stuck."""

ASKED_AT_ONE_STATE = 1
"""How often the model is asked for one and the same state: its ideas are tried, then the rules go on."""


class HybridPlanner:
    """The rules with a model to turn to."""

    name = "hybrid"
    version = f"{RulesPlanner.version}.{LlmPlanner.version}"

    def __init__(self, model: ModelDesk, rules: Planner | None = None) -> None:
        self._model = model
        self._rules = rules or RulesPlanner()

    def propose(self, view: GraphView, context: JobContext) -> Proposal | Finish | Forfeit:
        """Return the rules' move, or the model's where the rules are stuck and the model has a legal idea."""
        policy = context.policy or load_policy("default")
        self._model.desk.at(place_of(view))
        past = self._model.desk.past()
        by_rules = self._rules.propose(view, context)
        if not given_up(view, past, self._model.settings):
            queued = queued_action(view, past, policy)
            if queued is not None:
                return Proposal(queued.action, *sourced((queued.exchange,), rank=queued.rank))
            idea = self._idea(by_rules, view, context, policy, past)
            if idea is not None:
                return idea
        if isinstance(by_rules, Finish):
            return reviewed(by_rules, view, context, policy, self._model.dialogue())
        if isinstance(by_rules, Proposal):
            return Proposal(by_rules.action, *sourced((), by=self._rules.name))
        return by_rules

    def foresee(self, view: GraphView, context: JobContext) -> Proposal | Finish | Forfeit | None:
        """Return the rules' move: what the model would say is not asked."""
        return self._rules.propose(view, context)

    def _idea(
        self,
        by_rules: Proposal | Finish | Forfeit,
        view: GraphView,
        context: JobContext,
        policy: Policy,
        past: Sequence[Exchange],
    ) -> Proposal | None:
        """Ask the model where the rules are stuck; None where they are not, or it has nothing that may be tried."""
        why = stuck(by_rules, view, policy)
        state = by_rules.state if isinstance(by_rules, Finish) else view.current
        earlier = {e.place for e in past if e.state == state and e.request.purpose != "review"}
        if not why or len(earlier - {place_of(view)}) >= ASKED_AT_ONE_STATE:
            return None
        told = self._model.dialogue().next_move(view, state, context, policy, situation=_SITUATIONS[why])
        if not told.actions:
            return None
        source, files = sourced(told.exchanges, why=why, rank=1)
        return Proposal(told.actions[0], source, files)


_SITUATIONS = {
    "refused_in_a_row": "The rule-based planner is stuck: its last ideas were refused. "
    "Propose what it overlooks, or finish.",
    "ends_without_success": "The rule-based planner has nothing left, and the audit does not accept the state. "
    "Propose what it overlooks, or finish.",
    "models_not_told_apart": "The rule-based planner ends, but the data hardly tell its two position models apart. "
    "Propose what could decide, or finish.",
}


def stuck(by_rules: Proposal | Finish | Forfeit, view: GraphView, policy: Policy) -> str:
    """Return why the rules count as stuck or unsure, empty where they do not."""
    last = view.attempts[-REFUSALS_IN_A_ROW:]
    if isinstance(by_rules, Finish):
        path = view.path(by_rules.state)
        audit = final_audit(
            view.states[by_rules.state], policy=policy, last_kind=path[-1].action.kind if path else None
        )
        if audit.verdict == "abstained":
            return "ends_without_success"
        return "models_not_told_apart" if any(c.endswith("_ambiguous") for c, _ in by_rules.notes) else ""
    if len(last) == REFUSALS_IN_A_ROW and not any(attempt.accepted for attempt in last):
        return "refused_in_a_row"
    return ""
