"""Candidates through the command: a second phase comes in, one that is not there stays out, a twin is told."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from autoxrd.domain.pattern import Pattern
from autoxrd.engines.protocol import Edit, EngineCommand
from autoxrd.engines.registry import get_engine
from autoxrd.io import instrument_from_anode, read_structures
from autoxrd.store.graph import Graph
from tests.agent.checks import check_graph
from tests.agent.conftest import Run
from tests.agent.small import CIF

_CELLS = {"fluorite": 5.4631, "halite": 5.6402, "periclase": 4.2117}
_SPECIES = {"halite": ("Na", "Cl"), "periclase": ("Mg", "O")}
_SEED = 7


def _cif(name: str) -> str:
    if name == "fluorite":
        return CIF
    first, second = _SPECIES[name]
    text = CIF.replace("data_fluorite", f"data_{name}").replace("5.4631", str(_CELLS[name]))
    text = text.replace("Ca Ca 0 0 0 1 0.006", f"{first} {first} 0 0 0 1 0.006")
    return text.replace("F F 0.25 0.25 0.25 1 0.009", f"{second} {second} 0.5 0.5 0.5 1 0.009")


@pytest.fixture(scope="module")
def mixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a pattern of fluorite and a little halite, and CIFs of three phases and a twin."""
    folder = tmp_path_factory.mktemp("mixture")
    for name in _CELLS:
        (folder / f"{name}.cif").write_text(_cif(name))
    (folder / "twin.cif").write_text(_cif("halite"))
    structures = [s for name in ("fluorite", "halite") for s in read_structures(folder / f"{name}.cif")]
    x = np.arange(25.0, 100.0, 0.03)
    blank = Pattern(x=x, y=100.0 + 10.0 * (np.arange(x.size) % 7 == 0), sigma=np.full(x.size, 10.0))
    truth = {"sample.displacement": -0.06, "profile.W": 0.006, "phase.fluorite.size": 0.06, "phase.halite.size": 0.06}
    truth |= {"phase.fluorite.scale": 1.0, "phase.halite.scale": 0.1, "phase.halite.cell.a": 5.654}
    session = get_engine("rietx").start()
    try:
        root = session.prepare(blank, instrument_from_anode("Cu"), structures, {"size_seed": True})
        edits = tuple(Edit("value", {"selector": k, "value": v}) for k, v in truth.items())
        _, result = session.execute(root, EngineCommand(cycles=0, edits=edits, gains=False))
    finally:
        session.close()
    bragg = result.phase_patterns.sum(axis=0)
    y = np.random.default_rng(_SEED).poisson(5000.0 * bragg / bragg.max() + 100.0)
    (folder / "pattern.xy").write_text("".join(f"{a:.3f} {b:d}\n" for a, b in zip(x, y, strict=True)))
    return folder


def test_a_missing_phase_is_added_and_its_twin_cannot_be_told(mixture: Path, autoxrd: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    candidates = [w for name in ("halite", "periclase", "twin") for w in ("-c", mixture / f"{name}.cif")]
    words = ("-s", mixture / "fluorite.cif", *candidates, "--anode", "Cu", "--out", out, "--json")
    done = autoxrd("refine", mixture / "pattern.xy", *words)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    names = {phase["name"] for phase in summary["phases"]}
    assert len(names) == 2
    assert "fluorite" in names
    assert names & {"halite", "twin"}
    assert "phase_set_ambiguous" in [w["code"] for w in summary["warnings"]]
    check_graph(out)
    with Graph.open(out, read_only=True) as graph:
        tried = [(a.action.kind.value, dict(a.action.settings), a.accepted) for a in graph.attempts()]
    added = [(settings, accepted) for kind, settings, accepted in tried if kind == "add_phase"]
    assert added[0][1]
    assert "periclase" not in [settings["phase"] for settings, _ in added]
    assert sum("replaces" in settings for settings, _ in added) == 1
    salt = next(p for p in summary["phases"] if p["name"] != "fluorite")["cell"]["a"]
    assert abs(salt["value"] - 5.654) < 4 * salt["esd"]
    ranked = json.loads((out / "report.json").read_text())["details"]["candidate_sets"]
    assert ranked[0]["behind"] == 0.0
    assert set(ranked[0]["phases"]) & {"halite", "twin"}
    assert "fluorite" in ranked[0]["phases"]
    table = (out / "report.html").read_text().split("ranked by their lines")[1].split("</table>")[0]
    assert table.count("<tr>") == 1 + len(ranked)
    assert ", ".join(ranked[0]["phases"]) in table
    assert autoxrd("replay", out).returncode == 0


def test_identify_ranks_and_stops(mixture: Path, autoxrd: Run) -> None:
    candidates = [w for name in ("fluorite", "halite", "periclase", "twin") for w in ("-c", mixture / f"{name}.cif")]
    done = autoxrd("identify", mixture / "pattern.xy", *candidates, "--anode", "Cu", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["answer"] == "found"
    assert found["sets"][0]["phases"][0] == "fluorite"
    assert len(found["sets"][0]["phases"]) == 2
    (rival,) = found["rivals"]
    assert {rival["phase"], rival["rival"]} == {"halite", "twin"}
    assert rival["inseparable"]
    none = autoxrd("identify", mixture / "pattern.xy", "-c", mixture / "periclase.cif", "--anode", "Cu", "--json")
    assert none.returncode == 3
    assert json.loads(none.stdout)["answer"] == "none"
