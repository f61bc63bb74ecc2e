"""What each reflection's line looks like: position, widths and intensity of one phase, all reflections at once.

GSAS-II computes these one reflection at a time, in Python; here the same formulas run on arrays, so that
derivatives by differences cost next to nothing and know of no window. A test holds the two to be equal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import axg_flight as flight
import numpy as np
from axg_broadening import harmonic_factor, size_widths, stephens_terms, strain_widths
from axg_model import Model, cell_of
from axg_shape import FWHM_TO_VARIANCE
from axr_wire import Refused
from GSASII import GSASIIlattice as G2lat
from GSASII import GSASIIpwd as G2pwd

__all__ = ["FLOOR", "Lines", "Structure", "lines_of", "march_dollase", "rough_surface", "structure_of"]

FLOOR = 1e-3
"""GSAS-II takes a variance (centideg^2) and a Lorentzian width (centideg) no lower than this, in silence."""
_EXTINCTION = np.array([-0.5, 0.25, -0.10416667, 0.036458333, -0.0109375, 2.8497409e-3])
"""Series of the Laue part: Sabine (1985), 10.1107/S0108767385001134, as GSAS-II uses it."""


@dataclass(frozen=True)
class Structure:
    """What of a phase's reflections does not change within a command.

    Args:
        index: number of the phase.
        hkl: shape (r, 3).
        multiplicity: Friedel pairs included, shape (r,).
        equivalents: every index that symmetry makes of each reflection, shape (r, operations, 3).
        stephens: what the coefficients of an anisotropic microstrain are multiplied with, shape (k, r), or None.
        group: GSAS-II's space group.
    """

    index: int
    hkl: np.ndarray
    multiplicity: np.ndarray
    equivalents: np.ndarray
    stephens: np.ndarray | None
    group: dict[str, Any]


@dataclass(frozen=True)
class Lines:
    """All lines of one phase.

    Args:
        d: spacing, angstrom, shape (r,).
        position: degrees 2theta of each emission line, shape (lines, r).
        variance: Gaussian variance, centideg^2, shape (r,), GSAS-II's floor applied.
        lorentz: Lorentzian width, centideg, shape (r,), GSAS-II's floor applied.
        factor: intensity of the first line over F^2, shape (r,), in GSAS-II's unit (area in centidegrees).
        rise, decay: exponentials of each line over the time of flight, 1/us, shape (r,); None else. There position,
            variance, width and area are in microseconds.
    """

    d: np.ndarray
    position: np.ndarray
    variance: np.ndarray
    lorentz: np.ndarray
    factor: np.ndarray
    rise: np.ndarray | None = None
    decay: np.ndarray | None = None

    @property
    def exponentials(self) -> tuple[np.ndarray, ...]:
        """Rise and decay, or nothing."""
        return () if self.rise is None or self.decay is None else (self.rise, self.decay)


def structure_of(model: Model, index: int) -> Structure:
    """Return the fixed part of a phase's reflections."""
    rows = model.reflections(index)["RefList"]
    group = model.phases[model.state.phases[index].name]["General"]["SGData"]
    rotations = np.array([operation[0].T for operation in group["SGOps"]])
    hkl = np.ascontiguousarray(rows[:, :3])
    stephens = stephens_terms(hkl, group) if model.state.phases[index].stephens else None
    return Structure(index, hkl, rows[:, 3], np.inner(hkl, rotations), stephens, group)


def lines_of(model: Model, fixed: Structure, values: dict[str, float], f2: np.ndarray) -> Lines:
    """Return the lines of a phase at given values.

    Args:
        model: GSAS-II's dictionaries.
        fixed: the phase's reflections.
        values: by our names.
        f2: squared structure factors, shape (r,); only extinction needs them here.
    """
    state = model.state
    phase = state.phases[fixed.index]
    metric = G2lat.cell2A(cell_of(phase, values))
    h, k, ell = fixed.hkl.T
    a0, a1, a2, a3, a4, a5 = metric
    squared = a0 * h * h + a1 * k * k + a2 * ell * ell + a3 * h * k + a4 * h * ell + a5 * k * ell
    with np.errstate(invalid="ignore"):
        d = 1.0 / np.sqrt(squared)
        if state.flight is not None:
            return _flight_lines(model, fixed, values, metric, d, f2)
        position = _positions(state, values, d)
        half = np.radians(position[0] / 2.0)
        variance, lorentz = _widths(model, fixed, values, half, metric, d)
        factor = _factors(model, fixed, values, metric, position[0], f2)
    return Lines(d, position, np.maximum(variance, FLOOR), np.maximum(lorentz, FLOOR), factor)


