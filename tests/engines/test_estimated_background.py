"""A background estimated from the pattern lies under both engines' models alike, and is paid for."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from autoxrd.agent.estimating import estimated_values, observed_of_result
from autoxrd.domain.pattern import AxisKind, Pattern
from autoxrd.engines.executor import ProtocolSession
from autoxrd.engines.protocol import Edit, EngineCommand, EngineResult
from autoxrd.errors import UserInputError
from tests.engines.samples import FLUORITE, LAB, parameter, simulated, values

BASIC = ("phase.*.scale", "background.*")
SCALES = {"rietx": 1e-3, "gsasii": 20.0}


def haloed(session: ProtocolSession) -> tuple[Pattern, np.ndarray]:
    """Fluorite on a level of 200 with a halo 10 degrees wide, and the true background."""
    truth = values(phase__fluorite__scale=SCALES[session.name], background__0=200.0)
    pattern, result = simulated(session, LAB, (FLUORITE,), truth, seed=None)
    halo = 250.0 * np.exp(-4.0 * np.log(2.0) * ((pattern.x - 42.0) / 10.0) ** 2)
    y = np.random.default_rng(3).poisson(pattern.y + halo).astype(float)
    return dataclasses.replace(pattern, y=y, sigma=np.sqrt(np.maximum(y, 1.0))), result.background + halo


def estimate(result: EngineResult, **settings: float) -> Edit:
    told = estimated_values({"estimate": "arpls", **settings}, AxisKind.TWO_THETA, observed_of_result(result))
    return Edit("background_fixed", told)


def test_it_takes_the_place_of_many_terms(either: ProtocolSession) -> None:
    pattern, truth = haloed(either)
    root = either.prepare(pattern, LAB, (FLUORITE,), {"background_terms": 8})
    before, plain = either.execute(root, EngineCommand(released=BASIC, gains=False))
    edit = estimate(plain)
    snapshot, result = either.execute(before, EngineCommand(released=BASIC, edits=(edit,)))
    assert result.convergence.converged
    assert result.engine_r["gof"] < 1.15 < plain.engine_r["gof"]
    assert float(np.sqrt(np.mean((result.background - truth) ** 2 / truth))) < 0.7
    names = {p.name for p in result.parameters if p.name.startswith("background.")}
    kept = {"background.0", "background.1", "background.2", "background.fixed"}
    assert names == kept | {"background.estimate_parameters", "background.estimate_wave"}
    assert {"background.0", "background.1", "background.2"} <= set(result.covariance_names)
    assert parameter(result, "background.fixed") == (1.0, None)
    assert parameter(result, "background.estimate_parameters") == (edit.values["parameters"], None)
    assert [n.code for n in result.notices if "counts as" in n.text] == ["background_estimated"]
    # a state keeps it, to the bit, and what may be freed of it is its factor
    _, again = either.execute(snapshot, EngineCommand(cycles=0))
    assert np.array_equal(again.y_calc, result.y_calc)
    assert {"background.fixed", "background.more"} <= set(again.gains)


def test_terms_grow_beside_it_and_a_range_cuts_it(either: ProtocolSession) -> None:
    pattern, _ = haloed(either)
    root = either.prepare(pattern, LAB, (FLUORITE,), {})
    _, plain = either.execute(root, EngineCommand(released=BASIC, gains=False))
    snapshot, result = either.execute(root, EngineCommand(released=BASIC, edits=(estimate(plain, terms=1),)))
    grown, more = either.execute(
        snapshot, EngineCommand(released=BASIC, edits=(Edit("background", {"terms": 5}),), gains=False)
    )
    gained = sum(((r.y_obs - r.y_calc) ** 2 / r.sigma**2).sum() * sign for r, sign in ((result, 1.0), (more, -1.0)))
    assert gained == pytest.approx(result.gains["background.more"], rel=0.05)
    # over other points the held curve stays where it was
    cut, narrow = either.execute(
        grown, EngineCommand(released=BASIC, edits=(Edit("range", {"lower_deg": 30.0, "upper_deg": 70.0}),))
    )
    _, wide = either.execute(
        cut, EngineCommand(released=BASIC, edits=(Edit("range", {"lower_deg": 20.0, "upper_deg": 90.0}),))
    )
    assert narrow.convergence.converged
    np.testing.assert_allclose(wide.background, more.background, rtol=2e-3)
    # a profile match has it under it too
    _, matched = either.execute(grown, EngineCommand(released=BASIC, mode="lebail", gains=False))
    np.testing.assert_allclose(matched.background, more.background, rtol=0.05)


def test_it_is_taken_away_again(either: ProtocolSession) -> None:
    pattern, _ = haloed(either)
    root = either.prepare(pattern, LAB, (FLUORITE,), {})
    _, plain = either.execute(root, EngineCommand(released=BASIC, gains=False))
    snapshot, _ = either.execute(root, EngineCommand(released=BASIC, edits=(estimate(plain),), gains=False))
    edits = (Edit("background_fixed", {"x_deg": (), "y": (), "terms": 8}),)
    _, result = either.execute(snapshot, EngineCommand(released=BASIC, edits=edits, gains=False))
    np.testing.assert_allclose(result.y_calc, plain.y_calc, rtol=1e-3)
    assert "background.fixed" not in {p.name for p in result.parameters}
    assert "background.estimate_parameters" not in {p.name for p in result.parameters}


def test_a_measured_curve_is_no_estimate_and_costs_nothing(either: ProtocolSession) -> None:
    pattern, truth = haloed(either)
    root = either.prepare(pattern, LAB, (FLUORITE,), {"background_terms": 2})
    blank = Edit("background_fixed", {"x_deg": tuple(pattern.x.tolist()), "y": tuple((truth / 0.8).tolist())})
    command = EngineCommand(released=(*BASIC, "background.fixed"), edits=(blank,), gains=False)
    _, result = either.execute(root, command)
    value, esd = parameter(result, "background.fixed")
    assert esd is not None
    assert abs(value - 0.8) < 4.0 * esd
    assert not [n for n in result.notices if n.code == "background_estimated"]


@pytest.mark.parametrize(
    "values",
    [
        {"x_deg": (30.0, 30.0), "y": (1.0, 1.0)},
        {"x_deg": (30.0, 40.0), "y": (1.0,)},
        {"x_deg": (30.0,), "y": (1.0,)},
        {"x_deg": (30.0, 40.0), "y": (1.0, 1.0), "terms": 0},
        {"x_deg": (30.0, 40.0), "y": (1.0, 1.0), "parameters": -1.0, "wave_deg": 3.0},
        {"x_deg": (30.0, 40.0), "y": (1.0, 1.0), "parameters": 5.0},
    ],
)
def test_what_is_no_curve_is_refused(either: ProtocolSession, values: dict[str, object]) -> None:
    pattern, _ = haloed(either)
    root = either.prepare(pattern, LAB, (FLUORITE,), {})
    with pytest.raises(UserInputError) as caught:
        either.execute(root, EngineCommand(edits=(Edit("background_fixed", values),)))  # type: ignore[arg-type]
    assert caught.value.code == "edit_invalid"


def test_files_of_a_state_with_a_curve_can_be_written(either: ProtocolSession) -> None:
    pattern, _ = haloed(either)
    root = either.prepare(pattern, LAB, (FLUORITE,), {})
    _, plain = either.execute(root, EngineCommand(released=BASIC, gains=False))
    snapshot, _ = either.execute(root, EngineCommand(released=BASIC, edits=(estimate(plain),), gains=False))
    kinds = ("cif", "pdcif", "hkl", "native") if either.name == "rietx" else ("hkl", "native")
    exported = either.export(snapshot, kinds)
    assert exported.files
    # GSAS-II's project has no place for it
    assert [n.code for n in exported.notices] == ([] if either.name == "rietx" else ["gsasii_r_differs"])
