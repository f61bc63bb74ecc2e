"""What is a powder pattern here: arrays, axis, uncertainties and where they came from."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

__all__ = ["AxisKind", "FloatArray", "Notice", "Pattern", "PatternHints", "SigmaOrigin"]

FloatArray = NDArray[np.float64]


class AxisKind(StrEnum):
    """Abscissa of a pattern, with its unit."""

    TWO_THETA = "two_theta_deg"
    TOF = "tof_us"
    D_SPACING = "d_angstrom"
    Q = "q_inverse_angstrom"


class SigmaOrigin(StrEnum):
    """Where the standard uncertainties of the intensities come from."""

    MEASURED = "measured"
    """As written in the file."""
    COUNTING = "counting"
    """``sqrt(max(y, 1))``, scaled for counters where the file says how many."""


@dataclass(frozen=True, slots=True)
class Notice:
    """Something a person should know, with a stable code."""

    code: str
    text: str


@dataclass(frozen=True, slots=True)
class PatternHints:
    """What a data file says about the measurement, beside the numbers. None: it does not say."""

    wavelengths_angstrom: tuple[float, ...] = ()
    ka2_ratio: float | None = None
    anode: str | None = None
    radiation: str | None = None
    """``xray`` or ``neutron``."""
    goniometer_radius_mm: float | None = None
    temperature_kelvin: float | None = None
    counting_seconds: float | None = None
    intensity_seconds: float | None = None
    """Time that an intensity stands for: the counting time of counts, 1 of counts per second."""
    bank: int | None = None
    """Number of the bank of detectors, in GSAS files."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """One histogram.

    Args:
        x: abscissa, shape (n,), strictly increasing, unit given by ``axis``.
        y: intensity, shape (n,), finite.
        sigma: standard uncertainty of ``y``, shape (n,), finite and > 0.
        axis: kind of abscissa.
        sigma_origin: measured or from counting statistics.
        format: name of the file format as recognised.
        title: title line of the file, untrusted text, at most 200 characters.
        source_name: base name of the file it was read from.
        source_sha256: SHA-256 of the file's bytes.
    """

    x: FloatArray
    y: FloatArray
    sigma: FloatArray
    axis: AxisKind = AxisKind.TWO_THETA
    sigma_origin: SigmaOrigin = SigmaOrigin.COUNTING
    format: str = "memory"
    title: str = ""
    source_name: str = ""
    source_sha256: str = ""
    hints: PatternHints = field(default_factory=PatternHints)
    notices: tuple[Notice, ...] = ()

    @property
    def n_points(self) -> int:
        """Number of points."""
        return int(self.x.size)
