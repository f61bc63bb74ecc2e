"""Skips what needs an engine that is not here."""

from __future__ import annotations

from typing import Protocol

import pytest

__all__ = ["need"]


class _Engine(Protocol):
    def available(self) -> tuple[bool, str]:
        """Return whether it can be used here, and its version or the reason why not."""
        ...


def need(engine: _Engine) -> None:
    """Skip the test with the engine's reason where it cannot be used."""
    usable, reason = engine.available()
    if not usable:
        pytest.skip(reason)
