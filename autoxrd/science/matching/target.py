"""What is there to be explained? A pattern without background, on an axis where a change of cell is a translation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from autoxrd.domain.pattern import FloatArray
from autoxrd.science.matching.settings import MatchSettings
from autoxrd.science.noise import moving_mean

__all__ = ["Axis", "Target", "axis_for", "background_under", "on_u", "pattern_target"]

_TO_FWHM = 2.3548
_SMALLEST_DEG = 0.5


@dataclass(frozen=True, slots=True)
class Axis:
    """The axis u = 2 ln sin(theta), degrees, uniform, shape (g,).

    Args:
        fwhm: of a line, on u, blur included, shape (g,).
        height: height of a line of unit area (on 2theta), times its width on u, shape (g,).
        blur_steps: standard deviation of the blur, in steps.
    """

    u: FloatArray
    fwhm: FloatArray
    height: FloatArray
    blur_steps: float

    @property
    def step(self) -> float:
        """Step of the axis."""
        return float(self.u[1] - self.u[0])


@dataclass(frozen=True, slots=True)
class Target:
    """A pattern on the axis.

    Args:
        y: net intensity, blurred by the cell tolerance, shape (g,).
        weight: 1 / variance, model error included; 0 outside the pattern, shape (g,).
    """

    y: FloatArray
    weight: FloatArray

    def with_y(self, y: FloatArray) -> Target:
        """Return the same weights with another curve, shape (g,)."""
        return Target(y, self.weight)


def background_under(x: FloatArray, y: FloatArray, *, fwhm: float, half_deg: float) -> FloatArray:
    """Return a curve under the peaks, shape (n,): clipping on a compressed scale.

    Ryan et al. (1988), doi:10.1016/0168-583X(88)90063-8 (SNIP), with shrinking windows, on the mean over a line width:
    the clipping follows the lower edge of the noise, and what it leaves above would look like weak lines everywhere.
    """
    step = float(np.median(np.diff(x)))
    smooth = moving_mean(moving_mean(y, int(fwhm / step) | 1), int(fwhm / step) | 1)
    compressed = np.log(np.log(np.sqrt(np.maximum(smooth, 0.0) + 1.0) + 1.0) + 1.0)
    for reach in range(max(int(half_deg / step), 2), 0, -1):
        padded = np.pad(compressed, reach, mode="edge")
        compressed = np.minimum(compressed, 0.5 * (padded[: -2 * reach] + padded[2 * reach :]))
    return np.asarray((np.exp(np.exp(compressed) - 1.0) - 1.0) ** 2 - 1.0)


def on_u(two_theta: FloatArray) -> FloatArray:
    """Return the places on the axis of positions in degrees 2theta."""
    return np.asarray(np.rad2deg(2.0 * np.log(np.sin(np.deg2rad(np.maximum(two_theta, _SMALLEST_DEG)) / 2.0))))


def axis_for(x: FloatArray, fwhm: FloatArray, settings: MatchSettings) -> Axis:
    """Return the axis of a pattern.

    Args:
        x: degrees 2theta, shape (n,).
        fwhm: of a line at each point, degrees 2theta, shape (n,).
        settings: blur and number of points.
    """
    low, high = max(float(x[0]) - settings.shift_deg, _SMALLEST_DEG), float(x[-1]) + settings.shift_deg
    ends = on_u(np.array([low, min(high, 179.0)]))
    u = np.linspace(ends[0], ends[1], settings.grid)
    theta = np.arcsin(np.minimum(np.exp(np.deg2rad(u) / 2.0), 1.0))
    wide = np.interp(np.rad2deg(2.0 * theta), x, fwhm)
    blur = float(np.rad2deg(2.0 * settings.smear_relative))
    own = wide / np.tan(theta)
    # the blur keeps areas on u: a line of unit area on 2theta keeps own / wide of it
    return Axis(u, np.hypot(own, blur), own / wide, blur / _TO_FWHM / float(u[1] - u[0]))


def pattern_target(
    axis: Axis,
    x: FloatArray,
    net: FloatArray,
    *,
    sigma: FloatArray,
    net_obs: FloatArray,
    shift: Callable[[FloatArray], FloatArray],
    settings: MatchSettings,
) -> Target:
    """Return what is to be explained.

    Args:
        axis: where to.
        x: degrees 2theta, shape (n,).
        net: intensity to be explained (net pattern, or a residual), shape (n,).
        sigma: its counting uncertainty, shape (n,).
        net_obs: observed net intensity, which sets the model error, shape (n,).
        shift: observed minus true position, degrees, at positions in degrees 2theta.
        settings: model error.
    """
    true = x - shift(x)
    use = true > _SMALLEST_DEG
    place = on_u(true[use])
    variance = np.square(sigma) + np.square(settings.model_error * np.maximum(net_obs, 0.0))
    # grid points between two channels share what these know
    density = np.maximum(np.gradient(place) / axis.step, 1e-9)
    weight = np.interp(axis.u, place, 1.0 / (variance[use] * density), left=0.0, right=0.0)
    y = np.interp(axis.u, place, net[use], left=0.0, right=0.0)
    return Target(_blurred(y, axis.blur_steps), weight)


def _blurred(y: FloatArray, sigma_steps: float) -> FloatArray:
    """Return a curve convolved with a Gaussian, shape kept."""
    reach = max(int(4.0 * sigma_steps), 1)
    kernel = np.exp(-0.5 * np.square(np.arange(-reach, reach + 1) / max(sigma_steps, 1e-9)))
    return np.convolve(np.pad(y, reach, mode="edge"), kernel / kernel.sum(), mode="valid")
