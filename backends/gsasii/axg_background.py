"""The curve under the reflections: GSAS-II's functions as rows of a matrix, single peaks, Debye terms, a fixed curve.

Every function of GSAS-II is linear in its coefficients: one row for each serves value, derivative and starting values.
GSAS-II's own derivative of the last node of an interpolation has the wrong sign; a row is the derivative here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from axg_shape import FWHM_TO_VARIANCE, axial_of, single_line
from axg_state import State
from axr_curves import chebyshev_rows
from GSASII import GSASIIElem as G2elem

__all__ = ["DEBYE", "FUNCTIONS", "NESTED", "PEAK", "TIMELESS", "Background", "fit_rows", "function_rows", "names_of"]

FUNCTIONS = (
    "chebyschev-1",
    "chebyschev",
    "cosine",
    "Q^2 power series",
    "Q^-2 power series",
    "lin interpolate",
    "inv interpolate",
    "log interpolate",
)
"""GSAS-II's names of its functions."""
NESTED = FUNCTIONS[:5]
"""Functions whose first terms stay the same when terms are added."""
TIMELESS = tuple(kind for kind in FUNCTIONS if not kind.startswith("Q"))
"""Functions that need no wavelength: those that there are over the time of flight."""
PEAK = ("position", "intensity", "gauss", "lorentz")
"""Numbers of a single peak: degrees, area (counts times degrees), widths at half height (degrees)."""
DEBYE = ("amplitude", "distance", "uiso")
"""Numbers of a Debye term: intensity, angstrom, angstrom^2."""


def function_rows(kind: str, x: np.ndarray, terms: int, wavelength: float) -> np.ndarray:
    """Return what each coefficient of a background function is multiplied with, shape (terms, n).

    Args:
        kind: one of ``FUNCTIONS``.
        x: degrees 2theta, ascending, shape (n,).
        terms: number of coefficients.
        wavelength: of the first line, angstrom; only the power series in Q know it.
    """
    if kind == "chebyschev-1":
        return chebyshev_rows(x, terms, float(x[0]), float(x[-1]))
    if kind == "chebyschev":
        at = 2.0 * (x - x[0]) / (x[-1] - x[0]) - 1.0
        return np.stack([at**order for order in range(terms)])
    if kind == "cosine":
        return np.stack([np.cos(np.pi * x * order / x[-1]) for order in range(terms)])
    if kind in ("Q^2 power series", "Q^-2 power series"):
        return _power_rows(kind, x, terms, wavelength)
    nodes = _nodes(kind, x, terms)
    order = np.argsort(nodes)
    return np.stack([np.interp(x, nodes[order], unit[order]) for unit in np.eye(terms)])


def _power_rows(kind: str, x: np.ndarray, terms: int, wavelength: float) -> np.ndarray:
    q = _q(x, wavelength)
    rows, power = [np.ones_like(x)], np.ones_like(x)
    for order in range(1, terms):
        power = power * (q**2 / order if kind == "Q^2 power series" else order * q**-2.0)
        rows.append(power)
    return np.stack(rows)


def _nodes(kind: str, x: np.ndarray, terms: int) -> np.ndarray:
    if terms == 1:
        return np.array([float(x[0])])
    lower, upper = float(x[0]), float(x[-1])
    if kind == "lin interpolate" or terms == 2:
        return np.linspace(lower, upper, terms)
    if kind == "inv interpolate":
        # GSAS-II counts the nodes between the ends from the upper end downwards
        return np.array([lower, *1.0 / np.linspace(1.0 / upper, 1.0 / lower, terms)[1:-1], upper])
    return np.asarray(np.exp(np.linspace(np.log(lower), np.log(upper), terms)))


def _q(x: np.ndarray, wavelength: float) -> np.ndarray:
    return np.asarray(4.0 * np.pi * np.sin(np.radians(x / 2.0)) / wavelength)


def fit_rows(rows: np.ndarray, curve: np.ndarray) -> np.ndarray:
    """Return the coefficients that follow a curve in least squares, shape (terms,)."""
    norms = np.linalg.norm(rows, axis=1)
    solution = np.linalg.lstsq((rows / norms[:, None]).T, curve, rcond=None)[0]
    return np.asarray(solution / norms)


