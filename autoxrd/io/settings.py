"""Which limits decide whether a file can be used: one place, with the reason for each."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "DEFAULT_CIF_SETTINGS",
    "DEFAULT_INSTRUMENT_SETTINGS",
    "DEFAULT_READ_SETTINGS",
    "CifSettings",
    "InstrumentSettings",
    "ReadSettings",
]


@dataclass(frozen=True, slots=True)
class ReadSettings:
    """Thresholds of the pattern readers, version 1.

    Args:
        max_bytes: larger files are refused unread; the largest detector dumps of powder beamlines are below it.
        max_points: more points than this are not a one-dimensional powder pattern.
        min_points: fewer cannot hold a background and one resolved peak (McCusker et al. 1999,
            doi:10.1107/S0021889898009856, ask for 5 to 10 steps across each half width).
        min_range_deg: a shorter range of 2theta holds no two orders of a reflection, whatever the wavelength.
        max_header_lines: text before the first row of numbers; longer texts are not a pattern.
        max_negative_fraction: a measured intensity is a count; more negative points than this
            mean that a background was subtracted or that the column is something else.
        noise_lag1: lag-1 autocorrelation below which neighbouring points share nothing.
        noise_excess: variance of the intensities over their mean counting variance above which
            a pattern with no autocorrelation cannot be a flat measurement: it is scrambled.
        noise_cut_fraction: share of the highest points that is cut to a common height before that judgement.
        noninteger_fraction: share of non-integer intensities above which ``sqrt(y)`` is doubtful.
        padding_level: mean intensity before a run of trailing zeros above which the zeros are
            filling of the last record, not counts (Poisson probability of one zero < 1e-8).
        max_dead_fraction: largest share of points with intensity 0 and uncertainty 0 that dead detector
            cells explain.
        esd_ratio_max: median of third column over intensity above which it cannot be an uncertainty
            (a point with fewer than four counts reaches 0.5).
        esd_slope_min, esd_slope_max: slope of log(third column) on log(intensity) that an
            uncertainty shows: 0.5 for counting statistics, less with an added background term, 1 for
            a constant relative error.
        esd_dynamic_range: ratio of high to low intensity decile below which that slope says nothing;
            the column is then judged by ``esd_flat_ratio`` alone.
        esd_flat_ratio: largest factor between the column and ``sqrt(y)`` where the slope says nothing.
    """

    max_bytes: int = 100_000_000
    max_points: int = 2_000_000
    min_points: int = 50
    min_range_deg: float = 2.0
    max_header_lines: int = 500
    max_negative_fraction: float = 0.25
    noise_lag1: float = 0.1
    noise_excess: float = 10.0
    noise_cut_fraction: float = 0.01
    noninteger_fraction: float = 0.01
    padding_level: float = 20.0
    max_dead_fraction: float = 0.05
    esd_ratio_max: float = 0.5
    esd_slope_min: float = 0.25
    esd_slope_max: float = 1.1
    esd_dynamic_range: float = 1.5
    esd_flat_ratio: float = 5.0


DEFAULT_READ_SETTINGS = ReadSettings()


@dataclass(frozen=True, slots=True)
class CifSettings:
    """Thresholds of the structure reader, version 1.

    Args:
        max_bytes: larger files are refused; a structure with its powder profile stays below it.
        max_atoms: sites per structure beyond which a powder refinement is out of reach.
        min_cell_angstrom: shorter edges than this hold no atom.
        snap_tolerance: change of a fractional coordinate that rounding to three digits explains.
        cell_length_tolerance: relative misfit of a cell length to the symmetry that rounding explains.
        cell_angle_tolerance_deg: misfit of a cell angle to the symmetry that rounding explains.
        occupancy_tolerance: excess over 1 of a site's occupancies that rounding explains.
        same_site_angstrom: sites nearer than this are one site.
        short_contact_ratio: distance over the sum of covalent radii (Cordero et al. 2008,
            doi:10.1039/b801115j) below which two full atoms are too close.
    """

    max_bytes: int = 50_000_000
    max_atoms: int = 5000
    min_cell_angstrom: float = 1.5
    snap_tolerance: float = 1e-3
    cell_length_tolerance: float = 1e-3
    cell_angle_tolerance_deg: float = 0.05
    occupancy_tolerance: float = 1e-3
    same_site_angstrom: float = 0.1
    short_contact_ratio: float = 0.9


DEFAULT_CIF_SETTINGS = CifSettings()


@dataclass(frozen=True, slots=True)
class InstrumentSettings:
    """Defaults of the instrument where nothing is said, version 1.

    Args:
        max_bytes: larger instrument files are refused.
        laboratory_line_tolerance: relative distance from the K-alpha lines of a tube within which a
            wavelength is a laboratory one (tables differ by 6e-5; other sources choose freely).
        neutron_min_wavelength_angstrom, neutron_min_fwhm_deg: where nobody states the radiation and the
            wavelength is that of no tube, it is taken as neutrons when both are exceeded. Constant-wavelength
            neutron lines are 0.2 to 0.6 degrees wide, synchrotron lines of the same wavelengths a tenth of it.
        wavelength_conflict: relative difference of two statements of one wavelength worth a notice.
        unpolarised: fraction K of an unpolarised beam.
        synchrotron_polarization: fraction K of a bending magnet or undulator, diffracting vertically, where
            the file does not say (0.95 to 0.99 in use).
        dummy_uvw: the GU, GV, GW of the template files shipped with GSAS and GSAS-II, centidegrees^2:
            no calibration.
        lorentz_range_deg: range of 2theta over which a constant Lorentzian width is re-expressed.
    """

    max_bytes: int = 2_000_000
    laboratory_line_tolerance: float = 1e-4
    neutron_min_wavelength_angstrom: float = 1.0
    neutron_min_fwhm_deg: float = 0.15
    wavelength_conflict: float = 2e-4
    unpolarised: float = 0.5
    synchrotron_polarization: float = 0.95
    dummy_uvw: tuple[float, float, float] = (2.0, -2.0, 5.0)
    lorentz_range_deg: tuple[float, float] = (10.0, 140.0)


DEFAULT_INSTRUMENT_SETTINGS = InstrumentSettings()
