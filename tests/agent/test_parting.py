"""Atoms that share a displacement parameter from the start of a job are parted where the data tell them apart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from autoxrd.agent.inputs import Request, load_job
from autoxrd.agent.run import start_job
from autoxrd.agent.starting import Start
from autoxrd.engines.protocol import Edit
from autoxrd.store.graph import Graph
from tests.agent.checks import check_graph
from tests.agent.small import CIF, simulate

FREE = ("phase.fluorite.scale", "background", "phase.fluorite.cell", "phase.fluorite.size", "sample.displacement")


@pytest.mark.parametrize(("fluorine", "apart"), [(0.009, False), (0.03, True)])
def test_atoms_are_parted_where_the_data_tell_them_apart(fluorine: float, apart: bool, tmp_path: Path) -> None:
    true, given, pattern = tmp_path / "true" / "fluorite.cif", tmp_path / "fluorite.cif", tmp_path / "pattern.xy"
    true.parent.mkdir()
    true.write_text(CIF.replace("1 0.009", f"1 {fluorine}"))
    given.write_text(CIF)
    x, y = simulate(true)
    pattern.write_text("".join(f"{a:.3f} {b:.0f}\n" for a, b in zip(x, y, strict=True)))
    job, sources = load_job(Request(pattern=pattern, structures=(given,), anode="Cu"))
    start = Start(
        structures=job.structures,
        edits=(Edit("equal_uiso", {"phases": ["fluorite"]}),),
        released=(*FREE, "phase.fluorite.uiso"),
        source={"state": "s1"},
    )
    start_job(replace(job, start=start), tmp_path / "job", sources=sources)
    with Graph.open(tmp_path / "job", read_only=True) as graph:
        finish = graph.finished()
        assert finish is not None
        final = graph.state(str(finish.final_state))
        parted = [a.action for a, _ in graph.accepted_path(str(finish.final_state)) if "apart" in a.action.settings]
    assert len(parted) == apart
    found = {p.name: p for p in final.parameters if p.name.endswith(".uiso")}
    ratio = found["phase.fluorite.atom.F.uiso"].value / found["phase.fluorite.atom.Ca.uiso"].value
    if apart:
        assert parted[0].evidence[0].feature == "release_gain.phase.fluorite.uiso@apart"
        for label, value in (("Ca", 0.006), ("F", fluorine)):
            parameter = found[f"phase.fluorite.atom.{label}.uiso"]
            assert parameter.esd is not None
            assert abs(parameter.value - value) < 4.0 * parameter.esd
    else:
        np.testing.assert_allclose(ratio, 1.5, rtol=1e-6)
    check_graph(tmp_path / "job")
