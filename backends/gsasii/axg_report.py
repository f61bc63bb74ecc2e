"""What a state looks like: arrays, reflections, parameters and phases, in our names and units.

A function of the state and of the covariance of the fit that made it: to evaluate a state again gives the
same numbers to the last bit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from axg_adp import COMPONENTS, positive
from axg_broadening import stephens_terms, strain_widths
from axg_flight import maxima
from axg_lines import FLOOR, Lines
from axg_model import CELL, Model, cell_of
from axg_names import Catalog
from axg_pattern import Computed
from axg_quantities import unit_of
from axg_solve import Limits, Outcome
from axg_state import State
from axr_fixed import curve_notices, curve_rows
from axr_rows import derived_row
from GSASII import GSASIIElem as G2elem
from GSASII import GSASIIlattice as G2lat

__all__ = ["cell_mass", "floor_notices", "parameter_rows", "phase_rows", "reflection_arrays", "tell_greatest"]

_Row = dict[str, Any]
_KEV_ANGSTROM = 12.398419843
_AMU_PER_A3 = 1.66053906660
"""g cm^-3 of one dalton per cubic angstrom (CODATA 2018)."""


def reflection_arrays(model: Model, seen: Computed, esds: Sequence[np.ndarray] | None = None) -> dict[str, np.ndarray]:
    """Return the reflections inside the range, all phases and lines; arrays of equal length.

    Args:
        model: GSAS-II's dictionaries.
        seen: the pattern.
        esds: of F^2 by phase, of a profile match.
    """
    found: dict[str, list[np.ndarray]] = {}
    for index, lines in enumerate(seen.lines):
        rows = model.reflections(index)["RefList"]
        weights = [1.0] if len(lines.position) == 1 else [1.0, seen.values["instrument.ka2_ratio"]]
        away, fwhm, eta = _seen(lines)
        for line, weight in enumerate(weights):
            position = lines.position[line] + away
            keep = np.isfinite(position) & (position >= model.x[0]) & (position <= model.x[-1])
            columns = {
                "phase": np.full(len(rows), index),
                "line": np.full(len(rows), line),
                "hkl": rows[:, :3].astype(np.int64),
                "d_angstrom": lines.d,
                "position": position,
                "fwhm": fwhm,
                "eta": eta,
                # GSAS-II's peak shapes have unit area in centidegrees, or microseconds
                "intensity": (0.01 if lines.rise is None else 1.0) * weight * lines.factor * seen.f2[index],
                "f2_calc": seen.f2[index],
                "multiplicity": rows[:, 3].astype(np.int64),
            } | ({} if esds is None else {"f2_esd": esds[index]})
            for name, column in columns.items():
                found.setdefault(name, []).append(column[keep])
    return {name: np.concatenate(columns) for name, columns in found.items()}


def _seen(lines: Lines) -> tuple[np.ndarray | float, np.ndarray, np.ndarray]:
    """Return how far each maximum stands from the position, width and Lorentzian share.

    The maximum differs where the exponentials of a line over the time of flight do.
    """
    if lines.rise is None or lines.decay is None:
        return (0.0, *_widths(lines, 0.01))
    return (*maxima(lines.variance, lines.lorentz, lines.rise, lines.decay), _widths(lines, 1.0)[1])


def _widths(lines: Lines, unit: float) -> tuple[np.ndarray, np.ndarray]:
    """Return width and Lorentzian share (Thompson, Cox & Hastings 1987, 10.1107/S0021889887087090)."""
    gauss, lorentz = 2.35482 * np.sqrt(lines.variance) * unit, lines.lorentz * unit
    terms = (1.0, 2.69269, 2.42843, 4.47163, 0.07842, 1.0)
    total = sum(c * gauss ** (5 - n) * lorentz**n for n, c in enumerate(terms)) ** 0.2
    share = lorentz / total
    return total, np.clip(1.36603 * share - 0.47719 * share**2 + 0.11116 * share**3, 0.0, 1.0)


def floor_notices(state: State, seen: Computed) -> list[tuple[str, str]]:
    """Return what a state is to be told with: widths at GSAS-II's floor, tensors of no displacement, a drawn curve."""
    found = []
    for phase, lines in zip(state.phases, seen.lines, strict=True):
        for name, array in (("Gaussian variance", lines.variance), ("Lorentzian width", lines.lorentz)):
            share = float(np.mean(array <= FLOOR))
            if 0.0 < share < 1.0 or (share == 1.0 and name == "Gaussian variance"):
                text = f"{100 * share:.0f} % of the reflections of {phase.name} have their {name} at GSAS-II's floor."
                found.append(("width_at_floor", text))
    return found + _tensor_notices(state) + curve_notices(state.fixed_estimate)