def names_of(state: State, part: str) -> list[str]:
    """Return the names of a background's further numbers, ``peak`` or ``debye``, in order."""
    quantities, count = (PEAK, state.background_peaks) if part == "peak" else (DEBYE, state.background_debye)
    return [f"background.{part}{number}_{key}" for number in range(1, count + 1) for key in quantities]


def fixed_curve(state: State, x: np.ndarray) -> np.ndarray | None:
    """Return the fixed curve on the points, shape (n,), or None without one; level beyond its ends."""
    if not state.fixed_background:
        return None
    table = np.array(state.fixed_background)
    return np.asarray(np.interp(x, table[:, 0], table[:, 1]))


def debye_rows(state: State, values: dict[str, float], x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the sum of the Debye terms, shape (n,), and its derivatives by their numbers, shape (3 k, n).

    Diffuse scattering of pairs at a distance (Debye 1915, 10.1002/andp.19153510606): with X-rays GSAS-II weights it
    with the square of silicon's form factor.
    """
    q = _q(x, values["instrument.wavelength"])
    weight = np.ones_like(x)
    if state.radiation == "xray":
        table = G2elem.GetFormFactorCoeff("Si")[0]
        weight = np.array(G2elem.ScatFac(table, (q / (4.0 * np.pi)) ** 2)[0]) ** 2
    total, rows = np.zeros_like(x), []
    for number in range(1, state.background_debye + 1):
        amplitude, distance, uiso = (values[f"background.debye{number}_{key}"] for key in DEBYE)
        angle = q * distance
        damped = weight * np.exp(-uiso * q**2)
        unit = damped * np.sin(angle) / angle
        total = total + amplitude * unit
        rows += [
            unit,
            amplitude * damped * (np.cos(angle) - np.sin(angle) / angle) / distance,
            -amplitude * unit * q**2,
        ]
    return total, np.stack(rows) if rows else np.zeros((0, x.size))


@dataclass(frozen=True)
class Curve:
    """The background at given values.

    Args:
        y: shape (n,).
        slopes: derivative by each of its numbers, by name, shape (n,) each.
    """

    y: np.ndarray
    slopes: dict[str, np.ndarray]


class Background:
    """The background of one state on given points.

    Args:
        state: the state; its wavelength is that of the power series in Q.
        x: degrees 2theta, ascending, shape (n,).
    """

    def __init__(self, state: State, x: np.ndarray) -> None:
        kind, terms = state.background
        self.rows = function_rows(kind, x, terms, state.wavelength)
        self._state, self._x = state, x
        self._fixed = fixed_curve(state, x)

    def terms(self, values: dict[str, float]) -> np.ndarray:
        """Return the part that the function alone stands for, shape (n,)."""
        return np.asarray(np.array([values[f"background.{k}"] for k in range(len(self.rows))]) @ self.rows)

    def compute(self, values: dict[str, float]) -> Curve:
        """Return curve and derivatives."""
        y = self.terms(values)
        slopes = {f"background.{number}": row for number, row in enumerate(self.rows)}
        if self._fixed is not None:
            y = y + values["background.fixed"] * self._fixed
            slopes["background.fixed"] = self._fixed
        if self._state.background_debye:
            debye, rows = debye_rows(self._state, values, self._x)
            y = y + debye
            slopes |= dict(zip(names_of(self._state, "debye"), rows, strict=True))
        for number in range(1, self._state.background_peaks + 1):
            curve, rows = peak_rows(values, number, self._x)
            y = y + curve
            slopes |= {f"background.peak{number}_{key}": row for key, row in zip(PEAK, rows, strict=True)}
        return Curve(y, slopes)


def peak_rows(values: dict[str, float], number: int, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a single peak, shape (n,), and its derivatives by its four numbers, shape (4, n)."""
    position, area, gauss, lorentz = (values[f"background.peak{number}_{key}"] for key in PEAK)
    widths = (FWHM_TO_VARIANCE * gauss**2, 100.0 * lorentz)
    copies = single_line(x, position, widths, axial_of(values))
    value, by_position, by_variance, by_width, _ = copies.slopes()
    # GSAS-II's peak shapes have unit area in centidegrees
    area = 100.0 * area
    by_gauss = area * 2.0 * FWHM_TO_VARIANCE * gauss * by_variance
    return area * value, np.stack([area * by_position, 100.0 * value, by_gauss, area * 100.0 * by_width])
