"""Truths simulated by the engine, and the models that are compared with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from autoxrd.domain.instrument import EmissionLine, Instrument
from autoxrd.domain.pattern import FloatArray, Pattern
from autoxrd.engines.protocol import Edit, EngineCommand, EngineResult, EngineSession, Snapshot
from autoxrd.io import instrument_from_anode
from autoxrd.science.inputs import MeasureContext
from benchmarks.defects.catalogue import TRUTH, Defect
from benchmarks.defects.structures import Sample, structure

__all__ = ["LINEAR", "Case", "Laboratory", "Truth"]

X_DEG = np.arange(20.0, 100.0, 0.025)
LINEAR = ("phase.*.scale", "background")
TERMS = 8
_ZERO_TRUNCATED_DEG = 0.02
_HUMP_DEG = (32.0, 4.0)
_CONSTANT_COUNTS = 20.0
_RADIUS_MM = 217.5
_SEEN = 1e-3
_STRONG = 0.3
"""Shares of the strongest line: from the first a main line hides another, from the second an impurity's can be seen."""


@dataclass(frozen=True)
class Truth:
    """Noise-free curves on ``X_DEG``, highest channel of the main phase 1, with the area of what is missing.

    Args:
        bragg: sum of all phases, shape (n,).
        missing: of that, the phase that the model does not know, shape (n,).
    """

    bragg: FloatArray
    missing: FloatArray
    hump: float = 0.0

    def counts(self, level: float) -> FloatArray:
        """Return expected counts: the background falls from 6 to 3 per cent of the highest channel."""
        at = (X_DEG - X_DEG[0]) / (X_DEG[-1] - X_DEG[0])
        smooth = level * (0.06 - 0.05 * at + 0.02 * at * at) + _CONSTANT_COUNTS
        hump = self.hump * smooth * np.exp(-0.5 * np.square((X_DEG - _HUMP_DEG[0]) / _HUMP_DEG[1]))
        return np.asarray(level * self.bragg + smooth + hump)

    def missing_esd(self, level: float) -> float:
        """Return the relative esd of the missing phase's area if its curve and the other's were known.

        A fit of both curves and a background to counts with this mean: no measure can be surer.
        """
        if not self.missing.max() > 0:
            return float("inf")
        known = self.bragg - self.missing
        others = [known] if known.max() > 0 else []
        scaled = np.stack([level * self.missing, *others, *_basis(X_DEG)]) / np.sqrt(self.counts(level))
        return float(np.sqrt(np.linalg.inv(scaled @ scaled.T)[0, 0]))


@dataclass(frozen=True)
class Case:
    """One comparison of a model with data.

    Args:
        result: with gains, scale and background fitted.
        chi2: of the model.
        chi2_true: of the true curve, its scale factors and background fitted to the same data with the same weights
            (which lie low by up to one count, so that the curve that made the data is no reference).
    """

    result: EngineResult
    snapshot: Snapshot
    context: MeasureContext
    chi2: float
    chi2_true: float
    edits: tuple[Edit, ...]

    @property
    def cost(self) -> float:
        """Return what the defect costs: 25 is 5 sigma of a single parameter."""
        return self.chi2 - self.chi2_true


