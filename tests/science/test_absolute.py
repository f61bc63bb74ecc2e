"""Fractions of the whole specimen by an internal standard: formula, error propagation, what cannot be told."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from autoxrd.domain.standard import (
    AMORPHOUS,
    AMORPHOUS_LEVERAGE,
    AMORPHOUS_WITHOUT_STANDARD,
    InternalStandard,
    absolute_name,
)
from autoxrd.domain.state import MeasuredValue, ParameterValue
from autoxrd.errors import UserInputError
from autoxrd.science.absolute import absolute_quantities, fraction_covariance

MASSES = {"standard": 611.8, "main": 312.3, "minor": 980.0}
SCALES = np.array([0.21, 0.93, 0.02])
ESDS = np.array([0.004, 0.009, 0.0012])
CORRELATION = np.array([[1.0, 0.6, 0.2], [0.6, 1.0, -0.3], [0.2, -0.3, 1.0]])


def fractions(scales: np.ndarray) -> np.ndarray:
    shares = scales * np.array(list(MASSES.values()))
    return shares / shares.sum(axis=-1, keepdims=True)


def fit(*, covariance: bool = True) -> Any:
    """A fit of three phases whose scales correlate."""
    matrix = CORRELATION * np.outer(ESDS, ESDS)
    names = [f"phase.{name}.scale" for name in MASSES]
    weights = fractions(SCALES)
    return SimpleNamespace(
        phases=[
            SimpleNamespace(name=name, weight_fraction=MeasuredValue(value=float(w), esd=0.01))
            for name, w in zip(MASSES, weights, strict=True)
        ],
        parameters=[
            ParameterValue(name=n, value=float(v), esd=float(e), released=True)
            for n, v, e in zip(names, SCALES, ESDS, strict=True)
        ],
        covariance_names=("background.0", *names) if covariance else (),
        covariance=np.pad(matrix, ((1, 0), (1, 0))) if covariance else np.zeros((0, 0)),
    )


def values(result: Any, standard: InternalStandard | None) -> dict[str, ParameterValue]:
    return {p.name: p for p in absolute_quantities(result, standard)}


def test_uncertainties_are_those_of_many_draws() -> None:
    draws = np.random.default_rng(7).multivariate_normal(SCALES, CORRELATION * np.outer(ESDS, ESDS), 200_000)
    w = fractions(draws)
    assert np.sqrt(np.diag(fraction_covariance(fit()))) == pytest.approx(w.std(axis=0), rel=0.02)
    given = 0.1 * 0.98
    absolute = given * w / w[:, :1]
    found = values(fit(), InternalStandard("standard", 0.1, 0.98))
    for index, name in enumerate(("main", "minor"), 1):
        assert found[absolute_name(name)].value == pytest.approx(absolute[:, index].mean(), rel=0.01)
        assert found[absolute_name(name)].esd == pytest.approx(absolute[:, index].std(), rel=0.02)
    assert found[AMORPHOUS].esd == pytest.approx((1.0 - given / w[:, 0]).std(), rel=0.02)


def test_the_parts_add_up_and_the_standard_is_as_weighed() -> None:
    standard = InternalStandard("standard", 0.1, 0.9)
    found = values(fit(), standard)
    whole = sum(found[absolute_name(name)].value for name in MASSES) + found[AMORPHOUS].value
    assert whole == pytest.approx(1.0, abs=1e-12)
    shifted = 1.0 - 0.09 / (0.09 / (1.0 - found[AMORPHOUS].value) + 1e-6)
    change = (shifted - found[AMORPHOUS].value) / 1e-6
    assert found[AMORPHOUS_LEVERAGE].value == pytest.approx(change, rel=1e-4)
    own = found[absolute_name("standard")]
    assert own.value == pytest.approx(0.09)
    assert own.esd is None
    # what was there before: the standard and its own amorphous tenth are taken out
    before = (found[AMORPHOUS].value - 0.01) / 0.9
    assert found[AMORPHOUS_WITHOUT_STANDARD].value == pytest.approx(before, abs=1e-12)
    assert found[AMORPHOUS_WITHOUT_STANDARD].esd == pytest.approx((found[AMORPHOUS].esd or 0.0) / 0.9)


def test_without_the_covariance_the_esds_of_the_fractions_are_taken() -> None:
    result = fit(covariance=False)
    found = values(result, InternalStandard("standard", 0.1))
    share = result.phases[0].weight_fraction.value
    assert found[AMORPHOUS].esd == pytest.approx(0.1 / share**2 * 0.01)


def test_nothing_follows_without_a_standard_that_is_seen() -> None:
    assert absolute_quantities(fit(), None) == ()
    assert absolute_quantities(fit(), InternalStandard("quartz", 0.1)) == ()
    result = fit()
    result.phases[0].weight_fraction = MeasuredValue(value=0.0, esd=0.01)
    assert absolute_quantities(result, InternalStandard("standard", 0.1)) == ()


def test_of_a_single_phase_nothing_is_measured() -> None:
    result = fit()
    result.phases = [SimpleNamespace(name="standard", weight_fraction=MeasuredValue(value=1.0))]
    found = values(result, InternalStandard("standard", 0.5))
    assert found[AMORPHOUS].value == pytest.approx(0.5)
    assert found[AMORPHOUS].esd is None


@pytest.mark.parametrize(("share", "crystallinity"), [(0.0, 1.0), (1.0, 1.0), (0.2, 0.0), (0.2, 1.01)])
def test_impossible_standards_are_refused(share: float, crystallinity: float) -> None:
    with pytest.raises(UserInputError, match="standard"):
        InternalStandard("standard", share, crystallinity)
