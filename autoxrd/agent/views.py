"""What can be seen of a fit at one place? Small tables of bounded size from the recorded arrays, and a picture."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["misfits", "peak_moments", "picture", "zoom"]

Arrays = Mapping[str, NDArray[Any]]

_ROWS = 40
_LINES = 12
_MISFITS = 15
_WIDTH, _HEIGHT = 720, 360


def _window(arrays: Arrays, lower: float, upper: float) -> NDArray[np.bool_]:
    x = arrays["x"]
    return np.asarray((x >= lower) & (x <= upper), dtype=bool)


def _figures(values: NDArray[Any]) -> list[float]:
    return [float(f"{value:.4g}") for value in values]


def zoom(arrays: Arrays, lower_deg: float, upper_deg: float, phases: tuple[str, ...]) -> dict[str, Any]:
    """Return the pattern between two angles, averaged into at most 40 rows, and the strongest lines there."""
    chosen = np.flatnonzero(_window(arrays, lower_deg, upper_deg))
    if chosen.size < 3:
        return {"error": "fewer than three points lie there; the range stands under features as range.two_theta_*"}
    rows = [
        _figures(np.array([float(np.mean(arrays[name][part])) for name in ("x", "y_obs", "y_calc", "background")]))
        + _figures(np.array([np.sum(arrays["y_obs"][part] - arrays["y_calc"][part]) / _noise(arrays, part)]))
        for part in np.array_split(chosen, min(_ROWS, chosen.size))
    ]
    return {
        "columns": ["two_theta_deg", "observed", "calculated", "background", "difference_over_sigma"],
        "rows": rows,
        "points_per_row": round(chosen.size / len(rows), 1),
        "lines": _lines(arrays, lower_deg, upper_deg, phases),
    }


def _noise(arrays: Arrays, part: NDArray[Any]) -> float:
    return float(np.sqrt(np.sum(arrays["sigma"][part] ** 2)))


def _lines(arrays: Arrays, lower: float, upper: float, phases: tuple[str, ...]) -> list[list[Any]]:
    """Return [phase, hkl, two_theta_deg, intensity, fwhm_deg] of the strongest lines between two angles."""
    position, intensity = arrays["reflection_position"], arrays["reflection_intensity"]
    inside = np.flatnonzero((position >= lower) & (position <= upper) & (arrays["reflection_line"] == 0))
    strongest = inside[np.argsort(-intensity[inside], kind="stable")[:_LINES]]
    return [
        [
            phases[int(arrays["reflection_phase"][i])],
            [int(index) for index in arrays["reflection_hkl"][i]],
            *_figures(np.array([position[i], intensity[i], arrays["reflection_fwhm"][i]])),
        ]
        for i in sorted(strongest, key=lambda i: float(position[i]))
    ]


def misfits(arrays: Arrays, phases: tuple[str, ...]) -> dict[str, Any]:
    """Return the stretches of one sign where the difference is most significant, with the nearest line of each."""
    difference = arrays["y_obs"] - arrays["y_calc"]
    edges = np.flatnonzero(np.diff(np.sign(difference)) != 0) + 1
    runs = np.split(np.arange(difference.size), edges)
    scored = [(float(np.sum(difference[run])) / _noise(arrays, run), run) for run in runs if run.size]
    scored.sort(key=lambda item: (-abs(item[0]), int(item[1][0])))
    rows = []
    for significance, run in scored[:_MISFITS]:
        lower, upper = float(arrays["x"][run[0]]), float(arrays["x"][run[-1]])
        rows.append(
            [*_figures(np.array([lower, upper, significance])), *_nearest(arrays, 0.5 * (lower + upper), phases)]
        )
    columns = ["lower_deg", "upper_deg", "difference_over_sigma", "nearest_phase", "hkl", "line_minus_centre_deg"]
    return {"columns": columns, "rows": rows}


def _nearest(arrays: Arrays, centre: float, phases: tuple[str, ...]) -> list[Any]:
    position = arrays["reflection_position"]
    if not position.size:
        return ["", [], None]
    i = int(np.argmin(np.abs(position - centre)))
    hkl = [int(index) for index in arrays["reflection_hkl"][i]]
    return [phases[int(arrays["reflection_phase"][i])], hkl, float(f"{position[i] - centre:.3g}")]


def peak_moments(arrays: Arrays, lower_deg: float, upper_deg: float) -> dict[str, Any]:
    """Return area, centroid, height and width of what stands above the background, observed and calculated.

    Over a window that holds one peak, the differences of the two say how far it is shifted, broadened or mis-scaled.
    """
    part = _window(arrays, lower_deg, upper_deg)
    if np.count_nonzero(part) < 5:
        return {"error": "fewer than five points lie there; give a wider window around one peak"}
    x = arrays["x"][part]
    found = {
        name: _moments(x, arrays[key][part] - arrays["background"][part])
        for name, key in (("observed", "y_obs"), ("calculated", "y_calc"))
    }
    return {"window_deg": _figures(np.array([lower_deg, upper_deg])), **found}


def _moments(x: NDArray[Any], y: NDArray[Any]) -> dict[str, float | None]:
    area, top = float(np.trapezoid(y, x)), int(np.argmax(y))
    if not area > 0 or not y[top] > 0:
        return {"area": float(f"{area:.4g}"), "centroid_deg": None, "height": None, "fwhm_deg": None}
    centroid = float(np.trapezoid(y * x, x)) / area
    above = np.flatnonzero(y >= 0.5 * y[top])
    fwhm = float(x[above[-1]] - x[above[0]])
    figures = _figures(np.array([area, y[top], fwhm]))
    return {"area": figures[0], "centroid_deg": round(centroid, 4), "height": figures[1], "fwhm_deg": figures[2]}


def picture(arrays: Arrays, lower_deg: float, upper_deg: float) -> bytes | None:
    """Return a PNG of 720 by 360 pixels: observed black, calculated red, background blue, difference grey below."""
    part = _window(arrays, lower_deg, upper_deg)
    if np.count_nonzero(part) < 3:
        return None
    image = np.full((_HEIGHT, _WIDTH, 3), 255, dtype=np.uint8)
    x, observed, calculated = (arrays[name][part] for name in ("x", "y_obs", "y_calc"))
    columns = ((x - x[0]) / (x[-1] - x[0]) * (_WIDTH - 1)).astype(int)
    top, low = float(max(observed.max(), calculated.max())), float(min(observed.min(), 0.0))
    plot_height = int(0.75 * _HEIGHT)
    for values, colour in (
        (arrays["background"][part], (60, 90, 220)),
        (observed, (0, 0, 0)),
        (calculated, (210, 30, 30)),
    ):
        rows = ((top - values) / ((top - low) or 1.0) * (plot_height - 1)).astype(int)
        _draw(image, columns, rows.clip(0, plot_height - 1), colour)
    difference = observed - calculated
    most = float(np.abs(difference).max()) or 1.0
    middle = (_HEIGHT + plot_height) // 2
    rows = (middle - difference / most * (_HEIGHT - plot_height) * 0.45).astype(int)
    _draw(image, columns, rows.clip(plot_height, _HEIGHT - 1), (120, 120, 120))
    return _png(image)


def _draw(image: NDArray[np.uint8], columns: NDArray[Any], rows: NDArray[Any], colour: tuple[int, int, int]) -> None:
    """Join successive points by upright strokes, so that a steep flank stays a line."""
    for one, other, start, stop in zip(columns[:-1], columns[1:], rows[:-1], rows[1:], strict=True):
        image[min(start, stop) : max(start, stop) + 1, one : max(other, one + 1)] = colour


def _png(image: NDArray[np.uint8]) -> bytes:
    """Write an 8-bit RGB PNG: a plotting toolkit for one raster would be the heavier choice."""
    height, width, _ = image.shape
    rows = np.concatenate((np.zeros((height, 1), np.uint8), image.reshape(height, 3 * width)), axis=1)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b""))
    body = b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + body
