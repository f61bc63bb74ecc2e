"""Are the lines where they should be, and if not: zero, specimen displacement or cell?

A cause that the cheapest explanation names is reported from that fit; any other as what it would be if added to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from autoxrd.domain.pattern import FloatArray
from autoxrd.domain.state import Feature
from autoxrd.science.alignment import Alignment, shift_of
from autoxrd.science.arrays import cell_slope, small_inverse
from autoxrd.science.causes import Causes, kinds
from autoxrd.science.features import measured, plain, unavailable
from autoxrd.science.inputs import MeasureContext
from autoxrd.science.laws import CELL, DISPLACEMENT, TIME, ZERO, LawFit, LawProblem, displacement_law
from autoxrd.science.noise import chi2_to_z
from autoxrd.science.reflections import PeakMeasures

__all__ = ["position_features"]

_RAD = np.pi / 180.0
_NOT_ANGULAR = "the axis is not 2theta: zero, displacement and cell have other laws there"
_NO_DISPLACEMENT = "over the time of flight the specimen's place moves lines as the cell does"
_RMS_FLOOR_FWHM = 0.02
_CAUSES = (ZERO, DISPLACEMENT, CELL)


def position_features(alignment: Alignment, context: MeasureContext, names: Sequence[str]) -> dict[str, Feature]:
    """Return every ``position.*`` feature.

    Args:
        alignment: aligned frame with its measured peaks.
        context: geometry, radius, settings.
        names: phase names in order.
    """
    measures = alignment.measures
    if not (alignment.frame.angular or alignment.frame.timed):
        return _all_unavailable(names, _NOT_ANGULAR)
    problem, causes = alignment.problem, alignment.causes
    if problem is None or causes is None:
        return _few(alignment, names)
    features = {"position.rms": _rms(measures), "position.separable": _separable(problem, causes, names)}
    features |= _joint(problem, causes, context, names)
    features |= _alone(problem, context, names)
    features |= _scatter(measures, problem, causes, context, names)
    return features


def _all_unavailable(names: Sequence[str], reason: str) -> dict[str, Feature]:
    keys = [*_CAUSES, "rms", "separable", *(f"alone.{cause}" for cause in _CAUSES)]
    keys += [f"{kind}.{name}" for name in names for kind in ("cell", "scatter")]
    return {f"position.{key}": unavailable(reason) for key in keys}


def _few(alignment: Alignment, names: Sequence[str]) -> dict[str, Feature]:
    """Too few peaks for a law: only a shift from the global search is known, where there was one."""
    used = int(alignment.measures.shaped.sum())
    features = _all_unavailable(names, f"{used} usable peaks: too few for any position law")
    coarse = alignment.coarse
    if coarse is not None and coarse.law == ZERO:
        features["position.zero"] = measured(
            coarse.amplitude_deg,
            coarse.esd_deg,
            n_used=used,
            unit="us" if alignment.frame.timed else "deg",
            reason="from the global search alone",
        )
    return features | {"position.rms": _rms(alignment.measures)}


def _in_unit(name: str, value: float, esd: float, context: MeasureContext) -> tuple[float, float, str]:
    """Turn a fitted amplitude (degrees; microseconds and relative spacing) into the feature's unit."""
    if displacement_law(context) == TIME:
        factor, unit = (1.0, "relative d") if name.startswith(CELL) else (1.0, "us")
    elif name.startswith(CELL):
        factor, unit = -_RAD / 2.0, "relative d"  # d(2theta) = -2 tan(theta) dd/d
    elif name.startswith(DISPLACEMENT) and context.radius_mm:
        factor = _RAD * context.radius_mm * (-0.5 if displacement_law(context) == "cos" else 1.0)
        unit = "mm"
    else:
        factor, unit = 1.0, "deg"
    return value * factor, esd * abs(factor), unit


def _told(columns: tuple[str, ...], names: Sequence[str]) -> str:
    """Return columns in words."""
    words = []
    for column in columns:
        parts = column.split(".")
        words.append(f"cell of {names[int(parts[1])]}" if column.startswith(f"{CELL}.") else parts[0])
    return " and ".join(dict.fromkeys(words)) or "nothing"


