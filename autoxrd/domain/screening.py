"""What did pattern matching say of a set of candidate phases, before anything was refined?"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Screened"]


@dataclass(frozen=True, slots=True)
class Screened:
    """A set of phases as pattern matching ranks it.

    Args:
        phases: names, the strongest first.
        explained: share of the signal, texture and grain statistics allowed for.
        behind: Bayesian information criterion less that of the best set.
        strains: relative change of each phase's cell lengths that it was found with.
        shift_deg: common shift, degrees 2theta.
    """

    phases: tuple[str, ...]
    explained: float
    behind: float
    strains: tuple[float, ...]
    shift_deg: float
