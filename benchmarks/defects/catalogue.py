"""The defects: what each does to the model or to the specimen, at which five sizes, and which cause is right."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DEFECTS", "LEVELS", "TRUTH", "Defect"]

LEVELS = (1_000, 10_000, 100_000)
"""Counts at the highest channel."""

TRUTH = {
    "profile.U": 0.004,
    "profile.V": -0.003,
    "profile.W": 0.006,
    "profile.X": 0.0,
    "profile.Y": 0.0,
    "profile.S/L": 0.02,
    "profile.H/L": 0.02,
    "size": 0.04,
    "strain": 0.04,
}
"""A usual laboratory instrument: 0.10 deg at low angle, a third of it Lorentzian; S/L = H/L = 0.02."""


@dataclass(frozen=True)
class Defect:
    """One way to be wrong.

    Args:
        name: unique.
        where: ``model`` (values of the model are off), ``specimen`` (the data hold what the model does not),
            ``instrument`` (the model is set up with other constants), ``range`` (fewer data, and a zero shift).
        sizes: five, from below detection to gross.
        unit: of the sizes, for the tables.
        causes: answers that are right.
    """

    name: str
    where: str
    sizes: tuple[float, ...]
    unit: str
    causes: frozenset[str]


def _defect(name: str, where: str, sizes: tuple[float, ...], unit: str, *causes: str) -> Defect:
    return Defect(name, where, sizes, unit, frozenset(causes or (name,)))


DEFECTS: tuple[Defect, ...] = (
    _defect("none", "model", (1, 2, 3, 4, 5), "seed"),
    _defect("zero", "model", (0.001, 0.003, 0.01, 0.04, 0.12), "deg"),
    _defect("displacement", "model", (0.002, 0.006, 0.02, 0.07, 0.2), "mm"),
    # A wavelength and a cell that are wrong by the same factor give the same positions.
    _defect("cell", "model", (1e-5, 3e-5, 1e-4, 5e-4, 2e-3), "dd/d", "cell", "wavelength"),
    _defect("cell_axis", "model", (2e-5, 6e-5, 2e-4, 1e-3, 4e-3), "dc/c", "cell"),
    _defect("wavelength", "instrument", (1e-5, 3e-5, 1e-4, 5e-4, 2e-3), "dl/l", "cell", "wavelength"),
    _defect("width_gauss", "model", (0.02, 0.06, 0.2, 0.6, 2.0), "W/W-1"),
    _defect("size", "model", (0.03, 0.1, 0.3, 1.0, 9.0), "X/X-1"),
    _defect("strain", "model", (0.05, 0.15, 0.4, 1.0, 9.0), "Y/Y-1"),
    _defect("asymmetry", "model", (0.05, 0.15, 0.4, 0.7, 1.0), "share of S/L"),
    _defect("texture", "specimen", (0.99, 0.97, 0.9, 0.75, 0.5), "r"),
    _defect("uiso", "model", (0.0003, 0.001, 0.003, 0.008, 0.02), "A^2"),
    _defect("occupancy", "model", (0.01, 0.03, 0.1, 0.2, 0.4), "of 1"),
    # The model's other phase is not there: what is seen of it is that a phase is missing, or that its own lines are.
    _defect("missing_phase", "specimen", (0.003, 0.01, 0.03, 0.10, 0.30), "weight"),
    _defect("wrong_phase", "specimen", (0.03, 0.10, 0.30, 0.60, 1.0), "weight", "wrong_phase", "missing_phase"),
    _defect("background", "specimen", (0.01, 0.03, 0.1, 0.3, 1.0), "of its level"),
    _defect("ka2_ratio", "model", (0.01, 0.03, 0.06, 0.15, 0.5), "of 1"),
    _defect("truncated", "range", (80.0, 65.0, 55.0, 45.0, 38.0), "to deg; zero 0.02", "zero"),
)
