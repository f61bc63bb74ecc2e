"""Are the lines where they should be, and if not: zero, specimen displacement or cell?

A cause that the cheapest explanation names is reported from that fit; any other as what it would be if added to it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from autoxrd.domain.state import Feature
from autoxrd.science.alignment import Alignment, shift_of
from autoxrd.science.causes import Causes, find_causes
from autoxrd.science.features import measured, plain, unavailable
from autoxrd.science.inputs import MeasureContext
from autoxrd.science.laws import CELL, DISPLACEMENT, ZERO, LawFit, LawProblem, displacement_law, law_problem
from autoxrd.science.noise import chi2_to_z
from autoxrd.science.reflections import PeakMeasures

__all__ = ["position_features"]

_RAD = np.pi / 180.0
_NOT_ANGULAR = "the axis is not 2theta: zero, displacement and cell have other laws there"
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
    if not alignment.frame.angular:
        return _all_unavailable(names, _NOT_ANGULAR)
    problem = law_problem(measures, context, len(names))
    if problem is None:
        used = int(measures.shaped.sum())
        features = _all_unavailable(names, f"{used} usable peaks: too few for any position law")
        coarse = alignment.coarse
        if coarse is not None and coarse.zero:
            features["position.zero"] = measured(
                coarse.zero, alignment.coarse_esd, n_used=used, unit="deg", reason="from the global search alone"
            )
        return features | {"position.rms": _rms(measures)}
    causes = find_causes(problem, context.settings.positions)
    features = {"position.rms": _rms(measures), "position.separable": _separable(problem, causes, names)}
    features |= _joint(problem, causes, context, names)
    features |= _alone(problem, context, names)
    features |= _scatter(measures, problem, causes, context, names)
    return features


def _all_unavailable(names: Sequence[str], reason: str) -> dict[str, Feature]:
    keys = [*_CAUSES, "rms", "separable", *(f"alone.{cause}" for cause in _CAUSES)]
    keys += [f"{kind}.{name}" for name in names for kind in ("cell", "scatter")]
    return {f"position.{key}": unavailable(reason) for key in keys}


def _in_unit(name: str, value: float, esd: float, context: MeasureContext) -> tuple[float, float, str]:
    """Turn a fitted amplitude (degrees) into the feature's unit."""
    if name.startswith(CELL):
        factor, unit = -_RAD / 2.0, "relative d"  # d(2theta) = -2 tan(theta) dd/d
    elif name == DISPLACEMENT and context.radius_mm:
        factor = _RAD * context.radius_mm * (-0.5 if displacement_law(context) == "cos" else 1.0)
        unit = "mm"
    else:
        factor, unit = 1.0, "deg"
    return value * factor, esd * abs(factor), unit


def _label(name: str, names: Sequence[str]) -> str:
    return f"cell of {names[int(name.split('.')[1])]}" if "." in name else name


def _separable(problem: LawProblem, causes: Causes, names: Sequence[str]) -> Feature:
    def told(columns: tuple[str, ...]) -> str:
        return " and ".join(_label(name, names) for name in columns) or "nothing"

    if not causes.chosen:
        return plain(1.0, n_used=problem.n_used, reason="no significant offset to explain")
    if not causes.ambiguous:
        return plain(1.0, n_used=problem.n_used, reason=f"explained by {told(causes.chosen)}")
    reason = f"cannot be told apart: {told(causes.chosen)} or {told(causes.rival)}"
    return plain(0.0, n_used=problem.n_used, reason=reason)


def _estimate(problem: LawProblem, causes: Causes, name: str) -> tuple[float, float]:
    """Value and esd (degrees) of a column, from the chosen fit or from that with the column added."""
    fit = causes.fit if name in causes.chosen else problem.fit((*causes.chosen, name))
    got = fit.get(name)
    assert got is not None
    return got


def _joint(problem: LawProblem, causes: Causes, context: MeasureContext, names: Sequence[str]) -> dict[str, Feature]:
    ambiguous = _separable(problem, causes, names).reason
    involved = {_kind(name) for name in (*causes.ambiguous, *causes.rival)} if causes.ambiguous else set()
    features = {}
    for cause in (ZERO, DISPLACEMENT):
        if cause not in problem.names:
            why = "no goniometer radius known: a capillary's offset is not considered"
            features[f"position.{cause}"] = unavailable(why)
            continue
        value, esd, unit = _in_unit(cause, *_estimate(problem, causes, cause), context)
        across = cause == DISPLACEMENT and displacement_law(context) == "cos2"
        note = "across the beam, law cos(2theta)" if across else ""
        told = unavailable(ambiguous, unit=unit, n_used=problem.n_used)
        shown = measured(value, esd, n_used=problem.n_used, unit=unit, reason=note)
        features[f"position.{cause}"] = told if cause in involved else shown
    for index, name in enumerate(names):
        features[f"position.cell.{name}"] = _cell(
            problem, causes, context, index, ambiguous if CELL in involved else ""
        )
    features["position.cell"] = _strongest(features, names)
    return features


