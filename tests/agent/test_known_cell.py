"""A phase of certified cell is never freed, what moves lines is fitted to it, and the other cell becomes accurate."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from autoxrd.agent.asking import ask_diagnosis
from autoxrd.agent.auditing import audited
from autoxrd.agent.controller import rejudge
from autoxrd.agent.drafting import draft
from autoxrd.agent.job import Job
from autoxrd.agent.replay import replay_job
from autoxrd.agent.stepping import gate_action
from autoxrd.domain.action import ActionKind
from autoxrd.store.graph import Graph
from autoxrd.store.verify import verify
from tests.agent.certified import (
    DISPLACEMENT_MM,
    GIVEN_WAVELENGTH,
    TRUE_FLUORITE,
    TRUE_HALITE,
    TRUE_WAVELENGTH,
    ZERO_DEG,
    Specimen,
    beam,
    measured,
    tube,
)
from tests.agent.conftest import Run

Refined = Callable[..., tuple[Path, dict[str, Any]]]
CERTIFIED = f"Fluorite={TRUE_FLUORITE}"
AT_BEAM = ("-w", str(GIVEN_WAVELENGTH), "--geometry", "debye_scherrer", "--radiation", "xray")


@pytest.fixture(scope="module")
def refined(autoxrd: Run, tmp_path_factory: pytest.TempPathFactory) -> Refined:
    """Refine a specimen with options; return directory and summary."""

    def run(specimen: Specimen, *words: object) -> tuple[Path, dict[str, Any]]:
        out = tmp_path_factory.mktemp("certified") / "out"
        files = (specimen.pattern, "-s", specimen.fluorite, "-s", specimen.halite)
        done = autoxrd("refine", *files, *words, "--out", out, "--json")
        assert done.returncode == 0, done.stderr
        summary: dict[str, Any] = json.loads(done.stdout)
        return out, summary

    return run


@pytest.fixture(scope="module")
def at_tube(tmp_path_factory: pytest.TempPathFactory) -> Specimen:
    """A specimen off the axis of a laboratory diffractometer."""
    return measured(tmp_path_factory.mktemp("tube"), at=tube(), moved={"sample.displacement": DISPLACEMENT_MM})


@pytest.fixture(scope="module")
def held(refined: Refined, at_tube: Specimen) -> tuple[Path, dict[str, Any]]:
    """The job at the tube with fluorite as standard."""
    return refined(at_tube, "--anode", "Cu", "--known-cell", CERTIFIED)


@pytest.fixture(scope="module")
def at_beam(refined: Refined, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The job at a synchrotron whose wavelength is stated 400 ppm too small, and with a zero offset."""
    folder = tmp_path_factory.mktemp("beam")
    specimen = measured(folder, at=beam(TRUE_WAVELENGTH), moved={"instrument.zero": ZERO_DEG})
    return refined(specimen, *AT_BEAM, "--known-cell", CERTIFIED)


def _halite(summary: dict[str, Any]) -> tuple[float, float]:
    """Return the cell and its uncertainty."""
    phase = next(p for p in summary["phases"] if p["name"] == "halite")
    return phase["cell"]["a"]["value"], phase["cell_uncertainty"]["a"]


def _codes(directory: Path) -> set[str]:
    report = json.loads((directory / "report.json").read_text())
    return {item["code"] for item in (*report["warnings"], *report["details"]["qc_notices"])}


def test_the_standard_makes_the_other_cell_accurate(
    held: tuple[Path, dict[str, Any]], refined: Refined, at_tube: Specimen
) -> None:
    directory, plain = refined(at_tube, "--anode", "Cu")
    assert "position_model_ambiguous" in _codes(directory)
    value, sure = _halite(held[1])
    assert abs(value - TRUE_HALITE) < 3.0 * sure
    # 20 ppm, where displacement and zero of an unknown instrument leave 90
    assert sure < 0.25 * _halite(plain)[1]
    assert abs(held[1]["instrument"]["displacement_mm"]["value"] - DISPLACEMENT_MM) < 0.002
    assert not _codes(held[0]) & {"position_model_ambiguous", "known_cell_doubtful", "known_cell_not_seen"}
    report = json.loads((held[0] / "report.json").read_text())
    (rivals,) = [n["text"] for n in report["details"]["qc_notices"] if n["code"] == "position_model"]
    assert "halite a = " in rivals
    assert "fluorite a" not in rivals


