"""Is there one broad maximum between the lines that the background does not follow: a halo of glass, polymer, holder?

Three numbers (place, height, width) describe it where a polynomial takes a dozen terms. It is looked for in the
residual away from calculated lines, beside the polynomial that is there already.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from autoxrd.domain.pattern import FloatArray
from autoxrd.domain.state import Feature
from autoxrd.science.arrays import ordinary_median, piece_medians, quantiles, sum_by
from autoxrd.science.frame import Frame
from autoxrd.science.settings import BackgroundSettings, HaloSettings

__all__ = ["HALO", "HALO_POSITION", "HALO_WIDTH", "halo_features"]

HALO = "background.halo"
"""Share of chi^2 that a broad peak would take away; on record only where there is one."""
HALO_POSITION = "background.halo_position"
HALO_WIDTH = "background.halo_width"
NUMBERS = 3
"""Place, height and width."""


@dataclass(frozen=True, slots=True)
class _Pieces:
    """The residual away from lines, averaged: place (degrees), mean and its esd, shape (p,) each."""

    x: FloatArray
    mean: FloatArray
    esd: FloatArray


@dataclass(frozen=True, slots=True)
class _Trial:
    place: float
    width: float
    gain: float


def halo_features(frame: Frame, terms: int, settings: HaloSettings, slow: BackgroundSettings) -> dict[str, Feature]:
    """Return what a halo would take off chi^2, where it stands and how wide it is; nothing where there is none.

    Args:
        frame: the fit.
        terms: number of the background's polynomial terms.
        settings: thresholds.
        slow: those of ``background.slow``, which tell the channels that lie away from lines.
    """
    if not frame.angular:
        return {}
    pieces = _pieces(frame, settings, slow)
    if pieces is None or pieces.x.size < terms + settings.spare_pieces:
        return {}
    ends = (float(frame.x[0]), float(frame.x[-1]))
    found = _best(pieces, terms, ends, _narrowest(frame, ends, settings), settings)
    total = float(np.sum(np.square(frame.residual) / frame.variance))
    if found is None or total <= 0.0:
        return {}
    reduced = total / frame.x.size
    share, significance = min(found.gain / total, 1.0), found.gain / (NUMBERS * reduced)
    if share < settings.least_share or significance < settings.least_significance:
        return {}
    return {
        HALO: Feature(value=share, significance=significance, n_used=NUMBERS),
        HALO_POSITION: Feature(value=found.place, unit="deg"),
        HALO_WIDTH: Feature(value=found.width, unit="deg"),
    }


def _pieces(frame: Frame, settings: HaloSettings, slow: BackgroundSettings) -> _Pieces | None:
    """Average the residual of channels without calculated intensity; single high ones are clipped off."""
    sigma = np.sqrt(frame.variance)
    relative = frame.net_calc / sigma
    away = relative < max(slow.below_sigma, min(quantiles(relative, (slow.lowest_share,))[0], slow.at_most_sigma))
    at = np.flatnonzero(away)
    step = ordinary_median(frame.step)
    width = ordinary_median(frame.lines.fwhm) if frame.lines.fwhm.size else 6.0 * step
    size = max(int(settings.piece_fwhm * width / step), slow.min_points)
    count = at.size // size
    if count < settings.spare_pieces:
        return None
    piece = np.minimum(np.arange(at.size) // (at.size // count), count - 1)
    z = frame.residual[at] / sigma[at]
    keep = np.abs(z - piece_medians(z, count)[piece]) < slow.clip_sigma
    weight = np.where(keep, 1.0 / frame.variance[at], 0.0)
    whole = np.maximum(sum_by(piece, weight, count), 1e-300)
    return _Pieces(
        x=sum_by(piece, weight * frame.x[at], count) / whole,
        mean=sum_by(piece, weight * frame.residual[at], count) / whole,
        esd=1.0 / np.sqrt(whole),
    )


def _narrowest(frame: Frame, ends: tuple[float, float], settings: HaloSettings) -> float:
    width = ordinary_median(frame.lines.fwhm) if frame.lines.fwhm.size else 0.0
    return max(settings.narrowest_fwhm * width, settings.narrowest_share * (ends[1] - ends[0]))


def _best(
    pieces: _Pieces, terms: int, ends: tuple[float, float], narrowest: float, settings: HaloSettings
) -> _Trial | None:
    """Try places and widths beside the polynomial; a height is positive, and what the polynomial follows is no halo."""
    reach = ends[1] - ends[0]
    u = 2.0 * (pieces.x - ends[0]) / reach - 1.0
    base = np.linalg.qr(np.polynomial.chebyshev.chebvander(u, max(terms, 1) - 1) / pieces.esd[:, None])[0]
    rest = pieces.mean / pieces.esd
    rest = rest - base @ (base.T @ rest)
    best, width = None, narrowest
    while width <= settings.widest_share * reach:
        places = np.arange(ends[0] + 0.5 * width, ends[1] - 0.5 * width, settings.place_step * width)
        plain = np.exp(-4.0 * np.log(2.0) * ((pieces.x[:, None] - places) / width) ** 2) / pieces.esd[:, None]
        columns = plain - base @ (base.T @ plain)
        square, along = np.sum(np.square(columns), axis=0), columns.T @ rest
        seen = (along > 0.0) & (square > settings.least_kept**2 * np.sum(np.square(plain), axis=0))
        gains = np.where(seen, along**2 / np.where(seen, square, 1.0), 0.0)
        number = int(np.argmax(gains)) if gains.size else 0
        if gains.size and gains[number] > (best.gain if best is not None else 0.0):
            best = _Trial(float(places[number]), width, float(gains[number]))
        width *= settings.growth
    return best
