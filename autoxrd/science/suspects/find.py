"""Look for causes beyond the model in a fit that does not explain its pattern."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from autoxrd.domain.instrument import Instrument
from autoxrd.domain.pattern import FloatArray
from autoxrd.domain.state import UnexplainedPeak
from autoxrd.domain.structure import CrystalStructure
from autoxrd.science.inputs import ReflectionArrays
from autoxrd.science.matching import lines_of
from autoxrd.science.matching.overview import Observed, fwhm_along
from autoxrd.science.suspects.magnetism import MagneticOrder, magnetic_order
from autoxrd.science.suspects.settings import SuspectSettings
from autoxrd.science.suspects.wavelength import OtherWavelength, other_wavelength

__all__ = ["Suspects", "find_suspects"]


@dataclass(frozen=True, slots=True)
class Suspects:
    """What may be wrong beyond the model; None where nothing points at it."""

    wavelength: OtherWavelength | None = None
    magnetic: MagneticOrder | None = None


def find_suspects(
    x: FloatArray,
    y: FloatArray,
    sigma: FloatArray,
    *,
    reflections: ReflectionArrays,
    structures: Sequence[CrystalStructure],
    peaks: Sequence[UnexplainedPeak],
    instrument: Instrument,
    settings: SuspectSettings | None = None,
) -> Suspects:
    """Return what points beyond the model.

    Args:
        x: degrees 2theta, shape (n,).
        y: intensity as observed, shape (n,).
        sigma: its uncertainty, shape (n,).
        reflections: calculated, of all phases.
        structures: phases in the order of the reflections' index.
        peaks: lines that nothing explains.
        instrument: as stated.
        settings: thresholds.
    """
    chosen = settings or SuspectSettings()
    wavelengths = instrument.wavelengths_angstrom
    lines = [lines_of(reflections, i, s.name, wavelengths) for i, s in enumerate(structures)]
    # widths of a model that fits nothing mean nothing: sharp lines on a coarse axis tell as much
    width = np.minimum(fwhm_along(x, reflections), chosen.widest_deg)
    observed = Observed(x, y, sigma, width)
    return Suspects(
        wavelength=other_wavelength(observed, lines, instrument, chosen),
        magnetic=magnetic_order(peaks, structures, instrument, chosen),
    )
