"""GSAS-II's own dictionaries for a state: built by us, from numbers, for one command; no project file is read.

GSAS-II keeps one numbered dictionary of parameters. What it calls ``0::A0`` or ``0:0:Scale`` is set here from
our values; which of our names stands for what, and in which unit, is said in this module alone.
"""

from __future__ import annotations

import contextlib
import io
import math
import random
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from axg_adp import COMPONENTS
from axg_background import DEBYE
from axg_broadening import STRAIN_TO_GSASII, gsasii_harmonic, stephens_multiples
from axg_quantities import FLIGHT_POSITION, FLIGHT_SHAPE
from axg_shape import FWHM_TO_VARIANCE
from axg_state import PhaseModel, State
from axg_symmetry import space_group
from axr_wire import Refused
from GSASII import GSASIIElem as G2elem
from GSASII import GSASIIlattice as G2lat
from GSASII import GSASIImath as G2mth
from GSASII import GSASIIobj as G2obj
from GSASII import GSASIIspc as G2spc
from GSASII import GSASIIstrIO as G2strIO

__all__ = ["CELL", "HISTOGRAM", "Model", "background_entry", "build_model", "cell_of", "set_parameters", "shape_entry"]

HISTOGRAM = "PWDR autoxrd"
CELL = ("a", "b", "c", "alpha", "beta", "gamma")
MARGIN_DEG = 2.0
"""Reflections this far outside the range are kept: tails or shifts may reach it. GSAS-II cuts at the limits."""
MARGIN_FLIGHT = 0.02
"""The same over the time of flight, as a share of the time."""
LARGEST_SIZE_UM = 1e6
_COORDINATES = {"x": "Ax", "y": "Ay", "z": "Az", "occupancy": "Afrac", "uiso": "AUiso"}


@dataclass(frozen=True)
class Model:
    """A state as GSAS-II sees it.

    Args:
        state: where it came from.
        x, y, sigma: the points that are used, shape (n,).
        parameters: GSAS-II's dictionary of parameters.
        controls: its dictionary of what is not refined.
        phases: its phases by name.
        histogram: its histogram, with reflection lists.
    """

    state: State
    x: np.ndarray
    y: np.ndarray
    sigma: np.ndarray
    parameters: dict[str, Any]
    controls: dict[str, Any]
    phases: dict[str, Any]
    histogram: dict[str, Any]

    def reflections(self, phase: int) -> dict[str, Any]:
        """Return GSAS-II's reflection list of a phase; its rows are changed in place by GSAS-II."""
        found: dict[str, Any] = self.histogram["Reflection Lists"][self.state.phases[phase].name]
        return found


def build_model(state: State) -> Model:
    """Return GSAS-II's dictionaries of a state.

    Raises:
        Refused: GSAS-II cannot set the model up.
    """
    used = state.used()
    x, y, sigma = state.x[used], state.y[used], state.sigma[used]
    histogram = histogram_entry(state, x)
    phases = {phase.name: phase_entry(phase, state, number) for number, phase in enumerate(state.phases)}
    # its start intensities are random, from a generator of its own: never two answers to one question
    random.seed(0)
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            parameters, controls = _dictionaries(phases, histogram)
        except (G2obj.G2Exception, ValueError, KeyError, ArithmeticError, np.linalg.LinAlgError) as error:
            text = f"GSAS-II cannot set this model up: {str(error)[:300]}"
            raise Refused("diverged", "model_rejected", text) from error
    model = Model(state, x, y, sigma, parameters, controls, phases, histogram)
    set_parameters(model, state.values)
    return model