def _flight_lines(
    model: Model, fixed: Structure, values: dict[str, float], metric: Any, d: np.ndarray, f2: np.ndarray
) -> Lines:
    """Return the lines of a phase over the time of flight."""
    state = model.state
    assert state.flight is not None
    phase, (angle, path) = state.phases[fixed.index], state.flight
    size = size_widths(phase, values, fixed.hkl, metric)
    strain = strain_widths(phase, values, fixed.hkl, metric, d, fixed.stephens)
    variance, lorentz = flight.widths(values, d, size, strain)
    rise, decay = flight.decays(values, d)
    if not np.all(np.isfinite(decay)):  # GSAS-II's shape does not return from it
        raise Refused("diverged", "profile_impossible", "The profile's beta gives lines without a decay.")
    theta, waves = np.full(d.shape, math.radians(angle / 2.0)), flight.wavelengths(values, d, path)
    volume = G2lat.calc_V(metric)
    factor = values[f"phase.{phase.name}.scale"] * fixed.multiplicity / volume * np.sin(theta) * d**4
    factor = factor * _textured(model, fixed, values, metric, theta)
    factor = factor * G2pwd.Absorb("Cylinder", values["absorption"] * waves, np.full(d.shape, angle), 0, 0)
    coefficient = values[f"phase.{phase.name}.extinction"]
    if coefficient != 0.0:
        factor = factor * _extinction(state, coefficient, f2, waves / volume, theta)
    low = np.maximum(variance, FLOOR), np.maximum(lorentz, FLOOR)
    return Lines(d, flight.positions(values, d), *low, np.asarray(factor), rise, decay)


def _positions(state: Any, values: dict[str, float], d: np.ndarray) -> np.ndarray:
    """Return positions with zero, specimen offset and transparency, shape (lines, r)."""
    bragg = 2.0 * np.arcsin(values["instrument.wavelength"] / (2.0 * d))
    if state.geometry == "bragg_brentano":
        offset = values["sample.displacement"] / state.radius_mm
        shift = -2.0 * offset * np.cos(bragg / 2.0) - values["sample.transparency"] * np.sin(bragg)
    else:
        along, across = values["sample.offset_along"], values["sample.offset_across"]
        shift = (across * np.cos(bragg) - along * np.sin(bragg)) / state.radius_mm
    first = np.degrees(bragg + shift) + values["instrument.zero"]
    if state.second_line is None:
        return np.asarray(first[None, :])
    # GSAS-II places the second line by the derivative of Bragg's law
    second = first + 2.0 * math.degrees(1.0) * (state.second_line - 1.0) * np.tan(np.radians(first / 2.0))
    return np.stack([first, second])


