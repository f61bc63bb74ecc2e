"""Fractions of the whole specimen by an external standard: formula, error propagation, what cannot be told."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from autoxrd.domain.standard import (
    AMORPHOUS,
    AMORPHOUS_LEVERAGE,
    AMORPHOUS_WITHOUT_STANDARD,
    MASS_ABSORPTION,
    ExternalStandard,
    absolute_name,
)
from autoxrd.domain.state import ParameterValue
from autoxrd.science.absolute import absolute_quantities
from autoxrd.science.external import standard_constant

NAMES = ("main", "minor")
DENSITIES, VOLUMES = np.array([3.2, 5.6]), np.array([163.0, 48.0])
ABSORPTIONS = np.array([95.0, 50.0])
SCALES, ESDS, CORRELATION = np.array([0.011, 0.052]), np.array([0.0002, 0.0016]), -0.4
CONSTANT, CONSTANT_ESD = 24_000.0, 260.0


def fit(names: tuple[str, ...] = NAMES, *, power: int = 1, released: bool = True) -> Any:
    """A fit of phases whose scales correlate, as an engine of that convention gives it."""
    count = len(names)
    scales = (SCALES * VOLUMES ** (1 - power))[:count]
    esds = (ESDS * VOLUMES ** (1 - power))[:count]
    matrix = np.outer(esds, esds) * np.array([[1.0, CORRELATION], [CORRELATION, 1.0]])[:count, :count]
    rows = []
    for place, name in enumerate(names):
        rows.append(ParameterValue(name=f"phase.{name}.scale", value=float(scales[place]), esd=1.0, released=released))
        rows.append(ParameterValue(name=f"phase.{name}.density", value=float(DENSITIES[place]), derived=True))
        rows.append(ParameterValue(name=f"phase.{name}.cell.volume", value=float(VOLUMES[place]), derived=True))
    return SimpleNamespace(
        phases=[SimpleNamespace(name=name) for name in names],
        parameters=rows,
        covariance_names=("background.0", *(f"phase.{name}.scale" for name in names)) if released else ("x",),
        covariance=np.pad(matrix, ((1, 0), (1, 0))),
    )


STANDARD = ExternalStandard(
    phases=("corundum",),
    constant=CONSTANT,
    constant_esd=CONSTANT_ESD,
    volume_power=1,
    crystallinity=1.0,
    mass_absorption_cm2_g=31.6,
    intensity_ratio=2.0,
    sample_absorption_cm2_g=40.0,
)
ASSUMED = replace(
    STANDARD, sample_absorption_cm2_g=None, phase_absorption_cm2_g=dict(zip(NAMES, ABSORPTIONS, strict=True))
)


def values(result: Any, standard: ExternalStandard) -> dict[str, ParameterValue]:
    return {p.name: p for p in absolute_quantities(result, standard)}


@pytest.mark.parametrize("standard", [STANDARD, ASSUMED])
def test_uncertainties_are_those_of_many_draws(standard: ExternalStandard) -> None:
    rng = np.random.default_rng(3)
    covariance = np.outer(ESDS, ESDS) * np.array([[1.0, CORRELATION], [CORRELATION, 1.0]])
    masses = rng.multivariate_normal(SCALES, covariance, 200_000) * DENSITIES * VOLUMES**2
    constants = rng.normal(CONSTANT, CONSTANT_ESD, 200_000)
    absorption = np.full(len(masses), 40.0)
    if standard.sample_absorption_cm2_g is None:
        absorption = masses @ ABSORPTIONS / masses.sum(axis=1)
    drawn = masses * (absorption / (constants * 2.0))[:, None]
    found = values(fit(), standard)
    for index, name in enumerate(NAMES):
        assert found[absolute_name(name)].value == pytest.approx(drawn[:, index].mean(), rel=0.002)
        assert found[absolute_name(name)].esd == pytest.approx(drawn[:, index].std(), rel=0.02)
    assert found[AMORPHOUS].esd == pytest.approx(drawn.sum(axis=1).std(), rel=0.02)
    assert found[MASS_ABSORPTION].value == pytest.approx(absorption.mean(), rel=1e-3)
    assert found[MASS_ABSORPTION].unit == "cm2/g"


def test_the_parts_add_up_and_the_leverage_is_that_of_a_relative_error() -> None:
    found = values(fit(), STANDARD)
    whole = sum(found[absolute_name(name)].value for name in NAMES)
    assert whole + found[AMORPHOUS].value == pytest.approx(1.0, abs=1e-12)
    assert AMORPHOUS_WITHOUT_STANDARD not in found
    more = values(fit(), replace(STANDARD, sample_absorption_cm2_g=40.0 * (1.0 - 1e-6)))
    change = (more[AMORPHOUS].value - found[AMORPHOUS].value) / 1e-6
    assert found[AMORPHOUS_LEVERAGE].value == pytest.approx(change, rel=1e-6)
    half = values(fit(), replace(STANDARD, intensity_ratio=4.0))
    assert half[absolute_name("main")].value == pytest.approx(found[absolute_name("main")].value / 2.0)


def test_both_conventions_of_scale_factors_give_the_same() -> None:
    """An engine that divides its intensities by the cell's volume has scales that are larger by it."""
    by_cells, by_intensity = values(fit(power=0), replace(STANDARD, volume_power=0)), values(fit(), STANDARD)
    for name, expected in by_intensity.items():
        assert by_cells[name].value == pytest.approx(expected.value, rel=1e-12)
        assert (by_cells[name].esd is None) == (expected.esd is None)
        assert (by_cells[name].esd or 0.0) == pytest.approx(expected.esd or 0.0, rel=1e-12)


def test_the_constant_gives_the_standard_back_as_crystalline_as_it_was_said_to_be() -> None:
    known = dict(zip(NAMES, ABSORPTIONS, strict=True))
    for names in (NAMES[:1], NAMES):
        found = standard_constant(fit(names), phase_absorption_cm2_g=known, volume_power=1, crystallinity=0.92)
        assert found is not None
        constant, absorption = found
        standard = replace(
            STANDARD, constant=constant.value, constant_esd=constant.esd, intensity_ratio=1.0,
            sample_absorption_cm2_g=absorption,
        )  # fmt: skip
        again = values(fit(names), standard)
        assert again[AMORPHOUS].value == pytest.approx(0.08, abs=1e-12)
        if len(names) == 1:
            assert constant.esd == pytest.approx(constant.value * ESDS[0] / SCALES[0])


def test_nothing_follows_where_the_fit_does_not_say() -> None:
    assert (
        values(SimpleNamespace(phases=[], parameters=[], covariance_names=(), covariance=np.zeros((0, 0))), STANDARD)
        == {}
    )
    without = fit()
    without.parameters = [p for p in without.parameters if not p.name.endswith("density")]
    assert values(without, STANDARD) == {}
    assert values(fit(), replace(ASSUMED, phase_absorption_cm2_g={"main": 95.0})) == {}
    lost = fit()
    lost.covariance_names = ("background.0",)
    assert values(lost, STANDARD) == {}
    known = dict(zip(NAMES, ABSORPTIONS, strict=True))
    said = {"volume_power": 1, "crystallinity": 1.0}
    assert standard_constant(lost, phase_absorption_cm2_g=known, **said) is None
    assert standard_constant(fit(), phase_absorption_cm2_g={}, **said) is None


def test_a_scale_that_was_held_counts_as_known() -> None:
    found = values(fit(released=False), replace(STANDARD, constant_esd=None))
    assert found[AMORPHOUS].esd is None