def _tensor_notices(state: State) -> list[tuple[str, str]]:
    """Return the atoms whose displacement parameters are those of no displacement."""
    found = []
    for phase in state.phases:
        for number in phase.anisotropic:
            label = phase.domain["atoms"][number]["label"]
            if not positive([state.values[f"phase.{phase.name}.atom.{label}.{key}"] for key in COMPONENTS]):
                text = f"The displacement parameters of {label} in {phase.name} are not positive definite."
                found.append(("adp_not_positive", text))
    return found


def parameter_rows(state: State, catalog: Catalog, limits: Limits, released: set[str], outcome: Outcome) -> list[_Row]:
    """Return every number of ours.

    Args:
        state: the state.
        catalog: what can be released in it.
        limits: by column, as the command gave them.
        released: columns that were free.
        outcome: with the covariance.
    """
    esds = outcome.esds(catalog.columns)
    following = {key for column in catalog.columns.values() for key, _ in column.moves if key != column.name}
    rows = []
    for name, value in state.values.items():
        column, free = catalog.columns.get(name), name in released
        lower, upper = (-math.inf, math.inf)
        if column is not None:
            lower, upper = limits.get(name, (column.lower, column.upper))
        esd = esds.get(name)
        coordinate = name[-2:] in (".x", ".y", ".z")
        rows.append(
            {
                "name": name,
                "value": value,
                "unit": unit_of(name, flight=state.flight is not None),
                "released": free,
                "esd": esd if esd or free else None,
                "lower": lower if math.isfinite(lower) else None,
                "upper": upper if math.isfinite(upper) else None,
                "derived": not free and ((name in following and not coordinate) or bool(esd)),
            }
        )
    return rows + curve_rows(state.fixed_estimate)


def tell_greatest(rows: list[_Row], model: Model, reflections: dict[str, np.ndarray]) -> None:
    """Put the strain along the broadest direction in the place of one without direction, where it has one.

    Args:
        rows: of all parameters; changed.
        model: GSAS-II's dictionaries.
        reflections: inside the range: ``phase``, ``hkl``, ``d_angstrom``.
    """
    for index, phase in enumerate(model.state.phases):
        mine = reflections["phase"] == index
        if not phase.stephens or not np.any(mine):
            continue
        hkl, d = reflections["hkl"][mine].astype(float), reflections["d_angstrom"][mine]
        terms = stephens_terms(hkl, model.phases[phase.name]["General"]["SGData"])
        widths = strain_widths(phase, model.state.values, hkl, None, d, terms)
        row = next(row for row in rows if row["name"] == f"phase.{phase.name}.strain")
        row |= {"value": float(np.max(widths)), "derived": True}


