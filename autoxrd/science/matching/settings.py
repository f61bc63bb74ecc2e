"""Numbers of judgement of the search for phases among candidates."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["MatchSettings"]


@dataclass(frozen=True, slots=True)
class MatchSettings:
    """How far a candidate may be from the data, and when it counts as found.

    Args:
        cell_relative: largest relative change of the cell lengths that is tried; solid solution and thermal expansion
            move a length by 1 to 2 % (Vegard); more is another compound, or another structure determination.
        smear_relative: blur of the d-axis, for cells whose axes changed unlike one another.
        shift_deg: half range of the common shift (specimen displacement or zero); 0.3 degrees is 0.5 mm at 200 mm.
        shift_step_fwhm: step of the shift, in FWHM.
        model_error: share of the net intensity that texture, grain statistics and approximate structures may be wrong
            by; it keeps strong lines from ruling and weighs missing lines most.
        window_deg, window_fwhm: half length of the background's clipping, whichever is more.
        least_explained: share of the weighted signal that the first phase must explain; below, no candidate is in it.
        least_gain: share of what is left unexplained that a further phase must take away to be tried.
        strong_line: height relative to the pattern's highest from which a line left over says that a phase is missing.
        least_seen: share of a phase's expected own intensity that must be there.
        sure_seen: the same, from which a phase is there although the criterion alone would not decide, with at least
            ``sure_lines`` lines of its own.
        line_seen: share of a line's expected intensity from which it counts as seen.
        line_floor: lines expected above this many sigma (model error included) are looked for.
        beside: squared cosine between two candidates' patterns, cells adjusted, above which no set holds both: the
            second of two isotypic phases takes up what the profile of the first leaves. A refinement may still add it.
        alike: cosine between two candidates' patterns, cells adjusted, from which they stand for one another.
        prefer_small: what a shift or strain at its limit costs in explained share: of equal explanations the smaller
            change is meant.
        shift_phases: phases taken together while the common shift is sought.
        decisive: difference of the criterion from which one set counts as better (Kass & Raftery 1995,
            doi:10.1080/01621459.1995.10476572: above 10 is very strong).
        same: the same, from which no powder pattern of this quality tells them apart.
        rival: the same, from which one is tried in the place of the other.
        beam: sets kept at each size. Sizes up to ``most_phases``.
        grid: points of the axis.
    """

    cell_relative: float = 0.015
    smear_relative: float = 0.001
    shift_deg: float = 0.35
    shift_step_fwhm: float = 0.5
    model_error: float = 0.2
    window_deg: float = 1.5
    window_fwhm: float = 6.0
    least_explained: float = 0.1
    least_gain: float = 0.04
    strong_line: float = 0.1
    least_seen: float = 0.5
    sure_seen: float = 0.85
    sure_lines: int = 8
    line_seen: float = 0.35
    line_floor: float = 2.0
    beside: float = 0.6
    alike: float = 0.9
    prefer_small: float = 0.01
    shift_phases: int = 3
    decisive: float = 10.0
    same: float = 0.995
    rival: float = 0.5
    beam: int = 4
    most_phases: int = 5
    grid: int = 1 << 14
