"""Are widths, specimen broadening, texture and background possible over the whole range?"""

from __future__ import annotations

import numpy as np

from autoxrd.domain.pattern import AxisKind
from autoxrd.domain.state import Violation
from autoxrd.science.checks.common import Parameters, Severity, violation
from autoxrd.science.inputs import FitArrays, MeasureContext
from autoxrd.science.settings import Limits

__all__ = ["check_background", "check_profile"]

_GRID = 256


def check_profile(result: FitArrays, parameters: Parameters, context: MeasureContext) -> list[Violation]:
    """Return ``width_imaginary``, ``width_floor``, ``size_strain_range`` and ``texture_range``."""
    found = _floor(result, context.limits)
    if context.axis is AxisKind.TWO_THETA:
        found += _imaginary(result, parameters, context.limits)
    elif context.axis is AxisKind.TOF:
        found += _imaginary_flight(result, parameters, context.limits)
    for phase in result.phases:
        found += _size_strain(phase.name, parameters, context)
        found += _texture(phase.name, parameters, context.limits)
    return found


def _imaginary(result: FitArrays, parameters: Parameters, limits: Limits) -> list[Violation]:
    """Evaluate H_G^2 and H_L of each phase, instrument included, on a grid over the range."""
    theta = np.deg2rad(np.linspace(max(float(result.x[0]), 0.1), min(float(result.x[-1]), 179.0), _GRID)) / 2.0
    tangent, secant = np.tan(theta), 1.0 / np.cos(theta)
    u, v, w = (parameters.value(f"profile.{name}") for name in "UVW")
    if not any(parameters.get(f"profile.{name}") for name in ("U", "V", "W", "X", "Y")):
        return []
    gauss = u * tangent**2 + v * tangent + w
    lorentz = parameters.value("profile.X") * secant + parameters.value("profile.Y") * tangent
    found: list[Violation] = []
    unsure = limits.esd_sigmas * _gauss_esd(result, tangent)
    for phase in result.phases:
        size, strain = (parameters.value(f"phase.{phase.name}.{part}_gauss") for part in ("size", "strain"))
        squared = gauss + np.square(size * secant) + np.square(strain * tangent)
        linear = lorentz + parameters.value(f"phase.{phase.name}.size") * secant
        linear = linear + parameters.value(f"phase.{phase.name}.strain") * tangent
        # what is compatible with nothing within its own uncertainty is nothing
        trouble = _first_trouble(np.where((squared < 0.0) & (squared >= -unsure), 0.0, squared), linear)
        if trouble is not None:
            found.append(_impossible(phase.name, trouble, squared, linear, theta, limits))
    return found


def _imaginary_flight(result: FitArrays, parameters: Parameters, limits: Limits) -> list[Violation]:
    """The same over the time of flight, from the polynomials in d of variance and Lorentzian width."""
    d = result.reflections.d_angstrom
    if not d.size:
        return []
    grid = np.linspace(float(d.min()), float(d.max()), _GRID)
    powers = {"profile.sig-0": 0, "profile.sig-1": 2, "profile.sig-2": 4, "profile.sig-q": 1}
    design = {name: grid**power for name, power in powers.items()}
    variance = np.sum([parameters.value(name) * row for name, row in design.items()], axis=0)
    unsure = limits.esd_sigmas * _esd_of(result, design, grid)
    found = []
    for phase in result.phases:
        x = parameters.value("profile.X") + parameters.value(f"phase.{phase.name}.strain")
        y = parameters.value("profile.Y") + parameters.value(f"phase.{phase.name}.size")
        lorentz = x * grid + y * grid**2 + parameters.value("profile.Z")
        known = np.where((variance < 0.0) & (variance >= -unsure), 0.0, variance)
        trouble = _first_trouble(known, lorentz)
        if trouble is not None:
            what, index = trouble
            value = float(variance[index] if what == "H_G^2" else lorentz[index])
            subject = f"phase.{phase.name}.profile"
            text = (
                f"{'The variance' if what == 'H_G^2' else what} of {subject} is {value:.3g} at d = {grid[index]:.4g}."
            )
            found.append(violation("width_imaginary", subject, text, value=value, limit=0.0, severity="hard"))
    return found


def _gauss_esd(result: FitArrays, tangent: np.ndarray) -> np.ndarray:
    """Return the esd of u tan^2 + v tan + w where these are refined, else 0; deg^2."""
    design = {"profile.U": tangent**2, "profile.V": tangent, "profile.W": np.ones_like(tangent)}
    return _esd_of(result, design, tangent)


def _esd_of(result: FitArrays, design: dict[str, np.ndarray], grid: np.ndarray) -> np.ndarray:
    """Return the esd of a sum of refined parameters times known curves, shape of the grid."""
    names = list(result.covariance_names)
    free = [name for name in design if name in names]
    if not free:
        return np.zeros_like(grid)
    rows = [names.index(name) for name in free]
    columns = np.array([design[name] for name in free])
    variance = np.einsum("ik,ij,jk->k", columns, np.asarray(result.covariance)[np.ix_(rows, rows)], columns)
    esd: np.ndarray = np.sqrt(np.maximum(variance, 0.0))
    return esd


def _impossible(
    name: str,
    trouble: tuple[str, int],
    squared: np.ndarray,
    linear: np.ndarray,
    theta: np.ndarray,
    limits: Limits,
) -> Violation:
    """A Gaussian part that is nothing beside the Lorentzian one may come out below nothing: that is told, not fatal."""
    what, index = trouble
    subject = f"phase.{name}.profile"
    at = float(np.rad2deg(2.0 * theta[index]))
    value = float(squared[index] if what == "H_G^2" else linear[index])
    small = what == "H_G^2" and bool(np.all(-squared <= np.square(limits.imaginary_share * np.maximum(linear, 0.0))))
    severity: Severity = "soft" if small and float(linear.min()) > 0.0 else "hard"
    text = f"{what} of {subject} is {value:.3g} at {at:.1f} degrees 2theta."
    return violation("width_imaginary", subject, text, value=value, limit=0.0, severity=severity)