def _kind(name: str) -> str:
    return name.split(".")[0]


def _cell(problem: LawProblem, causes: Causes, context: MeasureContext, index: int, ambiguous: str) -> Feature:
    own = f"{CELL}.{index}"
    if own not in problem.names:
        return unavailable("too few peaks of this phase alone", unit="relative d")
    if ambiguous:
        return unavailable(ambiguous, unit="relative d", n_used=problem.n_used)
    value, esd = 0.0, 0.0
    if CELL in causes.chosen:
        value, esd = _estimate(problem, causes, CELL)
    if own in causes.chosen or CELL not in causes.chosen:
        more, more_esd = _estimate(problem, causes, own)
        value, esd = value + more, float(np.hypot(esd, more_esd))
    value, esd, unit = _in_unit(own, value, esd, context)
    return measured(value, esd, n_used=problem.n_used, unit=unit)


def _strongest(features: dict[str, Feature], names: Sequence[str]) -> Feature:
    cells = [(features[f"position.cell.{name}"], name) for name in names]
    told = [(feature, name) for feature, name in cells if feature.available]
    if not told:
        return unavailable(cells[0][0].reason if cells else "no phase")
    best, name = max(told, key=lambda item: item[0].significance or 0.0)
    return best.model_copy(update={"reason": f"phase {name}"})


def _alone(problem: LawProblem, context: MeasureContext, names: Sequence[str]) -> dict[str, Feature]:
    """One cause at a time: the estimate, and as significance the root of the chi2 that it takes away."""
    features = {}
    cells = tuple(name for name in problem.names if name.startswith(f"{CELL}."))
    for cause, columns in ((ZERO, (ZERO,)), (DISPLACEMENT, (DISPLACEMENT,)), (CELL, cells)):
        key = f"position.alone.{cause}"
        if not columns or columns[0] not in problem.names:
            features[key] = unavailable("no such law here")
            continue
        fit = problem.fit(columns)
        best = _most_significant(fit)
        got = fit.get(best)
        assert got is not None
        value, esd, unit = _in_unit(best, *got, context)
        gain = max(problem.chi2_null - fit.chi2, 0.0)
        share = gain / problem.chi2_null if problem.chi2_null > 0 else 0.0
        features[key] = measured(
            value,
            esd,
            n_used=problem.n_used,
            unit=unit,
            significance=float(np.sqrt(max(gain / problem.scale - (len(columns) - 1), 0.0))),
            reason=f"explains {share:.4f} of the offsets' chi2 ({_label(best, names)})",
        )
    return features


def _most_significant(fit: LawFit) -> str:
    ratios = np.abs(fit.coefficient) / np.sqrt(np.maximum(np.diag(fit.covariance), 1e-300))
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
    """Reduced chi2 of each phase's offsets after the chosen laws and its own cell: an anisotropic cell error."""
    features = {}
    for index, name in enumerate(names):
        own = f"{CELL}.{index}"
        used = problem.used & (measures.phase == index)
        fit = problem.fit(tuple(dict.fromkeys((*causes.chosen, *((own,) if own in problem.names else ())))))
        dof = int(used.sum()) - len(fit.names)
        if own not in problem.names or dof < 2:
            features[f"position.scatter.{name}"] = unavailable(
                "too few peaks of this phase alone", n_used=int(used.sum())
            )
            continue
        shift = shift_of(fit, context, len(names))
        left = measures.offset[used] - shift.at(measures.position[used], index)
        chi2 = float(np.sum(np.square(left / measures.offset_esd[used])))
        features[f"position.scatter.{name}"] = measured(
            chi2 / dof,
            float(np.sqrt(2.0 / dof)),
            n_used=int(used.sum()),
            significance=max(chi2_to_z(chi2, dof), 0.0),
            reason="reduced chi2 of the offsets after the position laws",
        )
    return features
