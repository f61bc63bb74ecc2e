"""Anisotropic widths of a phase's lines, and its texture in spherical harmonics: GSAS-II's laws on arrays.

One axis: plates or needles, Lorentzian widths that follow an ellipse. Microstrain after Stephens (1999),
10.1107/S0021889898006001. Texture after Von Dreele (1997), 10.1107/S0021889897005918, with cylindrical symmetry.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Any

import numpy as np
from axg_state import PhaseModel
from GSASII import GSASIIlattice as G2lat
from GSASII import GSASIIspc as G2spc

__all__ = [
    "STRAIN_TO_GSASII",
    "angles_to_axis",
    "gsasii_harmonic",
    "harmonic_factor",
    "harmonic_names",
    "size_widths",
    "start_stephens",
    "stephens_multiples",
    "stephens_names",
    "stephens_slopes",
    "stephens_terms",
    "strain_unit",
    "strain_widths",
]

STRAIN_TO_GSASII = 100.0 * np.pi / 0.018
"""From a strain as FWHM/tan(theta) in degrees to GSAS-II's microstrain (1e-6)."""
LEAST = 1e-9
_START = 500.0
"""Spread of 1/d^2, in 1e-6, that coefficients start from where there is no strain: at nothing they have no gradient."""
_MULTIPLES = {"S220": 3.0, "S202": 3.0, "S022": 3.0, "S211": 4.0, "S121": 4.0, "S112": 4.0}
"""GSAS-II multiplies its coefficients with these; those like S310 with 2, and S301 of the Laue group -31m with 4."""
_TRIGONAL = ("S400", "S004", "S202", "S301")


