"""Does a FullProf control file release what it should, and nothing else? Codewords, ties, and words that free.

A codeword is ``sign(a) (10 p + |a|)``: parameter number p, multiplier a; 0 holds the value. Equal p ties the shifts of
parameters. Where ``Aut`` is 0 the numbers are the file's own: Maxs of them, 1 to Maxs without holes.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path

from autoxrd.domain.pattern import Notice
from autoxrd.io.pcr_walk import Slot, Walk, walk
from autoxrd.io.source import load_source

__all__ = ["PcrReport", "Released", "check_pcr"]

_MOST_BYTES = 2_000_000
_WORDS = re.compile(r"\b(VARY|FIX)\b", re.IGNORECASE)
_NOT_A_NUMBER = re.compile(r"\b(nan|infinity)\b|\*{3,}", re.IGNORECASE)
_TIED = 1e-4
"""Relative difference of tied values that is more than rounding to the columns of a file."""


@dataclass(frozen=True, slots=True)
class Released:
    """A parameter number with all that moves under it: (slot, multiplier)."""

    number: int
    members: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class PcrReport:
    """What a file was found to be.

    Args:
        title: of the file, untrusted text.
        phases: their names, untrusted text.
        n_slots: parameters that the file could release.
        maxs: number of refined parameters that it states.
        released: by parameter number.
        faults: what makes the file release something else than it says; (code, sentence).
        notices: what a reader should know.
    """

    title: str
    phases: tuple[str, ...]
    n_slots: int
    maxs: int
    released: tuple[Released, ...]
    faults: tuple[Notice, ...]
    notices: tuple[Notice, ...]


def check_pcr(path: Path) -> PcrReport:
    """Walk a control file and check its codewords.

    Raises:
        UserInputError: ``file_*``; ``pcr_*`` where the walk does not reach the last line, with the line and the reason.
    """
    source = load_source(path, max_bytes=_MOST_BYTES)
    text = source.data.decode("latin-1")  # every byte is a character: old files hold any
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("!")]
    bad = next((i for i, line in enumerate(lines, 1) if _NOT_A_NUMBER.search(line)), None)
    if bad is not None:
        raise source.error("pcr_not_finite", "holds NaN, Infinity or '***': a run that diverged wrote it.")
    found = walk(text, source.name)
    released: dict[int, list[Slot]] = {}
    faults: list[Notice] = []
    for slot in found.slots:
        number = _number(slot, faults)
        if number:
            released.setdefault(number, []).append(slot)
    faults += _numbering(released, found) + _words(found)
    return PcrReport(
        title=_shown(found.title),
        phases=tuple(_shown(name) for name in found.phases),
        n_slots=len(found.slots),
        maxs=found.maxs,
        released=tuple(
            Released(number, tuple((slot.name, _multiplier(slot.code)) for slot in members))
            for number, members in sorted(released.items())
        ),
        faults=tuple(faults),
        notices=tuple(_ties(released) + _switches(found)),
    )


def _shown(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in text)[:80]


def _number(slot: Slot, faults: list[Notice]) -> int:
    """Return the parameter number of a slot, 0 where it is held."""
    if slot.code == 0.0:
        return 0
    number = int(abs(slot.code) // 10)
    if number == 0:
        text = f"line {slot.line}: {slot.name} has the codeword {slot.code:g}, which has no parameter number."
        faults.append(Notice("codeword_without_number", text))
    elif math.isclose(_multiplier(slot.code), 0.0, abs_tol=1e-9):
        text = f"line {slot.line}: {slot.name} has the codeword {slot.code:g}, whose multiplier is 0: it cannot move."
        faults.append(Notice("codeword_without_multiplier", text))
    return number


def _multiplier(code: float) -> float:
    return round(math.copysign(abs(code) % 10.0, code), 6)


def _numbering(released: dict[int, list[Slot]], found: Walk) -> list[Notice]:
    numbers = sorted(released)
    faults = []
    if len(numbers) != found.maxs:
        text = f"the file states {found.maxs} refined parameters, its codewords name {len(numbers)}."
        faults.append(Notice("maxs_mismatch", text))
    holes = sorted(set(range(1, max(numbers, default=0) + 1)) - set(numbers))
    if holes:
        shown = ", ".join(str(number) for number in holes[:5])
        faults.append(Notice("number_hole", f"parameter numbers leave out {shown}; expected 1 to {max(numbers)}."))
    return faults


def _words(found: Walk) -> list[Notice]:
    return [
        Notice("directive_in_name", f"line {number}: fp2k reads VARY and FIX in a phase's name and frees by it.")
        for number, text in found.texts
        if _WORDS.search(text)
    ]


def _ties(released: dict[int, list[Slot]]) -> list[Notice]:
    """Tell ties between values that differ: a tie moves both alike and does not make them equal."""
    notices = []
    for number, members in sorted(released.items()):
        first = members[0]
        for other in members[1:]:
            same = _multiplier(other.code) == _multiplier(first.code)
            kind = _quantity(other) == _quantity(first)
            apart = abs(other.value - first.value) > _TIED * max(abs(first.value), abs(other.value))
            if same and kind and apart:
                text = f"parameter {number} ties {first.name} = {first.value:g} and {other.name} = {other.value:g}."
                notices.append(Notice("tied_values_differ", f"{text} A tie moves both alike; they stay different."))
    return notices


def _quantity(slot: Slot) -> str:
    """Return what a slot is of: tied cell lengths are to be equal, tied coordinates need not."""
    last = slot.name.rsplit(".", 1)[-1]
    return "length" if last in ("a", "b", "c") else last


def _switches(found: Walk) -> list[Notice]:
    notices = []
    if found.header["Aut"]:
        text = "Aut = 1: fp2k numbers the parameters anew; the numbers here are not those of its output."
        notices.append(Notice("renumbered_by_fp2k", text))
    if found.output["Pcr"] == 1:
        notices.append(
            Notice("file_overwritten", "Pcr = 1: fp2k overwrites this file; Pcr = 2 writes a .new beside it.")
        )
    return notices
