"""Changes of a model of several histograms: of the sample in every member, of a histogram in its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from axg_edits import EDITS, apply_edits
from axg_joint import JointState, bare, shared
from axr_wire import Refused

__all__ = ["apply_joint_edits"]

_OF_SAMPLE = ("remove_phase", "equal_uiso", "apart_uiso", "anisotropic", "restrain_distances")
"""Made in every member alike."""


def apply_joint_edits(state: JointState, edits: list[dict[str, Any]]) -> JointState:
    """Return the state after the edits, in order.

    Raises:
        Refused: an edit is unknown, names no histogram where it needs one, or cannot be made.
    """
    for edit in edits:
        state = _edited(state, edit["kind"], dict(edit["values"]))
    return replace(state, last={}) if edits else state


def _edited(state: JointState, kind: str, values: dict[str, Any]) -> JointState:
    if kind not in EDITS:
        raise Refused("input", "edit_unknown", f"Unknown edit {kind!r}; known are {sorted(EDITS)}.")
    if kind == "add_phase":
        raise Refused("input", "edit_invalid", "A phase cannot be added to a fit of several histograms.")
    if kind == "value":
        return _valued(state, values)
    if kind == "neutral":
        return _neutral(state, values)
    histogram = str(values.pop("histogram", ""))
    if kind in _OF_SAMPLE:
        members = [apply_edits(member, [{"kind": kind, "values": values}]) for member in state.members]
        return state.with_members(members)
    return _in_one(state, histogram, kind, values)


def _place(state: JointState, histogram: str) -> int:
    if histogram not in state.names:
        known = ", ".join(state.names)
        text = f"This change is one of a histogram: name it, {known}, not {histogram!r}."
        raise Refused("input", "histogram_unknown", text)
    return state.names.index(histogram)


def _in_one(state: JointState, histogram: str, kind: str, values: dict[str, Any]) -> JointState:
    number = _place(state, histogram)
    members = list(state.members)
    members[number] = apply_edits(members[number], [{"kind": kind, "values": values}])
    return state.with_members(members)


def _valued(state: JointState, values: dict[str, Any]) -> JointState:
    """Set one number: of the sample in every member, strains kept."""
    histogram, name = bare(str(values["selector"]))
    full_name = str(values["selector"])
    if full_name in state.strains:
        return state.with_values({full_name: float(values["value"])})
    if not shared(name):
        return _in_one(state, histogram, "value", {**values, "selector": name})
    if histogram:
        raise Refused("input", "edit_invalid", f"{name} is the sample's and not of one histogram.")
    first = apply_edits(state.members[0], [{"kind": "value", "values": values}])
    return state.with_values({key: first.values[key] for key in first.values if shared(key)})


def _neutral(state: JointState, values: dict[str, Any]) -> JointState:
    """Take effects out of one histogram's model."""
    gone = [bare(str(name)) for name in values["selectors"]]
    successors = [bare(str(name)) for name in values["successors"]]
    histograms = {histogram for histogram, _ in (*gone, *successors)}
    if len(histograms) != 1:
        raise Refused("input", "edit_invalid", "One effect takes the place of another in one histogram only.")
    bared = {"selectors": [name for _, name in gone], "successors": [name for _, name in successors]}
    return _in_one(state, histograms.pop(), "neutral", bared)
