"""What a model may ask to have measured: bounded tables that say the same each time."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from autoxrd.agent.bench import GraphBench
from tests.support.llm_desk import Reply, greedy, play, seen
from tests.support.llm_expert import NO_REVIEW, finish_answer
from tests.support.stub_engine import IMPURE

Bench = tuple[GraphBench, str, str]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A bench on a finished job with a hidden impurity, its root and its final state."""
    with play(tmp_path_factory.mktemp("bench") / "job", greedy, steps=8, truth=IMPURE) as played:
        yield GraphBench(played.graph, played.job), str(played.graph.root()), played.conclusion.state_id


REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("observe", {}),
    ("gains", {"prefix": "phase."}),
    ("zoom", {"lower_deg": 27.0, "upper_deg": 30.0}),
    ("zoom", {}),
    ("peaks", {}),
    ("fit_peak", {"lower_deg": 27.5, "upper_deg": 29.0}),
    ("candidates", {}),
]


@pytest.mark.parametrize(("what", "arguments"), REQUESTS)
def test_a_measurement_is_bounded_and_repeatable(what: str, arguments: dict[str, Any], bench: Bench) -> None:
    one = bench[0].measure(bench[1], what, arguments)
    assert "error" not in one.content, one.content
    text = json.dumps(one.content, allow_nan=False)
    assert len(text) < 5_000
    assert text == json.dumps(bench[0].measure(bench[1], what, arguments).content)


def test_a_peak_tells_its_shift_and_width(bench: Bench) -> None:
    found = bench[0].measure(bench[1], "fit_peak", {"lower_deg": 27.5, "upper_deg": 29.0}).content
    # 111 of fluorite at 28.27 degrees; the true cell is larger and the specimen displaced, so it stands lower
    assert found["calculated"]["centroid_deg"] == pytest.approx(28.27, abs=0.03)
    assert found["observed"]["centroid_deg"] < found["calculated"]["centroid_deg"]
    assert found["observed"]["fwhm_deg"] > found["calculated"]["fwhm_deg"]


def test_states_are_compared(bench: Bench) -> None:
    same = bench[0].measure(bench[1], "compare", {"other_state": bench[1]}).content
    assert same["rwp"][0] == same["rwp"][1]
    assert "error" in bench[0].measure(bench[1], "compare", {}).content


def test_a_plot_is_a_png(bench: Bench) -> None:
    png = bench[0].measure(bench[1], "plot", {"lower_deg": 25.0, "upper_deg": 60.0}).png
    assert png is not None
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", png[16:24]) == (720, 360)
    assert len(png) < 60_000


@pytest.mark.parametrize(
    ("what", "arguments"),
    [
        ("zoom", {"lower_deg": 200.0, "upper_deg": 210.0}),
        ("zoom", {"lower_deg": 50.0, "upper_deg": 40.0}),
        ("fit_peak", {"lower_deg": 30.0, "upper_deg": 30.01}),
        ("plot", {"lower_deg": 200.0, "upper_deg": 210.0}),
        ("run_shell", {}),
    ],
)
def test_what_cannot_be_measured_says_why(what: str, arguments: dict[str, Any], bench: Bench) -> None:
    assert "error" in bench[0].measure(bench[1], what, arguments).content
    assert "error" in bench[0].measure("", what, arguments).content


def test_a_measurement_is_shown_to_the_model_before_it_decides(tmp_path: Path) -> None:
    asked: list[str] = []

    def curious(request: Any) -> Reply:
        if request.schema_name == "review":
            return NO_REVIEW
        last = request.messages[-1]["content"]
        asked.append(last if isinstance(last, str) else last[0]["text"])
        view = seen(request)
        if view["attempts"]:
            return finish_answer(view["state"])
        wanted = ["zoom", "plot", "gains", "peaks"][len(asked) - 1 : len(asked)]
        if not wanted:
            return greedy(request)
        arguments = dict.fromkeys(("state", "other_state", "lower_deg", "upper_deg", "prefix"))
        return {"move": "request", "actions": None, "request": {"what": wanted[0], **arguments}, "finish": None}

    with play(tmp_path / "job", curious, steps=6, vision=True) as played:
        told = [text[:20] for text in asked[1:4]]
        assert told == ["Measurement zoom:\n<d", "Measurement plot:\n<d", "Measurement gains:\n<"]
        assert asked[4].startswith("Your answer cannot be used (measurement_limit)")
        assert played.graph.attempts()[0].planner["proposed_by"] == "model"
        images = [m for r in played.client.sent for m in r.messages if not isinstance(m["content"], str)]
        assert images[0]["content"][1]["image_url"]["url"].startswith("data:image/png;base64,")
