"""Thresholds of the measures and limits of the checks: data with a source, never literals in code."""

from __future__ import annotations

from dataclasses import dataclass, field

from autoxrd.science.lattice_settings import LatticeSettings

__all__ = [
    "BackgroundSettings",
    "HaloSettings",
    "IntensitySettings",
    "LatticeSettings",
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
    coarse_zero_fwhm: float = 20.0
    """The same over the time of flight, in median FWHM."""
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

    steps_per_fwhm: float = 5.0
    """Channels are taken together as long as a peak keeps so many; a pattern should have five to ten (McCusker et al.
    1999, doi:10.1107/S0021889898009856)."""
    filter_parts: int = 12
    """Ranges with one matched filter each; the peak width is that of the range's middle."""
    filter_fwhm: float = 1.5
    """Reach of the filter on either side of a peak's lines; 97 to 99.9 % of the square of the shape lies inside."""
    false_alarms: float = 1e-3
    """Mean number of noise peaks in a search that pass as the first peak of a missing phase."""
    companion_z: float = 4.0
    """Significance of the filtered residual from which further peaks are tried once there is one."""
    breadth_z: float = 8.0
    """Significance of peaks from which their common width is taken."""
    breadth_least: float = 0.1
    """Difference of ln width from that of the calculated lines that is worth another fit (2 % of an area)."""
    breadth_most: float = 1.0
    """Largest difference that is believed: a factor 2.7."""
    accept_z: float = 4.0
    """Area over esd in a local fit that also frees scale, shift, width and skew of the calculated peaks nearby."""
    core_fwhm: float = 0.6
    """Half width on which a fitted area must show in the residual as it is."""
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
    """Half width of the local fits."""
    tail_tolerance: float = 0.10
    """Shape misfit allowed around a calculated line, as a share of a Lorentzian of its height and FWHM: the difference
    of a Gaussian and a Lorentzian tail is all of it, so 0.1 is an error of 0.1 in the Lorentzian fraction."""
    smooth_share: float = 1.0
    """Smooth misfit allowed around a calculated line, as a share of the same Lorentzian: all of it."""
    bend_share: float = 0.4
    bend_z: float = 4.0
    """What does not keep this share of its area, and significance, beside a parabola within such a misfit bends less
    than a peak: it is a tail, of axial divergence for one, or a hump. A peak twice as broad as assumed keeps a half."""
    repeat_factor: float = 2.0
    """A bump must be this many times higher than what the neighbours of its line show at the same distance in FWHM."""
    repeat_fwhm: float = 10.0
    """Largest distance from its line at which a bump can be a misfit of that line."""
    repeat_neighbours: int = 5
    """The nearest lines are asked, of those that would show it; the median tells."""
    repeat_least: float = 0.2
    """Where neighbours show this share of a bump's height..."""
    axial_ratio: float = 0.1
    """...it may be a tail of axial divergence with (S + H) / L up to this, which laboratory slits reach (Finger, Cox &
    Jephcoat 1994, doi:10.1107/S0021889894004218)."""
    axial_alike: float = 1.5
    axial_share: float = 0.5
    """A line may have this share of such a tail where no neighbour at lower angle, or up to that many times its angle,
    would show it: the tail's length falls as cot(2theta)."""
    misfit_windows: int = 60
    """Strongest calculated peaks on which the misfit of the calculated shape is measured."""
    misfit_neighbours: int = 9
    """Of these, the nearest ones speak for a place; up to four of nine may be spoilt by unknown peaks."""
    misfit_floor: tuple[float, ...] = (0.005, 0.003, 0.005, 0.005, 0.01, 0.01)
    """Least spread of scale, shift (FWHM), ln width, skew and Lorentzian fraction (low, high) from line to line."""
    misfit_unknown: tuple[float, ...] = (1.0, 0.5, 0.5, 0.5, 0.5, 0.5)
    """Their spread where no other line tells: anything that a derivative can describe."""
    edge_fwhm: float = 2.0
    """Nearer to an end of the range nothing is called a peak: it may belong to a calculated line outside."""
    baseline_fwhm: float = 20.0
    """Length of the pieces on which the residual's slow part is taken."""
    first_look: float = 0.85
    """Share of the first peak's threshold below which nothing is searched for: the first look costs a peak up to a
    tenth of its significance."""
    apart_z: float = 2.5
    """Places of this significance, up or down, are no background."""
    rounds: int = 2
    """Searches; each one takes off what the earlier ones found."""
    curve_fwhm: float = 10.0
    """Half width on which a found peak is taken off, tails included."""
    eta: float = 0.5
    """Lorentzian fraction of a peak where no calculated line tells."""
    max_peaks: int = 400
    solve_cycles: int = 4
    """Solutions for overlapping peaks, each without those that came out negative before."""
    faint_z: float = 2.0
    """Maxima from here on are told apart from noise one by one; below, only their number counts."""
    hidden_z: float = 4.0
    """Significance, misfit counted in, from which the residual under a calculated line is one by itself."""
    faint_number: float = 8.5
    faint_number_spread: float = 0.62
    """Lines of a phase per factor e of intensity, median and spread of its logarithm, over the range measured:
    (sum a)^2 / sum a^2 of the powder lines of 70 structures (copper 2.8, quartz 3.9, corundum 9.5, kaolinite 32), from
    20 to 100 degrees of Cu Ka."""
    unseen_most: float = 12.0
    """Largest area of unseen lines over that of the strongest line: of the same structures the sum of all lines is 2 to
    13 times the strongest (median 4)."""
    faint_number_range: tuple[float, float] = (1.5, 60.0)
    faint_numbers: int = 10
    faint_scale_range: tuple[float, float] = (0.15, 3.0)
    faint_scales: int = 8
    """Grids of that number and of the scale c of the strongest lines, relative to the strongest seen."""
    faint_floor: float = 0.05
    faint_top: float = 4.0
    faint_areas: int = 40
    """Areas from this share of the smallest esd to this multiple of the strongest line seen."""
    missing_ratio: float = 0.35
    """A calculated peak of which less than this share is observed, within two esd, is missing."""
    missing_scale_floor: float = 0.05
    """A phase whose intensities are all below this share of the calculated is absent, not badly scaled."""
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
class HaloSettings:
    """Of a broad maximum between the lines."""

    piece_fwhm: float = 4.0
    """The residual is averaged over so many widths of a line..."""
    spare_pieces: int = 8
    """...and there are so many more pieces than terms of the polynomial."""
    narrowest_fwhm: float = 20.0
    """A halo is at least so many widths of a line wide: what is narrower may be lines or their feet."""
    narrowest_share: float = 1.0 / 30.0
    """The same as a share of the range."""
    widest_share: float = 1.0 / 4.0
    """What is wider is no bend that a low polynomial could not follow."""
    growth: float = 1.2
    """Each trial width over the one before."""
    place_step: float = 0.2
    """Trial places lie this share of a width apart."""
    least_kept: float = 0.3
    """Share of a trial's length that the polynomial that is there must leave: else height and terms trade freely."""
    least_share: float = 0.02
    """Share of chi^2 that a halo must take away to be told of."""
    least_significance: float = 25.0
    """The same over reduced chi^2 and number of parameters: four for independent residuals, times the square of 2.5 for
    serial correlation (Berar & Lelann 1991, doi:10.1107/S0021889891002741)."""


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
    halo: HaloSettings = field(default_factory=HaloSettings)
    lattice: LatticeSettings = field(default_factory=LatticeSettings)


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
