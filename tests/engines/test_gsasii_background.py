"""GSAS-II's backgrounds: every function, single peaks, Debye terms and a fixed curve find a simulated truth."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from autoxrd.agent.inputs import Request, load_job
from autoxrd.agent.run import prepare_job
from autoxrd.agent.stepping import gate_action, take_step
from autoxrd.engines.executor import ProtocolSession
from autoxrd.engines.protocol import Edit, EngineCommand
from autoxrd.errors import UserInputError
from autoxrd.store.graph import Graph
from tests.agent.small import CIF
from tests.engines.samples import FLUORITE, LAB, parameter, simulated, values

pytestmark = pytest.mark.gsasii

BASIC = ("phase.*.scale", "background.*")
TRUTH = values(phase__fluorite__scale=20.0, background__0=200.0)
FUNCTIONS = (
    "chebyschev",
    "cosine",
    "Q^2 power series",
    "Q^-2 power series",
    "lin interpolate",
    "inv interpolate",
    "log interpolate",
)


def test_another_function_keeps_the_curve_and_fits_as_well(gsasii: ProtocolSession) -> None:
    pattern, _ = simulated(gsasii, LAB, (FLUORITE,), TRUTH)
    root = gsasii.prepare(pattern, LAB, (FLUORITE,), {})
    snapshot, plain = gsasii.execute(root, EngineCommand(released=BASIC, gains=False))
    for kind in FUNCTIONS:
        edit = Edit("background", {"function": kind, "terms": 6})
        _, result = gsasii.execute(snapshot, EngineCommand(released=BASIC, edits=(edit,), gains=False))
        assert result.convergence.converged
        assert result.convergence.dropped == ()
        assert "background.6" not in {item.name for item in result.parameters}
        np.testing.assert_allclose(result.background, plain.background, rtol=0.05)
    with pytest.raises(UserInputError) as caught:
        gsasii.execute(snapshot, EngineCommand(edits=(Edit("background", {"function": "no such"}),)))
    assert caught.value.code == "edit_invalid"


def test_a_hump_is_found_as_a_single_peak(gsasii: ProtocolSession) -> None:
    hump = Edit("background_peak", {"position_deg": 42.0, "width_deg": 8.0})
    truth = (hump, *TRUTH, *values(background__peak1_position=41.0, background__peak1_intensity=800.0))
    pattern, _ = simulated(gsasii, LAB, (FLUORITE,), truth)
    root = gsasii.prepare(pattern, LAB, (FLUORITE,), {"background_terms": 2})
    before, plain = gsasii.execute(root, EngineCommand(released=BASIC, gains=False))
    _, result = gsasii.execute(before, EngineCommand(released=BASIC, edits=(hump,), gains=False))
    assert result.engine_r["gof"] < 1.05 < plain.engine_r["gof"]
    for name, true in (("position", 41.0), ("intensity", 800.0), ("gauss", 4.8), ("lorentz", 4.8)):
        value, esd = parameter(result, f"background.peak1_{name}")
        assert esd is not None
        assert abs(value - true) < 4.0 * esd
    outside = Edit("background_peak", {"position_deg": 142.0, "width_deg": 8.0})
    with pytest.raises(UserInputError) as caught:
        gsasii.execute(before, EngineCommand(edits=(outside,)))
    assert caught.value.code == "edit_invalid"


def test_the_halo_of_a_glass_is_found_as_a_debye_term(gsasii: ProtocolSession) -> None:
    term = Edit("background_debye", {"distance_angstrom": 3.6})
    truth = (term, *TRUTH, *values(background__debye1_amplitude=1.5, background__debye1_distance=3.75))
    pattern, _ = simulated(gsasii, LAB, (FLUORITE,), truth)
    root = gsasii.prepare(pattern, LAB, (FLUORITE,), {"background_terms": 2})
    before, plain = gsasii.execute(root, EngineCommand(released=BASIC, gains=False))
    _, result = gsasii.execute(before, EngineCommand(released=BASIC, edits=(term,), gains=False))
    assert result.engine_r["gof"] < 1.05 < plain.engine_r["gof"]
    for name, true in (("amplitude", 1.5), ("distance", 3.75), ("uiso", 0.05)):
        value, esd = parameter(result, f"background.debye1_{name}")
        assert esd is not None
        assert abs(value - true) < 4.0 * esd


def test_a_measured_background_lies_under_everything(gsasii: ProtocolSession) -> None:
    pattern, _ = simulated(gsasii, LAB, (FLUORITE,), TRUTH, seed=None)
    blank = 150.0 + 100.0 * np.exp(-(((pattern.x - 37.0) / 2.0) ** 2))
    counts = np.random.default_rng(3).poisson(pattern.y + 0.8 * blank).astype(float)
    observed = dataclasses.replace(pattern, y=counts, sigma=np.sqrt(counts))
    root = gsasii.prepare(observed, LAB, (FLUORITE,), {"background_terms": 2})
    fixed = Edit("background_fixed", {"x_deg": tuple(pattern.x.tolist()), "y": tuple(blank.tolist())})
    released = (*BASIC, "background.fixed")
    _, result = gsasii.execute(root, EngineCommand(released=released, edits=(fixed,), gains=False))
    value, esd = parameter(result, "background.fixed")
    assert esd is not None
    assert abs(value - 0.8) < 4.0 * esd
    assert result.engine_r["gof"] < 1.05
    # a held multiplier is one: the terms take the rest
    _, held = gsasii.execute(root, EngineCommand(released=BASIC, edits=(fixed,), gains=False))
    assert parameter(held, "background.fixed") == (1.0, None)
    with pytest.raises(UserInputError) as caught:
        gsasii.execute(root, EngineCommand(edits=(Edit("background_fixed", {"x_deg": (1.0, 1.0), "y": (2.0, 3.0)}),)))
    assert caught.value.code == "edit_invalid"


def test_the_project_holds_peaks_and_debye_terms(gsasii: ProtocolSession) -> None:
    extra = (
        Edit("background_peak", {"position_deg": 41.0, "width_deg": 6.0}),
        Edit("background_debye", {"distance_angstrom": 2.3}),
    )
    truth = (*extra, *TRUTH, *values(background__peak1_intensity=300.0, background__debye1_amplitude=2.0))
    pattern, _ = simulated(gsasii, LAB, (FLUORITE,), truth)
    root = gsasii.prepare(pattern, LAB, (FLUORITE,), {})
    snapshot, _ = gsasii.execute(root, EngineCommand(released=BASIC, edits=truth, gains=False))
    exported = gsasii.export(snapshot, ("native",))
    # GSAS-II's Rwp of the same project agrees: peak and term are in it
    assert exported.notices == ()
    assert "refinement.gpx" in exported.files


@pytest.mark.slow
def test_a_person_puts_a_peak_under_the_pattern_through_the_gates(gsasii: ProtocolSession, tmp_path: Path) -> None:
    hump = Edit("background_peak", {"position_deg": 52.0, "width_deg": 8.0})
    truth = (hump, *TRUTH, *values(background__peak1_intensity=3000.0, background__peak1_lorentz=0.001))
    pattern, _ = simulated(gsasii, LAB, (FLUORITE,), truth)
    (tmp_path / "x.xy").write_text("".join(f"{x:.3f} {y:.0f}\n" for x, y in zip(pattern.x, pattern.y, strict=True)))
    (tmp_path / "x.cif").write_text(CIF)
    request = Request(
        pattern=tmp_path / "x.xy", structures=(tmp_path / "x.cif",), anode="Cu", engine="gsasii", background_terms=3
    )
    job, sources = load_job(request)
    prepare_job(job, tmp_path / "job", sources=sources)
    with Graph.open(tmp_path / "job", read_only=True) as graph:
        before = graph.state(graph.current()).features["structured_fraction"].value
    claim = {"feature": "structured_fraction", "value": before, "comparison": ">", "threshold": 0.02}
    told = {"metric": "structured_fraction", "direction": "decrease", "minimum_effect": 0.01}
    action = {
        "kind": "background_model",
        "stage": "instrument",
        "parameters": ["background.*", "phase.x.scale"],
        "settings": {"position_deg": 50.0, "width_deg": 10.0},
        "rationale": "a hump of the holder",
        "evidence": [{**claim, "source": "current"}],
        "predictions": [told],
        "parent": "current",
    }
    unfinished = {**action, "settings": {"position_deg": 50.0}}
    assert "settings_invalid" in gate_action(tmp_path / "job", json.dumps(unfinished)).reasons
    stepped = take_step(tmp_path / "job", json.dumps(action))
    assert stepped.accepted, stepped.reasons
    with Graph.open(tmp_path / "job", read_only=True) as graph:
        found = {item.name: item for item in graph.state(graph.current()).parameters}
    position = found["background.peak1_position"]
    assert position.esd is not None
    assert abs(position.value - 52.0) < 4.0 * position.esd
    # a hump without Lorentzian part: its width is held at the floor, and no limit is in the way
    assert found["background.peak1_lorentz"].value == 0.001
