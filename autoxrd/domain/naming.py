"""Names in a fit of several histograms: what is a histogram's, ``histogram.H.x``, and what is the sample's."""

from __future__ import annotations

__all__ = ["HISTOGRAM", "full_name", "is_of_sample", "split_name"]

HISTOGRAM = "histogram."
_OF_SAMPLE = ("cell", "atom", "uiso", "occupancy", "position", "density")
"""What of a phase is the same in all patterns; scale, widths, texture and extinction are a pattern's."""


def split_name(name: str) -> tuple[str, str]:
    """Return histogram and bare name of a full name; no histogram for what has none."""
    if not name.startswith(HISTOGRAM):
        return "", name
    histogram, _, rest = name[len(HISTOGRAM) :].partition(".")
    return histogram, rest


def is_of_sample(name: str) -> bool:
    """Return whether a bare selector or parameter is the sample's: a cell, an atom."""
    parts = name.split(".")
    return parts[0] == "phase" and len(parts) > 2 and parts[2].partition("@")[0] in _OF_SAMPLE


def full_name(histogram: str, name: str) -> str:
    """Return the full name of a bare one."""
    return name if is_of_sample(name) else f"{HISTOGRAM}{histogram}.{name}"