def _widths(
    model: Model, fixed: Structure, values: dict[str, float], half: np.ndarray, metric: Any, d: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return variance (centideg^2) and Lorentzian width (centideg) before the floor."""
    tangent, cosine = np.tan(half), np.cos(half)
    phase = model.state.phases[fixed.index]
    u, v, w = (FWHM_TO_VARIANCE * values[f"profile.{key}"] for key in "UVW")
    size = (values["profile.X"] + size_widths(phase, values, fixed.hkl, metric)) / cosine
    strain = (values["profile.Y"] + strain_widths(phase, values, fixed.hkl, metric, d, fixed.stephens)) * tangent
    return u * tangent**2 + v * tangent + w, 100.0 * (size + strain + values["profile.Z"])


def _factors(
    model: Model, fixed: Structure, values: dict[str, float], metric: Any, position: np.ndarray, f2: np.ndarray
) -> np.ndarray:
    state = model.state
    phase = state.phases[fixed.index]
    prefix = f"phase.{phase.name}"
    volume = G2lat.calc_V(metric)
    theta = np.radians(position / 2.0)
    factor = values[f"{prefix}.scale"] * fixed.multiplicity / volume / (2.0 * np.sin(theta) ** 2 * np.cos(theta))
    if state.radiation == "xray":
        factor = factor * G2pwd.Polarization(state.polarization, position, 0.0)[0]
    factor = factor * _textured(model, fixed, values, metric, theta)
    if state.geometry == "debye_scherrer":
        factor = factor * G2pwd.Absorb("Cylinder", values["absorption"], position, 0, 0)
    elif (depth := values.get("sample.roughness", 0.0)) != 0.0:
        factor = factor * rough_surface(depth, position)
    coefficient = values[f"{prefix}.extinction"]
    if coefficient != 0.0:
        factor = factor * _extinction(state, coefficient, f2, values["instrument.wavelength"] / volume, theta)
    return np.asarray(factor)


def _textured(
    model: Model, fixed: Structure, values: dict[str, float], metric: Any, theta: np.ndarray
) -> np.ndarray | float:
    """Return what texture multiplies each reflection's intensity with."""
    state = model.state
    phase = state.phases[fixed.index]
    factor: np.ndarray | float = 1.0
    march = values.get(f"phase.{phase.name}.preferred_orientation", 1.0)
    if phase.axis is not None and march != 1.0:
        factor = march_dollase(fixed, metric, phase.axis, march)
    if phase.harmonics:
        cell, reflection = cell_of(phase, values), state.geometry == "bragg_brentano"
        more = harmonic_factor(phase, values, fixed.hkl, cell, theta, fixed.group, reflection=reflection)
        factor = factor * more
    return factor


def march_dollase(fixed: Structure, metric: Any, axis: tuple[int, ...], coefficient: float) -> np.ndarray:
    """Return the March-Dollase factor of each reflection (Dollase 1986, 10.1107/S0021889886089458), shape (r,)."""
    reciprocal = G2lat.A2Gmat(metric)[0]
    direction = np.array(axis, dtype=float)
    along = fixed.equivalents @ reciprocal @ direction
    lengths = np.einsum("rni,ij,rnj->rn", fixed.equivalents, reciprocal, fixed.equivalents)
    square = np.clip(along**2 / (lengths * (direction @ reciprocal @ direction)), 0.0, 1.0)
    return np.asarray(np.mean((coefficient**2 * square + (1.0 - square) / coefficient) ** -1.5, axis=1))


def rough_surface(depth: float, position: np.ndarray) -> np.ndarray:
    """Return the share of their intensity that lines keep below a depleted surface layer, over that at 180 degrees.

    Suortti (1972), doi:10.1107/S0021889872009707, without the part of the beam that meets no layer.

    Args:
        depth: optical depth of the layer.
        position: degrees 2theta, any shape.
    """
    return np.asarray(G2pwd.SurfaceRough(0.0, depth, position))


def _extinction(
    state: Any, coefficient: float, f2: np.ndarray, ratio: float | np.ndarray, theta: np.ndarray
) -> np.ndarray:
    strength = f2 * ratio**2
    if state.radiation == "xray":
        strength = strength * 0.079411 * (1.0 + np.cos(2.0 * theta) ** 2) / 2.0
    x = strength * coefficient
    bragg = 1.0 / np.sqrt(1.0 + np.maximum(x, -0.999))
    small = np.clip(x, 0.0, 1.0)
    series = 1.0 + sum(c * small ** (n + 1) for n, c in enumerate(_EXTINCTION))
    large = np.maximum(x, 1.0)
    laue = np.where(x <= 1.0, series, math.sqrt(2.0 / math.pi) * (1.0 - 0.125 / large) / np.sqrt(large))
    return np.asarray(bragg * np.sin(theta) ** 2 + laue * np.cos(theta) ** 2)
