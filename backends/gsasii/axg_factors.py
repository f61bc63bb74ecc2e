"""Squared structure factors of a phase, GSAS-II's own, and their derivatives by atoms, which are not.

GSAS-II's analytic derivatives for powders leave out the mixed term of normal and anomalous scattering: in a group
without a centre they are off by the share of f'' (4 % for zincite and copper radiation), and a fit that follows them
ends beside the minimum.
"""

from __future__ import annotations

import numpy as np
from axg_adp import COMPONENTS, damping
from axg_flight import wavelengths
from axg_model import Model
from GSASII import GSASIIElem as G2elem
from GSASII import GSASIIlattice as G2lat
from GSASII import GSASIIstrMath as G2strMath

__all__ = ["structure_factors"]

_BLOCK = 200
"""Reflections that are worked on at a time: bounds the memory."""


def structure_factors(
    model: Model, index: int, d: np.ndarray, *, derivatives: bool
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return F^2 of a phase at the values that GSAS-II's parameters hold, and its derivatives by atoms.

    Args:
        model: GSAS-II's dictionaries.
        index: number of the phase.
        d: spacings, angstrom, shape (r,).
        derivatives: whether they are wanted.

    Returns:
        F^2, shape (r,), and for each atom ``QUANTITY:NUMBER`` (x, y, z, occupancy, uiso) an array of the same shape.
    """
    reflections, prefix = model.reflections(index), f"{index}::"
    reflections["RefList"][:, 4] = d
    if model.state.flight is not None:  # where resonant scattering reads its wavelengths
        reflections["RefList"][:, 14] = wavelengths(model.state.values, d, model.state.flight[1])
    group = model.phases[model.state.phases[index].name]["General"]["SGData"]
    reciprocal = G2lat.A2Gmat([model.parameters[f"{prefix}A{k}"] for k in range(6)])[0]
    with np.errstate(all="ignore"):
        G2strMath.StructureFactor2(reflections, reciprocal, ":0:", prefix, group, model.controls, model.parameters)
    f2 = np.array(reflections["RefList"][:, 9])
    return f2, _slopes(model, index, d) if derivatives else {}


def _slopes(model: Model, index: int, d: np.ndarray) -> dict[str, np.ndarray]:
    blocks = [_block(model, index, d, slice(k, k + _BLOCK)) for k in range(0, d.size, _BLOCK)]
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]} if blocks else {}


def _block(model: Model, index: int, d: np.ndarray, rows: slice) -> dict[str, np.ndarray]:
    numbers, prefix = model.parameters, f"{index}::"
    count = model.controls["Natoms"][prefix]
    position = np.array([[numbers[f"{prefix}A{axis}:{k}"] for k in range(count)] for axis in "xyz"])
    share = np.array([numbers[f"{prefix}Afrac:{k}"] for k in range(count)])
    places = np.array([numbers[f"{prefix}Amul:{k}"] for k in range(count)])
    uiso = np.array([numbers[f"{prefix}AUiso:{k}"] for k in range(count)])
    turned, phase = _phases(model, index, rows, position)
    fading = 2.0 * np.pi**2 / d[rows, None] ** 2
    power = _scattering(model, index, rows) * places * np.exp(-fading * uiso) / turned.shape[1]
    waves = np.exp(1j * phase)
    tensors = _tensors(model, index, turned)
    for k, (factor, _) in tensors.items():
        waves[:, :, k] = waves[:, :, k] * factor
    unit = power * waves.sum(axis=1)
    whole = np.conj(np.sum(share * unit, axis=1))[:, None]
    moved = 2j * np.pi * np.einsum("roi,roa->rai", turned, waves) * (share * power)[:, :, None]
    by_share = 2.0 * np.real(whole * unit)
    by_place = 2.0 * np.real(whole[:, :, None] * moved)
    found = {}
    for k in range(count):
        found[f"occupancy:{k}"] = by_share[:, k]
        if k in tensors:
            # what moves is the tensor; the isotropic equivalent follows it
            found[f"uiso:{k}"] = np.zeros(len(by_share))
            bent = np.einsum("uro,ro->ru", tensors[k][1], waves[:, :, k]) * (share[k] * power[:, k])[:, None]
            found |= {f"{key}:{k}": 2.0 * np.real(whole[:, 0] * bent[:, n]) for n, key in enumerate(COMPONENTS)}
        else:
            found[f"uiso:{k}"] = -fading[:, 0] * share[k] * by_share[:, k]
        found |= {f"{axis}:{k}": by_place[:, k, number] for number, axis in enumerate("xyz")}
    return found


def _tensors(model: Model, index: int, turned: np.ndarray) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Return Debye-Waller factor, shape (r, o), and logarithmic slopes, (6, r, o), of each anisotropic atom."""
    numbers, prefix = model.parameters, f"{index}::"
    stars = np.sqrt(np.diag(G2lat.A2Gmat([numbers[f"{prefix}A{k}"] for k in range(6)])[0]))
    found = {}
    for k in model.state.phases[index].anisotropic:
        tensor = np.array([numbers[f"{prefix}A{key.upper()}:{k}"] for key in COMPONENTS])
        found[k] = damping(turned, tensor, stars)
    return found


def _phases(model: Model, index: int, rows: slice, position: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices that symmetry makes, shape (r, o, 3), and each atom's phase angle, shape (r, o, a)."""
    group = model.phases[model.state.phases[index].name]["General"]["SGData"]
    hkl = model.reflections(index)["RefList"][rows, :3]
    turned = np.inner(hkl, np.array([operation[0].T for operation in group["SGOps"]]))
    shifted = np.inner(hkl, np.array([operation[1] for operation in group["SGOps"]]))
    if group["SGInv"]:
        turned, shifted = np.concatenate([turned, -turned], axis=1), np.concatenate([shifted, -shifted], axis=1)
    return turned, 2.0 * np.pi * (turned @ position + shifted[:, :, None])


def _scattering(model: Model, index: int, rows: slice) -> np.ndarray:
    """Return the scattering power of each atom, anomalous part included, shape (r, a), complex."""
    prefix = f"{index}::"
    types = [model.parameters[f"{prefix}Atype:{k}"] for k in range(model.controls["Natoms"][prefix])]
    table = model.reflections(index)["FF"]
    normal = table["FF"][rows][:, [table["El"].index(name) for name in types]]
    if model.state.radiation == "neutron":
        if model.state.flight is not None:
            waves = model.reflections(index)["RefList"][rows, 14]
            real, imaginary = (item.T for item in G2elem.BlenResTOF(types, model.controls["BLtables"], waves))
            return np.asarray(normal + real + 1j * imaginary)
        real, imaginary = G2elem.BlenResCW(types, model.controls["BLtables"], model.parameters[":0:Lam"])
    else:
        tables = model.controls["FFtables"]
        real, imaginary = (np.array([tables[name][f":0:{key}"] for name in types]) for key in ("FP", "FPP"))
    return np.asarray(normal + np.asarray(real) + 1j * np.asarray(imaginary))
