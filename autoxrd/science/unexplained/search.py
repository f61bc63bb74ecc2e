"""Which bumps of the residual may be peaks, and which of them are? Found, taken off, and looked for again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from autoxrd.domain.pattern import FloatArray
from autoxrd.science.settings import UnexplainedSettings
from autoxrd.science.shapes import windows_between
from autoxrd.science.unexplained.field import Field
from autoxrd.science.unexplained.judge import Found, Judge
from autoxrd.science.unexplained.look import Look, Search, look_at
from autoxrd.science.unexplained.misfit import shape_misfit
from autoxrd.science.unexplained.residual import Bumps, around, local_maxima
from autoxrd.science.unexplained.widening import widened

__all__ = ["find_peaks"]


def find_peaks(search: Search) -> Found:
    """Find peaks, take them off and look again."""
    field, settings = search.field, search.settings
    found = Found.nothing(field.x.size)
    ends = np.array([field.x[0], field.x[-1]])
    closed = field.covered | around(field, ends, settings.edge_fwhm * field.widths[[0, -1]])
    strong = search.filter.threshold(np.where(closed, 0.0, field.step), settings.false_alarms)
    first = look_at(search, field.residual)
    likely = _candidates(search, first, found.bumps, closed, settings.first_look * strong)
    if not np.any(likely.significance > settings.first_look * strong):
        return found
    apart = search.apart(first.score)
    judge = None
    for _ in range(settings.rounds):
        look = look_at(search, field.residual - found.model, apart)
        bumps = _candidates(search, look, found.bumps, closed, strong)
        if bumps.position.size == 0:
            break
        if judge is None:
            misfit = shape_misfit(field, search.frame.peaks, field.residual - look.slow.level, settings)
            judge = Judge(search, misfit, look.area, strong)
        known = found.bumps.position.size
        bumps = replace(bumps, fwhm=bumps.fwhm * np.exp(found.breadth))
        found = replace(judge.judged(look.slow, found.bumps.joined(bumps)), breadth=found.breadth)
        if found.bumps.position.size <= known:
            break
        if known == 0:
            found = widened(judge, look.slow, found)
    return found


def _candidates(search: Search, look: Look, taken: Bumps, closed: NDArray[np.bool_], strong: float) -> Bumps:
    """Return new maxima of the filtered residual that may be peaks; weaker ones only beside a strong one."""
    field, settings = search.field, search.settings
    allowed = ~(closed | around(field, taken.position, settings.separation_fwhm * taken.fwhm))
    if taken.position.size == 0 and not np.any(look.score[allowed] > strong):
        return Bumps.none()
    bumps = local_maxima(field, look.score, allowed, settings.companion_z, settings)
    return _merge_second_line(field, bumps.where(~_paired(search, bumps, look.score)), settings)


def _paired(search: Search, bumps: Bumps, score: FloatArray) -> NDArray[np.bool_]:
    """Tell which bumps mirror a dip of comparable significance at a calculated line nearby."""
    field, lines, settings = search.field, search.frame.lines, search.settings
    position, reach = bumps.position, settings.pair_reach_fwhm * bumps.fwhm
    near = windows_between(lines.position, position - reach, position + reach)
    mirror = 2.0 * lines.position[near.point] - position[near.owner]
    inside = (mirror > field.x[0]) & (mirror < field.x[-1])
    owner = near.owner[inside]
    dips = score[field.at(mirror[inside])] < -settings.pair_share * bumps.significance[owner]
    return np.asarray(np.bincount(owner[dips], minlength=position.size) > 0)


def _merge_second_line(field: Field, bumps: Bumps, settings: UnexplainedSettings) -> Bumps:
    """Drop bumps that are the second line of a stronger one, or have their second line on its first."""
    if field.shape.ratio == 0.0 or bumps.position.size < 2:
        return bumps
    away = field.shape.second(bumps.position)[:, None] - bumps.position[None, :]
    near = np.abs(away) < settings.separation_fwhm * bumps.fwhm[None, :]
    stronger = bumps.significance[:, None] > bumps.significance[None, :]
    np.fill_diagonal(near, False)
    return bumps.where(~(np.any(near & stronger, axis=0) | np.any(near & stronger.T, axis=1)))