def test_the_certified_cell_is_held_throughout_and_told(held: tuple[Path, dict[str, Any]]) -> None:
    directory, summary = held
    fluorite, halite = summary["phases"]
    assert fluorite["cell"]["a"] == {"value": TRUE_FLUORITE, "esd": None}
    assert fluorite["cell_certified"] is True
    assert fluorite["cell_uncertainty"] == {}
    assert "cell_certified" not in halite
    with Graph.open(directory, read_only=True) as graph:
        states = [node.state for node in graph.states()]
        assert not any("phase.fluorite.cell" in s.released for s in states)
        assert {p.value for s in states for p in s.parameters if p.name == "phase.fluorite.cell.a"} == {TRUE_FLUORITE}
        assert "phase.fluorite.cell" not in {r.selector for r in ask_diagnosis(graph).releases}
        assert any(n.code == "known_cell" for n in Job.from_record(graph.job, graph.artifacts).notices)
    methods = " ".join(json.loads((directory / "report.json").read_text())["details"]["methods"]["paragraphs"])
    assert "certified cell of fluorite (a = 5.4652 Å; as stated) was held" in methods
    assert "the specimen displacement and the other cells were fitted to its lines" in methods
    assert "Certified cell, held as an internal standard" in (directory / "report.html").read_text()


@pytest.mark.parametrize("selector", ["phase.fluorite.cell", "phase.*.cell", "phase.fluorite.cell.a"])
def test_no_step_may_free_it(held: tuple[Path, dict[str, Any]], selector: str) -> None:
    action = draft(held[0], "lattice", ["phase.halite.cell"], why="a test", state="root").action
    assert action is not None
    allowed = gate_action(held[0], action.model_dump_json())
    assert not any("known_cell_freed" in reason for reason in allowed.reasons)
    asked = gate_action(held[0], action.model_copy(update={"parameters": (selector,)}).model_dump_json())
    assert not asked.legal
    assert "the cell of fluorite, which is certified" in asked.reasons["known_cell_freed"]


def test_the_record_holds_it_so_that_it_verifies_and_repeats(held: tuple[Path, dict[str, Any]]) -> None:
    assert verify(held[0], judge=rejudge).ok
    again = replay_job(held[0])
    assert again.equal
    assert all(step.identical for step in again.steps)


def test_the_wavelength_of_a_beam_is_fitted_beside_zero_and_the_other_cell(
    at_beam: tuple[Path, dict[str, Any]],
) -> None:
    directory, summary = at_beam
    value, sure = _halite(summary)
    assert abs(value - TRUE_HALITE) < 3.0 * sure < 3e-4
    assert abs(summary["instrument"]["zero_deg"]["value"] - ZERO_DEG) < 1e-3
    assert summary["instrument"]["wavelengths_angstrom"][0] == pytest.approx(TRUE_WAVELENGTH, rel=3e-5)
    assert "cell_depends_on_wavelength" not in _codes(directory)
    with Graph.open(directory, read_only=True) as graph:
        steps = [a.action for a in graph.attempts() if a.accepted]
        scale = next(a for a in steps if a.parameters == ("instrument.wavelength",))
        assert "certified cell" in scale.rationale
        final = graph.state(str(graph.finished().final_state))
    assert {"instrument.zero", "instrument.wavelength", "phase.halite.cell"} <= set(final.released)


def test_a_wavelength_too_far_from_the_stated_one_is_told(at_beam: tuple[Path, dict[str, Any]]) -> None:
    with Graph.open(at_beam[0], read_only=True) as graph:
        job, finish = Job.from_record(graph.job, graph.artifacts), graph.finished()
        assert finish is not None
        state = graph.state(finish.final_state)
        far = tuple(
            p.model_copy(update={"value": 1.003 * GIVEN_WAVELENGTH}) if p.name == "instrument.wavelength" else p
            for p in state.parameters
        )
        found = audited(graph, job, state.model_copy(update={"parameters": far}), last_kind=ActionKind.JOINT)
    told = next(item for item in found.warnings if item.code == "known_cell_doubtful")
    assert "+0.30 %" in told.text
    assert "fluorite" in told.text


def test_a_wrong_certified_cell_is_doubted_with_the_figures(refined: Refined, at_tube: Specimen) -> None:
    directory, summary = refined(at_tube, "--anode", "Cu", "--known-cell", "fluorite=5.4720")
    told = next(item for item in summary["warnings"] if item["code"] == "known_cell_doubtful")
    assert "5.47200" in told["text"]
    assert "ppm" in told["text"]
    assert summary["verdict"] != "accepted"
    with Graph.open(directory, read_only=True) as graph:
        final = graph.state(str(graph.finished().final_state))
    asked = next(p for p in final.parameters if p.name == "phase.fluorite.cell.a.asked")
    assert asked.esd is not None
    assert abs(asked.value - TRUE_FLUORITE) < 3.0 * asked.esd