def angles_to_axis(hkl: np.ndarray, metric: Any, axis: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return cosine and sine, squared, of the angle between each plane's normal and that of an axis, shape (r,)."""
    reciprocal = G2lat.A2Gmat(metric)[0]
    direction = np.array(axis, dtype=float)
    along = (hkl @ reciprocal @ direction) ** 2
    lengths = np.einsum("ri,ij,rj->r", hkl, reciprocal, hkl)
    cosine = np.clip(along / (lengths * (direction @ reciprocal @ direction)), 0.0, 1.0)
    return cosine, 1.0 - cosine


def size_widths(phase: PhaseModel, values: dict[str, float], hkl: np.ndarray, metric: Any) -> np.ndarray | float:
    """Return the width of size times cos(theta), degrees: a number, or one for each reflection."""
    prefix = f"phase.{phase.name}"
    if phase.size_axis is None:
        return values[f"{prefix}.size"]
    cosine, sine = angles_to_axis(hkl, metric, phase.size_axis)
    return np.sqrt(sine * values[f"{prefix}.size"] ** 2 + cosine * values[f"{prefix}.size.axial"] ** 2)


def strain_widths(
    phase: PhaseModel, values: dict[str, float], hkl: np.ndarray, metric: Any, d: np.ndarray, terms: np.ndarray | None
) -> np.ndarray | float:
    """Return the width of microstrain over tan(theta), degrees: a number, or one for each reflection.

    Args:
        phase: the phase.
        values: by our names.
        hkl: shape (r, 3).
        metric: reciprocal.
        d: spacings, angstrom, shape (r,).
        terms: what Stephens' coefficients are multiplied with, shape (k, r).

    Over the time of flight the width is in microseconds and over d.
    """
    prefix = f"phase.{phase.name}"
    if phase.stephens:
        assert terms is not None
        total = np.array([values[f"{prefix}.strain.{name}"] for name in phase.stephens]) @ terms
        return np.asarray(strain_unit(values) * d**2 * np.sqrt(np.maximum(total, 0.0)))
    if phase.strain_axis is None:
        return values[f"{prefix}.strain"]
    across, along = values[f"{prefix}.strain"], values[f"{prefix}.strain.axial"]
    cosine, sine = angles_to_axis(hkl, metric, phase.strain_axis)
    return np.asarray(across * along / np.sqrt(cosine * across**2 + sine * along**2 + LEAST**2))


def strain_unit(values: dict[str, float]) -> float:
    """Return the width of strain that a spread of 1/d^2 of 1e-6 makes: degrees, or us/angstrom with time of flight."""
    dif_c = values.get("instrument.difC")
    return 1.0 / STRAIN_TO_GSASII if dif_c is None else 1e-6 * dif_c


def stephens_names(group: dict[str, Any]) -> tuple[str, ...]:
    """Return the names of the coefficients that a Laue group has, in GSAS-II's order: ``S400``, ``S220``, ..."""
    names = tuple(G2spc.MustrainNames(group))
    # the same by symmetry, and named as Stephens does
    return tuple("S202" if n == "S022" else n for n in names) if group["SGLaue"] in ("4/m", "4/mmm") else names


def stephens_multiples(names: tuple[str, ...]) -> np.ndarray:
    """Return our coefficients, of the literal products of indices, over GSAS-II's, shape (k,)."""
    found = [_MULTIPLES.get(name, 1.0 if "4" in name else 2.0) for name in names]
    return np.array([*found[:-1], 4.0] if names == _TRIGONAL else found)


def stephens_terms(hkl: np.ndarray, group: dict[str, Any]) -> np.ndarray:
    """Return what each coefficient is multiplied with, shape (k, r)."""
    return np.asarray(np.array(G2spc.MustrainCoeff(hkl.T, group)) / stephens_multiples(stephens_names(group))[:, None])


def start_stephens(spread: float, hkl: np.ndarray, d: np.ndarray, group: dict[str, Any]) -> list[float]:
    """Return coefficients (1e-12/angstrom^4) that stand for an isotropic spread of 1/d^2, 1e-6, or a small one."""
    wanted = max(spread, _START) ** 2
    scaled = stephens_terms(hkl, group) * d**4
    return [float(v) for v in np.linalg.lstsq(scaled.T, np.full(len(d), wanted), rcond=None)[0]]


def stephens_slopes(width: float, terms: np.ndarray, d: np.ndarray, unit: float) -> np.ndarray:
    """Return d(width of strain)/d(coefficient) of each line at an isotropic strain, or a small one, shape (k, r)."""
    return np.asarray(unit**2 * d**4 * terms / (2.0 * max(width, _START * unit)))


def harmonic_names(group: dict[str, Any], order: int) -> tuple[str, ...]:
    """Return our names of the harmonics up to an order: ``C_4_0``; a minus is written m."""
    given = G2lat.GenSHCoeffT(group["SGLaue"], "0", order, False)
    return tuple("C_{}_{}".format(*re.findall(r"-?\d+", name)).replace("-", "m") for name in given)


def gsasii_harmonic(name: str) -> str:
    """Return GSAS-II's spelling of one of our names."""
    degree, index = name.replace("m", "-").split("_")[1:]
    return f"C({degree},{index})"


def harmonic_factor(
    phase: PhaseModel,
    values: dict[str, float],
    hkl: np.ndarray,
    cell: list[float],
    theta: np.ndarray,
    group: dict[str, Any],
    *,
    reflection: bool,
) -> np.ndarray:
    """Return the factor of each reflection's intensity, shape (r,).

    Args:
        phase: the phase.
        values: by our names.
        hkl: shape (r, 3).
        cell: lengths and angles.
        theta: Bragg angles, radians, shape (r,).
        group: GSAS-II's space group.
        reflection: True for Bragg-Brentano, where the normal of the specimen lies along the scattering vector.
    """
    _initialised()
    basis = _basis(hkl.tobytes(), tuple(cell), group["SGLaue"], group["SGUniq"], phase.harmonics)
    gangles = [0.0, 90.0, 0.0, 0.0] if reflection else [0.0, 0.0, 0.0, 0.0]
    psi = G2lat.SamAng(np.degrees(theta), gangles, [0.0, 0.0, 0.0], reflection)[0]
    factor = np.ones(len(hkl))
    for name, crystal in zip(phase.harmonics, basis, strict=True):
        degree = int(name.split("_")[1])
        specimen = G2lat.GetKsl(degree, 0, "0", np.asarray(psi, dtype=float), np.zeros(len(hkl)))[0]
        value = values[f"phase.{phase.name}.preferred_orientation.{name}"]
        factor = factor + value * G2lat.Lnorm(degree) * crystal * specimen
    return factor


@cache
def _initialised() -> None:
    """Fill GSAS-II's tables of harmonics: before that every harmonic is zero, and every texture none, in silence."""
    G2lat.ptx.pyqlmninit()


@lru_cache(maxsize=64)
def _basis(hkl: bytes, cell: tuple[float, ...], laue: str, unique: str, names: tuple[str, ...]) -> list[np.ndarray]:
    """Return the crystal's part of each harmonic, shape (r,) each; slow, and the same while the cell is."""
    indices = np.frombuffer(hkl).reshape(-1, 3)
    phi, beta = G2lat.CrsAng(indices, list(cell), {"SGLaue": laue, "SGUniq": unique})
    found = []
    for name in names:
        degree, index = (int(part) for part in name.replace("m", "-").split("_")[1:])
        found.append(np.array(G2lat.GetKcl(degree, index, laue, np.array(phi), np.array(beta)), dtype=float))
    return found
