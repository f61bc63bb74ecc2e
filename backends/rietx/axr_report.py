"""What a state looks like: arrays, reflections, parameters and phases, in our names and units.

Everything here is a function of the state (and of the covariance of the fit that made it), so that
evaluating a state again gives the same numbers to the last bit.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import gemmi
import numpy as np
from axr_fixed import curve_rows
from axr_names import B_TO_U, map_path
from axr_private import Answer, compiled, table_of
from axr_private_match import carry_intensities
from axr_rows import derived_row
from axr_state import State
from axr_wire import Refused
from rietx.crystallography.attenuation import linear_attenuation
from rietx.io.exporters import reflection_table
from rietx.model.microstructure import microstructure_table
from rietx.optimize.qpa import compute_qpa

_Row = dict[str, Any]

__all__ = ["Evaluation", "evaluate", "parameter_rows", "phase_rows", "reflection_arrays"]

_CELL = ("a", "b", "c", "alpha", "beta", "gamma")
_AMU_PER_A3 = 1.66053906660
"""g cm^-3 of one dalton per cubic angstrom (CODATA 2018)."""


@dataclass(frozen=True)
class Evaluation:
    """A state's calculated pattern.

    Args:
        model: rietx's forward model at the state's values.
        values: every value by rietx path.
        background: shape (n,).
        parts: Bragg contribution of each phase, shape (phases, n).
    """

    model: Any
    values: dict[str, float]
    background: np.ndarray
    parts: np.ndarray

    @property
    def y_calc(self) -> np.ndarray:
        """Background plus all phases, in that order, shape (n,)."""
        total = self.background.copy()
        for part in self.parts:
            total = total + part
        return total


def evaluate(state: State) -> Evaluation:
    """Compute the pattern of a state.

    Raises:
        Refused: the model cannot be computed or gives non-finite numbers.
    """
    try:
        model = compiled(state.structure, state.instrument, state.pattern(), mode=state.mode, limits=state.limits)
    except (ValueError, KeyError, ArithmeticError) as error:
        raise Refused("diverged", "model_rejected", f"rietx cannot compute this model: {str(error)[:400]}") from error
    if state.mode == "lebail":
        carry_intensities(state.reflections, model)
    table = table_of(state.structure, state.instrument)
    values = table.decode(table.x0())
    background = np.asarray(model.background(values), dtype=np.float64)
    parts = np.stack([model.phase_component(index, values) for index in range(len(state.structure.phases))])
    if not (np.all(np.isfinite(background)) and np.all(np.isfinite(parts))):
        raise Refused("diverged", "pattern_not_finite", "The calculated pattern has values that are not finite.")
    return Evaluation(model, values, background, parts)


def reflection_arrays(state: State, seen: Evaluation) -> dict[str, np.ndarray]:
    """Return the reflections inside the range, all phases and lines; arrays of equal length."""
    rows = reflection_table(seen.model, seen.values, state.structure)
    positions, fwhm, eta, intensity = [], [], [], []
    for index in range(len(state.structure.phases)):
        for pos, first, second, area in seen.model.phase_peaks(index, seen.values):
            keep = np.isfinite(pos)
            positions.append(pos[keep])
            fwhm.append(seen.model.peak_fwhm(first, second)[keep])
            eta.append(np.broadcast_to(second, pos.shape)[keep])
            intensity.append(np.broadcast_to(area, pos.shape)[keep])
    position = np.concatenate(positions)
    # rietx keeps a margin of reflections beyond both ends
    keep = (position >= seen.model.tt[0]) & (position <= seen.model.tt[-1])
    return {
        "phase": np.array([row.phase_index for row in rows], dtype=np.int64)[keep],
        "line": np.array([row.line for row in rows], dtype=np.int64)[keep],
        "hkl": np.array([(row.h, row.k, row.l) for row in rows], dtype=np.int64).reshape(-1, 3)[keep],
        "d_angstrom": np.array([row.d for row in rows])[keep],
        "position": position[keep],
        "fwhm": np.concatenate(fwhm)[keep],
        "eta": np.clip(np.concatenate(eta), 0.0, 1.0)[keep],
        "intensity": np.concatenate(intensity)[keep],
        "f2_calc": np.array([math.nan if row.f_squared is None else row.f_squared for row in rows])[keep],
        "multiplicity": np.array([row.multiplicity for row in rows], dtype=np.int64)[keep],
    }


def parameter_rows(
    state: State, released: set[str], esds: dict[str, float], bounds: dict[str, tuple[float, float]]
) -> list[dict[str, Any]]:
    """Return every parameter of ours.

    Args:
        state: the state.
        released: names of ours that were free.
        esds: esd by rietx path.
        bounds: limits by rietx path, in rietx's unit, as the command gave them.
    """
    table = table_of(state.structure, state.instrument)
    rows = []
    for entry in table.entries:
        mapped = map_path(entry.path, state.structure)
        if mapped is None:
            continue
        coordinate = entry.path[-2:] in (".x", ".y", ".z")
        free = mapped.name in released
        lower, upper = bounds.get(entry.path, (-math.inf, math.inf))
        lower, upper = max(lower, entry.lo), min(upper, entry.hi)
        esd = esds.get(entry.path)
        rows.append(
            {
                "name": mapped.name,
                "value": entry.value * mapped.factor,
                "unit": mapped.unit,
                "released": free,
                "esd": None if esd is None or (esd == 0.0 and not free) else esd * mapped.factor,
                "lower": lower * mapped.factor if math.isfinite(lower) else None,
                "upper": upper * mapped.factor if math.isfinite(upper) else None,
                "derived": not free and ((entry.tie is not None and not coordinate) or esd is not None),
            }
        )
    return rows + curve_rows(state.fixed_estimate)


def phase_rows(state: State, seen: Evaluation, answer: Answer | None) -> tuple[list[_Row], list[_Row]]:
    """Return each phase's description and its derived parameters."""
    fractions = _fractions(state, seen, answer)
    esds = answer.esds() if answer is not None else {}
    wavelength = max(seen.model.line_wavelengths) if seen.model.line_wavelengths else None
    micro = microstructure_table(state.structure, seen.values, wavelength=wavelength, esds=esds)
    phases, derived = [], []
    for index, phase in enumerate(state.structure.phases):
        volume, volume_esd = _volume(index, seen.values, answer)
        cell = {
            key: _measured(seen.values[f"phases.{index}.cell.{key}"], esds.get(f"phases.{index}.cell.{key}"))
            for key in _CELL
        }
        cell["volume"] = _measured(volume, volume_esd)
        mass, fraction = fractions[index]
        phases.append(
            {
                "name": phase.name,
                "weight_fraction": fraction,
                "cell": cell,
                "structure": _refined(state.domain[index], index, phase, seen.values),
            }
        )
        density = mass / volume * _AMU_PER_A3
        density_esd = None if volume_esd is None else density * volume_esd / volume
        prefix = f"phase.{phase.name}"
        derived.append(derived_row(f"{prefix}.cell.volume", volume, volume_esd, "angstrom^3"))
        derived.append(derived_row(f"{prefix}.density", density, density_esd, "g/cm^3"))
        absorption = _absorption(state, seen, index, volume)
        if absorption is not None:
            derived.append(derived_row(f"{prefix}.linear_absorption", absorption, None, "1/cm"))
        if fraction is not None:
            derived.append(derived_row(f"{prefix}.weight_fraction", fraction["value"], fraction["esd"], ""))
        derived.extend(_microstructure(prefix, micro[index]))
    return phases, derived


