"""Could an unexplained peak be a spectral impurity of a laboratory tube rather than another phase?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from autoxrd.domain.instrument import ANODE_LINES, Instrument, Radiation
from autoxrd.domain.state import UnexplainedPeak
from autoxrd.science.frame import Frame

__all__ = ["spectral_notices"]

# Kbeta1,3: Hoelzer et al. (1997), doi:10.1103/PhysRevA.56.4554; Mo, Ag: International Tables C (2004), 4.2.2.4.
_KBETA = {"Cr": 2.084881, "Fe": 1.756604, "Co": 1.620826, "Cu": 1.392234, "Mo": 0.632303, "Ag": 0.497082}
_TUNGSTEN_L_ALPHA = 1.476350
_MATCH_ANGSTROM = 0.002
_LARGEST_SHARE = 0.2
_REACH_FWHM = 0.6
_MOST = 5


def spectral_notices(
    frame: Frame, instrument: Instrument, peaks: Sequence[UnexplainedPeak]
) -> tuple[tuple[str, str], ...]:
    """Return a notice for each unexplained peak that lies where a foreign line of a strong reflection would.

    Such a peak still counts: whether the tube really emits that line is not in the data.
    """
    if instrument.radiation is not Radiation.XRAY or not frame.angular or not peaks:
        return ()
    first = frame.wavelength_angstrom
    anode = next(
        (a for a, pair in ANODE_LINES.items() if abs(pair[0].wavelength_angstrom - first) < _MATCH_ANGSTROM), ""
    )
    if not anode:
        return ()
    foreign = {"kbeta_line": (f"{anode} Kbeta", _KBETA[anode]), "tungsten_line": ("W Lalpha", _TUNGSTEN_L_ALPHA)}
    found = []
    for peak in sorted(peaks, key=lambda p: -p.area)[:_MOST]:
        for code, (label, wavelength) in foreign.items():
            parent = _parent(frame, peak, first / wavelength)
            if parent is not None:
                text = f"The peak at {peak.two_theta_deg:.3f} lies at the {label} line of the peak at {parent:.3f}."
                found.append((code, text))
    return tuple(found)


def _parent(frame: Frame, peak: UnexplainedPeak, ratio: float) -> float | None:
    """Return the position of a calculated line strong enough to be the parent, None where there is none."""
    sine = float(np.sin(np.deg2rad(peak.two_theta_deg) / 2.0)) * ratio
    if sine >= 1.0:
        return None
    position = float(np.rad2deg(2.0 * np.arcsin(sine)))
    lines = frame.lines
    near = np.abs(lines.position - position) < _REACH_FWHM * lines.fwhm
    strong = near & (lines.area * _LARGEST_SHARE > peak.area)
    return float(lines.position[np.argmax(strong)]) if strong.any() else None
