"""What may a model say of a finished result? Warnings, and a plea to abstain; never a better verdict."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from autoxrd.gates.audit import final_audit
from autoxrd.gates.policy_model import Policy
from autoxrd.planners.llm.answer import Review
from autoxrd.planners.llm.dialogue import Dialogue
from autoxrd.planners.llm.fencing import clean_text
from autoxrd.planners.llm.legal import legal_from
from autoxrd.planners.llm.observation import observe
from autoxrd.planners.protocol import Finish, GraphView, JobContext

__all__ = ["reviewed"]

_LONGEST = 300


def reviewed(
    finish: Finish, view: GraphView, context: JobContext, policy: Policy, dialogue: Dialogue, *, claim: str = ""
) -> Finish:
    """Return the end with what the model's review adds.

    Args:
        finish: the end as it stands.
        view: the graph so far.
        context: the job.
        policy: its rules.
        dialogue: asks the model.
        claim: what the planner claimed of the result, for the record of a claim that the audit does not bear out.
    """
    state = view.states[finish.state]
    path = view.path(finish.state)
    audit = final_audit(state, policy=policy, last_kind=path[-1].action.kind if path else None)
    notes, warnings, objections = list(finish.notes), list(finish.warnings), list(finish.objections)
    if claim == "accepted" and audit.verdict == "abstained":
        codes = ", ".join(finding.code for finding in audit.reasons[:5])
        notes.append(("claim_not_supported", f"The planner claimed success; the audit does not bear it out: {codes}."))
    if claim == "abstained" and audit.verdict != "abstained":
        objections.append(("planner_abstained", "The planner itself does not vouch for this result."))
    told = dialogue.review(finish.state, _content(finish, view, context, policy))
    if told.review is None:
        why = told.silent or (told.faults.code if told.faults else "answer_empty")
        notes.append(("review_missing", f"The final review by the language model did not take place ({why})."))
    else:
        warnings += _warnings(told.review)
        if told.review.abstain:
            text = clean_text(told.review.reason, _LONGEST) or "no reason was given"
            objections.append(("review_objects", f"The final review asks to abstain: {text}"))
    return replace(finish, notes=tuple(notes), warnings=tuple(warnings), objections=tuple(objections))


def _warnings(review: Review) -> list[tuple[str, str]]:
    texts = [clean_text(text, _LONGEST) for text in review.warnings]
    return [("review_warning", text) for text in dict.fromkeys(texts) if text]


def _content(finish: Finish, view: GraphView, context: JobContext, policy: Policy) -> dict[str, Any]:
    state = view.states[finish.state]
    content = observe(view, finish.state, legal_from(state, policy), context, policy)
    for name in ("may_propose", "gains", "stage"):
        content.pop(name, None)
    path = view.path(finish.state)
    audit = final_audit(state, policy=policy, last_kind=path[-1].action.kind if path else None)
    content["audit"] = {
        "verdict": audit.verdict,
        "reasons": [[f.code, clean_text(f.text, 160)] for f in audit.reasons[:8]],
        "warnings": [[f.code, clean_text(f.text, 160)] for f in audit.warnings[:8]],
    }
    return content