class Laboratory:
    """Everything about one sample: truths are simulated once, model curves shared by the count levels."""

    def __init__(self, session: EngineSession, sample: Sample) -> None:
        self._session = session
        self.sample = sample
        self.instrument = replace(instrument_from_anode("Cu"), goniometer_radius_mm=_RADIUS_MM)
        self._truths: dict[tuple[str, float], Truth] = {}
        self._snapshots: dict[tuple[object, ...], Snapshot] = {}

    # -- the specimen ------------------------------------------------------------------------------------------------

    def truth(self, defect: Defect, size: float) -> Truth:
        """Return the specimen of a defect; one specimen serves all defects of the model."""
        own = defect.where == "specimen"
        key = (defect.name, size) if own else ("none", 0.0)
        if key not in self._truths:
            self._truths[key] = self._simulate(defect if own else None, size)
        return self._truths[key]

    def _simulate(self, defect: Defect | None, size: float) -> Truth:
        name = self.sample.name
        if defect is not None and defect.name in ("missing_phase", "wrong_phase"):
            return self._mixture((name, self.sample.impurity), size)
        edits = true_edits((name,))
        if defect is not None and defect.name == "texture":
            edits = (
                Edit("texture", {"phase": name, "axis": self.sample.axis}),
                *edits,
                _value(f"phase.{name}.preferred_orientation", size),
            )
        result = self._evaluate(self._blank((name,)), edits)
        bragg = result.phase_patterns[0] / result.phase_patterns[0].max()
        hump = size if defect is not None and defect.name == "background" else 0.0
        return Truth(bragg, np.zeros_like(bragg), hump)

    def _mixture(self, names: tuple[str, str], share: float) -> Truth:
        """Mix by weight: the engine's weight fractions tell what each phase's pattern is worth."""
        result = self._evaluate(self._blank(names), true_edits(names))
        weights = [phase.weight_fraction.value for phase in result.phases if phase.weight_fraction is not None]
        main = result.phase_patterns[0] * (1.0 - share) / weights[0]
        other = result.phase_patterns[1] * share / weights[1]
        top = (main + other).max()
        return Truth((main + other) / top, other / top)

    def _blank(self, names: tuple[str, ...]) -> Snapshot:
        flat = np.full(X_DEG.size, 100.0)
        flat[::7] += 10.0
        pattern = Pattern(x=X_DEG, y=flat, sigma=np.sqrt(flat))
        return self._prepared(pattern, self.instrument, names)

    def impurity_is_clear(self) -> bool:
        """Return whether a line of 30 per cent of the impurity's strongest is a FWHM and more from all visible ones."""
        names = (self.sample.name, self.sample.impurity)
        table = self._evaluate(self._blank(names), true_edits(names)).reflections
        ours, theirs = table.phase == 0, table.phase == 1
        tall = table.intensity[ours] > _SEEN * table.intensity[ours].max()
        apart = np.abs(table.position[theirs][:, None] - table.position[ours][tall][None, :]).min(axis=1)
        area = table.intensity[theirs]
        return bool(np.any((area > _STRONG * area.max()) & (apart > table.fwhm[theirs])))

    # -- the model ---------------------------------------------------------------------------------------------------

    def case(self, defect: Defect, size: float, level: int, seed: int) -> Case:
        """Return a model with one defect, its linear parameters fitted to noisy data, with release gains."""
        truth = self.truth(defect, size)
        mean = truth.counts(level)
        number = seed + (int(size) if defect.name == "none" else 0)
        pattern, names = _noisy(mean, number), self._names(defect, size)
        instrument = _scaled(self.instrument, 1.0 + size) if defect.where == "instrument" else self.instrument
        snapshot = self._data(truth, level, number, pattern, instrument, names)
        edits = (*true_edits(names), *self._wrong(defect, size))
        bare = self._evaluate(snapshot, edits)
        edits = (*edits, *_linear_edits(bare))
        after, result = self._session.execute(snapshot, EngineCommand(released=LINEAR, cycles=0, edits=edits))
        chi2 = float(np.sum(np.square((result.y_obs - result.y_calc) / result.sigma)))
        context = MeasureContext(instrument=instrument, initial={name: structure(name) for name in names})
        return Case(result, after, context, chi2, _true_chi2(result, truth), edits)

    def refined(self, case: Case, selectors: tuple[str, ...]) -> float:
        """Return chi2 after refining some selectors beside the linear ones: can the data tell them from the truth?"""
        command = EngineCommand(released=(*LINEAR, *selectors), cycles=30, gains=False)
        _, result = self._session.execute(case.snapshot, command)
        return float(np.sum(np.square((result.y_obs - result.y_calc) / result.sigma)))

    def _names(self, defect: Defect, size: float) -> tuple[str, ...]:
        if defect.name != "wrong_phase":
            return (self.sample.name,)
        return (self.sample.wrong,) if size == 1.0 else (self.sample.name, self.sample.wrong)

    def _data(
        self, truth: Truth, level: int, number: int, pattern: Pattern, instrument: Instrument, names: tuple[str, ...]
    ) -> Snapshot:
        key = (id(truth), level, number, instrument.lines, names)
        if key not in self._snapshots:
            self._snapshots = {k: v for k, v in self._snapshots.items() if k[1] == level}
            self._snapshots[key] = self._prepared(pattern, instrument, names)
        return self._snapshots[key]

    def _prepared(self, pattern: Pattern, instrument: Instrument, names: tuple[str, ...]) -> Snapshot:
        settings = {"background_terms": TERMS}
        return self._session.prepare(pattern, instrument, [structure(name) for name in names], settings)

    def _evaluate(self, snapshot: Snapshot, edits: tuple[Edit, ...]) -> EngineResult:
        return self._session.execute(snapshot, EngineCommand(cycles=0, edits=edits, gains=False))[1]

    def _wrong(self, defect: Defect, size: float) -> tuple[Edit, ...]:
        """Return the edits that make the model wrong."""
        name, told = self.sample.name, defect.name
        if defect.where == "range":
            limits = {"lower_deg": float(X_DEG[0]) - 0.01, "upper_deg": size}
            return (Edit("range", limits), _value("instrument.zero", -_ZERO_TRUNCATED_DEG))
        if defect.where != "model" or told == "none":
            return ()
        cell = structure(name).cell
        axes = {"a": cell.a, "b": cell.b, "c": cell.c}
        values: Mapping[str, float] = {
            "zero": {"instrument.zero": -size},
            "displacement": {"sample.displacement": -size},
            "cell": {f"phase.{name}.cell.{axis}": axes[axis] * (1.0 - size) for axis in _free_axes(name)},
            "cell_axis": {f"phase.{name}.cell.c": cell.c * (1.0 - size)},
            "width_gauss": {"profile.W": TRUTH["profile.W"] / (1.0 + size)},
            "size": {f"phase.{name}.size": TRUTH["size"] / (1.0 + size)},
            "strain": {f"phase.{name}.strain": TRUTH["strain"] / (1.0 + size)},
            "asymmetry": {key: TRUTH[key] * (1.0 - size) for key in ("profile.S/L", "profile.H/L")},
            "uiso": {f"phase.{name}.atom.{a.label}.uiso": (a.u_iso or 0.0) + size for a in structure(name).atoms},
            "occupancy": {f"phase.{name}.atom.{self.sample.occupied}.occupancy": 1.0 - size},
            "ka2_ratio": {"instrument.ka2_ratio": 0.5 - size},
        }[told]
        return tuple(_value(key, value) for key, value in values.items())

    def applies(self, defect: Defect) -> bool:
        """Return whether the sample can have the defect: a cubic cell has one axis, silicon one scale."""
        if defect.name == "occupancy":
            return bool(self.sample.occupied)
        return defect.name != "cell_axis" or "c" in _free_axes(self.sample.name)


