"""The measures keep to their limits of time and memory, and do in chunks what they would do at once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from autoxrd.science import shapes
from autoxrd.science.curves import evaluate
from autoxrd.science.frame import build_frame
from autoxrd.science.reflections import local_fits, measure_peaks
from benchmarks.measures import CASES, Case, allocated, timed
from tests.science.simulate import CORUNDUM, ORTHO, base, context, simulate

MIX = base(CORUNDUM, ORTHO, upper=80.0)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.label)
def test_no_more_memory_than_the_limit(case: Case) -> None:
    assert allocated(*case.inputs()) <= case.limit_sizes


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.label)
def test_no_more_time_than_the_limit(case: Case) -> None:
    assert timed(*case.inputs(), repeats=25).quiet <= case.limit_ms


def test_chunks_of_any_size_give_the_same() -> None:
    frame = build_frame(simulate(replace(MIX, zero=0.01), MIX), context(MIX))
    whole = measure_peaks(frame)
    for columns in (1, 50, 777):
        room = np.empty((shapes.SCRATCH_ROWS, columns))
        curves = evaluate(frame.x, frame.lines, frame.line_windows, frame.peaks.windows, room)
        for name in ("value", "shift", "width", "skew", "tail_low", "tail_high"):
            np.testing.assert_allclose(
                getattr(curves.totals, name), getattr(frame.totals, name), rtol=1e-9, atol=1e-9 * frame.net_calc.max()
            )
        again = measure_peaks(replace(frame, room=room))
        np.testing.assert_allclose(again.offset[again.shaped], whole.offset[whole.shaped], rtol=1e-6, atol=1e-12)


def test_rows_of_a_line_are_its_derivatives() -> None:
    x = np.linspace(29.0, 31.0, 401)
    line = {"position": np.array([30.02]), "fwhm": np.array([0.2]), "eta": np.array([0.4]), "area": np.array([7.0])}

    def rows(**changed: float) -> np.ndarray:
        values = line | {key: np.array([value]) for key, value in changed.items()}
        scratch = np.empty((shapes.SCRATCH_ROWS, x.size))
        return shapes.templates(x, np.array([x.size]), shapes.LineShapes(**values), scratch).copy()

    here, step = rows(), 1e-5
    assert here[0] == pytest.approx(7.0 * shapes.pseudo_voigt(x, *(line[k] for k in ("position", "fwhm", "eta"))))

    def slope(name: str, by: float) -> np.ndarray:
        value = float(line[name][0])
        return (rows(**{name: value + by})[0] - rows(**{name: value - by})[0]) / (2.0 * by)

    top = here[0].max()
    np.testing.assert_allclose(here[1], slope("position", step), atol=1e-4 * top / 0.2)
    np.testing.assert_allclose(here[2], 0.2 * slope("fwhm", step), atol=1e-4 * top)
    np.testing.assert_allclose(here[4], slope("eta", step), atol=1e-4 * top)
    third = np.gradient(np.gradient(np.gradient(here[0], x), x), x)
    sigma = 0.2 / shapes.FWHM_PER_SIGMA
    np.testing.assert_allclose(here[3][5:-5], -(sigma**3) / 6.0 * third[5:-5], atol=0.02 * np.abs(here[3]).max())


def test_local_fits_are_least_squares_on_each_window() -> None:
    random = np.random.default_rng(1)
    start, size = np.array([0, 30, 75]), 130
    columns, residual, weight = random.normal(size=(4, size)), random.normal(size=size), random.uniform(0.5, 2.0, size)
    columns[2, 30:75] = 0.0
    fit = local_fits(columns, residual, weight, start, ridge=1e-12)
    for row, (low, high) in enumerate(((0, 30), (30, 75), (75, 130))):
        used = [0, 1, 3] if row == 1 else [0, 1, 2, 3]
        matrix = (columns[used, low:high] * np.sqrt(weight[low:high])).T
        target = residual[low:high] * np.sqrt(weight[low:high])
        expected = np.linalg.lstsq(matrix, target, rcond=None)[0]
        np.testing.assert_allclose(fit.coefficient[row, used], expected, rtol=1e-8)
        np.testing.assert_allclose(fit.variance[row, used], np.diag(np.linalg.inv(matrix.T @ matrix)), rtol=1e-8)
        assert fit.chi2_reduced[row] * (high - low - 4) == pytest.approx(
            float(np.sum((target - matrix @ expected) ** 2))
        )
    assert fit.coefficient[1, 2] == 0.0
