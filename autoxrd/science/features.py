"""How a measured figure becomes a Feature; one place decides what significance means."""

from __future__ import annotations

import math

from autoxrd.domain.state import Feature

__all__ = ["measured", "plain", "unavailable"]


def unavailable(reason: str, *, unit: str = "", n_used: int | None = None) -> Feature:
    """Return "cannot tell", with the reason."""
    return Feature(value=None, available=False, reason=reason, unit=unit, n_used=n_used)


def plain(value: float, *, unit: str = "", n_used: int | None = None, reason: str = "") -> Feature:
    """Return a figure that has no uncertainty of its own; not finite is unavailable."""
    if not math.isfinite(value):
        return unavailable(reason or "not finite", unit=unit, n_used=n_used)
    return Feature(value=value, unit=unit, n_used=n_used, reason=reason)


def measured(
    value: float,
    esd: float,
    *,
    n_used: int,
    unit: str = "",
    reason: str = "",
    significance: float | None = None,
) -> Feature:
    """Return a figure with its esd; ``significance`` defaults to |value| / esd."""
    if not (math.isfinite(value) and math.isfinite(esd)):
        return unavailable(reason or "not finite", unit=unit, n_used=n_used)
    if significance is None:
        significance = abs(value) / esd if esd > 0 else 0.0
    return Feature(value=value, esd=esd, significance=significance, n_used=n_used, unit=unit, reason=reason)
