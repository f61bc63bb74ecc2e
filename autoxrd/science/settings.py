"""Thresholds of the measures and limits of the checks: data with a source, never literals in code."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = [
    "BackgroundSettings",
    "IntensitySettings",
    "Limits",
    "MeasureSettings",
    "PositionSettings",
    "ReflectionSettings",
    "ShareSettings",
    "StatisticsSettings",
    "UnexplainedSettings",
]


@dataclass(frozen=True, slots=True)
class StatisticsSettings:
    """Of the global statistics (DESIGN section 7)."""

    mad_to_sigma: float = 1.4826
    """Normal-consistent factor of the median absolute deviation."""
    structured_z: float = 5.0
    """|z| from which a point counts as structured."""
    structured_run: int = 2
    """Shortest contiguous same-sign run that counts; one point alone is an outlier, not structure."""
    engine_rwp_tolerance: float = 0.01
    """Relative difference between the engine's Rwp and ours that is told."""


@dataclass(frozen=True, slots=True)
class ReflectionSettings:
    """Of the local projections of the residual on the derivatives of a calculated peak."""

    window_fwhm: float = 2.0
    """Half width of the window on which a peak is fitted, in FWHM beyond its outermost lines."""
    line_fwhm: float = 3.0
    """Half width on which a line is evaluated; a Gaussian is complete, a Lorentzian 90 % inside."""
    tail_fwhm: float = 8.0
    """Half width on which the change of a moved or widened line is evaluated."""
    same_fwhm: float = 0.01
    """Moves of less than this many FWHM, and relative changes of width, are not worth evaluating."""
    merge_fwhm: float = 0.5
    """Reflections closer than this are one peak: they cannot be told apart (sharing one shift and one width)."""
    line_group_relative: float = 0.01
    """Lines of one reflection whose wavelengths differ by less belong to one peak (Ka1 and Ka2, not Kb)."""
    height_floor: float = 1e-3
    """Reflections lower than this share of the highest are part of no measured peak."""
    min_purity: float = 0.6
    """Smallest share of the calculated intensity under a peak that is its own."""
    max_ratio_esd: float = 0.5
    """Largest esd of an intensity ratio, in units of the ratio or of 1, for it to mean anything."""
    min_snr: float = 6.0
    """Smallest area over its esd (misfit included) for a peak to be used."""
    max_offset_fwhm: float = 0.6
    """Beyond this the first-order projection on dy/dx is not valid (the residual lobes of a Gaussian meet at 0.85)."""
    min_free_points: int = 4
    """Points beyond the number of local parameters that a window must have."""
    condition_ridge: float = 1e-9
    """Relative ridge on local normal matrices, so that an absent neighbour is no singularity."""


@dataclass(frozen=True, slots=True)
class PositionSettings:
    """Of the joint fit of position laws."""

    min_reflections: int = 3
    """Fewest peaks for any position statement."""
    min_per_phase: int = 2
    """Fewest peaks of a phase for its own cell term."""
    own_share: float = 0.9
    """Smallest share of a peak's intensity by which it speaks for one phase."""
    cause_price: float = 9.0
    """chi2 that a cause must take away to be named (3 sigma)."""
    extra_price: float = 2.4
    """The same for each further term of an anisotropic cell: 3 sigma of chi2 on n degrees rises by that per degree."""
    rival_margin: float = 9.0
    """Another set of causes whose priced chi2 is within this cannot be told apart from the best."""
    cancelling: float = 3.0
    """Causes of which one contributes more than this many times what all together do cancel one another: a residual
    shape that three smooth laws happen to mimic, not a set of errors."""
    unlikely_price: float = 16.0
    """Added for a capillary's offset where no goniometer radius is known: at a synchrotron it does not exist."""
    max_separate_phases: int = 4
    """Up to so many phases any subset of cells may be off; beyond, all cells are one cause with a term per phase."""
    rebase_fwhm: float = 0.02
    """Rms of the fitted shift, in FWHM, beyond which the model is moved and the peaks measured again. To second order
    a shift of f FWHM looks like a width error of about 3 f^2: 0.1 % here."""
    rebase_significance: float = 4.0
    """sqrt of the chi2 improvement that the laws must bring before the model is moved."""
    large_shift_fwhm: float = 0.2
    """Beyond it widths are not adjusted in the same cycle."""
    rewiden: float = 0.06
    """Rms of the fitted ln(width) error beyond which the model is widened and measured again."""
    rebase_cycles: int = 4
    coarse_zero_deg: float = 1.0
    """Half range of the coarse search for a zero or displacement amplitude."""
    coarse_cell_relative: float = 0.03
    """Half range of the coarse search for an isotropic cell error."""
    in_place_share: float = 0.8
    """No coarse search is made when at least this share of the calculated intensity is found near its place."""
    lost_share: float = 0.5
    """A phase of which less than this share of the calculated intensity is found in place has its cell searched."""
    coarse_gof: float = 1.1
    """GoF below which no coarse search is made: nothing large is wrong."""
    coarse_gain: float = 0.10
    """Relative gain in explained signal that a coarse shift must bring."""
    coarse_min_explained: float = 0.05
    """Smallest explained share of the net pattern after a coarse shift."""
    coarse_min_fwhm: float = 0.4
    """Smallest coarse shift, in FWHM; below it the local projection is valid."""


