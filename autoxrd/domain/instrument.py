"""What is an instrument here: radiation, geometry, and the profile it adds to each line."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from autoxrd.domain.pattern import Notice

__all__ = ["ANODE_LINES", "EmissionLine", "FlightBank", "Geometry", "Instrument", "Profile", "Radiation"]


class Radiation(StrEnum):
    """What is diffracted."""

    XRAY = "xray"
    NEUTRON = "neutron"


class Geometry(StrEnum):
    """Specimen geometry; it decides the law of the specimen displacement."""

    BRAGG_BRENTANO = "bragg_brentano"
    DEBYE_SCHERRER = "debye_scherrer"


@dataclass(frozen=True, slots=True)
class EmissionLine:
    """One wavelength of the beam: angstrom, and intensity relative to the first line."""

    wavelength_angstrom: float
    relative_intensity: float = 1.0


ANODE_LINES: dict[str, tuple[EmissionLine, EmissionLine]] = {
    # Hoelzer et al. (1997), Phys. Rev. A 56, 4554, doi:10.1103/PhysRevA.56.4554 (Cr Mn Fe Co Ni Cu);
    # Mo and Ag: International Tables for Crystallography C (2004), table 4.2.2.4.
    "Cr": (EmissionLine(2.2897260), EmissionLine(2.2936510, 0.5)),
    "Fe": (EmissionLine(1.9360410), EmissionLine(1.9399730, 0.5)),
    "Co": (EmissionLine(1.7889960), EmissionLine(1.7928350, 0.5)),
    "Cu": (EmissionLine(1.5405929), EmissionLine(1.5444274, 0.5)),
    "Mo": (EmissionLine(0.70931715), EmissionLine(0.7136070, 0.5)),
    "Ag": (EmissionLine(0.55942178), EmissionLine(0.5638131, 0.5)),
}


@dataclass(frozen=True, slots=True)
class Profile:
    """Thompson-Cox-Hastings pseudo-Voigt widths, all as FWHM in degrees 2theta.

    Gaussian: ``H_G^2 = u tan^2(theta) + v tan(theta) + w`` (deg^2);
    Lorentzian: ``H_L = x / cos(theta) + y tan(theta)`` (deg; the GSAS letters);
    axial divergence: Finger-Cox-Jephcoat ratios ``s_l`` and ``h_l`` (dimensionless).
    Thompson, Cox & Hastings (1987), doi:10.1107/S0021889887087090;
    Finger, Cox & Jephcoat (1994), doi:10.1107/S0021889894004218.
    """

    u: float = 0.0
    v: float = 0.0
    w: float = 0.0
    x: float = 0.0
    y: float = 0.0
    s_l: float = 0.0
    h_l: float = 0.0


@dataclass(frozen=True, slots=True)
class FlightBank:
    """Calibration of one bank of detectors of a neutron time-of-flight diffractometer; GSAS's letters.

    Position: ``TOF = dif_c d + dif_a d^2 + dif_b / d + zero`` (microseconds, d in angstrom).
    Shape: a pseudo-Voigt convoluted with two exponentials of rise ``alpha / d`` and decay
    ``beta_0 + beta_1 / d^4 + beta_q / d^2`` (1/microseconds); Gaussian variance
    ``sig_0 + sig_1 d^2 + sig_2 d^4 + sig_q d`` (microseconds^2), Lorentzian width ``x d + y d^2 + z``
    (microseconds). Von Dreele, Jorgensen & Windsor (1982), doi:10.1107/S0021889882012722;
    Toby & Von Dreele (2013), doi:10.1107/S0021889813003531.

    Args:
        two_theta_deg: scattering angle of the bank.
        path_m: moderator to specimen to detector.
    """

    two_theta_deg: float
    path_m: float
    dif_c: float
    dif_a: float = 0.0
    dif_b: float = 0.0
    zero: float = 0.0
    alpha: float = 1.0
    beta_0: float = 0.0
    beta_1: float = 0.0
    beta_q: float = 0.0
    sig_0: float = 0.0
    sig_1: float = 0.0
    sig_2: float = 0.0
    sig_q: float = 0.0
    x: float = 0.0
    y: float = 0.0
    z: float = 0.0


@dataclass(frozen=True, slots=True)
class Instrument:
    """A diffractometer: of constant wavelength, or one bank of a time-of-flight instrument (``flight``).

    Args:
        lines: emission lines, strongest first; none for time of flight.
        polarization: fraction K of the radiation polarised perpendicular to the diffraction
            plane term, ``K + (1 - K) cos^2(2theta)``; 0.5 for an unpolarised beam.
        goniometer_radius_mm: None where unknown.
        profile: starting widths; None when nothing is known (the widths are then seeded from the data).
        profile_calibrated: True where the widths come from a calibration of this instrument, so
            that further broadening belongs to the specimen.
        zero_deg: starting zero offset, degrees 2theta, added to calculated positions.
        origin: where all of it came from, for the report.
        flight: calibration of a time-of-flight bank; None for constant wavelength.
    """

    radiation: Radiation
    geometry: Geometry
    lines: tuple[EmissionLine, ...]
    polarization: float = 0.5
    goniometer_radius_mm: float | None = None
    zero_deg: float = 0.0
    profile: Profile | None = None
    profile_calibrated: bool = False
    origin: str = ""
    notices: tuple[Notice, ...] = field(default=())
    flight: FlightBank | None = None

    @property
    def wavelengths_angstrom(self) -> tuple[float, ...]:
        """Wavelengths of all lines, angstrom, strongest first."""
        return tuple(line.wavelength_angstrom for line in self.lines)
