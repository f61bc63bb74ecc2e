"""Does real output say what an example states? Text word by word, numbers to one unit of their last stated digit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

__all__ = ["decimals", "differences", "states_number"]

_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w]*[A-Za-z]|\.?\d)")
_CHANGING = (
    (re.compile(r"\b[0-9a-f]{64}\b"), "HASH"),
    (re.compile(r"\b[0-9a-f]{16}\b"), "ID"),
    (re.compile(r"\b\d+(\.\d+)? s\b"), "TIME"),
)
"""Ids follow from the last bits of the numbers, and times from the machine: their form is compared alone."""


def differences(stated: str, real: str) -> str | None:
    """Return the first stated line that the real output does not have, None where all are there in order.

    A line ``...`` stands for any number of lines.
    """
    wanted, got = _lines(stated), _lines(real)
    position, free = 0, False
    for line in wanted:
        if line == "...":
            free = True
            continue
        reach = range(position, len(got) if free else min(position + 1, len(got)))
        found = next((i for i in reach if same_line(line, got[i])), None)
        if found is None:
            near = got[position] if position < len(got) else "(end)"
            return f"stated: {line}\nreal:   {near}"
        position, free = found + 1, False
    if not free and position < len(got):
        return f"not stated: {got[position]}"
    return None


def _lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.strip("\n").split("\n") if line.strip()]


def same_line(stated: str, real: str) -> bool:
    """Return whether a line says the same, its numbers to one unit of the last stated digit."""
    for pattern, word in _CHANGING:
        stated, real = pattern.sub(word, stated), pattern.sub(word, real)
    if _NUMBER.sub("N", stated) != _NUMBER.sub("N", real):
        return False
    pairs = zip(_NUMBER.findall(stated), _NUMBER.findall(real), strict=True)
    return all(states_number(mine, [theirs]) for mine, theirs in pairs)


def states_number(stated: str, real: Iterable[str | float]) -> bool:
    """Return whether one of the real numbers is the stated one, to a unit of its last digit; whole numbers exactly."""
    mantissa, _, power = stated.lower().partition("e")
    digits = len(mantissa.partition(".")[2])
    unit = 10.0 ** (int(power or 0) - digits) if digits or power else 0.0
    return any(abs(float(value) - float(stated)) <= unit * 1.0000001 for value in real)


def decimals(text: str) -> Sequence[str]:
    """Return the numbers with a decimal point in a text."""
    return [number for number in _NUMBER.findall(text) if "." in number]