def _absorption(state: State, seen: Evaluation, index: int, volume: float) -> float | None:
    """Return the linear absorption coefficient of a phase's crystals for the first X-ray line, 1/cm."""
    if state.instrument.source.kind != "xray_cw":
        return None
    counts: dict[str, float] = {}
    sites = seen.model.phases[index].sites
    for number, atom in enumerate(state.structure.phases[index].atoms):
        element = gemmi.Element(re.sub("[^A-Za-z].*", "", atom.species)).name
        count = seen.values[f"phases.{index}.atoms.{number}.occ"] * len(sites.ops[number][0])
        counts[element] = counts.get(element, 0.0) + count
    try:
        return float(linear_attenuation(counts, volume, state.instrument.source.lines[0].wavelength.value))
    except (KeyError, ValueError):  # an element or a wavelength that the table does not have
        return None


def _measured(value: float, esd: float | None) -> dict[str, Any]:
    return {"value": value, "esd": None if esd is None or esd == 0.0 else esd}


def _microstructure(prefix: str, block: Any) -> list[dict[str, Any]]:
    """Return the Lorentzian size and strain as a length and a fraction (Scherrer constant as rietx states it)."""
    rows = []
    for term in block.terms:
        kind = term.path.rsplit(".", 1)[1]
        if term.value is None:
            continue
        if kind == "lor_size":
            rows.append(
                derived_row(
                    f"{prefix}.crystallite_size_nm",
                    term.value / 10.0,
                    None if term.esd is None else term.esd / 10.0,
                    f"nm (K={block.scherrer_k:g})",
                )
            )
        elif kind == "lor_strain":
            rows.append(
                derived_row(
                    f"{prefix}.microstrain_percent",
                    100.0 * term.value,
                    None if term.esd is None else 100.0 * term.esd,
                    "percent",
                )
            )
    return rows