@dataclass(frozen=True, slots=True)
class UnexplainedSettings:
    """Of the search for residual peaks that no reflection explains."""

    detect_z: float = 4.5
    """Matched-filter significance against counting noise; 0.03 false peaks per 10 000 independent places."""
    companion_z: float = 3.5
    """The same once at least ``companion_after`` peaks stand above ``detect_z``: a missing phase has weak lines too."""
    companion_after: int = 3
    accept_z: float = 4.0
    """Area over esd in a local fit that also frees scale, shift, width and skew of the calculated peaks nearby."""
    core_fwhm: float = 0.6
    """Half width of the box filter, FWHM."""
    separation_fwhm: float = 0.75
    """Closest two unexplained peaks."""
    exclusion_fwhm: float = 0.5
    exclusion_steps: float = 2.0
    """Closest to a calculated reflection: max(0.5 FWHM, 2 steps) (DESIGN section 7)."""
    pair_reach_fwhm: float = 3.0
    """Reach around a reflection in which a positive and a negative lobe are one pair."""
    pair_share: float = 0.5
    """Share of the positive lobe's significance that its mirror image must have to be one."""
    area_excess: float = 1.5
    """A fitted area may exceed what the residual shows as it is by this much; beyond, it comes from what is fitted
    beside it, not from a peak."""
    fit_fwhm: float = 4.0
    """Half width of the local fit."""
    tail_tolerance: float = 0.10
    """Shape misfit allowed around a calculated line, as a share of a Lorentzian of its height and FWHM: the difference
    of a Gaussian and a Lorentzian tail is all of it, so 0.1 is an error of 0.1 in the Lorentzian fraction."""
    axial_tolerance: float = 0.5
    """The same on the side where axial divergence puts a tail, within its reach."""
    axial_ratio: float = 0.1
    """Largest (S + H) / L for that reach, (S + H)^2 / (2 L^2) |cot 2theta| radians towards low angle, beyond 90 degrees
    towards high (Finger, Cox & Jephcoat 1994, doi:10.1107/S0021889894004218)."""
    baseline_fwhm: float = 20.0
    """Length of the pieces on which the residual's slow part is taken."""
    rounds: int = 4
    """Searches; each one takes off what the earlier ones found."""
    curve_fwhm: float = 15.0
    """Half width on which a found peak is taken off, tails included."""
    eta: float = 0.5
    """Lorentzian fraction of a peak where no calculated line tells."""
    max_peaks: int = 400
    missing_ratio: float = 0.35
    """A calculated peak of which less than this share is observed, within two esd, is missing."""
    missing_scale_floor: float = 0.05
    """A phase whose intensities are all below this share of the calculated is absent, not badly scaled."""
    jacobi_cycles: int = 6
    presence_esd: float = 3.0
    """A scale below this many esd does not show its phase: the usual limit of detection."""
    own_line_share: float = 0.9
    """Smallest share of a peak's intensity by which it is a phase's own line."""
    expected_z: float = 3.0
    """A line is expected to be seen when its calculated intensity is this many times its uncertainty."""
    absent_share: float = 0.5
    """Share of the intensity of a phase's own lines that must be missing for it to be absent."""


@dataclass(frozen=True, slots=True)
class IntensitySettings:
    """Of the logarithms of observed over calculated intensity."""

    own_share: float = 0.9
    """Smallest share of a peak's intensity by which it speaks for one phase."""
    floor: float = 1e-3
    """Relative uncertainty below which no intensity is believed."""
    min_peaks: int = 4
    """Fewest peaks for a trend."""
    min_texture_peaks: int = 6
    """Fewest peaks for a texture beside scale and trend."""
    texture_scatter: float = 1.0
    """Scatter of the ln ratios, in standard deviations of chi2 beyond its expectation, from which texture is tried."""
    texture_margin: float = 4.0
    """Scaled chi2 within which a simpler axis is preferred: to first order all axes of a uniaxial crystal are alike."""
    smallest_ratio: float = 1e-3
    """A phase observed with less than this share of its calculated intensity is absent."""


