"""One of the patterns of a sample, with its instrument."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from autoxrd.domain.instrument import Instrument
from autoxrd.domain.pattern import Pattern

__all__ = ["Histogram"]


@dataclass(frozen=True, slots=True)
class Histogram:
    """A pattern with its instrument.

    Args:
        name: letters, digits and underscores, as it stands in selectors: ``histogram.NAME.instrument.zero``.
        settings: what the engine is told of this one: ranges, background terms, form factors.
    """

    name: str
    pattern: Pattern
    instrument: Instrument
    settings: Mapping[str, Any] = field(default_factory=dict)
