"""Which parameters does a dotted selector mean? Parsing by position, never by name fragments.

Grammar (DESIGN section 5; ``H`` histogram, ``P`` phase, ``L`` atom label)::

    selector  = ["histogram." H "."] body
    body      = "background" [".*" | "." index | ".fixed" | ".peak" n "_" quantity | ".debye" n "_" quantity]
              | "instrument." ("zero" | "wavelength" | "ka2_ratio" | "difC" | "difA" | "difB")
              | "sample." ("displacement" | "offset" | "offset_along" | "offset_across" | "transparency" | "roughness")
              | "profile." ("U" | "V" | "W" | "X" | "Y" | "Z" | "S/L" | "H/L" | "SH/L" | "*")
              | "profile." ("alpha" | "beta-0" | "beta-1" | "beta-q" | "sig-0" | "sig-1" | "sig-2" | "sig-q")
              | "absorption" | "extinction"
              | "phase." P "." ("scale" | "cell" ["." edge] | "size" | ... | "uiso" | "occupancy" | "position")
              | "phase." P ".strain_hydrostatic" ["." edge]   (of one of several histograms: its cell over the sample's)
              | "phase." P "." ("size.axial" | "strain." ("axial" | "S400" | ...) | "preferred_orientation.C_4_0" | ...)
              | "phase." P ".atom." L "." ("position" | "x" | "y" | "z" | "uiso" | "u11" ... "u23" | "occupancy")

``P`` has letters, digits, ``_``, ``-``, ``+``. ``L`` is any text without blanks: labels like ``O1'`` or
``C2*`` occur in real files. ``*`` in ``P``, ``L`` or ``H`` is a wildcard; quantities are written out (only
``background.*`` and ``profile.*`` exist), so that what a selector frees can be read from it. Where a label
itself holds ``*``, a selector that equals a known name means that atom alone (see :func:`resolve`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from autoxrd.errors import PolicyError

__all__ = [
    "Resolution",
    "Selector",
    "canonical",
    "covers",
    "is_selector",
    "overlaps",
    "parse_parameter",
    "parse_selector",
    "resolve",
    "resolve_all",
]

Kind = Literal["background", "instrument", "sample", "profile", "phase", "atom", "absorption", "extinction"]

_INSTRUMENT = frozenset({"zero", "wavelength", "ka2_ratio", "difC", "difA", "difB"})
_SAMPLE = frozenset({"displacement", "offset", "offset_along", "offset_across", "transparency", "roughness"})
_FLIGHT = frozenset({"alpha", "beta-0", "beta-1", "beta-q", "sig-0", "sig-1", "sig-2", "sig-q"})
"""Shape of lines over the time of flight."""
_PROFILE = frozenset({"U", "V", "W", "X", "Y", "Z", "S/L", "H/L", "SH/L"}) | _FLIGHT
_EDGES = frozenset({"a", "b", "c", "alpha", "beta", "gamma"})
_PHASE = frozenset(
    {"scale", "cell", "size", "strain", "size_gauss", "strain_gauss", "preferred_orientation", "extinction"}
    | {"strain_hydrostatic"}
)
_ATOM = frozenset({"position", "uiso", "occupancy"})
_COORDINATES = frozenset({"x", "y", "z"})
_TENSOR = frozenset({"u11", "u22", "u33", "u12", "u13", "u23"})
_DIRECTED = {
    "size": r"axial",
    "strain": r"axial|S\d{3}",
    "preferred_orientation": r"C_\d{1,2}_m?\d{1,2}",
    "strain_hydrostatic": r"a|b|c|alpha|beta|gamma",
}
"""What a quantity of a phase that depends on direction consists of, beside itself."""
_BACKGROUND_PART = re.compile(
    r"fixed|peak\d{1,3}_(?:position|intensity|height|gauss|lorentz)|debye\d{1,3}_(?:amplitude|distance|uiso)"
)
_SPLITS = {"SH/L": frozenset({"S/L", "H/L"}), "offset": frozenset({"offset_along", "offset_across"})}
"""Selectors that stand for several parameters."""

_NAME = re.compile(r"[A-Za-z0-9_+*\-]+")
_LABEL = re.compile(r"[^\s]{1,64}")


@dataclass(frozen=True, slots=True)
class Selector:
    """A parsed selector or parameter name.

    Args:
        kind: what it belongs to.
        quantity: what it is, e.g. ``uiso``; for ``cell`` and ``position`` the whole set.
        phase: phase name (may hold ``*``), empty where there is none.
        label: atom label (may hold ``*``), empty where there is none; ``*`` for all atoms of a phase.
        component: one member of the set: ``a`` of a cell, ``x`` of a position, an index of the background.
        histogram: empty means the only histogram.
    """

    kind: Kind
    quantity: str
    phase: str = ""
    label: str = ""
    component: str = ""
    histogram: str = ""

    @property
    def family(self) -> str:
        """What it means, apart from which phase or atom: ``atom.uiso``, ``phase.cell``, ``background``."""
        if self.kind in ("background", "absorption", "extinction"):
            return self.kind
        if self.kind == "sample" and self.quantity.startswith("offset"):
            return "sample.offset"
        if self.quantity == "strain_hydrostatic":  # the cell as one histogram sees it
            return "phase.cell"
        return f"{self.kind}.{self.quantity}"

    @property
    def of_sample(self) -> bool:
        """True for what all histograms share: cells and atoms."""
        return self.kind == "atom" or (self.kind == "phase" and self.quantity == "cell")

    @property
    def text(self) -> str:
        """The canonical spelling; :func:`parse_selector` gives an equal selector back."""
        head = f"histogram.{self.histogram}." if self.histogram else ""
        if self.kind == "background":
            return f"{head}background.{self.component or '*'}"
        if self.kind in ("absorption", "extinction"):
            return head + self.kind
        if self.kind == "atom":
            return f"{head}phase.{self.phase}.atom.{self.label}.{self.component or self.quantity}"
        owner = f"phase.{self.phase}" if self.kind == "phase" else self.kind
        tail = f".{self.component}" if self.component else ""
        return f"{head}{owner}.{self.quantity}{tail}"

    @property
    def has_glob(self) -> bool:
        """True where a phase, label or histogram holds a wildcard."""
        return "*" in self.phase or "*" in self.label or "*" in self.histogram


@dataclass(frozen=True, slots=True)
class Resolution:
    """What a selector means among known parameters.

    Args:
        selector: the parsed selector.
        names: the known parameter names that it covers, in their order.
    """

    selector: Selector
    names: tuple[str, ...]


def _invalid(text: str, why: str) -> PolicyError:
    return PolicyError(
        "selector_invalid", f"'{text[:120]}' is not a selector: {why}.", context={"selector": text[:120]}
    )


def parse_selector(text: str) -> Selector:
    """Parse a selector or a refinable parameter name.

    Raises:
        PolicyError: ``selector_invalid``, saying which part is wrong.
    """
    if not isinstance(text, str) or not text or len(text) > 240:
        raise _invalid(str(text), "it is empty or longer than 240 characters")
    return _parse(text)


@lru_cache(maxsize=8192)
def _parse(text: str) -> Selector:
    if text.startswith("histogram."):
        name, _, body = text[len("histogram.") :].partition(".")
        if not _NAME.fullmatch(name) or not body or body.startswith("histogram."):
            raise _invalid(text, "after 'histogram.' comes a name, a dot and a selector")
        return replace(_parse(body), histogram=name)
    head, _, rest = text.partition(".")
    if head == "background":
        return _parse_background(text, rest)
    if text in ("absorption", "extinction"):
        return Selector(kind="absorption" if text == "absorption" else "extinction", quantity=text)
    if head == "instrument" and rest in _INSTRUMENT:
        return Selector(kind="instrument", quantity=rest)
    if head == "sample" and rest in _SAMPLE:
        return Selector(kind="sample", quantity=rest)
    if head == "profile" and (rest in _PROFILE or rest == "*"):
        return Selector(kind="profile", quantity=rest)
    if head == "phase":
        return _parse_phase(text, rest)
    raise _invalid(text, "no such group or quantity")


def _parse_background(text: str, rest: str) -> Selector:
    if text in ("background", "background.*"):
        return Selector(kind="background", quantity="background")
    if rest.isascii() and rest.isdigit():
        return Selector(kind="background", quantity="background", component=str(int(rest)))
    if _BACKGROUND_PART.fullmatch(rest):
        return Selector(kind="background", quantity="background", component=rest)
    raise _invalid(text, "the background has numbered terms, 'background.3', or all of them, 'background.*'")


def _parse_phase(text: str, rest: str) -> Selector:
    phase, _, tail = rest.partition(".")
    if not _NAME.fullmatch(phase):
        raise _invalid(text, "a phase name has letters, digits, '_', '-', '+' (or '*')")
    if tail.startswith("atom."):
        label, _, quantity = tail[len("atom.") :].rpartition(".")
        if not _LABEL.fullmatch(label):
            raise _invalid(text, "after 'atom.' comes a label, a dot and a quantity")
        if quantity in _COORDINATES:
            return Selector(kind="atom", phase=phase, label=label, quantity="position", component=quantity)
        if quantity in _ATOM:
            return Selector(kind="atom", phase=phase, label=label, quantity=quantity)
        if quantity in _TENSOR:
            return Selector(kind="atom", phase=phase, label=label, quantity="uiso", component=quantity)
        raise _invalid(text, f"an atom has {', '.join(sorted(_ATOM | _COORDINATES))}")
    quantity, _, component = tail.partition(".")
    if quantity in _DIRECTED and re.fullmatch(_DIRECTED[quantity], component):
        return Selector(kind="phase", phase=phase, quantity=quantity, component=component)
    if quantity == "cell" and component in _EDGES:
        return Selector(kind="phase", phase=phase, quantity="cell", component=component)
    if not component and "." not in tail:
        if quantity in _ATOM:  # the quantity of every atom of the phase
            return Selector(kind="atom", phase=phase, label="*", quantity=quantity)
        if quantity in _PHASE:
            return Selector(kind="phase", phase=phase, quantity=quantity)
    raise _invalid(text, f"a phase has {', '.join(sorted(_PHASE | _ATOM))} or 'atom.LABEL.QUANTITY'")


def parse_parameter(name: str) -> Selector | None:
    """Parse a parameter name; None where it is derived (``phase.P.weight_fraction``) or unknown."""
    try:
        return parse_selector(name)
    except PolicyError:
        return None


def is_selector(text: str) -> bool:
    """Return whether ``text`` is a selector that an action may name."""
    return parse_parameter(text) is not None


def canonical(text: str) -> str:
    """Return the one spelling of a selector (``background`` -> ``background.*``).

    Raises:
        PolicyError: ``selector_invalid``.
    """
    return parse_selector(text).text


@lru_cache(maxsize=4096)
def _glob(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(piece) for piece in pattern.split("*")))


def _matches(pattern: str, name: str) -> bool:
    """Match one part of a dotted name; ``*`` alone is special."""
    return pattern == name or ("*" in pattern and _glob(pattern).fullmatch(name) is not None)


def _quantity_covers(selector: Selector, parameter: Selector) -> bool:
    if selector.kind == "profile" and selector.quantity == "*":
        return True
    if selector.quantity == parameter.quantity:
        return True
    return parameter.quantity in _SPLITS.get(selector.quantity, frozenset())


def covers(selector: Selector, parameter: Selector) -> bool:
    """Return whether releasing ``selector`` frees ``parameter`` (globs of the selector count)."""
    return (
        selector.kind == parameter.kind
        and _quantity_covers(selector, parameter)
        and _matches(selector.phase, parameter.phase)
        and _matches(selector.label, parameter.label)
        and selector.component in ("", parameter.component)
        and (not selector.histogram or _matches(selector.histogram, parameter.histogram or selector.histogram))
    )


def overlaps(first: str, second: str, known: Sequence[str]) -> bool:
    """Return whether two selectors share a known parameter."""
    return not set(resolve(first, known).names).isdisjoint(resolve(second, known).names)


def resolve(text: str, known: Iterable[str]) -> Resolution:
    """Find the known parameters that a selector covers.

    A selector with ``*`` that is, to the letter, the name of an atom's quantity (label ``O1*``) means that atom.

    Raises:
        PolicyError: ``selector_invalid``.
    """
    selector = parse_selector(text)
    parsed = [(name, parameter) for name in known if (parameter := parse_parameter(name)) is not None]
    if selector.has_glob:
        exact = tuple(name for name, parameter in parsed if _same_owner(selector, parameter))
        if exact:
            return Resolution(selector, exact)
    return Resolution(selector, tuple(name for name, parameter in parsed if covers(selector, parameter)))


def _same_owner(selector: Selector, parameter: Selector) -> bool:
    """True where a starred label is meant literally; a bare ``*`` always means all."""
    return (
        selector.kind == "atom" == parameter.kind
        and selector.label == parameter.label != "*"
        and "*" not in selector.phase
        and selector.phase == parameter.phase
        and selector.quantity == parameter.quantity
        and selector.component in ("", parameter.component)
    )


def resolve_all(texts: Iterable[str], known: Sequence[str]) -> tuple[str, ...]:
    """Return the known parameters that any of the selectors covers, in the order of ``known``.

    Selectors that do not parse are passed over: preflight reports them by name.
    """
    found: set[str] = set()
    for text in texts:
        if is_selector(text):
            found.update(resolve(text, known).names)
    return tuple(name for name in known if name in found)
