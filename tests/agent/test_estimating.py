"""A person asks for an estimated background: through the gates, which charge for it, and again on replay."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from autoxrd.agent.controller import rejudge
from autoxrd.agent.estimating import Observed, estimated_again, estimated_values, observed_of_start
from autoxrd.agent.inputs import Request, load_job
from autoxrd.agent.replay import replay_job
from autoxrd.agent.stepping import gate_action
from autoxrd.domain.pattern import AxisKind, Pattern
from autoxrd.engines.protocol import Edit
from autoxrd.errors import UserInputError
from autoxrd.gates.utility import utility_terms
from autoxrd.store.graph import Graph
from autoxrd.store.verify import verify
from tests.agent.conftest import Run
from tests.agent.small import CIF, simulate

CLAIM = "structured_fraction_counting"


@pytest.fixture(scope="module")
def haloed(tmp_path_factory: pytest.TempPathFactory, autoxrd: Run) -> Path:
    """The small job with a halo 10 degrees wide, its root only, a background of two terms."""
    directory = tmp_path_factory.mktemp("haloed")
    (directory / "fluorite.cif").write_text(CIF)
    x, y = simulate(directory / "fluorite.cif")
    halo = 300.0 * np.exp(-4.0 * np.log(2.0) * ((x - 42.0) / 10.0) ** 2)
    y += np.random.default_rng(1).poisson(halo)
    (directory / "pattern.xy").write_text("".join(f"{a:.3f} {b:.0f}\n" for a, b in zip(x, y, strict=True)))
    words = ("-s", directory / "fluorite.cif", "--anode", "Cu", "--background-terms", 2, "--out", directory / "job")
    done = autoxrd("refine", directory / "pattern.xy", *words, "--prepare", "--json")
    assert done.returncode == 0, done.stderr
    return directory


def action(job: Path, **settings: float | str) -> dict[str, object]:
    with Graph.open(job, read_only=True) as graph:
        value = graph.state(graph.current()).features[CLAIM].value
    return {
        "kind": "background_model",
        "stage": "instrument",
        "parameters": ["background.*", "phase.fluorite.scale"],
        "settings": {"estimate": "arpls", **settings},
        "rationale": "the background bends more often than two terms can follow",
        "evidence": [
            {"feature": CLAIM, "value": value, "comparison": ">", "threshold": 0.02, "source": "current"},
        ],
        "predictions": [{"metric": CLAIM, "direction": "decrease", "minimum_effect": 0.1}],
        "parent": "current",
    }


def test_the_command_takes_the_step_and_the_record_tells_what_it_cost(haloed: Path, autoxrd: Run) -> None:
    job = haloed / "job"
    (haloed / "action.json").write_text(json.dumps(action(job)))
    stepped = json.loads(autoxrd("step", job, haloed / "action.json", "--json").stdout)
    assert stepped["accepted"], stepped["reasons"]
    with Graph.open(job, read_only=True) as graph:
        state = graph.state(graph.current())
    told = {p.name: p.value for p in state.parameters if p.name.startswith("background.")}
    held = math.ceil(told["background.estimate_parameters"])
    assert 20 < held < 50
    # three terms and a scale are refined; the curve counts like parameters in all that asks how many there are
    assert (state.complexity.n_free, state.complexity.n_estimated) == (4 + held, held)
    assert state.quality.n_parameters == utility_terms(state).n_free == 4 + held
    assert state.quality.chi2 / (state.quality.n_points - 4 - held) == pytest.approx(state.quality.gof**2)
    assert [text for code, text in state.notices if code == "background_estimated"]
    assert verify(job, judge=rejudge).ok
    again = replay_job(job)
    assert again.equal
    assert all(step.identical for step in again.steps)
    autoxrd("finish", job)
    report = (job / "report.html").read_text(encoding="utf-8")
    assert "counts as" in report
    assert "Baek" in report


@pytest.mark.parametrize(
    "settings",
    [
        {"estimate": "snip"},
        {"estimate": 3.0},
        {"wave_deg": -1.0},
        {"wave_deg": "short"},
        {"terms": 0},
        {"terms": 2.5},
    ],
)
def test_settings_that_make_no_sense_are_refused_by_name(haloed: Path, settings: dict[str, float | str]) -> None:
    job = haloed / "job"
    with Graph.open(job, read_only=True) as graph:
        root = graph.root()
    wrong = {**action(job, **settings), "parent": root}
    assert "settings_invalid" in gate_action(job, json.dumps(wrong)).reasons


def test_a_wave_that_no_curve_has_is_refused_by_the_command(haloed: Path, autoxrd: Run) -> None:
    job = haloed / "job"
    (haloed / "wrong.json").write_text(json.dumps(action(job, wave_deg=0.01)))
    done = autoxrd("step", job, haloed / "wrong.json", "--json", "--reopen")
    assert done.returncode == 2
    assert "shortest wave of a background is between 0.12 and 150, not 0.01" in done.stderr


def test_the_estimate_is_of_the_points_that_are_used(haloed: Path) -> None:
    job, _ = load_job(
        Request(
            pattern=haloed / "pattern.xy",
            structures=(haloed / "fluorite.cif",),
            anode="Cu",
            two_theta_limits=(30.0, 80.0),
        )
    )
    settings = {**job.engine_settings, "excluded_regions": ((40.0, 45.0),)}
    points = observed_of_start(job.pattern, settings)("")
    assert (points.x[0] >= 30.0, points.x[-1] <= 80.0) == (True, True)
    assert not np.any((points.x >= 40.0) & (points.x <= 45.0))


def test_another_pattern_of_a_series_gets_an_estimate_of_its_own() -> None:
    x = np.arange(20.0, 80.0, 0.05)
    first, second = (Pattern(x=x, y=y, sigma=np.ones(x.size)) for y in (100.0 + x, 300.0 - x))
    for asked in ({}, {"wave_deg": 7.0}):
        edit = Edit(
            "background_fixed",
            estimated_values(
                {"estimate": "arpls", "terms": 4, **asked}, AxisKind.TWO_THETA, observed_of_start(first, {})
            ),
        )
        again = estimated_again(edit, AxisKind.TWO_THETA, observed_of_start(second, {}))
        np.testing.assert_allclose(again.values["y"], 300.0 - np.array(again.values["x_deg"]), rtol=1e-3)
        assert again.values["terms"] == 4
        assert again.values.get("asked_deg") == asked.get("wave_deg")
    plain = Edit("background", {"terms": 9})
    assert estimated_again(plain, AxisKind.TWO_THETA, observed_of_start(second, {})) is plain


def test_over_the_time_of_flight_there_is_none() -> None:
    with pytest.raises(UserInputError) as caught:
        estimated_values({"estimate": "arpls"}, AxisKind.TOF, lambda _: Observed(np.arange(9.0), np.ones(9)))
    assert caught.value.code == "estimate_impossible"
