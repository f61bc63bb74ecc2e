"""What is said of a recorded state, over either axis."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from autoxrd.domain.state import Feature, UnexplainedPeak
from autoxrd.store.graph import Graph
from tests.agent.conftest import Run
from tests.store.factory import artifact_store, make_job, make_state


@pytest.mark.parametrize(("timed", "at", "unit"), [(False, 41.25, "deg"), (True, 11800.5, "us"), (True, 170.5, "us")])
def test_the_place_of_a_peak_is_said_with_the_unit_of_its_axis(
    tmp_path: Path, autoxrd: Run, timed: bool, at: float, unit: str
) -> None:
    """However small the number is: microseconds are told by the axis, not by their size."""
    store = artifact_store(tmp_path / "job")
    peak = UnexplainedPeak(two_theta_deg=at, d_angstrom=2.1, area=10.0, area_share=0.02, significance=9.0)
    state = make_state(store).model_copy(update={"unexplained_peaks": (peak,)})
    if timed:
        low = Feature(value=100.0, esd=None, significance=None, n_used=1)
        state = state.model_copy(update={"features": {**state.features, "range.tof_min": low}})
    with Graph.create(tmp_path / "job", make_job(store)) as graph:
        graph.add_root(state, {"seconds": 1.0})
    said = autoxrd("diagnose", tmp_path / "job")
    assert f"unexplained peak: {at:.3f} {unit}, d = 2.1000 angstrom" in said.stdout
    assert json.loads(autoxrd("diagnose", tmp_path / "job", "--json").stdout)["axis_unit"] == unit
