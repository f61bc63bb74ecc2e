"""Touches of rietx that a profile match needs and its public interface does not offer; the others: `axr_private`."""

from __future__ import annotations

from typing import Any

import numpy as np
from rietx.optimize.statistics import berar_lelann_factor
from rietx.refine import _extract_reflections, _restore_lebail
from rietx.schemas.history import ReflectionState
from scipy.sparse import csc_array

__all__ = [
    "carry_intensities",
    "committed",
    "extract_intensities",
    "intensities_of",
    "reflection_profiles",
    "set_intensities",
    "spread_factor",
]


def carry_intensities(reflections: list[dict[str, Any]], model: Any) -> None:
    """Put stored Le Bail intensities into a compiled model."""
    _restore_lebail([ReflectionState.model_validate(item) for item in reflections], model)


def extract_intensities(model: Any) -> list[dict[str, Any]]:
    """Return the Le Bail intensities of a compiled model as JSON."""
    return [item.model_dump(mode="json") for item in _extract_reflections(model)]


def reflection_profiles(model: Any, values: dict[str, float]) -> csc_array:
    """Return the unit-intensity profile of every reflection of every phase, lines summed, shape (n, m)."""
    axial = (values["instrument.geometry.axial_sl"], values["instrument.geometry.axial_hl"])
    rows, cols, data, count = [], [], [], 0
    for index, phase in enumerate(model.phases):
        for line, (position, first, second, _) in enumerate(model.phase_peaks(index, values)):
            weight = values[f"instrument.source.lines.{line}.weight"]
            for number in range(len(position)):
                shape = model._reflection_profile(
                    phase, line, number, position[number], first[number], second[number], *axial
                )
                if shape is not None:
                    start, end = int(phase.win[line, number, 0]), int(phase.win[line, number, 1])
                    rows.append(np.arange(start, end))
                    cols.append(np.full(end - start, count + number))
                    data.append(weight * np.asarray(shape))
        count += len(phase.reflections)
    entries = (np.concatenate(data), (np.concatenate(rows), np.concatenate(cols))) if rows else None
    return csc_array(entries if entries is not None else (len(model.tt), count), shape=(len(model.tt), count))


def set_intensities(model: Any, intensities: np.ndarray) -> None:
    """Put intensities, phase after phase, into a model for profile matching."""
    start = 0
    for phase in model.phases:
        end = start + len(phase.reflections)
        phase.hkl_intensity = np.array(intensities[start:end], dtype=np.float64)
        start = end


def intensities_of(model: Any) -> np.ndarray:
    """Return the intensities of a model for profile matching, phase after phase."""
    return np.concatenate([np.asarray(phase.hkl_intensity, dtype=np.float64) for phase in model.phases])


def committed(ref: Any, table: Any, theta: np.ndarray) -> None:
    """Write the values of a table's free set into it and into its refinement object's models."""
    table.commit(theta)
    ref._write_back(table)


def spread_factor(residual: np.ndarray) -> float:
    """Return the factor of Berar and Lelann (1991, doi:10.1107/S0021889890008391) on esds, as rietx's own fits have."""
    return float(berar_lelann_factor(residual))
