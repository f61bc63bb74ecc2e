"""How sure are the scale factors, and how much mass does each stand for? What both kinds of standard start from."""

from __future__ import annotations

import math

import numpy as np

from autoxrd.domain.pattern import FloatArray
from autoxrd.domain.state import ParameterValue
from autoxrd.science.inputs import ScaledFit

__all__ = ["derived", "scale_covariance", "scattered_mass"]


def scale_covariance(result: ScaledFit) -> tuple[FloatArray, FloatArray] | None:
    """Return the scale factors, shape (n,), and their covariance, shape (n, n), in the order of the phases.

    A scale that was not free counts as known. None where a scale, or the covariance of a free one, is not on record.
    """
    names = [f"phase.{phase.name}.scale" for phase in result.phases]
    scales = {p.name: p for p in result.parameters}
    free = [name for name in names if name in scales and scales[name].released]
    known = list(result.covariance_names)
    if any(name not in known for name in free) or any(name not in scales for name in names):
        return None
    covariance = np.zeros((len(names), len(names)))
    places = [(row, known.index(name)) for row, name in enumerate(names) if name in free]
    for row, i in places:
        for column, j in places:
            covariance[row, column] = result.covariance[i, j]
    return np.array([scales[name].value for name in names]), covariance


def scattered_mass(result: ScaledFit, volume_power: int) -> tuple[FloatArray, FloatArray] | None:
    """Return what is in proportion to each phase's mass over the specimen's mass absorption, and its covariance.

    S m V^p with the scale factor S and the mass m and the volume V of a cell: p = 1 where an engine's intensities are
    S |F|^2 (Hill & Howard 1987, doi:10.1107/S0021889887086199), 0 where it divides them by the volume, so that S counts
    cells. The cell's own uncertainty is small beside the scale's, and left out.

    Args:
        result: a fit.
        volume_power: p, of its engine.

    Returns:
        Shapes (n,) and (n, n), in the order of the phases; None where the fit does not say.
    """
    found = scale_covariance(result)
    values = {p.name: p.value for p in result.parameters}
    densities = [values.get(f"phase.{phase.name}.density", math.nan) for phase in result.phases]
    volumes = [values.get(f"phase.{phase.name}.cell.volume", math.nan) for phase in result.phases]
    masses = np.array(densities) * np.array(volumes) ** (1 + volume_power)
    if found is None or not np.all(np.isfinite(masses)):
        return None
    scales, covariance = found
    return masses * scales, np.outer(masses, masses) * covariance


def derived(name: str, value: float, slope: FloatArray, covariance: FloatArray, *, unit: str = "") -> ParameterValue:
    """Return a derived quantity with its esd by error propagation; no esd where only rounding is left of it.

    Args:
        name: of the quantity.
        value: of the quantity.
        unit: of the quantity.
        slope: its derivatives, shape (n,).
        covariance: of what it depends on, shape (n, n).
    """
    variance = float(slope @ covariance @ slope)
    esd = math.sqrt(variance) if variance > 1e-24 else None
    return ParameterValue(name=name, value=value, esd=esd, unit=unit, derived=True)
