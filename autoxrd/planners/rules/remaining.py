"""What is left of the misfit when nothing more pays: is it the intensities', or that of line shapes and background?

A profile match from the final state, with intensities free and all else as it is, bounds what any structure could reach
with these line shapes (Le Bail 2005, doi:10.1154/1.2135315).
"""

from __future__ import annotations

from autoxrd.domain.state import FitState
from autoxrd.gates.metrics import read_metric

__all__ = ["intensity_share", "misfit_note"]

_TOLD = 1.2
"""Goodness of fit from which something is left beyond counting noise that is worth a word."""


def intensity_share(state: FitState) -> float | None:
    """Return the share of the squared misfit beyond counting noise that free intensities take away, 0 to 1.

    Squares of Rwp are sums of squares over the same data: (Rwp^2 - reachable^2) / (Rwp^2 - Rexp^2). It is an upper
    bound of what the structure is to blame for, because free intensities follow noise and other misfit as well.
    None where no profile match was made or nothing is left beyond noise.
    """
    reachable, quality = read_metric(state, "reachable_rwp").value, state.quality
    beyond = quality.rwp**2 - quality.rexp**2
    if reachable is None or beyond <= 0.0:
        return None
    return min(max((quality.rwp**2 - reachable**2) / beyond, 0.0), 1.0)


def misfit_note(state: FitState) -> tuple[str, str] | None:
    """Return (code, text) that tells where to look next, None where there is nothing to say."""
    share = intensity_share(state)
    if share is None or state.quality.gof < _TOLD:
        return None
    reachable = read_metric(state, "reachable_rwp").value or 0.0
    where = "intensities" if share > 0.5 else "line shapes, background or lines that no phase has"
    text = (
        f"With free intensities these line shapes reach Rwp {100 * reachable:.2f} %, with the structures"
        f" {100 * state.quality.rwp:.2f} %; counting noise alone would give {100 * state.quality.rexp:.2f} %. So at"
        f" most {100 * share:.0f} % of the squared misfit beyond noise is of intensities (structure, texture, grains),"
        f" and the rest of line shapes, background or lines that no phase has: whoever goes on, looks at {where} first."
    )
    return ("misfit_left", text)