def _fractions(state: State, seen: Evaluation, answer: Answer | None) -> list[tuple[float, dict[str, Any] | None]]:
    """Return cell mass (dalton) and weight fraction of each phase.

    Hill & Howard (1987), doi:10.1107/S0021889887086199.
    """
    counts = [[len(operations[0]) for operations in compiled_phase.sites.ops] for compiled_phase in seen.model.phases]
    lines = seen.model.phase_line_counts()
    unmeasured = {index for index in range(len(counts)) if lines[index] == 0 or state.mode != "rietveld"}
    measured = [index for index in range(len(counts)) if index not in unmeasured]
    covariance = None
    if answer is not None and answer.stderr is not None and len(measured) > 1:
        covariance = answer.covariance([f"phases.{index}.scale" for index in measured])
        if not np.any(np.diag(covariance) > 0):
            covariance = None
    table = compute_qpa(state.structure, seen.values, covariance, counts, unmeasured=sorted(unmeasured))
    if table is None:
        return [(math.nan, None)] * len(counts)
    return [
        (
            row.cell_mass,
            None if row.weight_fraction is None else _measured(row.weight_fraction, row.weight_fraction_stderr),
        )
        for row in table.phases
    ]


def _volume(index: int, values: dict[str, float], answer: Answer | None) -> tuple[float, float | None]:
    paths = [f"phases.{index}.cell.{key}" for key in _CELL]
    cell = np.array([values[path] for path in paths])
    volume = _cell_volume(cell)
    if answer is None or answer.stderr is None:
        return volume, None
    step = 1e-6 * cell
    gradient = np.array(
        [
            (_cell_volume(cell + np.eye(6)[k] * step[k]) - _cell_volume(cell - np.eye(6)[k] * step[k]))
            / (2.0 * step[k])
            for k in range(6)
        ]
    )
    variance = float(gradient @ answer.covariance(paths) @ gradient)
    return volume, math.sqrt(variance) if variance > 0 else None


def _cell_volume(cell: np.ndarray) -> float:
    a, b, c = cell[:3]
    ca, cb, cg = np.cos(np.radians(cell[3:]))
    return float(a * b * c * math.sqrt(max(1.0 - ca * ca - cb * cb - cg * cg + 2.0 * ca * cb * cg, 0.0)))


def _refined(domain: dict[str, Any], index: int, phase: Any, values: dict[str, float]) -> dict[str, Any]:
    """Return our description of the phase with the refined numbers in it."""
    atoms = []
    known = phase.atoms if domain["atoms"] else []
    for number, (atom, given) in enumerate(zip(known, domain["atoms"], strict=True)):
        base = f"phases.{index}.atoms.{number}"
        atoms.append(
            {
                **given,
                **{axis: values[f"{base}.{axis}"] for axis in "xyz"},
                "u_aniso": None,
                "occupancy": values[f"{base}.occ"],
                "u_iso": values[f"{base}.biso"] * B_TO_U,
                "label": atom.label,
            }
        )
    return {**domain, "cell": [values[f"phases.{index}.cell.{key}"] for key in _CELL], "atoms": atoms}