def true_edits(names: tuple[str, ...]) -> tuple[Edit, ...]:
    """Return the edits that give a model its true widths."""
    edits = [_value(key, value) for key, value in TRUTH.items() if "." in key]
    for name in names:
        edits += [_value(f"phase.{name}.{key}", TRUTH[key]) for key in ("size", "strain")]
    return tuple(edits)


def _value(selector: str, value: float) -> Edit:
    return Edit("value", {"selector": selector, "value": value})


def _free_axes(name: str) -> tuple[str, ...]:
    cell = structure(name).cell
    found = ["a"]
    if abs(cell.b - cell.a) > 1e-6:
        found.append("b")
    if abs(cell.c - cell.a) > 1e-6:
        found.append("c")
    return tuple(found)


def _noisy(mean: FloatArray, number: int) -> Pattern:
    counts = np.random.default_rng((20261130, number)).poisson(mean).astype(float)
    return Pattern(x=X_DEG, y=counts, sigma=np.sqrt(np.maximum(counts, 1.0)))


def _scaled(instrument: Instrument, factor: float) -> Instrument:
    lines = tuple(EmissionLine(v.wavelength_angstrom * factor, v.relative_intensity) for v in instrument.lines)
    return replace(instrument, lines=lines)


def _true_chi2(result: EngineResult, truth: Truth) -> float:
    inside = np.searchsorted(X_DEG, result.x - 1e-6)
    known = truth.bragg - truth.missing
    parts = [part[inside] for part in (known, truth.missing) if part.max() > 0]
    smooth = truth.counts(0.0) / _CONSTANT_COUNTS - 1.0
    columns = [*parts, *_basis(result.x), *([smooth[inside]] if truth.hump else [])]
    chi2, _ = _fitted(np.stack(columns), result)
    return chi2


def _basis(x: FloatArray) -> FloatArray:
    at = 2.0 * (x - x[0]) / (x[-1] - x[0]) - 1.0
    return np.asarray(np.polynomial.chebyshev.chebvander(at, TERMS - 1).T)


def _fitted(columns: FloatArray, result: EngineResult) -> tuple[float, FloatArray]:
    """Return chi2 and coefficients of a weighted linear fit of the observed pattern by columns, shape (c, n)."""
    scaled = columns / result.sigma
    norms = np.linalg.norm(scaled, axis=1)
    matrix, target = (scaled / norms[:, None]).T, result.y_obs / result.sigma
    solution = np.linalg.lstsq(matrix, target, rcond=None)[0]
    left = target - matrix @ solution
    return float(left @ left), np.asarray(solution / norms)


def _linear_edits(result: EngineResult) -> tuple[Edit, ...]:
    """Fit scale factors and background, on which the curve depends linearly, in weighted least squares."""
    solution = _fitted(np.concatenate((result.phase_patterns, _basis(result.x))), result)[1]
    values = {p.name: p.value for p in result.parameters}
    edits = []
    for index, phase in enumerate(result.phases):
        factor = max(float(solution[index]), 1e-6)
        key = f"phase.{phase.name}.scale"
        edits.append(_value(key, values[key] * factor))
    first = len(result.phases)
    edits += [_value(f"background.{k}", float(v)) for k, v in enumerate(solution[first:])]
    return tuple(edits)
