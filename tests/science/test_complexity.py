"""Correlations and conditioning of the least-squares problem."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from autoxrd.domain.state import ParameterValue
from autoxrd.science.complexity import complexity_of, estimated_parameters
from autoxrd.science.inputs import MeasureContext
from autoxrd.science.observe import measure
from autoxrd.science.settings import Limits
from tests.science.simulate import base, instrument, simulate

NAMES = ("background.0", "background.1", "instrument.zero", "sample.displacement", "phase.a.scale")


def _result(correlation):
    model = base(upper=40.0)
    esd = np.array([1.0, 2.0, 0.01, 0.1, 3.0])
    return replace(
        simulate(model, model), covariance_names=NAMES, covariance=np.asarray(correlation) * np.outer(esd, esd)
    )


def _matrix(**pairs):
    matrix = np.eye(5)
    for pair, value in pairs.items():
        i, j = int(pair[1]), int(pair[2])
        matrix[i, j] = matrix[j, i] = value
    return matrix


def test_the_largest_correlation_is_told_with_its_pair_and_background_apart():
    seen = complexity_of(_result(_matrix(p01=-0.999, p23=-0.95)), Limits())
    assert seen.n_free == 5
    assert seen.max_correlation == pytest.approx(0.95)
    assert set(seen.max_correlation_pair) == {"instrument.zero", "sample.displacement"}
    assert seen.background_max_correlation == pytest.approx(0.999)
    assert [(c.first, c.value) for c in seen.high_correlations] == [("instrument.zero", pytest.approx(-0.95))]
    assert seen.condition_number == pytest.approx((1 + 0.999) / (1 - 0.999), rel=0.2)


def test_background_against_another_parameter_counts():
    seen = complexity_of(_result(_matrix(p04=0.99)), Limits())
    assert seen.max_correlation == pytest.approx(0.99)


def test_nothing_free_and_parameters_without_variance():
    model = base(upper=40.0)
    empty = replace(simulate(model, model), covariance_names=(), covariance=np.zeros((0, 0)))
    assert complexity_of(empty, Limits()).max_correlation is None
    dead = _matrix(p23=0.5)
    dead[4, :] = dead[:, 4] = 0.0
    seen = complexity_of(_result(dead), Limits())
    assert seen.max_correlation == pytest.approx(0.5)


def test_a_curve_estimated_from_the_data_counts_as_its_parameters():
    told = ParameterValue(name="background.estimate_parameters", value=11.3, derived=True)
    plain = _result(np.eye(5))
    drawn = replace(plain, parameters=(*plain.parameters, told))
    assert estimated_parameters(drawn) == 12
    seen = complexity_of(drawn, Limits())
    assert (seen.n_free, seen.n_estimated) == (17, 12)
    assert seen.max_correlation == complexity_of(plain, Limits()).max_correlation
    context = MeasureContext(instrument(base(upper=40.0)))
    free, paid = (measure(result, context).quality for result in (plain, drawn))
    assert (free.n_parameters, paid.n_parameters) == (5, 17)
    assert paid.rwp == free.rwp
    assert paid.gof > free.gof
    # what is not there is not written: records of before keep their hashes
    assert "n_estimated" not in complexity_of(plain, Limits()).model_dump()
    second = told.model_copy(update={"name": f"histogram.b.{told.name}"})
    assert estimated_parameters(replace(drawn, parameters=(told, second))) == 24
