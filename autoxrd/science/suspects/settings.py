"""Numbers of judgement of the search for causes that no parameter can mend."""

from __future__ import annotations

from dataclasses import dataclass, field

from autoxrd.science.matching.settings import MatchSettings

__all__ = ["SuspectSettings"]


@dataclass(frozen=True, slots=True)
class SuspectSettings:
    """When another wavelength or magnetic order is suspected.

    Args:
        match: tolerances of the matches with another wavelength; the cell may have walked away meanwhile.
        wavelength_explained: share of the signal that the phases must explain with the other wavelength.
        wavelength_excess: and by how much more than with the stated one.
        wavelength_lines: with at least so many lines of their own to be seen.
        magnetic_s_max: sin(theta)/lambda, 1/angstrom, up to which magnetic lines are looked for: the magnetic form
            factor of a 3d ion has fallen to a fifth there (International Tables C, 2004, 4.4.5).
        magnetic_tolerance: relative error of d within which a line is indexed.
        magnetic_shift_deg: or error of its angle, degrees 2theta: axial divergence moves a line at low angles by a part
            of its width (Finger, Cox & Jephcoat 1994, doi:10.1107/S0021889894004218), and neutron lines are broad.
        foot_deg: a line this near a stronger one is its foot.
        widest_deg: widest line, degrees, that the matches count on.
        magnetic_share: share of the unexplained area up to there that must be indexed.
        magnetic_chance: largest probability that the strongest line is indexed by chance.
    """

    match: MatchSettings = field(
        default_factory=lambda: MatchSettings(cell_relative=0.05, shift_deg=0.2, shift_step_fwhm=1.0, beam=1)
    )
    wavelength_explained: float = 0.15
    wavelength_excess: float = 0.1
    wavelength_lines: int = 6
    magnetic_s_max: float = 0.25
    magnetic_tolerance: float = 0.004
    magnetic_shift_deg: float = 0.06
    foot_deg: float = 0.3
    widest_deg: float = 0.4
    magnetic_share: float = 0.6
    magnetic_chance: float = 0.1
