"""Which form has an answer? One object for the three moves, strict enough for every provider's schema mode."""

from __future__ import annotations

from typing import Any

from autoxrd.domain.action import ActionKind
from autoxrd.planners.llm.legal import Legal

__all__ = ["ANSWER_NAME", "MEASUREMENTS", "REVIEW_NAME", "answer_schema", "review_schema"]

ANSWER_NAME = "answer"
REVIEW_NAME = "review"

MEASUREMENTS = ("observe", "gains", "zoom", "peaks", "compare", "fit_peak", "candidates")
PLOT = "plot"

_NUMBER = {"type": "number"}
_TEXT = {"type": "string"}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    """Strict modes want every property required and nothing beside."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _list(items: dict[str, Any], **limits: int) -> dict[str, Any]:
    return {"type": "array", "items": items, **limits}


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


def _choice(*values: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(values)}


def _action(kinds: list[str]) -> dict[str, Any]:
    evidence = {
        "feature": _TEXT,
        "value": _NUMBER,
        "comparison": _choice(">", "<", ">=", "<=", "abs>"),
        "threshold": _NUMBER,
    }
    prediction = {
        "metric": _TEXT,
        "direction": _choice("decrease", "increase", "toward_zero"),
        "minimum_effect": _NUMBER,
    }
    return _object(
        {
            "kind": _choice(*kinds),
            "from": _TEXT,
            "parameters": _list(_TEXT),
            "bounds": _list(_object({"selector": _TEXT, "lower": _NUMBER, "upper": _NUMBER})),
            "terms": _or_null({"type": "integer"}),
            "phase": _or_null(_TEXT),
            "axis": _or_null(_list({"type": "integer"})),
            "equal": _or_null({"type": "boolean"}),
            "instead_of": _list(_TEXT),
            "rationale": _TEXT,
            "evidence": _list(_object(evidence)),
            "predictions": _list(_object(prediction)),
        }
    )


def answer_schema(legal: Legal, *, vision: bool) -> dict[str, Any]:
    """Return the JSON schema of the answer to an observation."""
    kinds = [kind.value for kind in ActionKind if kind in legal.stages] or [ActionKind.JOINT.value]
    request = {
        "what": _choice(*MEASUREMENTS, *([PLOT] if vision else [])),
        "state": _or_null(_TEXT),
        "other_state": _or_null(_TEXT),
        "lower_deg": _or_null(_NUMBER),
        "upper_deg": _or_null(_NUMBER),
        "prefix": _or_null(_TEXT),
    }
    finish = {
        "state": _TEXT,
        "claim": _choice("accepted", "abstained"),
        "reason": _TEXT,
        "caveats": _list(_TEXT),
    }
    return _object(
        {
            "move": _choice("propose", "request", "finish"),
            "actions": _or_null(_list(_action(kinds))),
            "request": _or_null(_object(request)),
            "finish": _or_null(_object(finish)),
        }
    )


def review_schema() -> dict[str, Any]:
    """Return the JSON schema of the final review."""
    return _object({"abstain": {"type": "boolean"}, "reason": _TEXT, "warnings": _list(_TEXT)})
