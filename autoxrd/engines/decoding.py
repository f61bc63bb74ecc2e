"""From a backend's files to an :class:`EngineResult`, believing nothing that was not checked."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from autoxrd.domain.pattern import FloatArray, Notice
from autoxrd.domain.state import Convergence, MeasuredValue, ParameterValue
from autoxrd.domain.structure import AtomSite, CrystalStructure, UnitCell
from autoxrd.engines.protocol import EngineResult, PhaseResult, ReflectionTable
from autoxrd.errors import EngineOutputInvalid

__all__ = ["decode_result"]

SUM_TOLERANCE = 1e-9
"""Largest difference of y_calc from background plus phases, relative to the largest |y_calc|."""
SYMMETRY_TOLERANCE = 1e-10
"""Largest asymmetry of a covariance matrix, relative to its largest element."""

_PER_POINT = ("x", "y_obs", "sigma", "y_calc", "background")
_PER_REFLECTION = ("phase", "line", "d_angstrom", "position", "fwhm", "eta", "intensity", "f2_calc", "multiplicity")


_Arrays = Mapping[str, np.ndarray[Any, Any]]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Measured(_Strict):
    value: FiniteFloat
    esd: FiniteFloat | None


class _Parameter(_Strict):
    name: Annotated[str, Field(min_length=1, max_length=300)]
    value: FiniteFloat
    esd: FiniteFloat | None
    released: bool
    lower: FiniteFloat | None
    upper: FiniteFloat | None
    unit: str
    derived: bool


class _Atom(_Strict):
    label: str
    species: str
    element: str
    x: FiniteFloat
    y: FiniteFloat
    z: FiniteFloat
    occupancy: FiniteFloat
    u_iso: FiniteFloat | None
    u_aniso: tuple[FiniteFloat, FiniteFloat, FiniteFloat, FiniteFloat, FiniteFloat, FiniteFloat] | None
    multiplicity: int


class _NoticeText(_Strict):
    code: str
    text: str


class _Structure(_Strict):
    name: str
    title: str
    space_group: str
    space_group_number: int
    operations: tuple[str, ...]
    cell: tuple[FiniteFloat, FiniteFloat, FiniteFloat, FiniteFloat, FiniteFloat, FiniteFloat]
    atoms: tuple[_Atom, ...]
    formula: str
    source_name: str
    source_sha256: str
    notices: tuple[_NoticeText, ...] = ()


class _Phase(_Strict):
    name: str
    weight_fraction: _Measured | None
    cell: dict[Literal["a", "b", "c", "alpha", "beta", "gamma", "volume"], _Measured]
    structure: _Structure


class _Ending(_Strict):
    converged: bool
    cycles: int
    max_shift_over_esd: FiniteFloat | None
    status: str
    dropped: tuple[str, ...]


class _Meta(_Strict):
    parameters: tuple[_Parameter, ...]
    phases: tuple[_Phase, ...]
    covariance_names: tuple[str, ...]
    convergence: _Ending
    engine_r: dict[str, FiniteFloat]
    notices: tuple[tuple[str, str], ...]
    gains: dict[str, FiniteFloat]
    gain_counts: dict[str, int]
    selectors: dict[str, tuple[str, ...]]
    engine_version: str
    mode: str
    esd_kind: str = ""
    matched: int = 0
    histograms: dict[str, _Meta] = Field(default_factory=dict)


def decode_result(meta_path: Path, arrays_path: Path, *, engine: str, seconds: float) -> EngineResult:
    """Read and check one result.

    Args:
        meta_path: JSON description.
        arrays_path: npz of the arrays.
        engine: name of the engine.
        seconds: time it took.

    Raises:
        EngineOutputInvalid: something is missing, not finite, of the wrong shape or contradictory.
    """
    try:
        meta = _Meta.model_validate(json.loads(meta_path.read_bytes()))
        with np.load(arrays_path, allow_pickle=False) as handle:
            arrays = {name: handle[name] for name in handle.files}
    except (OSError, ValueError, ValidationError, zipfile.BadZipFile) as error:
        raise _invalid(f"The engine's result cannot be read: {str(error)[:300]}") from error
    if not meta.histograms:
        return _single(meta, arrays, engine=engine, seconds=seconds)
    parts = {
        name: _single(part, _part(arrays, number), engine=engine, seconds=seconds)
        for number, (name, part) in enumerate(meta.histograms.items())
    }
    _check_parts(meta, parts)
    curves = {
        name: np.concatenate([getattr(part, name) for part in parts.values()], axis=-1)
        for name in (*_PER_POINT, "phase_patterns")
    }
    return _result(meta, arrays, curves, _in_a_row(list(parts.values())), engine, seconds, parts)


def _part(arrays: _Arrays, number: int) -> _Arrays:
    """Return the arrays of one of several histograms."""
    head = f"{number}."
    return {name[len(head) :]: array for name, array in arrays.items() if name.startswith(head)}


def _check_parts(meta: _Meta, parts: Mapping[str, EngineResult]) -> None:
    """Refuse parts that are no parts of the whole."""
    phases = [phase.name for phase in meta.phases]
    for name, part in parts.items():
        if [phase.name for phase in part.phases] != phases:
            raise _invalid(f"The phases of histogram {name} are not those of the fit.")
    if any(part.histograms for part in meta.histograms.values()):
        raise _invalid("A histogram has histograms of its own.")


def _in_a_row(parts: list[EngineResult]) -> ReflectionTable:
    """Return the reflections of all histograms in a row; positions are on the axis of each."""
    tables = [part.reflections for part in parts]
    names = [name for name in ReflectionTable.__dataclass_fields__ if getattr(tables[0], name) is not None]
    return ReflectionTable(**{name: np.concatenate([getattr(table, name) for table in tables]) for name in names})


def _single(meta: _Meta, arrays: _Arrays, *, engine: str, seconds: float) -> EngineResult:
    """Return the result of one histogram."""
    _check_pattern(arrays, len(meta.phases))
    reflections = _reflections(arrays, len(meta.phases))
    curves = {name: _floats(arrays[name]) for name in (*_PER_POINT, "phase_patterns")}
    return _result(meta, arrays, curves, reflections, engine, seconds, {})


def _result(
    meta: _Meta,
    arrays: _Arrays,
    curves: Mapping[str, FloatArray],
    reflections: ReflectionTable,
    engine: str,
    seconds: float,
    parts: Mapping[str, EngineResult],
) -> EngineResult:
    return EngineResult(
        **curves,
        reflections=reflections,
        phases=tuple(_phase(phase) for phase in meta.phases),
        parameters=_parameters(meta),
        covariance_names=meta.covariance_names,
        covariance=_covariance(arrays, meta),
        convergence=Convergence.model_validate(meta.convergence.model_dump()),
        engine_r=meta.engine_r,
        notices=tuple(Notice(code, text) for code, text in meta.notices),
        gains=meta.gains,
        gain_counts=_counts(meta),
        selectors=meta.selectors,
        engine=engine,
        engine_version=meta.engine_version,
        seconds=seconds,
        histograms=parts,
        matched=meta.matched,
    )


def _invalid(detail: str) -> EngineOutputInvalid:
    return EngineOutputInvalid("engine_result_invalid", detail)


def _floats(array: np.ndarray[Any, Any]) -> FloatArray:
    return np.ascontiguousarray(array, dtype=np.float64)


def _need(arrays: _Arrays, name: str, shape: tuple[int, ...], *, finite: bool = True) -> None:
    """Refuse an array that is absent, of another shape or not numeric and finite."""
    if name not in arrays:
        raise _invalid(f"The engine's result lacks {name}.")
    array = arrays[name]
    if array.shape != shape or array.dtype.kind not in "fi":
        raise _invalid(f"The engine's {name} has shape {array.shape} and type {array.dtype}, expected {shape}.")
    if finite and not np.all(np.isfinite(array)):
        raise _invalid(f"The engine's {name} has values that are not finite.")


def _check_pattern(arrays: _Arrays, n_phases: int) -> None:
    n = arrays["x"].size if "x" in arrays else 0
    for name in _PER_POINT:
        _need(arrays, name, (n,))
    _need(arrays, "phase_patterns", (n_phases, n))
    if n < 2 or np.any(np.diff(arrays["x"]) <= 0) or np.any(arrays["sigma"] <= 0):
        raise _invalid("The engine's abscissa is not increasing or its sigma not positive.")
    total = arrays["background"] + arrays["phase_patterns"].sum(axis=0)
    scale = max(float(np.max(np.abs(arrays["y_calc"]))), 1e-300)
    if float(np.max(np.abs(total - arrays["y_calc"]))) > SUM_TOLERANCE * scale:
        raise _invalid("The engine's calculated pattern is not the sum of its background and phases.")


def _reflections(arrays: _Arrays, n_phases: int) -> ReflectionTable:
    m = arrays["reflections_position"].size if "reflections_position" in arrays else 0
    for name in _PER_REFLECTION:
        _need(arrays, f"reflections_{name}", (m,), finite=name != "f2_calc")
    _need(arrays, "reflections_hkl", (m, 3))
    phase = arrays["reflections_phase"]
    if m and (phase.min() < 0 or phase.max() >= n_phases):
        raise _invalid("A reflection belongs to a phase that is not there.")
    columns: dict[str, Any] = {
        name: np.ascontiguousarray(arrays[f"reflections_{name}"], dtype=np.int64)
        for name in ("phase", "line", "hkl", "multiplicity")
    }
    columns |= {
        name: _floats(arrays[f"reflections_{name}"])
        for name in ("d_angstrom", "position", "fwhm", "eta", "intensity", "f2_calc")
    }
    if "reflections_f2_esd" in arrays:
        _need(arrays, "reflections_f2_esd", (m,))
        columns["f2_esd"] = _floats(arrays["reflections_f2_esd"])
    return ReflectionTable(**columns)


def _parameters(meta: _Meta) -> tuple[ParameterValue, ...]:
    names = [parameter.name for parameter in meta.parameters]
    if len(set(names)) != len(names):
        raise _invalid("A parameter is listed twice.")
    if not set(meta.covariance_names) <= {item.name for item in meta.parameters if item.released}:
        raise _invalid("The covariance names a parameter that was not released.")
    return tuple(ParameterValue.model_validate(parameter.model_dump()) for parameter in meta.parameters)


def _covariance(arrays: _Arrays, meta: _Meta) -> FloatArray:
    k = len(meta.covariance_names)
    if len(set(meta.covariance_names)) != k:
        raise _invalid("The covariance names a parameter twice.")
    _need(arrays, "covariance", (k, k))
    covariance = _floats(arrays["covariance"])
    if k:
        asymmetry = float(np.max(np.abs(covariance - covariance.T)))
        if asymmetry > SYMMETRY_TOLERANCE * float(np.max(np.abs(covariance))) or np.any(np.diag(covariance) < 0):
            raise _invalid("The covariance is not symmetric or has a negative variance.")
    return covariance


def _counts(meta: _Meta) -> dict[str, int]:
    if set(meta.gains) != set(meta.gain_counts):
        raise _invalid("The release gains and their parameter counts do not match.")
    return meta.gain_counts


def _phase(phase: _Phase) -> PhaseResult:
    fraction = phase.weight_fraction
    given = phase.structure
    structure = CrystalStructure(
        name=given.name,
        title=given.title,
        space_group=given.space_group,
        space_group_number=given.space_group_number,
        operations=given.operations,
        cell=UnitCell(*given.cell),
        atoms=tuple(AtomSite(**atom.model_dump()) for atom in given.atoms),
        formula=given.formula,
        source_name=given.source_name,
        source_sha256=given.source_sha256,
        notices=tuple(Notice(notice.code, notice.text) for notice in given.notices),
    )
    return PhaseResult(
        name=phase.name,
        space_group=given.space_group,
        weight_fraction=None if fraction is None else MeasuredValue(value=fraction.value, esd=fraction.esd),
        cell={key: MeasuredValue(value=item.value, esd=item.esd) for key, item in phase.cell.items()},
        structure=structure,
    )
