"""The rules planner finds the halo of a glass under a pattern, on both engines, and describes it with few numbers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from autoxrd.agent.replay import replay_job
from autoxrd.store.graph import Graph
from tests.agent.checks import check_graph
from tests.agent.conftest import Run
from tests.agent.small import CIF, simulate


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small pattern, with a halo 9 degrees wide at 39."""
    directory = tmp_path_factory.mktemp("glass")
    (directory / "fluorite.cif").write_text(CIF)
    x, y = simulate(directory / "fluorite.cif")
    y += np.random.default_rng(1).poisson(250.0 * np.exp(-4.0 * np.log(2.0) * ((x - 39.0) / 9.0) ** 2))
    (directory / "pattern.xy").write_text("".join(f"{a:.3f} {b:.0f}\n" for a, b in zip(x, y, strict=True)))
    return directory


@pytest.mark.parametrize("engine", ["rietx", pytest.param("gsasii", marks=pytest.mark.gsasii)])
def test_a_halo_is_one_peak_and_not_a_dozen_terms(engine: str, files: Path, autoxrd: Run, tmp_path: Path) -> None:
    job = tmp_path / "job"
    words = ("-s", files / "fluorite.cif", "--anode", "Cu", "--engine", engine, "--out", job, "--json")
    done = autoxrd("refine", files / "pattern.xy", *words)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["quality"]["gof"] < 1.1
    with Graph.open(job, read_only=True) as graph:
        asked = [a for a in graph.attempts() if "position_deg" in a.action.settings]
        state = graph.state(graph.finished().final_state)  # type: ignore[union-attr, arg-type]
    assert [a.accepted for a in asked] == [True]
    found = {p.name.removeprefix("background.peak1_"): p for p in state.parameters if "peak1" in p.name}
    assert found["position"].value == pytest.approx(39.0, abs=0.3)
    assert found["gauss"].value == pytest.approx(9.0, abs=0.6)
    terms = [p for p in state.parameters if p.name.removeprefix("background.").isdigit()]
    assert len(terms) == 8
    check_graph(job)
    assert replay_job(job).equal
