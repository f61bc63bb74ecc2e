"""Every feature finds its own defect within three esd and is silent about the others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from autoxrd.domain.instrument import EmissionLine, Geometry
from autoxrd.domain.pattern import AxisKind
from autoxrd.science.diagnosis import rank_causes
from autoxrd.science.observe import measure
from autoxrd.science.settings import ShareSettings
from autoxrd.science.visible import absent_phases
from tests.science.simulate import CORUNDUM, FLUORITE, ORTHO, ZINCITE, base, context, simulate

MIX = base(CORUNDUM, FLUORITE, ZINCITE, upper=120.0)


def _look(truth, fit=MIX, seed=5):
    return measure(simulate(truth, fit, seed), context(fit)).features


def _scaled(phase, *factors):
    factors = (factors * 3)[:3]
    return replace(phase, cell=tuple(c * f for c, f in zip(phase.cell, (*factors, 1, 1, 1), strict=True)))


def _with(phase, fit=MIX):
    return replace(fit, phases=tuple(phase if p.name == phase.name else p for p in fit.phases))


def _near(feature, value, *, relative=0.0):
    assert feature.available, feature.reason
    assert abs(feature.value - value) < 3 * feature.esd + relative * abs(value), (feature.value, feature.esd, value)
    assert feature.significance > 4


def _silent(features, *names, limit=3.5):
    for name in names:
        assert not features[name].available or features[name].significance < limit, (name, features[name])


SHAPES = ("width.low", "width.high", "asymmetry.low_angle")
PLACES = ("position.zero", "position.displacement", "position.cell")
AMOUNTS = ("intensity.angle_trend", "intensity.texture.corundum", "intensity.scale.fluorite")


def test_noise_alone_is_silent():
    _silent(_look(MIX), *SHAPES, *PLACES, *AMOUNTS, "background.slow", "position.rms")


@pytest.mark.parametrize("millimetre", [0.02, -0.1, 0.5, -1.0])
def test_displacement(millimetre):
    seen = _look(replace(MIX, displacement_mm=millimetre))
    _near(seen["position.displacement"], millimetre, relative=2e-3)
    assert seen["position.displacement"].unit == "mm"
    assert "displacement" in seen["position.separable"].reason
    _silent(seen, "position.zero", "position.cell", *SHAPES[:2])


def test_displacement_without_a_radius_is_an_amplitude_in_degrees():
    bare = context(MIX)
    bare = replace(bare, instrument=replace(bare.instrument, goniometer_radius_mm=None))
    seen = measure(simulate(replace(MIX, displacement_mm=0.1), MIX), bare).features["position.displacement"]
    assert seen.unit == "deg"
    _near(seen, -np.rad2deg(2 * 0.1 / 200))


def test_displacement_of_a_capillary_follows_cos_two_theta():
    fit = replace(MIX, geometry=Geometry.DEBYE_SCHERRER)
    seen = _look(replace(fit, displacement_mm=0.1), fit)
    _near(seen["position.displacement"], 0.1)
    _silent(seen, "position.zero", "position.cell")


@pytest.mark.parametrize("strain", [2e-4, -2e-3, 1.5e-2])
def test_isotropic_cell_of_one_phase(strain):
    seen = _look(_with(_scaled(ZINCITE, 1 + strain)))
    _near(seen["position.cell.zincite"], strain, relative=0.01)
    assert seen["position.cell"].reason == "phase zincite"
    _silent(seen, "position.zero", "position.displacement", "position.cell.corundum", "position.cell.fluorite")


def test_one_axis_of_a_cell_shows_as_scatter_and_is_not_taken_for_a_zero():
    seen = _look(_with(_scaled(CORUNDUM, 1.0, 1.0, 1.0008)))
    assert seen["position.scatter.corundum"].significance > 10
    assert seen["position.cell.corundum"].significance > 10
    _silent(seen, "position.zero", "position.displacement", "position.scatter.fluorite")


def test_a_wrong_wavelength_moves_all_cells_alike():
    seen = _look(replace(MIX, phases=tuple(_scaled(p, 1.0003) for p in MIX.phases)))
    for name in ("corundum", "fluorite", "zincite"):
        assert seen[f"position.cell.{name}"].value == pytest.approx(3e-4, rel=0.02)


def test_two_causes_at_once():
    seen = _look(replace(_with(_scaled(FLUORITE, 1.0005)), zero=0.015))
    _near(seen["position.zero"], 0.015)
    _near(seen["position.cell.fluorite"], 5e-4)
    _silent(seen, "position.displacement", "position.cell.corundum")


def test_a_narrow_range_cannot_tell_zero_from_displacement():
    fit = base(lower=30.0, upper=50.0)
    seen = _look(replace(fit, zero=0.003), fit)
    assert seen["position.separable"].value == 0.0
    assert "zero" in seen["position.separable"].reason
    assert "displacement" in seen["position.separable"].reason
    assert not seen["position.zero"].available
    assert seen["position.zero"].value is None
    assert seen["position.alone.zero"].value == pytest.approx(0.003, rel=0.1)


def test_too_few_peaks_is_an_answer():
    fit = base(FLUORITE, lower=20.0, upper=30.0)
    seen = _look(fit, fit)
    assert not seen["position.zero"].available
    assert "too few" in seen["position.zero"].reason


def test_another_axis_has_no_position_laws():
    seen = measure(simulate(MIX, MIX), replace(context(MIX), axis=AxisKind.TOF)).features
    assert not seen["position.zero"].available
    assert "2theta" in seen["position.zero"].reason
    assert "range.two_theta_min" not in seen


def test_gaussian_width():
    seen = _look(replace(MIX, w=0.008))
    assert seen["width.low"].value > 0.05
    assert seen["width.low"].significance > 10
    assert seen["width.trend"].value < 0
    _silent(seen, *PLACES, "asymmetry.low_angle", "intensity.texture.corundum")


def test_a_width_twice_too_large_is_measured_and_not_only_noticed():
    fit = replace(MIX, x=0.0, y=0.0, u=0.0, v=0.0, w=0.01)
    seen = _look(replace(fit, w=0.04), fit)
    assert seen["width.low"].value == pytest.approx(1.0, abs=0.08)
    assert seen["width.high"].value == pytest.approx(1.0, abs=0.08)
    assert seen["unexplained_peak_ratio"].value < 0.01


def test_strain_grows_with_angle_and_belongs_to_its_phase():
    seen = _look(_with(replace(ZINCITE, strain_deg=0.05)))
    assert seen["width.phase.zincite"].significance > 5
    _silent(seen, "width.phase.corundum", "width.phase.fluorite", limit=5)


@pytest.mark.parametrize("skew", [-0.3, 0.2])
def test_asymmetry_has_the_sign_of_its_tail(skew):
    # the simulator's positive asymmetry puts the tail at low angle
    seen = _look(replace(MIX, asymmetry=skew))
    assert np.sign(seen["asymmetry.low_angle"].value) == -np.sign(skew)
    assert seen["asymmetry.low_angle"].significance > 5


def test_displacement_parameters_give_the_slope_that_theory_says():
    seen = _look(_with(replace(CORUNDUM, delta_b=0.2)))
    _near(seen["intensity.angle_trend.corundum"], -0.4)
    assert seen["intensity.angle_trend.corundum"].unit == "angstrom^2"
    _silent(seen, "intensity.angle_trend.zincite", "intensity.texture.corundum", *PLACES)


@pytest.mark.parametrize(("march", "axis", "told"), [(0.9, (0, 0, 1), "0,0,1"), (1.15, (1, 0, 0), "1,0,0")])
def test_texture_names_its_axis(march, axis, told):
    seen = _look(_with(replace(CORUNDUM, march=march, axis=axis)))
    found = seen["intensity.texture.corundum"]
    assert found.reason == told
    assert found.significance > 10
    _silent(seen, "intensity.texture.fluorite", "intensity.texture.zincite")


def test_texture_of_an_orthorhombic_phase_along_b():
    fit = base(ORTHO, upper=90.0)
    seen = _look(replace(fit, phases=(replace(ORTHO, march=0.8, axis=(0, 1, 0)),)), fit)
    assert seen["intensity.texture.ortho"].reason == "0,1,0"
    assert seen["intensity.texture.ortho"].significance > 10


def test_scale_of_one_phase():
    seen = _look(_with(replace(FLUORITE, scale=1.1)))
    _near(seen["intensity.scale.fluorite"], np.log(1.1))
    _silent(seen, "intensity.scale.corundum", "intensity.scatter.fluorite", *PLACES)


def test_wrong_intensities_scatter():
    seen = _look(_with(replace(ZINCITE, seed=8)))
    assert seen["intensity.scatter.zincite"].significance > 10
    _silent(seen, "intensity.scatter.fluorite", *PLACES, limit=5)


def test_background_curvature():
    seen = _look(replace(MIX, background=(66.0, -24.0, 4.0)))
    assert seen["background.slow"].significance > 5
    _silent(seen, *PLACES, "width.low", "unexplained_peak_ratio")


@pytest.mark.parametrize("seed", range(6))
def test_a_background_fitted_with_the_observed_counts_as_weights_is_not_wrong(seed):
    # it lies a count a channel too low at 30 counts: a fault of the weights, which no further term mends
    low = replace(MIX, background=(30.0, -8.0), counts=500.0, upper=60.0)
    result = simulate(low, low, seed)
    x = 2.0 * (result.x - result.x[0]) / (result.x[-1] - result.x[0]) - 1.0
    columns = np.polynomial.chebyshev.chebvander(x, 3)
    bragg = result.y_calc - result.background
    solution = np.linalg.lstsq(columns / result.sigma[:, None], (result.y_obs - bragg) / result.sigma, rcond=None)[0]
    fitted = replace(result, background=columns @ solution, y_calc=bragg + columns @ solution)
    assert np.mean(fitted.y_obs - fitted.y_calc) > 0.8
    seen = measure(fitted, context(low)).features
    _silent(seen, "background.slow", limit=3.0)
    twice = replace(fitted, background=fitted.background - 3.0, y_calc=fitted.y_calc - 3.0)
    assert measure(twice, context(low)).features["background.slow"].significance > 8


def test_a_wrong_second_line_ratio_moves_no_peak_far():
    lines = (EmissionLine(1.5405929), EmissionLine(1.5444274, 0.45))
    seen = _look(replace(MIX, lines=lines))
    assert abs(seen["position.rms"].value) < 0.05


def test_a_wrong_phase_is_missing_and_a_right_one_is_not():
    fit = base(CORUNDUM, replace(ORTHO, scale=0.3), upper=90.0)
    seen = _look(base(CORUNDUM, upper=90.0), fit)
    assert seen["missing_peak_ratio"].value > 0.1
    assert _look(fit, fit)["missing_peak_ratio"].value == 0.0


@pytest.mark.parametrize("scale", [0.3, 1e-3, 1e-7])
def test_nothing_is_seen_of_a_phase_that_is_not_there(scale):
    fit = base(CORUNDUM, replace(ORTHO, scale=scale), upper=90.0)
    seen = _look(base(CORUNDUM, FLUORITE, upper=90.0), fit)
    assert absent_phases(seen, ShareSettings()) == {"ortho"}, seen["intensity.share.ortho"]
    assert 0.1 < seen["intensity.share.corundum"].value < 0.9
    assert rank_causes(seen)[0].name == "wrong_phase"


def test_a_phase_that_is_there_is_seen_whatever_its_scale_in_the_model():
    truth = base(CORUNDUM, replace(ORTHO, scale=0.1), upper=90.0)
    shares = []
    for scale in (0.1, 1e-3, 1e-7):
        seen = _look(truth, base(CORUNDUM, replace(ORTHO, scale=scale), upper=90.0))
        assert absent_phases(seen, ShareSettings()) == set()
        shares.append(seen["intensity.share.ortho"].value)
    assert shares[1:] == pytest.approx([shares[0]] * 2, rel=0.3)


def test_a_model_of_which_nothing_is_there_is_missing_altogether():
    seen = _look(base(CORUNDUM, upper=90.0), base(replace(ORTHO, scale=1e-7), upper=90.0))
    assert absent_phases(seen, ShareSettings()) == {"ortho"}
    assert seen["missing_peak_ratio"].value == 1.0
    assert rank_causes(seen)[0].name == "wrong_phase"


def test_release_gains_are_relative_and_priced_by_their_parameters():
    result = replace(
        simulate(MIX, MIX),
        gains={"phase.corundum.cell": 300.0, "x": float("nan")},
        gain_counts={"phase.corundum.cell": 2},
    )
    seen = measure(result, context(MIX))
    gain = seen.features["release_gain.phase.corundum.cell"]
    reduced = seen.quality.chi2 / (seen.quality.n_points - seen.quality.n_parameters)
    assert gain.value == pytest.approx(300.0 / seen.quality.chi2)
    assert gain.significance == pytest.approx(300.0 / (reduced * 2))
    assert gain.n_used == 2
    assert not seen.features["release_gain.x"].available


def test_every_feature_is_finite_or_says_why_not():
    for feature in _look(replace(MIX, zero=0.03, w=0.01)).values():
        assert feature.available == (feature.value is not None)
        assert feature.available or feature.reason


def test_no_phase_and_no_reflection_is_survived():
    fit = base(upper=40.0)
    empty = simulate(fit, fit)
    table = empty.reflections
    columns = (getattr(table, name) for name in table.__dataclass_fields__)
    none = type(table)(*(None if column is None else column[:0] for column in columns))
    bare = replace(
        empty, reflections=none, phases=(), phase_patterns=np.zeros((0, empty.x.size)), y_calc=empty.background
    )
    seen = measure(bare, context(fit))
    assert seen.features["unexplained_peak_ratio"].value > 0.9
    assert not seen.features["position.zero"].available
