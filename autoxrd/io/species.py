"""Read an atom type as people write it (``O2-``, ``O-2``, ``Co+3``, ``O1``, ``D``) into element and species."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

__all__ = ["Species", "species_from_label", "species_from_symbol"]

_CHARGE = re.compile(r"^(?:(\d*)([+-])|([+-])(\d+))$")
_LABEL = re.compile(r"^([A-Za-z]{1,2})(.*)$")
_MOLECULES = frozenset({"H2O", "HOH", "D2O", "NH4", "NH3"})
_SITE_SUFFIX = re.compile(r"^-?(?:[A-Z]{0,3}|\([A-Za-z0-9]+\))?[\d_'*A-Z()]*$")


@dataclass(frozen=True, slots=True)
class Species:
    """An element, its species with charge, and whether the text had to be interpreted."""

    element: str
    species: str
    interpreted: bool = False


def _is_element(symbol: str) -> bool:
    """Whether a symbol with the usual capitals is an element (or D)."""
    import gemmi

    return symbol not in ("X", "") and gemmi.Element(symbol).name == symbol


def species_from_symbol(symbol: str, *, known: Collection[str] = ()) -> Species | None:
    """Read a type symbol; None where it names no element.

    Args:
        symbol: the text of ``_atom_site_type_symbol``.
        known: elements of the chemical formula, to settle ``CO`` (cobalt or a carbon labelled O).
    """
    text = symbol.strip().strip("'\"")
    for element, rest in _splits(text, known):
        if not rest:
            return Species(element, element)
        charge = _CHARGE.match(rest)
        if charge:
            digits, sign = (charge[1], charge[2]) if charge[2] else (charge[4], charge[3])
            number = int(digits) if digits else 1
            return Species(element, element if number == 0 else f"{element}{number}{sign}")
        if rest == "0":
            return Species(element, element)
    return species_from_label(text, known=known)


def species_from_label(label: str, *, known: Collection[str] = ()) -> Species | None:
    """Read a site label such as ``Co1``, ``OW2`` or ``CaM1`` used as a type; None where no element fits."""
    text = label.strip()
    if text.upper() in _MOLECULES:
        return None
    for element, rest in _splits(text, known):
        if _SITE_SUFFIX.match(rest):
            return Species(element, element, interpreted=True)
    return None


def _splits(text: str, known: Collection[str]) -> list[tuple[str, str]]:
    """Possible (element, rest) readings of a text, the most likely first."""
    match = _LABEL.match(text)
    if match is None:
        return []
    letters = match[1]
    pair, single = letters.capitalize(), letters[0].upper()
    options: list[tuple[str, str]] = []
    if len(letters) == 2 and _is_element(pair):
        options.append((pair, text[2:]))
    if _is_element(single) and (len(letters) == 1 or letters[1].isupper()):
        options.append((single, text[1:]))
    if len(options) == 2 and letters[1].isupper():
        # "CO1" is cobalt, or a carbon labelled O: the formula settles it where it can.
        in_formula = [option for option in options if option[0] in known]
        if len(in_formula) == 1:
            return in_formula
    return options