def _separable(problem: LawProblem, causes: Causes, names: Sequence[str]) -> Feature:
    if not causes.chosen:
        return plain(1.0, n_used=problem.n_used, reason="no significant offset to explain")
    chosen = _told(causes.chosen, names)
    if not causes.ambiguous:
        return plain(1.0, n_used=problem.n_used, reason=f"explained by {chosen}")
    reason = f"cannot be told apart: {chosen} or {_told(causes.rival, names)}"
    return plain(0.0, n_used=problem.n_used, reason=reason)


def _joint(problem: LawProblem, causes: Causes, context: MeasureContext, names: Sequence[str]) -> dict[str, Feature]:
    reason = _separable(problem, causes, names).reason
    involved = causes.ambiguous | (kinds(causes.rival) - kinds(causes.chosen)) if causes.ambiguous else frozenset()
    features = {}
    for cause in (ZERO, DISPLACEMENT):
        if cause not in problem.names:
            features[f"position.{cause}"] = unavailable(_NO_DISPLACEMENT)
            continue
        fit = causes.fit if cause in causes.chosen else problem.fit((*causes.chosen, cause))
        value, esd, unit = _in_unit(cause, *(fit.get(cause) or (0.0, np.inf)), context)
        across = cause == DISPLACEMENT and displacement_law(context) == "cos2"
        note = "across the beam, law cos(2theta)" if across else ""
        shown = measured(value, esd, n_used=problem.n_used, unit=unit, reason=note)
        hidden = unavailable(reason, unit=unit, n_used=problem.n_used)
        features[f"position.{cause}"] = hidden if cause in involved else shown
    for index, name in enumerate(names):
        told = _cell(problem, causes, context, index)
        if CELL in involved and told.available:
            told = unavailable(reason, unit="relative d", n_used=problem.n_used)
        features[f"position.cell.{name}"] = told
    features["position.cell"] = _strongest(features, names)
    return features


def _cell(problem: LawProblem, causes: Causes, context: MeasureContext, index: int) -> Feature:
    """Mean relative spacing error of a phase over its peaks; significance of all its cell terms together."""
    own = f"{CELL}.{index}"
    if own not in problem.names:
        return unavailable("too few peaks of this phase alone", unit="relative d")
    fit = causes.fit
    terms = [n for n in fit.names if n in (CELL, own) or n.startswith(f"{own}.")]
    if not terms:
        fit = problem.fit((*fit.names, own))
        terms = [own]
    at = [fit.names.index(name) for name in terms]
    rows = problem.columns[:, [problem.names.index(name) for name in terms]]
    tangent = problem.columns[:, problem.names.index(own)]
    mine = tangent > 0
    # columns are degrees per unit; over tan(theta) they are relative changes of 1/d^2
    mean = (rows[mine] / tangent[mine, None]).sum(axis=0) / np.count_nonzero(mine)
    coefficient, covariance = fit.coefficient[at], fit.covariance[at][:, at]
    value, esd, unit = _in_unit(own, float(mean @ coefficient), float(np.sqrt(mean @ covariance @ mean)), context)
    wald = float(coefficient @ small_inverse(covariance) @ coefficient)
    significance = abs(value) / esd if len(terms) == 1 else max(chi2_to_z(wald, len(terms)), 0.0)
    note = "" if len(terms) == 1 else "the axes change by different amounts"
    return measured(value, esd, n_used=problem.n_used, unit=unit, significance=significance, reason=note)


def _strongest(features: dict[str, Feature], names: Sequence[str]) -> Feature:
    cells = [(features[f"position.cell.{name}"], name) for name in names]
    told = [(feature, name) for feature, name in cells if feature.available]
    if not told:
        return unavailable(cells[0][0].reason if cells else "no phase")
    best, name = max(told, key=lambda item: item[0].significance or 0.0)
    return best.model_copy(update={"reason": f"phase {name}"})


