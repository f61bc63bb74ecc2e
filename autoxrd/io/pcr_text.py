"""What stands in a line of a FullProf control file? Fortran's free format, as fp2k reads it.

A blank line or one that begins with ``!`` is a comment. A data line ends at ``!``, ``<--`` or ``#``, or at the first
word behind its numbers. Fixed columns glue a negative number to its neighbour (``0.0-0.25030``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from autoxrd.errors import UserInputError

__all__ = ["Line", "Lines", "PcrRefusal", "numbers_of"]

_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[EeDd][-+]?\d+)?")
_END = re.compile(r"!|<-|->|#")


class PcrRefusal(UserInputError):
    """The file, or a part of it, is not what the checker can vouch for."""


@dataclass(frozen=True, slots=True)
class Line:
    """A data line.

    Args:
        number: in the file, from 1.
        text: without its end.
    """

    number: int
    text: str


def numbers_of(text: str) -> list[float]:
    """Return the numbers at the beginning of a line, up to the first word or end mark."""
    rest = _END.split(text, maxsplit=1)[0].strip()
    found: list[float] = []
    while rest:
        match = _NUMBER.match(rest)
        if match is None:
            break
        after = rest[match.end() :]
        if after and (after[0].isalnum() or after[0] in "._*"):
            break  # a word that begins with a digit, or a number that overflowed its column
        found.append(float(match.group().replace("D", "E").replace("d", "e")))
        rest = after.lstrip(" \t,")
    return found


class Lines:
    """Data lines in order; comments are passed over, as fp2k does.

    Args:
        text: of the file.
        name: of the file, for messages.
    """

    def __init__(self, text: str, name: str) -> None:
        self.name = name
        self._all = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._next = 0

    @property
    def number(self) -> int:
        """Number of the line read last, from 1."""
        return self._next

    def back(self) -> None:
        """Read the last line again."""
        self._next -= 1

    def refuse(self, code: str, sentence: str, number: int | None = None) -> PcrRefusal:
        """Return the error that names the file and the line."""
        line = self._next if number is None else number
        return PcrRefusal(code, f"{self.name}, line {line}: {sentence}", context={"line": line})

    def text(self, what: str) -> Line:
        """Return the next data line, whatever it holds.

        Raises:
            PcrRefusal: ``pcr_truncated``.
        """
        while self._next < len(self._all):
            raw = self._all[self._next]
            self._next += 1
            if raw.strip("\x00 \t") and not raw.lstrip(" \t").startswith("!"):
                return Line(self._next, raw)
        raise self.refuse("pcr_truncated", f"the file ends where {what} was expected.")

    def row(self, what: str, *counts: int) -> list[float]:
        """Return the numbers of the next data line.

        Args:
            what: for the message.
            counts: how many there may be.

        Raises:
            PcrRefusal: ``pcr_count``, ``pcr_truncated``.
        """
        line = self.text(what)
        values = numbers_of(line.text)
        if len(values) not in counts:
            wanted = " or ".join(str(count) for count in counts)
            raise self.refuse("pcr_count", f"{what}: expected {wanted} numbers, found {len(values)}.")
        return values

    def rest(self) -> Iterator[Line]:
        """Yield the data lines that are left."""
        while self._next < len(self._all):
            try:
                yield self.text("")
            except PcrRefusal:
                return