def _dictionaries(phases: dict[str, Any], histogram: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    histograms = {HISTOGRAM: histogram}
    answer = G2strIO.GetPhaseData(phases, {}, {"Vector": [], "Residue": [], "Spin": []}, Print=False)
    names = ("Natoms", "atomIndx", "", "", "", "FFtables", "EFtables", "ORBtables", "BLtables", "MFtables", "maxSSwave")
    controls = {name: item for name, item in zip(names, answer, strict=True) if name}
    parameters = dict(answer[3])
    _, values, more = G2strIO.GetHistogramPhaseData(phases, histograms, Controls=controls, Print=False)
    parameters |= values
    controls |= more
    _, values, _, more = G2strIO.GetHistogramData(histograms, Print=False)
    parameters |= values
    controls |= more
    G2strIO.GetFprime(controls, histograms)
    return parameters, controls


def instrument_entry(state: State) -> dict[str, list[Any]]:
    """Return GSAS-II's instrument parameters: default, current, refine flag (always off)."""
    values = state.values
    given: dict[str, Any]
    if state.flight is not None:
        given = {"Type": "PNT", "Bank": 1.0, "2-theta": state.flight[0], "fltPath": state.flight[1], "Azimuth": 0.0}
        given |= {"Zero": values["instrument.zero"]} | {key: values[f"instrument.{key}"] for key in FLIGHT_POSITION}
        given |= {key: values[f"profile.{key}"] for key in FLIGHT_SHAPE}
        return {key: [value, value, False] for key, value in given.items()}
    neutron = state.radiation == "neutron"
    first = values["instrument.wavelength"]
    given = {"Type": "PNC" if neutron else "PXC", "Bank": 1.0}
    if neutron or state.second_line is None:
        given["Lam"] = first
    else:
        given |= {"Lam1": first, "Lam2": first * state.second_line, "I(L2)/I(L1)": values["instrument.ka2_ratio"]}
    given |= {"Zero": values["instrument.zero"], "Polariz.": state.polarization, "Azimuth": 0.0}
    given |= {key: FWHM_TO_VARIANCE * values[f"profile.{key}"] for key in "UVW"}
    given |= {key: 100.0 * values[f"profile.{key}"] for key in "XYZ"}
    given["SH/L"] = 2.0 * values["profile.S/L"]
    return {key: [value, value, False] for key, value in given.items()}


def sample_entry(state: State) -> dict[str, Any]:
    """Return GSAS-II's sample parameters; the scale of the histogram stays one, the phases carry theirs."""
    sample: dict[str, Any] = G2obj.SetDefaultSample()
    bragg = state.geometry == "bragg_brentano"
    sample |= {"Type": "Bragg-Brentano" if bragg else "Debye-Scherrer", "Gonio. radius": state.radius_mm}
    sample["Scale"] = [1.0, False]
    sample |= {key: [value, False] for key, value in _sample_values(state, state.values).items()}
    return sample


def _sample_values(state: State, values: dict[str, float]) -> dict[str, float]:
    if state.geometry == "bragg_brentano":
        return {
            "Shift": 1000.0 * values["sample.displacement"],
            "Transparency": 20.0 * state.radius_mm * values["sample.transparency"],
            "SurfRoughA": 0.0,
            "SurfRoughB": values.get("sample.roughness", 0.0),
        }
    if state.flight is not None:
        return {"DisplaceX": 0.0, "DisplaceY": 0.0, "Absorption": values["absorption"]}
    return {
        "DisplaceX": -1000.0 * values["sample.offset_across"],
        "DisplaceY": 1000.0 * values["sample.offset_along"],
        "Absorption": values["absorption"],
    }


def histogram_entry(state: State, x: np.ndarray) -> dict[str, Any]:
    """Return GSAS-II's histogram without data: the arrays stay ours."""
    limits = [max(float(x[0]) - MARGIN_DEG, 0.2), min(float(x[-1]) + MARGIN_DEG, 179.0)]
    if state.flight is not None:
        limits = [float(x[0]) * (1.0 - MARGIN_FLIGHT), float(x[-1]) * (1.0 + MARGIN_FLIGHT)]
    return {
        "hId": 0,
        "wtFactor": 1.0,
        "Limits": [tuple(limits), limits],
        "Instrument Parameters": [instrument_entry(state), {}],
        "Sample Parameters": sample_entry(state),
        "Background": background_entry(state, free=()),
        "Reflection Lists": {},
    }


def background_entry(state: State, *, free: Collection[str]) -> list[Any]:
    """Return GSAS-II's background: its function, Debye terms and single peaks; a fixed curve stays ours.

    Args:
        state: the state.
        free: selectors that are released.
    """
    kind, terms = state.background
    coefficients = [state.values[f"background.{number}"] for number in range(terms)]
    flag = "background" in free
    debye = [
        [item for key in DEBYE for item in (state.values[f"background.debye{number}_{key}"], flag)]
        for number in range(1, state.background_debye + 1)
    ]
    peaks = [
        [item for value in _peak_values(state.values, number) for item in (value, flag)]
        for number in range(1, state.background_peaks + 1)
    ]
    extra = {"nDebye": len(debye), "debyeTerms": debye, "nPeaks": len(peaks), "peaksList": peaks}
    return [[kind, flag, terms, *coefficients], extra | {"background PWDR": ["", 1.0, False]}]


def _peak_values(values: dict[str, float], number: int) -> list[float]:
    """Return position, intensity, variance and Lorentzian width of a single peak in GSAS-II's units."""
    base = f"background.peak{number}"
    gauss, lorentz = values[f"{base}_gauss"], values[f"{base}_lorentz"]
    area = 100.0 * values[f"{base}_intensity"]
    return [values[f"{base}_position"], area, FWHM_TO_VARIANCE * gauss**2, 100.0 * lorentz]


def phase_entry(phase: PhaseModel, state: State, number: int) -> dict[str, Any]:
    """Return GSAS-II's entry of a phase, linked to the histogram."""
    group = space_group(phase.symbol)
    cell = cell_of(phase, state.values)
    volume = _metric(phase, values=state.values)[1]
    entry: dict[str, Any] = G2obj.SetNewPhase(Name=phase.name, SGData=group, cell=[*cell, 0.0])
    entry["General"]["Cell"][7] = volume
    entry["pId"], entry["ranId"] = number, number + 1
    entry["Atoms"] = [_atom_row(phase, state.values, group, k) for k in range(len(phase.types))]
    G2elem.SetupGeneral(entry, None)
    strains, stephens = len(G2spc.HStrainNames(group)), len(G2spc.MustrainNames(group))
    kind = "PXC" if state.radiation == "xray" else "PNC" if state.flight is None else "PNT"
    linked = G2mth.SetDefaultDData(kind, HISTOGRAM, NShkl=stephens, NDij=strains)
    # a profile match is ours: GSAS-II builds no reflection list for a phase that is matched from the start
    linked |= {"Use": True, "LeBail": False}
    shape_entry(linked, phase)
    entry["Histograms"] = {HISTOGRAM: linked}
    return entry


def shape_entry(linked: dict[str, Any], phase: PhaseModel) -> None:
    """Tell GSAS-II's entry of kinds and axes of texture and broadening; the numbers follow in the parameters."""
    if phase.harmonics:
        names = [gsasii_harmonic(name) for name in phase.harmonics]
        order = max(int(name.split("_")[1]) for name in phase.harmonics)
        linked["Pref.Ori."] = ["SH", 1.0, False, [0, 0, 1], order, dict.fromkeys(names, 0.0), [], 0.1]
    if phase.axis is not None:
        linked["Pref.Ori."][3] = list(phase.axis)
    for key, axis in (("Size", phase.size_axis), ("Mustrain", phase.strain_axis)):
        if axis is not None:
            linked[key][0], linked[key][3] = "uniaxial", list(axis)
    if phase.stephens:
        linked["Mustrain"][0] = "generalized"


def _atom_row(phase: PhaseModel, values: dict[str, float], group: dict[str, Any], number: int) -> list[Any]:
    label = phase.domain["atoms"][number]["label"]
    base = f"phase.{phase.name}.atom.{label}"
    position = [values[f"{base}.{axis}"] + shift for axis, shift in zip("xyz", phase.shift, strict=True)]
    symmetry, multiplicity = G2spc.SytSym(position, group)[:2]
    row: list[Any] = [label, phase.types[number], "", *position, values[f"{base}.occupancy"], symmetry, multiplicity]
    flag, tensor = "I", [0.0] * len(COMPONENTS)
    if number in phase.anisotropic:
        flag, tensor = "A", [values[f"{base}.{key}"] for key in COMPONENTS]
    return [*row, flag, values[f"{base}.uiso"], *tensor, 1 + number]


def cell_of(phase: PhaseModel, values: dict[str, float]) -> list[float]:
    """Return a, b, c (angstrom), alpha, beta, gamma (degrees)."""
    return [values[f"phase.{phase.name}.cell.{key}"] for key in CELL]


def _metric(phase: PhaseModel, *, values: dict[str, float]) -> tuple[list[float], float]:
    """Return the reciprocal metric and the volume of a cell.

    Raises:
        Refused: it is no cell.
    """
    cell = cell_of(phase, values)
    try:
        metric = [float(value) for value in G2lat.cell2A(cell)] if min(cell) > 0.0 else [math.nan]
        volume = float(G2lat.calc_V(metric)) if all(map(math.isfinite, metric)) else math.nan
    except (np.linalg.LinAlgError, ArithmeticError):
        metric, volume = [], math.nan
    if not math.isfinite(volume) or volume <= 0.0:
        raise Refused("diverged", "cell_collapsed", f"The cell of {phase.name} is no cell any more: {cell}.")
    return metric, volume


def set_parameters(model: Model, values: dict[str, float]) -> None:
    """Bring GSAS-II's parameters to our values.

    Raises:
        Refused: a cell is no cell (GSAS-II goes on with one that has collapsed).
    """
    state, target = model.state, model.parameters
    for key, entry in instrument_entry(state.with_values(values)).items():
        if key not in ("Type", "Azimuth", "Bank"):
            target[f":0:{key}"] = entry[1]
    target |= {f":0:{key}": value for key, value in _sample_values(state, values).items()}
    target |= {f":0:Back;{number}": values[f"background.{number}"] for number in range(state.background[1])}
    for number in range(state.background_debye):
        for letter, key in zip("ARU", DEBYE, strict=True):
            target[f":0:Debye{letter};{number}"] = values[f"background.debye{number + 1}_{key}"]
    for number in range(state.background_peaks):
        for key, value in zip(("pos", "int", "sig", "gam"), _peak_values(values, number + 1), strict=True):
            target[f":0:BkPk{key};{number}"] = value
    for number, phase in enumerate(state.phases):
        _set_phase(target, number, phase, values, state)


def _broadening_units(state: State, values: dict[str, float]) -> tuple[float, float]:
    """Return what GSAS-II's size is times our width of size, and its microstrain over ours."""
    if state.flight is None:
        return 1.8 * values["instrument.wavelength"] / (100.0 * math.pi), STRAIN_TO_GSASII
    return 1e-4 * values["instrument.difC"], 1e6 / values["instrument.difC"]


def _set_phase(target: dict[str, Any], number: int, phase: PhaseModel, values: dict[str, float], state: State) -> None:
    prefix, own, both = f"phase.{phase.name}", f"{number}::", f"{number}:0:"
    metric, volume = _metric(phase, values=values)
    target |= {f"{own}A{k}": value for k, value in enumerate(metric)} | {f"{own}Vol": volume}
    size, strain = _broadening_units(state, values)
    target[f"{both}Size;i"] = min(size / max(values[f"{prefix}.size"], 1e-12), LARGEST_SIZE_UM)
    target[f"{both}Mustrain;i"] = strain * values[f"{prefix}.strain"]
    if phase.size_axis is not None:
        target[f"{both}Size;a"] = min(size / max(values[f"{prefix}.size.axial"], 1e-12), LARGEST_SIZE_UM)
    if phase.strain_axis is not None:
        target[f"{both}Mustrain;a"] = strain * values[f"{prefix}.strain.axial"]
    for k, (name, multiple) in enumerate(zip(phase.stephens, stephens_multiples(phase.stephens), strict=True)):
        target[f"{both}Mustrain;{k}"] = values[f"{prefix}.strain.{name}"] / multiple
    for name in phase.harmonics:
        target[f"{both}{gsasii_harmonic(name)}"] = values[f"{prefix}.preferred_orientation.{name}"]
    target[f"{both}Scale"] = values[f"{prefix}.scale"]
    target[f"{both}Extinction"] = values[f"{prefix}.extinction"]
    target[f"{both}MD"] = values.get(f"{prefix}.preferred_orientation", 1.0)
    for atom in range(len(phase.types)):
        base = f"{prefix}.atom.{phase.domain['atoms'][atom]['label']}"
        for key, name in _COORDINATES.items():
            shift = phase.shift["xyz".index(key)] if key in "xyz" else 0.0
            target[f"{own}{name}:{atom}"] = values[f"{base}.{key}"] + shift
        if atom in phase.anisotropic:
            # GSAS-II applies both where both are there
            target[f"{own}AUiso:{atom}"] = 0.0
            target |= {f"{own}A{key.upper()}:{atom}": values[f"{base}.{key}"] for key in COMPONENTS}