def _first_trouble(squared: np.ndarray, linear: np.ndarray) -> tuple[str, int] | None:
    """Return what is impossible and where it is worst. H_G^2 = 0 is possible only beside a Lorentzian width."""
    if squared.min() < -1e-12:
        return "H_G^2", int(np.argmin(squared))
    if linear.min() < -1e-9:
        return "H_L", int(np.argmin(linear))
    none = (squared <= 0) & (linear <= 0)
    return ("H_G^2", int(np.argmax(none))) if none.any() else None


def _floor(result: FitArrays, limits: Limits) -> list[Violation]:
    """Compare the narrowest line with the step where it lies."""
    table = result.reflections
    inside = (table.position >= result.x[0]) & (table.position <= result.x[-1])
    if not inside.any() or result.x.size < 2:
        return []
    fwhm, position = table.fwhm[inside], table.position[inside]
    bad = ~(np.isfinite(fwhm) & (fwhm > 0))
    if bad.any():
        text = f"The width at {position[bad][0]:.2f} is not a positive number."
        return [violation("width_floor", "profile", text)]
    step = np.interp(position, result.x, np.gradient(result.x))
    ratio = fwhm / step
    worst = int(np.argmin(ratio))
    severity: Severity = "hard" if ratio[worst] < limits.width_floor_steps else "soft"
    limit = limits.width_floor_steps if severity == "hard" else limits.width_warn_steps
    if ratio[worst] >= limits.width_warn_steps:
        return []
    text = f"The calculated FWHM at {position[worst]:.2f} is {ratio[worst]:.2f} steps."
    return [violation("width_floor", "profile", text, value=float(ratio[worst]), limit=limit, severity=severity)]


def _size_strain(name: str, parameters: Parameters, context: MeasureContext) -> list[Violation]:
    found = []
    limits = context.limits
    scherrer, unit = _units(parameters, context)
    for part in ("size", "size_gauss", "strain", "strain_gauss"):
        subject = f"phase.{name}.{part}"
        width = parameters.value(subject)
        if width == 0.0:
            continue
        if width < 0.0:
            esd = parameters.esd(subject)
            severity: Severity = "soft" if -width <= limits.esd_sigmas * esd else "hard"
            text = f"{subject} is {width:.4g} {unit}, negative."
            found.append(violation("size_strain_range", subject, text, value=width, limit=0.0, severity=severity))
        elif part.startswith("size") and scherrer is not None:
            size_nm = scherrer[0] / width
            if size_nm < limits.size_min_nm:
                text = f"{subject} = {width:.3g} {unit} means crystallites of {size_nm:.2f} nm."
                found.append(violation("size_strain_range", subject, text, value=size_nm, limit=limits.size_min_nm))
        elif part.startswith("strain") and scherrer is not None and width * scherrer[1] > limits.strain_max_percent:
            percent = width * scherrer[1]
            text = f"{subject} = {width:.3g} {unit} means a microstrain of {percent:.1f} % (FWHM)."
            found.append(violation("size_strain_range", subject, text, value=percent, limit=limits.strain_max_percent))
    return found


def _units(parameters: Parameters, context: MeasureContext) -> tuple[tuple[float, float] | None, str]:
    """Return size (nm) times a width of size, strain (percent FWHM) over a width of strain, and the unit of widths.

    Scherrer with K = 1, the volume-weighted column length. Over the time of flight the widths are DIFC d^2 / L and
    DIFC d times the strain, given at d = 1 angstrom (Toby & Von Dreele 2013, doi:10.1107/S0021889813003531).
    """
    if context.axis is AxisKind.TOF:
        dif_c = parameters.value("instrument.difC")
        return (0.1 * dif_c, 100.0 / dif_c) if dif_c > 0.0 else None, "us"
    wavelengths = context.instrument.wavelengths_angstrom
    degree = float(np.deg2rad(1.0))
    return (0.1 * (wavelengths[0] if wavelengths else np.inf) / degree, 100.0 * degree), "degrees"


def _texture(name: str, parameters: Parameters, limits: Limits) -> list[Violation]:
    subject = f"phase.{name}.preferred_orientation"
    found = parameters.get(subject)
    if found is None:
        return []
    for (low, high), severity in ((limits.texture_hard, "hard"), (limits.texture_warn, "soft")):
        if not low <= found.value <= high:
            limit = low if found.value < low else high
            text = f"The March-Dollase coefficient of {name} is {found.value:.3f}, outside {low:g} to {high:g}."
            level: Severity = "hard" if severity == "hard" else "soft"
            return [violation("texture_range", subject, text, value=found.value, limit=limit, severity=level)]
    return []


def check_background(result: FitArrays, limits: Limits) -> list[Violation]:
    """Return ``background_negative``: more than a share of points below zero by more than the noise."""
    below = result.background < -limits.background_sigmas * result.sigma
    share = float(below.mean()) if below.size else 0.0
    if share <= limits.background_share:
        return []
    worst = int(np.argmin(result.background))
    at, lowest = result.x[worst], result.background[worst]
    text = f"The background is negative on {share:.1%} of the points, {lowest:.4g} at {at:.2f}."
    return [violation("background_negative", "background", text, value=share, limit=limits.background_share)]
