"""How are the lines of a lattice compared with those of a pattern? Data with a source, never literals in code."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["LatticeSettings"]


@dataclass(frozen=True, slots=True)
class LatticeSettings:
    """How the lines of a profile match are compared with those that the pattern shows.

    Args:
        merge_fwhm: calculated lines closer than this count as one.
        seen_sigmas: an intensity above this many sigma of the counting noise under its line is seen.
        lines: observed lines at the lowest angles (largest spacings) that are looked at (de Wolff 1968,
            doi:10.1107/S002188986800508X).
        least_lines: fewer than these say nothing.
        peak_sigmas: a maximum this far above the noise, and above what is between it and the next, is a line.
        least_height: of the highest line: what is lower may be of another emission line of the tube.
        reach_fwhm: an observed line further from every calculated one is not explained.
        strangers: so many lines that are not explained may be another phase's, and are left aside (de Wolff 1968).
    """

    merge_fwhm: float = 0.5
    seen_sigmas: float = 3.0
    lines: int = 20
    least_lines: int = 5
    peak_sigmas: float = 5.0
    least_height: float = 0.01
    reach_fwhm: float = 1.0
    strangers: int = 2
