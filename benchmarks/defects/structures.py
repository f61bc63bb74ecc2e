"""Twelve main phases and what is mixed into them, as CIF text from published structures.

Cells and coordinates are those of the references given; displacement parameters are rounded to what is usual.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

from autoxrd.domain.structure import CrystalStructure

__all__ = ["SAMPLES", "Sample", "cif_text", "structure"]

Atom = tuple[str, str, float, float, float, float]
"""Label, element, x, y, z, Uiso (angstrom^2); all sites are full."""


@dataclass(frozen=True)
class Crystal:
    group: str
    cell: tuple[float, float, float, float, float, float]
    atoms: tuple[Atom, ...]
    source: str


@dataclass(frozen=True)
class Sample:
    """One row of the bench.

    Args:
        name: main phase.
        occupied: atom whose occupancy is wrong where that is the defect; empty where it is only a scale.
        axis: axis of the preferred orientation.
        impurity: phase that the model does not know.
        wrong: phase that the model has and the specimen has not.
    """

    name: str
    occupied: str
    axis: tuple[int, int, int]
    impurity: str
    wrong: str


CRYSTALS: Mapping[str, Crystal] = {
    "silicon": Crystal(
        "F d -3 m :2",
        (5.43102, 5.43102, 5.43102, 90, 90, 90),
        (("Si", "Si", 0.125, 0.125, 0.125, 0.006),),
        "NIST SRM 640",
    ),
    "lab6": Crystal(
        "P m -3 m",
        (4.15682, 4.15682, 4.15682, 90, 90, 90),
        (("La", "La", 0, 0, 0, 0.006), ("B", "B", 0.1993, 0.5, 0.5, 0.005)),
        "NIST SRM 660b",
    ),
    "ceria": Crystal(
        "F m -3 m",
        (5.4115, 5.4115, 5.4115, 90, 90, 90),
        (("Ce", "Ce", 0, 0, 0, 0.004), ("O", "O", 0.25, 0.25, 0.25, 0.007)),
        "NIST SRM 674b",
    ),
    "corundum": Crystal(
        "R -3 c :H",
        (4.7590, 4.7590, 12.9920, 90, 90, 120),
        (("Al", "Al", 0, 0, 0.35216, 0.004), ("O", "O", 0.30624, 0, 0.25, 0.0045)),
        "Lewis, Schwarzenbach & Flack (1982), doi:10.1107/S0567739482001478",
    ),
    "zincite": Crystal(
        "P 63 m c",
        (3.24950, 3.24950, 5.20690, 90, 90, 120),
        (("Zn", "Zn", 0.3333333, 0.6666667, 0, 0.007), ("O", "O", 0.3333333, 0.6666667, 0.3819, 0.007)),
        "Kihara & Donnay (1985)",
    ),
    "rutile": Crystal(
        "P 42/m n m",
        (4.5937, 4.5937, 2.9587, 90, 90, 90),
        (("Ti", "Ti", 0, 0, 0, 0.006), ("O", "O", 0.3048, 0.3048, 0, 0.006)),
        "Burdett et al. (1987), doi:10.1021/ja00246a021",
    ),
    "quartz": Crystal(
        "P 32 2 1",
        (4.9134, 4.9134, 5.4052, 90, 90, 120),
        (("Si", "Si", 0.4697, 0, 0.6666667, 0.006), ("O", "O", 0.4135, 0.2669, 0.7858, 0.011)),
        "Levien, Prewitt & Weidner (1980)",
    ),
    "calcite": Crystal(
        "R -3 c :H",
        (4.9896, 4.9896, 17.0610, 90, 90, 120),
        (("Ca", "Ca", 0, 0, 0, 0.008), ("C", "C", 0, 0, 0.25, 0.008), ("O", "O", 0.2568, 0, 0.25, 0.014)),
        "Graf (1961)",
    ),
    "anglesite": Crystal(
        "P n m a",
        (8.478, 5.398, 6.958, 90, 90, 90),
        (
            ("Pb", "Pb", 0.1879, 0.25, 0.1669, 0.016),
            ("S", "S", 0.0633, 0.25, 0.6842, 0.010),
            ("O1", "O", 0.9082, 0.25, 0.5954, 0.020),
            ("O2", "O", 0.1938, 0.25, 0.5432, 0.020),
            ("O3", "O", 0.0811, 0.0273, 0.8086, 0.016),
        ),
        "Miyake, Minato, Morikawa & Iwai (1978)",
    ),
    "apatite": Crystal(
        "P 63/m",
        (9.3970, 9.3970, 6.8780, 90, 90, 120),
        (
            ("Ca1", "Ca", 0.3333333, 0.6666667, 0.0010, 0.010),
            ("Ca2", "Ca", 0.2416, 0.0071, 0.25, 0.009),
            ("P", "P", 0.3981, 0.3688, 0.25, 0.007),
            ("O1", "O", 0.3262, 0.4843, 0.25, 0.011),
            ("O2", "O", 0.5880, 0.4668, 0.25, 0.013),
            ("O3", "O", 0.3415, 0.2569, 0.0704, 0.015),
            ("F", "F", 0, 0, 0.25, 0.020),
        ),
        "Hughes, Cameron & Crowley (1989)",
    ),
    "forsterite": Crystal(
        "P b n m",
        (4.7540, 10.1971, 5.9806, 90, 90, 90),
        (
            ("Mg1", "Mg", 0, 0, 0, 0.006),
            ("Mg2", "Mg", 0.9915, 0.2774, 0.25, 0.006),
            ("Si", "Si", 0.4262, 0.0940, 0.25, 0.005),
            ("O1", "O", 0.7657, 0.0913, 0.25, 0.006),
            ("O2", "O", 0.2215, 0.4474, 0.25, 0.006),
            ("O3", "O", 0.2777, 0.1628, 0.0331, 0.006),
        ),
        "Fujino, Sasaki, Takeuchi & Sadanaga (1981), doi:10.1107/S0567740881004506",
    ),
    "baddeleyite": Crystal(
        "P 1 21/c 1",
        (5.1505, 5.2116, 5.3173, 90, 99.23, 90),
        (
            ("Zr", "Zr", 0.2754, 0.0395, 0.2083, 0.005),
            ("O1", "O", 0.0700, 0.3317, 0.3447, 0.007),
            ("O2", "O", 0.4496, 0.7569, 0.4792, 0.007),
        ),
        "Howard, Hill & Reichert (1988), doi:10.1107/S0108768187010279",
    ),
    "fluorite": Crystal(
        "F m -3 m",
        (5.4631, 5.4631, 5.4631, 90, 90, 90),
        (("Ca", "Ca", 0, 0, 0, 0.006), ("F", "F", 0.25, 0.25, 0.25, 0.009)),
        "Batchelder & Simmons (1964)",
    ),
    "halite": Crystal(
        "F m -3 m",
        (5.6402, 5.6402, 5.6402, 90, 90, 90),
        (("Na", "Na", 0, 0, 0, 0.022), ("Cl", "Cl", 0.5, 0.5, 0.5, 0.018)),
        "Abrahams & Bernstein (1965)",
    ),
    "periclase": Crystal(
        "F m -3 m",
        (4.2112, 4.2112, 4.2112, 90, 90, 90),
        (("Mg", "Mg", 0, 0, 0, 0.004), ("O", "O", 0.5, 0.5, 0.5, 0.004)),
        "Hazen (1976)",
    ),
}

SAMPLES: tuple[Sample, ...] = (
    Sample("silicon", "", (1, 1, 1), "corundum", "periclase"),
    Sample("lab6", "B", (1, 0, 0), "fluorite", "halite"),
    Sample("ceria", "O", (1, 1, 1), "quartz", "periclase"),
    Sample("corundum", "O", (0, 0, 1), "fluorite", "halite"),
    Sample("zincite", "O", (0, 0, 1), "rutile", "periclase"),
    Sample("rutile", "O", (1, 1, 0), "corundum", "halite"),
    Sample("quartz", "O", (0, 0, 1), "calcite", "periclase"),
    Sample("calcite", "Ca", (1, 0, 4), "quartz", "halite"),
    Sample("anglesite", "S", (0, 1, 0), "fluorite", "periclase"),
    Sample("apatite", "Ca2", (0, 0, 1), "calcite", "halite"),
    Sample("forsterite", "Mg1", (0, 1, 0), "periclase", "halite"),
    Sample("baddeleyite", "Zr", (0, 0, 1), "zincite", "halite"),
)

_KEYS = ("length_a", "length_b", "length_c", "angle_alpha", "angle_beta", "angle_gamma")
_COLUMNS = ("label", "type_symbol", "fract_x", "fract_y", "fract_z", "occupancy", "U_iso_or_equiv")


def cif_text(name: str) -> str:
    """Return the CIF of a crystal."""
    crystal = CRYSTALS[name]
    lines = [f"data_{name}", f"_space_group_name_H-M_alt '{crystal.group}'"]
    lines += [f"_cell_{key} {value}" for key, value in zip(_KEYS, crystal.cell, strict=True)]
    lines += ["loop_", *(f"_atom_site_{column}" for column in _COLUMNS)]
    lines += [f"{label} {element} {x} {y} {z} 1 {u}" for label, element, x, y, z, u in crystal.atoms]
    return "\n".join(lines) + "\n"


@lru_cache(maxsize=32)
def structure(name: str) -> CrystalStructure:
    """Return a structure by its name, read as any user's CIF is."""
    from autoxrd.io import read_structures

    with TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.cif"
        path.write_text(cif_text(name), encoding="utf-8")
        return read_structures(path)[0]
