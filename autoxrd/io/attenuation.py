"""How strongly does matter absorb X-rays of a wavelength? Mass absorption coefficients of elements and mixtures.

Total cross-sections (photoelectric and scattering) of McMaster et al. (1969), Compilation of X-ray Cross Sections,
UCRL-50174, as rietx brings them; the same table gives its microabsorption. Standard and specimen must be read from one
table: then much of its error, some percent, leaves their ratio.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from autoxrd.domain.pattern import FloatArray
from autoxrd.domain.structure import CrystalStructure
from autoxrd.errors import NotFound, UserInputError

__all__ = ["composition_absorption", "element_counts", "mass_absorption", "read_composition"]

_HC_EV_ANGSTROM = 12398.4198
_AVOGADRO_BARN = 0.602214076
"""cm2/g of one barn per dalton (CODATA 2018)."""
_FORMULA = re.compile(r"([A-Z][a-z]?)(\d+(?:\.\d+)?)?|(\()|\)(\d+(?:\.\d+)?)?")
_WHOLE_PERCENT = 0.5
"""A composition adds up to 100 within so much, percent by weight: analyses are rounded."""
_LONGEST = 2000
_MOST_ATOMS = 1e6


def mass_absorption(counts: Mapping[str, float], wavelength_angstrom: float) -> float:
    """Return the mass absorption coefficient of a compound, cm2/g.

    Args:
        counts: atoms by chemical symbol, in any unit.
        wavelength_angstrom: of the X-rays.

    Raises:
        UserInputError: ``mass_absorption_unknown``, the table lacks an element or has an edge too near.
    """
    import gemmi

    section = sum(n * _cross_section(symbol, wavelength_angstrom) for symbol, n in counts.items())
    mass = sum(n * float(gemmi.Element(symbol).weight) for symbol, n in counts.items())
    return _AVOGADRO_BARN * section / mass


def element_counts(structure: CrystalStructure) -> dict[str, float]:
    """Return the atoms of a cell by chemical symbol, deuterium as hydrogen."""
    counts: dict[str, float] = {}
    for atom in structure.atoms:
        symbol = "H" if atom.element == "D" else atom.element
        counts[symbol] = counts.get(symbol, 0.0) + max(atom.occupancy, 0.0) * atom.multiplicity
    return counts


def composition_absorption(text: str, wavelength_angstrom: float) -> float:
    """Return the mass absorption coefficient of a mixture, cm2/g: the mean of its parts by weight.

    Args:
        text: formulas with percent by weight, ``Al2O3:50,SiO2:50``; they add up to 100 within 0.5.
        wavelength_angstrom: of the X-rays.

    Raises:
        UserInputError: ``composition_invalid``, ``mass_absorption_unknown``.
    """
    parts = read_composition(text)
    total = sum(percent for _, percent in parts)
    return sum(percent * mass_absorption(counts, wavelength_angstrom) for counts, percent in parts) / total


def read_composition(text: str) -> list[tuple[dict[str, float], float]]:
    """Return the atoms of each part by chemical symbol, and its percent by weight.

    Raises:
        UserInputError: ``composition_invalid``.
    """
    if len(text) > _LONGEST:
        raise _invalid(f"has more than {_LONGEST} characters")
    parts = [_part(item) for item in text.split(",")]
    total = sum(percent for _, percent in parts)
    if abs(total - 100.0) > _WHOLE_PERCENT:
        raise _invalid(f"adds up to {total:g} % by weight, not to 100")
    return parts


def _part(item: str) -> tuple[dict[str, float], float]:
    formula, _, amount = item.partition(":")
    try:
        percent = float(amount.strip().removesuffix("%"))
    except ValueError:
        raise _invalid(f"has no percentage in {item.strip()[:40]!r}") from None
    if not (percent > 0.0 and math.isfinite(percent)):
        raise _invalid(f"has a share that is not above 0 in {item.strip()[:40]!r}")
    return _atoms(formula.strip()), percent


def _atoms(formula: str) -> dict[str, float]:
    """Read a formula such as Al2O3, Mg(OH)2 or Ca10(PO4)6F2."""
    levels: list[dict[str, float]] = [{}]
    end = 0
    for match in _FORMULA.finditer(formula):
        if match.start() != end:
            break
        end = match.end()
        symbol, count, opens, times = match.groups()
        if opens:
            levels.append({})
            continue
        inner = {symbol: float(count or 1)} if symbol else {}
        if not symbol:
            if len(levels) < 2:
                raise _unreadable(formula)
            inner = {name: n * float(times or 1) for name, n in levels.pop().items()}
        for name, n in inner.items():
            levels[-1][name] = levels[-1].get(name, 0.0) + n
    if end != len(formula) or len(levels) != 1 or not 0.0 < sum(levels[0].values()) < _MOST_ATOMS:
        raise _unreadable(formula)
    return levels[0]


def _unreadable(formula: str) -> UserInputError:
    return _invalid(f"has a formula that cannot be read: {formula[:40]!r}")


def _invalid(what: str) -> UserInputError:
    text = f"The composition {what}; give formulas with percent by weight, as in Al2O3:50,SiO2:50."
    return UserInputError("composition_invalid", text)


def _cross_section(symbol: str, wavelength_angstrom: float) -> float:
    """Return the total cross-section of an element, barn, log-log interpolated.

    Between two energies of the table the photoelectric part falls; where it rises an edge lies between them, and
    nothing is interpolated.
    """
    name = "H" if symbol == "D" else symbol
    grid = _table().get(name)
    energy = _HC_EV_ANGSTROM / wavelength_angstrom
    if grid is None:
        raise _unknown(f"the table has no element {symbol[:8]!r}")
    if not grid[0, 0] <= energy <= grid[-1, 0]:
        raise _unknown(f"{wavelength_angstrom:g} angstrom lie outside the table of {name}")
    place = min(max(int(np.searchsorted(grid[:, 0], energy)) - 1, 0), len(grid) - 2)
    if grid[place + 1, 1] > grid[place, 1]:
        raise _unknown(f"an absorption edge of {name} lies too near to {wavelength_angstrom:g} angstrom")
    return float(np.exp(np.interp(math.log(energy), np.log(grid[:, 0]), np.log(grid[:, 2]))))


def _unknown(why: str) -> UserInputError:
    text = f"The mass absorption coefficient cannot be calculated: {why}; it has to be stated, in cm2/g."
    return UserInputError("mass_absorption_unknown", text)


@functools.cache  # reads a file of the installation, which a process does not outlive
def _table() -> dict[str, FloatArray]:
    """Return energy in eV, photoelectric and total cross-section in barn by element, shape (n, 3) each."""
    found = find_spec("rietx")  # where it lies, without loading it
    path = None if found is None or found.origin is None else Path(found.origin).parent / "data" / "mu_McMaster.dat"
    if path is None or not path.is_file():
        text = "The table of X-ray cross-sections comes with rietx, and is not there: install the package again."
        raise NotFound("resource_missing", text)
    return _parsed(path.read_text(encoding="utf-8").splitlines())


def _parsed(lines: Sequence[str]) -> dict[str, FloatArray]:
    rows: dict[str, list[list[float]]] = {}
    element = ""
    for line in lines:
        if line.startswith("#S"):
            element = line.split()[2]
        elif line.strip() and not line.startswith("#"):
            rows.setdefault(element, []).append([float(word) for word in line.split()])
    return {name: np.array(values) for name, values in rows.items()}