@dataclass(frozen=True, slots=True)
class ShareSettings:
    """Of the share of the observed intensity that is a phase's."""

    lines: int = 12
    """Strongest lines of a phase that are looked at."""
    min_lines: int = 3
    """With fewer peaks that stand on their own, its lines are fitted one by one."""
    own_share: float = 0.9
    """Smallest share of a peak's intensity by which it speaks for one phase."""
    seen_sigmas: float = 3.0
    """A share below this many esd is compatible with nothing..."""
    largest_hidden: float = 0.05
    """...and the phase is absent if two esd more would still be less than this share of the intensity, or less than
    the share that is unexplained."""


@dataclass(frozen=True, slots=True)
class BackgroundSettings:
    """Of the residual's slow part between peaks."""

    below_sigma: float = 0.5
    """A channel lies away from peaks when the calculated Bragg intensity is below this many sigma."""
    lowest_share: float = 0.2
    """Where too few channels do, the lowest share of them stands in..."""
    at_most_sigma: float = 3.0
    """...if their calculated Bragg intensity is below this many sigma."""
    piece_fwhm: float = 15.0
    min_points: int = 20
    min_pieces: int = 4
    clip_sigma: float = 3.0


@dataclass(frozen=True, slots=True)
class MeasureSettings:
    """All thresholds of the measures."""

    statistics: StatisticsSettings = field(default_factory=StatisticsSettings)
    reflections: ReflectionSettings = field(default_factory=ReflectionSettings)
    positions: PositionSettings = field(default_factory=PositionSettings)
    unexplained: UnexplainedSettings = field(default_factory=UnexplainedSettings)
    intensities: IntensitySettings = field(default_factory=IntensitySettings)
    shares: ShareSettings = field(default_factory=ShareSettings)
    background: BackgroundSettings = field(default_factory=BackgroundSettings)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of the plausibility checks (DESIGN section 8), each with its source.

    ``hard`` violations keep a state from being accepted, ``soft`` ones are told.
    """

    cell_length_relative: float = 0.05
    """Hard. Heating by 1000 K moves a length by 1 to 2 %, solid solution by a few (Vegard); 5 % is another compound."""
    cell_length_warn: float = 0.02
    """Soft."""
    cell_angle_deg: float = 5.0
    """Hard."""
    occupancy_tolerance: float = 1e-4
    """Beyond [0, 1] by less is rounding; by less than ``esd_sigmas`` esd is soft; by more is hard."""
    esd_sigmas: float = 3.0
    same_site_angstrom: float = 0.2
    """Atoms closer than this share one site."""
    uiso_max: float = 0.15
    """Hard, angstrom^2: B = 12, beyond it an ordered atom scatters nothing at d < 1.5 (ITC C, 6.1.1)."""
    distance_factor: float = 0.65
    """Hard: shortest distance as a share of the sum of covalent radii (Cordero et al. 2008, doi:10.1039/b801115j).
    The shortest real bonds are uranyl U=O at 0.67 and N-N triple at 0.77."""
    distance_occupancy: float = 1.05
    """Two atoms whose occupancies sum to no more exclude one another: disorder, not contact."""
    coincident_occupancy: float = 1.5
    """Two atoms on one site are also a distance violation when their occupancies sum to more than this."""
    imaginary_share: float = 0.3
    """Soft up to here: an imaginary Gaussian width, as share of the Lorentzian width at the same place, that changes
    the total width by less than a twentieth (Thompson, Cox & Hastings 1987, doi:10.1107/S0021889887087090)."""
    width_floor_steps: float = 1.0
    """Hard: a FWHM below one step is no peak."""
    width_warn_steps: float = 2.0
    """Soft: McCusker et al. (1999), doi:10.1107/S0021889898009856, ask for at least five steps per FWHM."""
    size_min_nm: float = 1.5
    """Hard: two or three unit cells do not diffract as a crystal."""
    strain_max_percent: float = 5.0
    """Hard, on the full-width scale (d/d of the FWHM)."""
    texture_hard: tuple[float, float] = (0.1, 5.0)
    texture_warn: tuple[float, float] = (0.4, 2.0)
    """March-Dollase r (Dollase 1986, doi:10.1107/S0021889886089458); outside the soft range the model is doubtful."""
    background_sigmas: float = 3.0
    background_share: float = 0.005
    """Hard: share of points where the background lies below zero by more than ``background_sigmas``."""
    bound_relative: float = 1e-6
    bound_esds: float = 1e-3
    """Hard: a parameter this near its bound, relative to the bound itself or in esds, lies on it."""
    fraction_sum_tolerance: float = 0.005
    ghost_ratio: float = 3.0
    """Hard: weight fraction over that which the phase's intensity, weighted by its scattering power, supports."""
    ghost_min_fraction: float = 0.02
    significance_min: float = 3.0
    """Soft: a scale below this many esd is no proof of a phase."""
    overlap_share: float = 0.05
    """Soft: smallest share of a phase's calculated intensity that stands free of other phases."""
    correlation_listed: float = 0.9
    """Correlations from here on are listed."""
    correlations_kept: int = 20
