"""What can a verification say? Findings with stable codes, and the report that holds them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

__all__ = ["Finding", "VerifyReport", "error", "note"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that does not fit.

    Args:
        code: stable string, listed in docs/graph.md.
        row: where: ``states 3``, ``edges 2``, ``artifact ab12...``, a file name.
        text: one sentence with the values.
        severity: an ``error`` means that the record cannot be trusted there; a ``note`` is worth knowing.
    """

    code: str
    row: str
    text: str
    severity: Literal["error", "note"] = "error"


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """The outcome of a verification.

    Args:
        findings: everything found, in the order of checking.
        graph_root: recomputed from the rows; None where they could not be read.
        finished: whether the log says that the job ended; only then missing last rows show.
        judged: number of decisions that were recomputed; None where no judge was given.
    """

    findings: tuple[Finding, ...]
    n_states: int
    n_edges: int
    n_events: int
    n_artifacts: int
    graph_root: str | None
    finished: bool
    judged: int | None

    @property
    def ok(self) -> bool:
        """True when nothing speaks against the record (notes do not)."""
        return not self.errors

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that speak against the record."""
        return tuple(f for f in self.findings if f.severity == "error")

    @property
    def codes(self) -> frozenset[str]:
        """The codes of the errors."""
        return frozenset(f.code for f in self.errors)


def error(code: str, row: str, text: str) -> Finding:
    """Build an error."""
    return Finding(code, row, text)


def note(code: str, row: str, text: str) -> Finding:
    """Build a note."""
    return Finding(code, row, text, "note")


def mismatch(code: str, row: str, what: str, recorded: object, expected: object) -> Iterable[Finding]:
    """Yield an error unless the two are equal (and of one type: 1 is not True)."""
    if recorded != expected or type(recorded) is not type(expected):
        yield error(code, row, f"{what} is {str(recorded)[:80]!r}, expected {str(expected)[:80]!r}.")