def phase_rows(state: State, model: Model, catalog: Catalog, outcome: Outcome) -> tuple[list[_Row], list[_Row]]:
    """Return each phase's description and its derived parameters."""
    fractions = _fractions(state, model, outcome)
    phases, derived = [], []
    for index, phase in enumerate(state.phases):
        prefix = f"phase.{phase.name}"
        esds = outcome.esds(catalog.columns)
        cell = {
            k: _measured(v, esds.get(f"{prefix}.cell.{k}"))
            for k, v in zip(CELL, cell_of(phase, state.values), strict=True)
        }
        volume, volume_esd = _volume(state, index, catalog, outcome)
        cell["volume"] = _measured(volume, volume_esd)
        phases.append(
            {
                "name": phase.name,
                "weight_fraction": fractions[index],
                "cell": cell,
                "structure": _refined(state, index),
            }
        )
        density = cell_mass(model, index) / volume * _AMU_PER_A3
        derived.append(derived_row(f"{prefix}.cell.volume", volume, volume_esd, "angstrom^3"))
        density_esd = None if volume_esd is None else density * volume_esd / volume
        derived.append(derived_row(f"{prefix}.density", density, density_esd, "g/cm^3"))
        absorption = _absorption(state, model, index, volume)
        if absorption is not None:
            derived.append(derived_row(f"{prefix}.linear_absorption", absorption, None, "1/cm"))
        fraction = fractions[index]
        if fraction is not None:
            derived.append(derived_row(f"{prefix}.weight_fraction", fraction["value"], fraction["esd"], ""))
        derived.extend(_microstructure(prefix, state, esds))
    return phases, derived


def cell_mass(model: Model, index: int) -> float:
    """Return the mass of a cell's content, dalton, by GSAS-II's table."""
    phase = model.phases[model.state.phases[index].name]
    masses = dict(zip(phase["General"]["AtomTypes"], phase["General"]["AtomMass"], strict=True))
    return float(
        sum(
            masses[row[1]] * row[8] * model.parameters[f"{index}::Afrac:{number}"]
            for number, row in enumerate(phase["Atoms"])
        )
    )


def _absorption(state: State, model: Model, index: int, volume: float) -> float | None:
    """Return the linear absorption coefficient of a phase's crystals for the first X-ray line, 1/cm.

    From GSAS-II's photoelectric cross-sections of the atoms (barn over cubic angstrom is 1/cm).
    """
    if state.radiation != "xray":
        return None
    energy = _KEV_ANGSTROM / state.values["instrument.wavelength"]
    total = 0.0
    for number, row in enumerate(model.phases[state.phases[index].name]["Atoms"]):
        element = re.sub("[^A-Za-z].*", "", row[1]).capitalize()
        section = G2elem.FPcalc(G2elem.GetXsectionCoeff(f"{element:<2}"), energy)[2]
        total += float(section) * row[8] * model.parameters[f"{index}::Afrac:{number}"]
    return total / volume


def _fractions(state: State, model: Model, outcome: Outcome) -> list[_Row | None]:
    """Return the weight fraction of each phase: GSAS-II's scales count cells.

    Hill & Howard (1987), 10.1107/S0021889887086199.
    """
    lines = [len(model.reflections(index)["RefList"]) for index in range(len(state.phases))]
    if state.mode != "rietveld" or not all(lines):
        return [None] * len(state.phases)
    names = [f"phase.{phase.name}.scale" for phase in state.phases]
    masses = np.array([cell_mass(model, index) for index in range(len(names))])
    weights = masses * np.array([state.values[name] for name in names])
    if not weights.sum() > 0.0:  # every phase has been scaled to nothing
        return [None] * len(state.phases)
    shares = weights / weights.sum()
    esds: list[float | None] = [None] * len(names)
    if all(name in outcome.names for name in names) and len(names) > 1:
        at = [outcome.names.index(name) for name in names]
        slopes = (np.diag(masses) - np.outer(shares, masses)) / weights.sum()
        variance = np.diag(slopes @ outcome.covariance[np.ix_(at, at)] @ slopes.T)
        esds = [math.sqrt(max(float(item), 0.0)) for item in variance]
    return [_measured(float(share), esd) for share, esd in zip(shares, esds, strict=True)]


