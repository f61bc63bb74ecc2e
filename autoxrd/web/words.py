"""How are states, times and amounts written on a page? Short, with units, and the same everywhere."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from markupsafe import Markup

from autoxrd.report.format import fixed
from autoxrd.store.service.listing import JobView

__all__ = ["VERDICTS", "Standing", "duration", "instant", "percent", "sized", "standing"]

_STATES = {
    "queued": ("Queued", "idle"),
    "running": ("Running", "live"),
    "waiting": ("Paused", "warn"),
    "cancelling": ("Cancelling", "warn"),
    "completed": ("Completed", "good"),
    "failed": ("Failed", "bad"),
    "crashed": ("Crashed", "bad"),
    "cancelled": ("Cancelled", "idle"),
}
VERDICTS = {
    "accepted": ("Accepted", "good"),
    "accepted_with_warnings": ("Accepted, warnings", "warn"),
    "abstained": ("Abstained", "bad"),
}


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a job stands: words for the badge, and its tone (``idle``, ``live``, ``good``, ``warn``, ``bad``)."""

    words: str
    tone: str


def standing(job: JobView) -> Standing:
    """Say where a job stands; a completed one by its verdict, since "completed" alone says nothing about the fit."""
    known = _STATES.get(job.state, (job.state, "idle"))
    if job.state == "completed" and job.verdict:
        known = VERDICTS.get(job.verdict, known)
    return Standing(*known)


def percent(fraction: float | None, decimals: int = 2) -> str:
    """Write a fraction in percent, without the sign."""
    return fixed(fraction, decimals, scale=100.0)


def duration(seconds: float | None) -> str:
    """Write a time span: ``0.4 s``, ``12 s``, ``3 min 05 s``, ``2 h 07 min``."""
    if seconds is None:
        return "–"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def instant(at: str | None) -> Markup:
    """Write a time of the tables: UTC, which the script turns into the reader's own."""
    if not at:
        return Markup("–")
    try:
        told = datetime.fromisoformat(at).strftime("%Y-%m-%d %H:%M")
    except ValueError:
        return Markup("{}").format(at)
    return Markup('<time datetime="{}" title="{} UTC">{} UTC</time>').format(at, told, told)


def sized(size: int) -> str:
    """Write a number of bytes."""
    for unit, step in (("MB", 1e6), ("kB", 1e3)):
        if size >= step:
            return f"{size / step:.1f} {unit}"
    return f"{size} B"
