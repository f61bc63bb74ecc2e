"""What does a peak of an unknown reflection look like? One line, or two of known distance and ratio."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autoxrd.domain.pattern import FloatArray
from autoxrd.science.inputs import MeasureContext
from autoxrd.science.shapes import pseudo_voigt

__all__ = ["PeakShape", "peak_shape"]


@dataclass(frozen=True, slots=True)
class PeakShape:
    """A unit-area peak: the first line and, where it is close by, the second.

    Args:
        eta: Lorentzian fraction assumed.
        relative: relative wavelength difference of the second line.
        ratio: its intensity over the first one's, 0 where there is none.
    """

    eta: float
    relative: float = 0.0
    ratio: float = 0.0

    def second(self, position: FloatArray) -> FloatArray:
        """Return where the second line of a first line lies, degrees 2theta; the same place without one."""
        if self.ratio == 0.0:
            return position
        sine = np.clip(np.sin(np.deg2rad(position) / 2.0) * (1.0 + self.relative), -1.0, 1.0)
        return np.asarray(np.rad2deg(2.0 * np.arcsin(sine)))

    def at(
        self, x: FloatArray, position: FloatArray, fwhm: FloatArray, owner: NDArray[np.int64] | None = None
    ) -> FloatArray:
        """Return the value at ``x`` of peaks at ``position``.

        Args:
            x: places.
            position: of the first lines.
            fwhm: of all lines.
            owner: which peak each place belongs to, shape of ``x``; None where all arguments have one shape.
        """
        second = self.second(position)
        if owner is not None:
            position, second, fwhm = position[owner], second[owner], fwhm[owner]
        eta = np.float64(self.eta)
        value = pseudo_voigt(x, position, fwhm, eta)
        if self.ratio == 0.0:
            return value
        other = pseudo_voigt(x, second, fwhm, eta)
        return np.asarray((value + self.ratio * other) / (1.0 + self.ratio))


def peak_shape(context: MeasureContext, *, angular: bool, eta: float) -> PeakShape:
    """Return the shape for an instrument's lines."""
    lines = context.instrument.lines
    if not angular or len(lines) < 2:
        return PeakShape(eta)
    relative = lines[1].wavelength_angstrom / lines[0].wavelength_angstrom - 1.0
    if abs(relative) >= context.settings.reflections.line_group_relative:
        return PeakShape(eta)
    return PeakShape(eta, relative, lines[1].relative_intensity / max(lines[0].relative_intensity, 1e-9))
