"""What can the measured range tell apart? Correlations of the position laws, and the span of (sin(theta)/lambda)^2."""

from __future__ import annotations

import math
from dataclasses import dataclass

from autoxrd.domain.state import FitState

__all__ = ["AngularRange", "range_of"]

_STEPS = 200

_LAWS = {
    # shift of 2theta with theta, up to a factor: Wilson (1963); McCusker et al. (1999), doi:10.1107/S0021889898009856
    "zero": lambda theta: 1.0,
    "displacement": math.cos,
    "cell": math.tan,
}

_LOW, _HIGH, _WAVELENGTH = "range.two_theta_min", "range.two_theta_max", "instrument.wavelength"


@dataclass(frozen=True, slots=True)
class AngularRange:
    """The range of a pattern.

    Args:
        low_deg, high_deg: first and last 2theta that are fitted, degrees.
        wavelength_angstrom: of the strongest line, None where unknown.
    """

    low_deg: float
    high_deg: float
    wavelength_angstrom: float | None = None

    @property
    def s2_span(self) -> float | None:
        """Range of (sin(theta)/lambda)^2, angstrom^-2; None without a wavelength."""
        if self.wavelength_angstrom is None or not self.wavelength_angstrom > 0:
            return None
        low, high = (math.sin(math.radians(x / 2)) / self.wavelength_angstrom for x in (self.low_deg, self.high_deg))
        return high * high - low * low

    def correlation(self, first: str, second: str) -> float:
        """Return |r| of two of ``zero``, ``displacement``, ``cell`` fitted together to lines all over the range.

        For a fit of ``a f + b g`` to lines spread evenly over 2theta, |r(a, b)| = |<f g>| / sqrt(<f f> <g g>).
        """
        f, g = _LAWS[first], _LAWS[second]
        low, high = math.radians(self.low_deg / 2), math.radians(min(self.high_deg, 179.0) / 2)
        thetas = [low + (high - low) * (step + 0.5) / _STEPS for step in range(_STEPS)]
        cross = sum(f(t) * g(t) for t in thetas)
        norm = math.sqrt(sum(f(t) ** 2 for t in thetas) * sum(g(t) ** 2 for t in thetas))
        return abs(cross) / norm if norm > 0 else 1.0


def range_of(state: FitState) -> AngularRange | None:
    """Read the range from a state's record: features ``range.two_theta_min`` and ``range.two_theta_max``, degrees."""
    ends = [state.features.get(name) for name in (_LOW, _HIGH)]
    values = [end.value for end in ends if end is not None and end.available and end.value is not None]
    if len(values) != 2 or not 0 <= values[0] < values[1] < 180:
        return None
    wavelength = next((p.value for p in state.parameters if p.name == _WAVELENGTH), None)
    return AngularRange(values[0], values[1], wavelength)
