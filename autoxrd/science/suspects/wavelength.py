"""Would the phases explain the pattern if it had been measured with another tube?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from autoxrd.domain.instrument import ANODE_LINES, Instrument, Radiation
from autoxrd.science.matching import CandidateLines, MatchedSet
from autoxrd.science.matching.overview import Observed, rank_sets
from autoxrd.science.suspects.settings import SuspectSettings

__all__ = ["OtherWavelength", "other_wavelength"]

_SAME = 0.01
"""Wavelengths closer than this, relatively, are one: the cell takes up the difference."""


@dataclass(frozen=True, slots=True)
class OtherWavelength:
    """A tube whose wavelength makes the phases fit.

    Args:
        anode: of the tube.
        stated_angstrom, other_angstrom: first lines.
        explained_stated, explained_other: share of the signal that the phases explain.
    """

    anode: str
    stated_angstrom: float
    other_angstrom: float
    explained_stated: float
    explained_other: float


def other_wavelength(
    observed: Observed, lines: Sequence[CandidateLines], instrument: Instrument, settings: SuspectSettings
) -> OtherWavelength | None:
    """Return the tube that makes the phases fit far better than the stated wavelength, None where there is none.

    On the axis 2 ln sin(theta) another wavelength moves all lines alike, beyond what any cell change may do.

    Args:
        observed: the pattern.
        lines: of each phase, at the stated wavelength.
        instrument: as stated.
        settings: thresholds.
    """
    if instrument.radiation is not Radiation.XRAY or not instrument.lines:
        return None
    stated = instrument.lines[0].wavelength_angstrom

    def explained(factor: float) -> float:
        moved = [_scaled(one, factor) for one in lines]
        ranked = rank_sets(observed, [m for m in moved if m.sine.size], instrument.geometry, settings.match)
        return max((one.explained for one in ranked if _whole(one, settings)), default=0.0)

    best, anode = explained(1.0), ""
    base, length = best, stated
    for name, pair in ANODE_LINES.items():
        other = pair[0].wavelength_angstrom
        if abs(other / stated - 1.0) < _SAME:
            continue
        share = explained(other / stated)
        if share > best:
            best, anode, length = share, name, other
    if not anode or best < max(settings.wavelength_explained, base + settings.wavelength_excess):
        return None
    return OtherWavelength(anode, stated, length, base, best)


def _whole(found: MatchedSet, settings: SuspectSettings) -> bool:
    """Tell whether enough lines of the members are looked for, and are there."""
    seen = all(not member.seen < settings.match.least_seen for member in found.members)
    return seen and sum(member.lines for member in found.members) >= settings.wavelength_lines


def _scaled(lines: CandidateLines, factor: float) -> CandidateLines:
    sine = lines.sine * factor
    inside = sine < 1.0
    return replace(lines, sine=sine[inside], area=lines.area[inside])
