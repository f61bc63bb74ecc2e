"""Lines over the time of flight: where they are, how wide and how strong, and their shape; GSAS-II's laws on arrays.

Position, widths and exponentials are functions of d (`FlightBank` in the domain says which). The shape is GSAS-II's
pseudo-Voigt convoluted with a rising and a decaying exponential (Von Dreele, Jorgensen & Windsor 1982,
10.1107/S0021889882012722), of unit area in microseconds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from GSASII import GSASIIpwd as G2pwd

__all__ = ["BURST", "BURST_SLOPES", "Burst", "decays", "maxima", "positions", "reaches", "wavelengths", "widths"]

BURST = G2pwd.pyd.pyepsvoigt
BURST_SLOPES = G2pwd.pyd.pydepsvoigt
NEUTRON_US_PER_ANGSTROM_METRE = 252.816
"""GSAS-II's value; it enters absorption and extinction only."""
GAUSS_REACH = 7.0
"""Standard deviations after which a Gaussian is nothing."""
EXPONENTIAL_REACH = 25.0
LORENTZ_REACH = 300.0
FWHM_REACH = 50.0
"""A Lorentzian ends at this many of its own widths, or GSAS-II's number of the whole line's, whichever is nearer."""
_FINE = 241


def positions(values: dict[str, float], d: np.ndarray) -> np.ndarray:
    """Return the times of flight, microseconds, shape (1, r)."""
    c, a, b = (values[f"instrument.dif{key}"] for key in "CAB")
    return np.asarray((c * d + a * d**2 + b / d + values["instrument.zero"])[None, :])


def widths(values: dict[str, float], d: np.ndarray, size: Any, strain: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return variance (us^2) and Lorentzian width (us) of each line before the floor.

    Args:
        values: by our names.
        d: spacings, angstrom, shape (r,).
        size: width over d^2, a number or shape (r,).
        strain: width over d, a number or shape (r,).
    """
    s0, s1, s2, sq = (values[f"profile.sig-{key}"] for key in "012q")
    x, y, z = (values[f"profile.{key}"] for key in "XYZ")
    return s0 + s1 * d**2 + s2 * d**4 + sq * d, (x + strain) * d + (y + size) * d**2 + z


def decays(values: dict[str, float], d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return rise and decay of each line, 1/us, shape (r,) each; NaN where there is no decay."""
    zero, one, quadratic = (values[f"profile.beta-{key}"] for key in "01q")
    decay = zero + one / d**4 + quadratic / d**2
    return values["profile.alpha"] / d, np.where(decay > 0.0, decay, np.nan)


def wavelengths(values: dict[str, float], d: np.ndarray, path_m: float) -> np.ndarray:
    """Return the wavelength of each line, angstrom, shape (r,)."""
    return np.asarray(values["instrument.difC"] * d / (NEUTRON_US_PER_ANGSTROM_METRE * path_m))


def reaches(
    variance: np.ndarray, lorentz: np.ndarray, rise: np.ndarray, decay: np.ndarray, share: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return how far each line reaches to shorter and to longer times, microseconds, shape (r,) each.

    GSAS-II multiplies 50 widths with 1 + 1/alpha, whatever its unit; here each part reaches as far as it is something.
    """
    deviation = np.sqrt(variance)
    far = np.minimum(LORENTZ_REACH * lorentz, FWHM_REACH * (2.355 * deviation + lorentz))
    core = GAUSS_REACH * deviation + share * far
    return core + EXPONENTIAL_REACH / rise, core + EXPONENTIAL_REACH / decay


@dataclass(frozen=True)
class Burst:
    """One line where it is seen.

    Args:
        line, number: emission line (always 0) and reflection.
        window: points.
        grid: microseconds from the line's position, shape (points,).
        shape: rise, decay, variance and Lorentzian width.
    """

    line: int
    number: int
    window: slice
    grid: np.ndarray
    shape: tuple[float, float, float, float]

    def plain(self) -> np.ndarray:
        """Return the profile, shape (points,)."""
        return np.asarray(BURST(self.grid.size, self.grid, *self.shape), dtype=np.float64)

    def slopes(self) -> np.ndarray:
        """Return the profile and its derivatives by position, variance, width, rise and decay, shape (6, points)."""
        found = np.array(BURST_SLOPES(self.grid.size, self.grid, *self.shape), dtype=np.float64)
        # GSAS-II's slope by place is that of the position already, unlike that of its plain pseudo-Voigt
        value, by_place, by_rise, by_decay, by_variance, by_width = found
        return np.stack([value, by_place, by_variance, by_width, by_rise, by_decay])


def maxima(
    variance: np.ndarray, lorentz: np.ndarray, rise: np.ndarray, decay: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return how far the maximum of each line stands from its position, and its full width at half maximum, us."""
    away, full = np.zeros(variance.size), np.zeros(variance.size)
    for k, shape in enumerate(zip(rise, decay, variance, lorentz, strict=True)):
        numbers = tuple(float(item) for item in shape)
        half = 2.0 * (2.355 * math.sqrt(numbers[2]) + numbers[3]) + 3.0 / numbers[0] + 3.0 / numbers[1]
        grid = np.linspace(-half, half, _FINE)
        curve = np.asarray(BURST(grid.size, grid, *numbers), dtype=np.float64)
        top = int(np.clip(np.argmax(curve), 1, _FINE - 2))
        before, here, after = curve[top - 1 : top + 2]
        bend = before - 2.0 * here + after
        shift = 0.5 * (before - after) / bend if bend < 0.0 else 0.0
        away[k] = grid[top] + shift * (grid[1] - grid[0])
        full[k] = _width(grid, curve, top)
    return away, full


def _width(grid: np.ndarray, curve: np.ndarray, top: int) -> float:
    level = 0.5 * curve[top]
    left = np.interp(level, curve[: top + 1], grid[: top + 1])
    right = np.interp(-level, -curve[top:], grid[top:])
    return float(right - left)
