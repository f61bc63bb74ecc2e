"""A declared phase that is not there leaves the model, and the result is that of a job without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from autoxrd.agent.inputs import Request, load_job
from autoxrd.agent.run import start_job
from autoxrd.domain.state import FitState
from autoxrd.store.graph import Graph
from tests.agent.small import CIF, simulate


def _refined(directory: Path, pattern: Path, *cifs: Path) -> FitState:
    job, sources = load_job(Request(pattern=pattern, structures=cifs, anode="Cu"))
    start_job(job, directory, sources=sources)
    with Graph.open(directory, read_only=True) as graph:
        finish = graph.finished()
        assert finish is not None
        return graph.state(str(finish.final_state))


@pytest.mark.parametrize("length", [5.50, 5.53])
def test_the_tail_of_axial_divergence_keeps_no_phase_in_the_model(length: float, tmp_path: Path) -> None:
    there, ghost, pattern = tmp_path / "fluorite.cif", tmp_path / "ghost.cif", tmp_path / "pattern.xy"
    there.write_text(CIF)
    # its lines stand where those of fluorite have their tails
    ghost.write_text(CIF.replace("fluorite", "ghost").replace("5.4631", f"{length}"))
    x, y = simulate(there, {"profile.S/L": 0.045, "profile.H/L": 0.045})
    pattern.write_text("".join(f"{a:.3f} {b:.0f}\n" for a, b in zip(x, y, strict=True)))
    alone = _refined(tmp_path / "alone", pattern, there)
    beside = _refined(tmp_path / "beside", pattern, there, ghost)
    assert [phase.name for phase in beside.phases] == ["fluorite"]
    assert beside.quality.rwp == pytest.approx(alone.quality.rwp, rel=0.01)
    assert set(beside.released) == set(alone.released)
