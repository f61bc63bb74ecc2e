"""Plain words for the codes that a reader meets: verdicts, action kinds, features, rules, symbols."""

from __future__ import annotations

import re

from markupsafe import Markup, escape

from autoxrd.domain.action import ActionKind
from autoxrd.report.model import Verdict

__all__ = ["KIND_WORDS", "VERDICT_WORDS", "humanised", "kind_words", "sentence", "space_group_html", "unit_words"]

VERDICT_WORDS = {
    Verdict.ACCEPTED: "Accepted",
    Verdict.ACCEPTED_WITH_WARNINGS: "Accepted, with warnings",
    Verdict.ABSTAINED: "Not accepted: AutoXRD abstains",
    Verdict.FAILED: "Failed",
}

KIND_WORDS = {
    ActionKind.SCALE: "Scale factors",
    ActionKind.BACKGROUND: "Background",
    ActionKind.ZERO: "Zero offset",
    ActionKind.DISPLACEMENT: "Specimen displacement",
    ActionKind.LATTICE: "Unit cell",
    ActionKind.PROFILE: "Peak widths",
    ActionKind.ASYMMETRY: "Peak asymmetry",
    ActionKind.POSITIONS: "Atomic coordinates",
    ActionKind.DISPLACEMENT_PARAMETERS: "Displacement parameters",
    ActionKind.OCCUPANCY: "Site occupancies",
    ActionKind.PREFERRED_ORIENTATION: "Preferred orientation",
    ActionKind.SIZE_STRAIN: "Size and strain",
    ActionKind.ABSORPTION: "Absorption",
    ActionKind.FREEZE: "Hold parameters",
    ActionKind.ADD_PHASE: "Add a phase",
    ActionKind.REMOVE_PHASE: "Remove a phase",
    ActionKind.EXCLUDE_REGION: "Exclude a region",
    ActionKind.SWITCH_PROFILE: "Change the profile function",
    ActionKind.BACKGROUND_MODEL: "Change the background model",
    ActionKind.PROFILE_MATCH: "Profile matching",
    ActionKind.JOINT: "Joint refinement",
}


def kind_words(kind: ActionKind) -> str:
    """Name an action kind for a reader."""
    return KIND_WORDS.get(kind, humanised(kind.value))


def humanised(code: str) -> str:
    """Turn a code into words: ``correlation_too_high`` -> ``Correlation too high``."""
    words = code.replace("_", " ").replace(".", ": ").strip()
    return words[:1].upper() + words[1:]


def sentence(text: str) -> str:
    """Begin a sentence with a capital and end it with a full stop."""
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".") if text else ""


def unit_words(unit: str) -> str:
    """Write an ASCII unit as a reader expects it: ``angstrom^2`` -> ``Å²``."""
    for ascii_form, sign in (("angstrom", "Å"), ("deg", "°"), ("um", "µm"), ("^2", "²"), ("^3", "³")):
        unit = re.sub(rf"(?<![a-z]){re.escape(ascii_form)}(?![a-z])", sign, unit)
    return unit


_SYMBOL = re.compile(r"-(\d)|(\d)(\d)|([A-Za-z]+)|(.)", re.DOTALL)


def _symbol_piece(match: re.Match[str]) -> Markup:
    bar, axis, screw, letters, other = match.groups()
    if bar:
        return Markup('<span class="bar">{}</span>').format(bar)
    if axis and screw < axis:
        return Markup("{}<sub>{}</sub>").format(axis, screw)
    if letters:
        return Markup("<i>{}</i>").format(letters)
    return Markup("{}").format(other or match.group())


def space_group_html(symbol: str) -> Markup:
    """Set a Hermann-Mauguin symbol: ``P 63/m`` with the screw axis as subscript, ``R -3 c:H`` with a bar.

    The symbol is untrusted; every piece of it is escaped.
    """
    symbol, colon, setting = symbol.partition(":")
    body = Markup("").join(_symbol_piece(m) for m in _SYMBOL.finditer(symbol))
    tail = Markup('<span class="setting">{}{}</span>').format(colon, setting) if colon else Markup("")
    return Markup('<span class="hm">{}{}</span>').format(body, tail) if symbol else escape("–")
