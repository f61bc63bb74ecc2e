"""Which numbers does the expert judge by? One table, each with what it means and where it comes from."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Thresholds"]


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Numbers of judgement of the rules planner.

    Args:
        gain_per_parameter: smallest drop of chi^2, in units of the reduced chi^2 and per parameter, that
            argues for a release. 4 would be two sigma for independent residuals; Rietveld residuals are
            serially correlated with factors of 2 to 4 on the esd (Berar & Lelann 1991,
            doi:10.1107/S0021889891002741), hence 4 x 2.5^2 = 25.
        promised_price: an action must be expected to raise the utility by this many times the price of
            its parameters.
        relative_drop: smallest relative drop of chi^2 worth a step (Rwp moves by half of it).
        feature_significance: |value|/esd from which a residual feature counts as seen.
        fraction_promised: share of the Gauss-Newton gain that an action promises; the linear
            estimate is an upper bound on a curved surface.
        fraction_rwp: share of the Rwp fall expected from that gain that an action promises.
        phase_share: intensity share below which a phase keeps coordinates and displacement parameters fixed.
        ruling_share: intensity share from which a phase among others is refined as if it were alone. Below, its
            occupancies stay as given, and its atoms within `atom_move`: they make up for texture, rough surfaces and
            coarse grains as far as they can, and take the scale factors with them. For fractions, structures that
            are known stay as they are (Hill & Howard 1987, doi:10.1107/S0021889887086199; Madsen et al. 2001,
            doi:10.1107/S0021889801007476).
        atom_move: how far from where its structure has it an atom of such a phase may go along each axis, angstrom:
            what an old determination of a light atom may be wrong by. One that wants to go further is held.
        linear_rms: rms offset of the lines in FWHM up to which the gains of shifts can be trusted; beyond, the
            measured offsets are (the lobes of a shifted Gaussian leave the linear range at about half a FWHM).
        far_rms: rms offset of the lines in FWHM beyond which no release reaches them: a line has no gradient towards a
            place that it does not overlap.
        placed_rwp: share of Rwp that bringing the lines in promises to take away, at least.
        dominance: an option of a later group that promises this many times more goes first, once the lines
            are placed.
        most_terms: background coefficients beyond which no more are asked for; with 24 terms the shortest
            wave is a tenth of the range, still far wider than a line.
        halo_over_terms: a broad peak is asked for in the place of further background terms where it gains this many
            times more per parameter. It is one of many places and widths, which flatters it; terms are what they are.
        halo_share: share of chi^2 that it must take away: a weak maximum near strong lines may be the feet of these,
            and a fit that starts there ends elsewhere (RbNb2O5F with a share of 0.05: Rwp 2.76 in place of 2.44 %).
        halo_unexplained: unexplained-peak ratio above which there is none: lines that nobody calculated, close to each
            other, look like a halo.
        most_humps: broad peaks beyond which no more are asked for.
        retries: a release refused this often on one path is not tried again.
        retry_share: a refused release is tried again from a later state while its gain is at least this
            share of what it was.
        rival_evidence: difference of the Bayesian information criterion (Kass & Raftery 1995,
            doi:10.1080/01621459.1995.10476572: above 10 is very strong) below which two position models
            count as not told apart.
        usual_zero: standard deviation of the zero offset of an aligned diffractometer, degrees (Jenkins & Snyder 1996,
            Introduction to X-ray Powder Diffractometry, section 8.3). Zero and displacement hardly differ in what they
            do to lines, so that what is known beforehand must count: one of 3 deviations must fit better by 9.
        usual_displacement: the same of the height of a specimen mounted by hand, mm (section 9.2).
        usual_radius: goniometer radius where none is given, mm, as in the engines.
        cell_esds: a cell length that changes by more esds than this with the position model is told as ambiguous.
        atoms_apart: excess gain, in units of the reduced chi^2 and per further parameter, from which the atoms of a
            phase among others get displacement parameters of their own. Four times `gain_per_parameter`: in a
            mixture they trade intensity with the scale factor, so that what they gain must be beyond doubt.
        serial_inflation: factor on esds from serial correlation; N / factor^2 points count as independent.
    """

    gain_per_parameter: float = 25.0
    promised_price: float = 1.5
    relative_drop: float = 1e-3
    feature_significance: float = 5.0
    fraction_promised: float = 0.3
    fraction_rwp: float = 0.2
    phase_share: float = 0.10
    ruling_share: float = 0.80
    atom_move: float = 0.1
    linear_rms: float = 0.3
    far_rms: float = 1.0
    placed_rwp: float = 0.05
    dominance: float = 4.0
    most_terms: int = 24
    halo_over_terms: float = 1.5
    halo_share: float = 0.1
    halo_unexplained: float = 0.05
    most_humps: int = 2
    retries: int = 3
    retry_share: float = 0.2
    rival_evidence: float = 10.0
    usual_zero: float = 0.02
    usual_displacement: float = 0.1
    usual_radius: float = 217.5
    cell_esds: float = 3.0
    atoms_apart: float = 100.0
    serial_inflation: float = 2.5
