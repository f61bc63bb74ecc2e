"""Convert the profile coefficients of GSAS and GSAS-II to widths as FWHM in degrees.

Both give the Gaussian part as a variance, sigma^2 = GU tan^2 + GV tan + GW (+ GP / cos^2), in centidegrees^2, and the
Lorentzian part as a FWHM in centidegrees, gamma = LX / cos + LY tan (+ Z). FWHM^2 = 8 ln 2 sigma^2.
Source: LAUR 86-748 (2004), CW profile functions 1 to 4; Toby & Von Dreele (2013), doi:10.1107/S0021889813003531.
That function 1 is a variance too was measured: lines of D1A (GU 354, GV -760, GW 652) are 0.39 degrees wide
at 77.6 degrees, 0.386 as a variance and 0.164 as a squared FWHM.
"""

from __future__ import annotations

import math

import numpy as np

from autoxrd.domain.instrument import Profile
from autoxrd.domain.pattern import Notice
from autoxrd.io.settings import InstrumentSettings

__all__ = ["gsas_profile", "is_dummy"]

_VARIANCE_TO_FWHM2 = 8.0 * math.log(2.0) / 1.0e4


def is_dummy(u: float, v: float, w: float, settings: InstrumentSettings) -> bool:
    """Whether GU, GV, GW are those of a template file, so that they say nothing about the instrument."""
    return all(abs(value - dummy) < 1e-6 for value, dummy in zip((u, v, w), settings.dummy_uvw, strict=True))


def gsas_profile(
    *,
    gu: float,
    gv: float,
    gw: float,
    gp: float = 0.0,
    lx: float = 0.0,
    ly: float = 0.0,
    z: float = 0.0,
    s_l: float = 0.0,
    h_l: float = 0.0,
    settings: InstrumentSettings,
) -> tuple[Profile | None, tuple[Notice, ...]]:
    """Convert coefficients in GSAS units.

    Args:
        gu: GU, centidegrees^2 (variance); likewise ``gv``, ``gw`` and ``gp`` (Scherrer term, over cos^2).
        gv: see ``gu``.
        gw: see ``gu``.
        gp: see ``gu``.
        lx: LX, centidegrees FWHM; likewise ``ly`` and ``z`` (constant).
        ly: see ``lx``.
        z: see ``lx``.
        s_l: S/L.
        h_l: H/L.
        settings: the range over which ``z`` is re-expressed.

    Returns:
        The profile, or None where the widths are not positive over the range, and notices.
    """
    values = (gu, gv, gw, gp, lx, ly, z, s_l, h_l)
    if not all(math.isfinite(value) and abs(value) < 1e7 for value in values):
        text = "The widths of the instrument file are not usable numbers and are left out."
        return None, (Notice("profile_unphysical", text),)
    notices: list[Notice] = []
    # GP / cos^2 = GP (1 + tan^2)
    u, v, w = ((gu + gp) * _VARIANCE_TO_FWHM2, gv * _VARIANCE_TO_FWHM2, (gw + gp) * _VARIANCE_TO_FWHM2)
    tan = np.tan(np.radians(np.linspace(1.0, 80.0, 159)))
    if float(np.min(u * tan**2 + v * tan + w)) < 0.0:
        text = "U, V, W of the instrument file give an imaginary width within the range; they are left out."
        return None, (Notice("profile_unphysical", text),)
    x, y = lx / 100.0, ly / 100.0
    if z != 0.0 or x < 0.0 or y < 0.0:
        x, y = _without_constant(x, y, z / 100.0, settings)
        text = f"The Lorentzian width of the instrument file is re-expressed as X = {x:.4f}, Y = {y:.4f} degrees."
        notices.append(Notice("profile_lorentz_reexpressed", text))
    return Profile(u=u, v=v, w=w, x=x, y=y, s_l=max(0.0, s_l), h_l=max(0.0, h_l)), tuple(notices)


def _without_constant(x: float, y: float, z: float, settings: InstrumentSettings) -> tuple[float, float]:
    """Fit X / cos + Y tan with X, Y >= 0 to the (non-negative) width X / cos + Y tan + Z over the range."""
    theta = np.radians(np.linspace(*settings.lorentz_range_deg, 131) / 2.0)
    inverse_cos, tan = 1.0 / np.cos(theta), np.tan(theta)
    width = np.maximum(0.0, x * inverse_cos + y * tan + z)
    best, best_misfit = (0.0, 0.0), math.inf
    for use_x, use_y in ((True, True), (True, False), (False, True)):
        basis = np.stack([inverse_cos * use_x, tan * use_y], axis=1)
        coefficients = np.linalg.lstsq(basis, width, rcond=None)[0]
        misfit = float(np.sum((basis @ coefficients - width) ** 2))
        if np.all(coefficients >= 0.0) and misfit < best_misfit:
            best, best_misfit = (float(coefficients[0]), float(coefficients[1])), misfit
    return best