def _alone(problem: LawProblem, context: MeasureContext, names: Sequence[str]) -> dict[str, Feature]:
    """One cause at a time: the estimate, and as significance the root of the chi2 that it takes away.

    Terms beyond the first are paid for, so that an anisotropic cell does not win by its number of parameters.
    """
    features = {}
    cells = tuple(name for name in problem.names if name.startswith(f"{CELL}."))
    price = context.settings.positions.extra_price
    for cause, columns in ((ZERO, (ZERO,)), (DISPLACEMENT, (DISPLACEMENT,)), (CELL, cells)):
        key = f"position.alone.{cause}"
        if not columns or columns[0] not in problem.names:
            features[key] = unavailable("too few peaks of any one phase" if not columns else _NO_DISPLACEMENT)
            continue
        fit = problem.fit(columns)
        best = _most_significant(fit)
        value, esd, unit = _in_unit(best, *(fit.get(best) or (0.0, np.inf)), context)
        gain = max(problem.chi2_null - fit.chi2, 0.0)
        share = gain / problem.chi2_null if problem.chi2_null > 0 else 0.0
        features[key] = measured(
            value,
            esd,
            n_used=problem.n_used,
            unit=unit,
            significance=float(np.sqrt(max(gain / problem.scale - price * (len(columns) - 1), 0.0))),
            reason=f"explains {share:.4f} of the offsets' chi2 ({_told((best,), names)})",
        )
    return features


def _most_significant(fit: LawFit) -> str:
    """Return the column with the largest value over esd; of cells only isotropic ones, which have a unit."""
    ratios = np.abs(fit.coefficient) / np.sqrt(np.maximum(np.diag(fit.covariance), 1e-300))
    ratios[[name.count(".") > 1 for name in fit.names]] = -1.0
    return fit.names[int(np.argmax(ratios))]


def _rms(measures: PeakMeasures) -> Feature:
    """Weighted rms offset in FWHM; the significance is that of chi2 against no offset at all."""
    used = measures.shaped
    n = int(used.sum())
    if n == 0:
        return unavailable("no usable peak", unit="FWHM", n_used=0)
    relative = measures.offset[used] / measures.fwhm[used]
    esd = measures.offset_esd[used] / measures.fwhm[used]
    # weights saturate, so that one very strong peak does not speak for all
    weight = 1.0 / (np.square(esd) + _RMS_FLOOR_FWHM**2)
    value = float(np.sqrt(np.sum(weight * np.square(relative)) / np.sum(weight)))
    noise = float(np.sqrt(np.sum(weight * np.square(esd)) / np.sum(weight) / n))
    chi2 = float(np.sum(np.square(relative / esd)))
    return measured(value, noise, n_used=n, unit="FWHM", significance=max(chi2_to_z(chi2, n), 0.0))


def _scatter(
    measures: PeakMeasures, problem: LawProblem, causes: Causes, context: MeasureContext, names: Sequence[str]
) -> dict[str, Feature]:
    """Reduced chi2 of each phase's offsets after zero, displacement and isotropic cell: an anisotropic cell error."""
    shift = shift_of(causes.fit, context, len(names))
    features = {}
    for index, name in enumerate(names):
        used = problem.used & (measures.phase == index)
        n = int(used.sum())
        dof = n - 1 - len(kinds(causes.chosen) - {CELL})
        if f"{CELL}.{index}" not in problem.names or dof < 2:
            features[f"position.scatter.{name}"] = unavailable("too few peaks of this phase alone", n_used=n)
            continue
        position, esd = measures.position[used], measures.offset_esd[used]
        middle = position + 0.5 * measures.offset[used]
        tangent = cell_slope(middle, timed=displacement_law(context) == TIME)
        left = measures.offset[used] - replace(shift, cell=()).at(position, index)
        chi2 = _isotropic_chi2(left / esd, tangent / esd)
        features[f"position.scatter.{name}"] = measured(
            chi2 / dof,
            float(np.sqrt(2.0 / dof)),
            n_used=n,
            significance=max(chi2_to_z(chi2, dof), 0.0),
            reason="reduced chi2 of the offsets after zero, displacement and isotropic cell",
        )
    return features


def _isotropic_chi2(target: FloatArray, column: FloatArray) -> float:
    factor = float(np.dot(column, target)) / max(float(np.dot(column, column)), 1e-300)
    return float(np.sum(np.square(target - factor * column)))
