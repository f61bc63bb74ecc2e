"""What several checks share: looking up parameters, and building a violation."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Literal

from autoxrd.domain.state import ParameterValue, Violation

__all__ = ["Parameters", "finite", "violation"]

Severity = Literal["hard", "soft"]


class Parameters:
    """Parameters by dotted name."""

    def __init__(self, values: Iterable[ParameterValue]) -> None:
        self._by_name: Mapping[str, ParameterValue] = {value.name: value for value in values}

    def get(self, name: str) -> ParameterValue | None:
        """Return a parameter, None where the engine has none of that name."""
        return self._by_name.get(name)

    def value(self, name: str, default: float = 0.0) -> float:
        """Return a value, ``default`` where there is none."""
        found = self._by_name.get(name)
        return default if found is None else found.value

    def esd(self, name: str) -> float:
        """Return an esd, 0 where there is none or it is not finite."""
        found = self._by_name.get(name)
        return found.esd if found is not None and finite(found.esd) and found.esd is not None else 0.0

    def all(self) -> Iterable[ParameterValue]:
        """Return all parameters in order."""
        return self._by_name.values()


def finite(value: float | None) -> bool:
    """Tell whether a number is there and finite."""
    return value is not None and math.isfinite(value)


def violation(
    code: str,
    subject: str,
    text: str,
    *,
    value: float | None = None,
    limit: float | None = None,
    severity: Severity = "hard",
) -> Violation:
    """Return a violation; a value that is not finite is left out of the record (the text says it)."""
    return Violation(
        code=code,
        subject=subject,
        value=value if finite(value) else None,
        limit=limit,
        text=text,
        severity=severity,
    )
