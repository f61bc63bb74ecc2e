"""What pattern of lines does a candidate have? Spacings and intensities as an engine calculates them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from autoxrd.domain.pattern import FloatArray
from autoxrd.science.inputs import ReflectionArrays

__all__ = ["CandidateLines", "lines_of"]

_FAINT = 1e-4
"""Lines weaker than this share of the strongest are left out."""


@dataclass(frozen=True, slots=True)
class CandidateLines:
    """A candidate's lines, arrays of shape (m,), relative to the scale they were calculated with.

    Args:
        sine: sin(theta) of each line at the given cell: wavelength / 2d.
        area: integrated intensity on the 2theta axis.
    """

    name: str
    sine: FloatArray
    area: FloatArray


def lines_of(reflections: ReflectionArrays, index: int, name: str, wavelengths: tuple[float, ...]) -> CandidateLines:
    """Return the lines of one phase of an evaluated model.

    Args:
        reflections: of all phases.
        index: of the phase.
        name: of the phase.
        wavelengths: of the emission lines, angstrom, in the order of the table.
    """
    length = np.asarray(wavelengths)
    line = np.minimum(reflections.line, length.size - 1)
    sine = length[line] / (2.0 * reflections.d_angstrom)
    area = reflections.intensity
    own = (reflections.phase == index) & (sine < 1.0) & np.isfinite(area) & (area > 0)
    own &= area > _FAINT * np.max(area, where=own, initial=0.0)
    return CandidateLines(name, sine[own], area[own])
