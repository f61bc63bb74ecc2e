"""Turn what a reader found into a Pattern, or say in one sentence why it cannot be used."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from autoxrd.domain.pattern import AxisKind, FloatArray, Notice, Pattern, SigmaOrigin
from autoxrd.io.raw import RawPattern
from autoxrd.io.settings import ReadSettings
from autoxrd.io.source import Source, shown

__all__ = ["finish"]

_UNIT = {
    AxisKind.TWO_THETA: "degrees 2theta",
    AxisKind.TOF: "microseconds",
    AxisKind.Q: "1/angstrom",
    AxisKind.D_SPACING: "angstrom",
}


def finish(raw: RawPattern, source: Source, settings: ReadSettings) -> Pattern:
    """Check every array and build the pattern.

    Raises:
        UserInputError: ``pattern_nan``, ``pattern_duplicate_x``, ``pattern_ranges_overlap``,
            ``pattern_not_monotonic``, ``pattern_axis_unclear``, ``pattern_too_short``,
            ``pattern_range_too_short``, ``pattern_esd_invalid``,
            ``pattern_no_intensity``, ``pattern_negative``, ``pattern_flat``, ``pattern_is_noise``.
    """
    _check_finite(raw, source)
    raw = _ascending(raw)
    _check_axis(raw, source)
    raw = _drop_unusable_angles(raw)
    if raw.padded:
        raw = _drop_padding(raw, settings)
    raw = _drop_dead_points(raw, settings)
    if raw.x.size < settings.min_points:
        sentence = f"holds {raw.x.size} points; a refinement needs at least {settings.min_points}."
        raise source.error("pattern_too_short", sentence, n_points=int(raw.x.size))
    span = float(raw.x[-1] - raw.x[0])
    if raw.axis is AxisKind.TWO_THETA and span < settings.min_range_deg:
        sentence = f"covers only {span:.2f} degrees 2theta; a refinement needs at least {settings.min_range_deg:g}."
        raise source.error("pattern_range_too_short", sentence, span_deg=span)
    sigma, origin, notices = _sigma(raw, source, settings)
    _check_intensity(raw, sigma, source, settings)
    x, y = _frozen(raw.x), _frozen(raw.y)
    return Pattern(
        x=x,
        y=y,
        sigma=_frozen(sigma),
        axis=raw.axis,
        sigma_origin=origin,
        format=raw.format,
        title=_title(raw.title),
        source_name=source.name,
        source_sha256=source.sha256,
        hints=raw.hints,
        notices=raw.notices + notices,
    )


def _title(text: str) -> str:
    """Untrusted title: printable characters, at most 200."""
    return "".join(char if char.isprintable() else " " for char in text).strip()[:200]


def _frozen(values: FloatArray) -> FloatArray:
    """Return a read-only float64 copy."""
    out = np.array(values, dtype=np.float64, order="C")
    out.flags.writeable = False
    return out


def _line(raw: RawPattern, index: int) -> int | None:
    """Line number of a point, where the reader kept it."""
    return None if raw.rows is None else int(raw.rows[index])


def _check_finite(raw: RawPattern, source: Source) -> None:
    """Refuse NaN and infinite numbers with their count and the first line."""
    bad = ~(np.isfinite(raw.x) & np.isfinite(raw.y))
    if raw.sigma is not None:
        bad |= ~np.isfinite(raw.sigma)
    if not np.any(bad):
        return
    count = int(bad.sum())
    sentence = f"expected finite numbers, found NaN or infinity in {count} of {raw.x.size} points; remove these rows."
    raise source.error("pattern_nan", sentence, line=_line(raw, int(np.argmax(bad))), count=count)


def _ascending(raw: RawPattern) -> RawPattern:
    """Turn a wholly descending scan round."""
    if raw.x.size < 2 or not np.all(np.diff(raw.x) < 0.0):
        return raw
    notice = Notice("axis_reversed", "The file runs from high to low; the points were put in ascending order.")
    return replace(
        raw,
        x=raw.x[::-1],
        y=raw.y[::-1],
        sigma=None if raw.sigma is None else raw.sigma[::-1],
        count_scale=None if raw.count_scale is None else raw.count_scale[::-1],
        rows=None if raw.rows is None else raw.rows[::-1],
        notices=(*raw.notices, notice),
    )


def _check_axis(raw: RawPattern, source: Source) -> None:
    """Refuse an axis that does not increase strictly, or that cannot be what it claims."""
    steps = np.diff(raw.x)
    wrong = np.flatnonzero(steps <= 0.0)
    if wrong.size:
        first = int(wrong[0])
        line = _line(raw, first + 1)
        here, after = float(raw.x[first]), float(raw.x[first + 1])
        usual = float(np.median(np.abs(steps)))
        if wrong.size <= 20 and here - after > 5.0 * usual and usual > 0.0:
            sentence = (
                f"the axis jumps back from {here:g} to {after:g}: several overlapping ranges are in one file; "
                "split them into one file each."
            )
            raise source.error("pattern_ranges_overlap", sentence, line=line)
        if after == here:
            sentence = f"the axis value {here:g} stands twice; expected strictly increasing values."
            raise source.error("pattern_duplicate_x", sentence, line=line, count=int((steps == 0.0).sum()))
        sentence = f"the axis falls from {here:g} to {after:g}; expected strictly increasing {_UNIT[raw.axis]}."
        raise source.error("pattern_not_monotonic", sentence, line=line, count=int(wrong.size))
    if raw.axis is AxisKind.TWO_THETA and raw.x.size and float(raw.x[-1]) > 180.0:
        sentence = f"the axis reaches {float(raw.x[-1]):g}; expected degrees 2theta up to 180."
        raise source.error("pattern_axis_unclear", sentence, line=_line(raw, raw.x.size - 1))
    if raw.axis is not AxisKind.TWO_THETA and raw.x.size and float(raw.x[-1]) <= 0.0:
        raise source.error("pattern_axis_unclear", f"the axis is not positive; expected {_UNIT[raw.axis]} > 0.")


def _drop_unusable_angles(raw: RawPattern) -> RawPattern:
    """Leave out points at or below zero: no reflection can be there."""
    below = raw.x <= 0.0
    if not np.any(below):
        return raw
    text = f"{int(below.sum())} points at or below 0 {_UNIT[raw.axis]} are left out: no reflection can be there."
    return _select(raw, ~below, Notice("points_below_zero_dropped", text))


def _select(raw: RawPattern, keep: np.ndarray, notice: Notice) -> RawPattern:
    """Keep some of the points and say so."""
    return replace(
        raw,
        x=raw.x[keep],
        y=raw.y[keep],
        sigma=None if raw.sigma is None else raw.sigma[keep],
        count_scale=None if raw.count_scale is None else raw.count_scale[keep],
        rows=None if raw.rows is None else raw.rows[keep],
        notices=(*raw.notices, notice),
    )


def _drop_padding(raw: RawPattern, settings: ReadSettings) -> RawPattern:
    """Drop zeros that only fill the last record of a fixed-record format."""
    counted = np.flatnonzero(raw.y != 0.0)
    if counted.size == 0:
        return raw
    last = int(counted[-1])
    n_zero = raw.y.size - 1 - last
    if n_zero == 0 or float(np.mean(raw.y[max(0, last - 9) : last + 1])) < settings.padding_level:
        return raw
    text = f"The last {n_zero} channels are zero filling of the last record and are left out."
    return _select(raw, np.arange(raw.y.size) <= last, Notice("padding_dropped", text))


def _drop_dead_points(raw: RawPattern, settings: ReadSettings) -> RawPattern:
    """Leave out the few points where a file gives 0 with uncertainty 0: a dead detector cell measured nothing."""
    if raw.sigma is None:
        return raw
    dead = (raw.sigma == 0.0) & (raw.y == 0.0)
    if not np.any(dead) or float(np.mean(dead)) > settings.max_dead_fraction:
        return raw
    text = f"{int(dead.sum())} points with intensity 0 and uncertainty 0 were not measured and are left out."
    return _select(raw, ~dead, Notice("dead_points_dropped", text))


def _sigma(
    raw: RawPattern, source: Source, settings: ReadSettings
) -> tuple[FloatArray, SigmaOrigin, tuple[Notice, ...]]:
    """Check measured uncertainties, or make counting ones."""
    if raw.sigma is not None:
        bad = raw.sigma <= 0.0
        if np.any(bad):
            count = int(bad.sum())
            sentence = (
                f"{count} of {raw.x.size} standard uncertainties are not > 0; correct them, or remove that column "
                "to use counting statistics, sqrt(y)."
            )
            raise source.error("pattern_esd_invalid", sentence, line=_line(raw, int(np.argmax(bad))), count=count)
        return raw.sigma, SigmaOrigin.MEASURED, ()
    scale = np.ones_like(raw.y) if raw.count_scale is None else raw.count_scale
    sigma = np.sqrt(np.maximum(raw.y / scale, 1.0)) * scale
    return sigma, SigmaOrigin.COUNTING, _doubtful_counts(raw, settings)


def _doubtful_counts(raw: RawPattern, settings: ReadSettings) -> tuple[Notice, ...]:
    """Say so where the intensities are plainly not counts."""
    counts = raw.y if raw.count_scale is None else raw.y / raw.count_scale
    noninteger = float(np.mean(np.abs(counts - np.rint(counts)) > 1e-3 * np.maximum(np.abs(counts), 1.0)))
    if raw.count_scale is None and noninteger > settings.noninteger_fraction:
        text = (
            f"{100 * noninteger:.0f} % of the intensities are not whole numbers (rates, or corrected data) and the "
            "file gives no uncertainties: sqrt(y) is a guess, so GoF and esds have an unknown scale."
        )
        return (Notice("counting_sigma_uncertain", text),)
    if float(np.median(np.abs(raw.y))) < 1.0:
        text = "Most intensities are below one: counting statistics are a guess here."
        return (Notice("counting_sigma_uncertain", text),)
    return ()


def _check_intensity(raw: RawPattern, sigma: FloatArray, source: Source, settings: ReadSettings) -> None:
    """Refuse a column without a pattern in it."""
    y = raw.y
    if not np.all(np.isfinite(np.array([y.sum(), np.dot(y, y)]))):
        raise source.error("pattern_no_intensity", "the intensities are too large to be counts.")
    if float(y.max()) <= 0.0:
        raise source.error("pattern_no_intensity", "no intensity is above zero; expected counts.")
    if float(y.max()) == float(y.min()):
        raise source.error("pattern_flat", f"all intensities are {shown(f'{y[0]:g}')}; expected a diffraction pattern.")
    negative = float(np.mean(y < 0.0))
    if negative > settings.max_negative_fraction:
        sentence = (
            f"{100 * negative:.0f} % of the intensities are negative; expected counts as measured, "
            "without subtracting a background."
        )
        raise source.error("pattern_negative", sentence, fraction=negative)
    lag1, excess = _correlation(y, sigma, settings)
    if lag1 < settings.noise_lag1 and excess > settings.noise_excess:
        sentence = (
            f"neighbouring points share nothing (lag-1 autocorrelation {lag1:.2f}) although the intensities vary "
            f"{excess:.0f} times more than counting allows: the column is noise or scrambled."
        )
        raise source.error("pattern_is_noise", sentence, lag1=lag1, excess=excess)


def _correlation(y: FloatArray, sigma: FloatArray, settings: ReadSettings) -> tuple[float, float]:
    """Lag-1 autocorrelation of the intensities, and their variance over the mean counting variance.

    The highest points are cut first: one cosmic-ray spike must not make a pattern look like noise.
    """
    n_cut = max(1, round(settings.noise_cut_fraction * y.size))
    cut = np.minimum(y, np.partition(y, -n_cut - 1)[-n_cut - 1])
    centred = cut - cut.mean()
    variance = float(np.mean(centred**2))
    if variance <= 0.0:
        return 1.0, 0.0
    return float(np.mean(centred[1:] * centred[:-1])) / variance, variance / float(np.median(sigma) ** 2)