def _volume(state: State, index: int, catalog: Catalog, outcome: Outcome) -> tuple[float, float | None]:
    phase = state.phases[index]
    volume = float(G2lat.calc_V(G2lat.cell2A(cell_of(phase, state.values))))
    head = f"phase.{phase.name}.cell."
    mine = [name for name in outcome.names if any(key.startswith(head) for key, _ in catalog.columns[name].moves)]
    if not mine:
        return volume, None
    slopes = []
    for name in mine:
        up, down, span = catalog.columns[name].around(state.values)
        high, low = (float(G2lat.calc_V(G2lat.cell2A(cell_of(phase, values)))) for values in (up, down))
        slopes.append((high - low) / span)
    at = [outcome.names.index(name) for name in mine]
    variance = float(np.array(slopes) @ outcome.covariance[np.ix_(at, at)] @ np.array(slopes))
    return volume, math.sqrt(variance) if variance > 0.0 else None


def _refined(state: State, index: int) -> _Row:
    """Return our description of the phase with the refined numbers in it."""
    phase = state.phases[index]
    atoms = []
    for given in phase.domain["atoms"]:
        base = f"phase.{phase.name}.atom.{given['label']}"
        numbers = {axis: state.values[f"{base}.{axis}"] for axis in "xyz"}
        numbers |= {"occupancy": state.values[f"{base}.occupancy"], "u_iso": state.values[f"{base}.uiso"]}
        tensor = None
        if given["label"] in {phase.domain["atoms"][k]["label"] for k in phase.anisotropic}:
            tensor = [state.values[f"{base}.{key}"] for key in COMPONENTS]
        atoms.append({**given, **numbers, "u_aniso": tensor})
    return {**phase.domain, "cell": cell_of(phase, state.values), "atoms": atoms}


def _microstructure(prefix: str, state: State, esds: dict[str, float]) -> list[_Row]:
    """Return size and microstrain as GSAS-II states them: FWHM = lambda/(L cos theta) and FWHM = strain tan theta.

    Over the time of flight FWHM = difC d^2/L and FWHM = difC d strain.
    """
    rows, values = [], state.values
    # what a width is divided by to give lambda/L, and strain
    if state.flight is None:
        per_size, per_strain = values["instrument.wavelength"] / math.radians(1.0), math.radians(1.0)
    else:
        per_size, per_strain = values["instrument.difC"], 1.0 / values["instrument.difC"]
    for tail, part in (("", ""), (".axial", "_axial")):
        size, strain = values.get(f"{prefix}.size{tail}", 0.0), values.get(f"{prefix}.strain{tail}", 0.0)
        if size > 0.0:
            length = 0.1 * per_size / size
            esd = esds.get(f"{prefix}.size{tail}")
            name = f"{prefix}.crystallite_size{part}_nm"
            rows.append(derived_row(name, length, None if not esd else length * esd / size, "nm (K=1)"))
        if strain > 0.0:
            esd = esds.get(f"{prefix}.strain{tail}")
            scaled = None if not esd else 100.0 * per_strain * esd
            name = f"{prefix}.microstrain{part}_percent"
            rows.append(derived_row(name, 100.0 * per_strain * strain, scaled, "percent (FWHM)"))
    return rows + _texture_index(prefix, values)


def _texture_index(prefix: str, values: dict[str, float]) -> list[_Row]:
    """Return the strength of a texture in harmonics: 1 without texture (Bunge 1982, Texture Analysis, 4.7)."""
    stem = f"{prefix}.preferred_orientation.C_"
    terms = [(int(name[len(stem) :].split("_")[0]), value) for name, value in values.items() if name.startswith(stem)]
    if not terms:
        return []
    index = 1.0 + sum(value**2 / (2.0 * degree + 1.0) for degree, value in terms)
    return [derived_row(f"{prefix}.texture_index", index, None, "")]


def _measured(value: float, esd: float | None) -> _Row:
    return {"value": value, "esd": esd if esd else None}
