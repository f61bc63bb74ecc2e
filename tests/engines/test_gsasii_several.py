"""Several histograms of one sample on GSAS-II's engine: one least squares, cells and atoms in common."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from autoxrd.agent.inputs import Measured, Request, load_job
from autoxrd.domain.action import Bound
from autoxrd.domain.histogram import Histogram
from autoxrd.domain.structure import CrystalStructure
from autoxrd.engines.executor import ProtocolSession
from autoxrd.engines.protocol import Edit, EngineCommand, EngineResult, Snapshot
from autoxrd.errors import UserInputError
from tests.engines.samples import FLUORITE, LAB, NEUTRON, RUTILE, ZINCITE, parameter, simulated, values

pytestmark = pytest.mark.gsasii

STRAIN = -6e-4
CELL = {"a": 4.5950, "c": 2.9600}
OXYGEN = 0.3060
ATOMS = ("phase.*.atom.*.position", "phase.*.atom.*.uiso")
XRAY_CELL = {"a": 8.480468, "b": 5.398636, "c": 6.960120}
NEUTRON_CELL = {"a": 8.473977, "b": 5.393899, "c": 6.954444}
BASE = ("histogram.*.background.*", "histogram.*.phase.*.scale")


@dataclass(frozen=True)
class Pair:
    """X-rays and neutrons of one rutile, seen by neutrons with shorter lengths."""

    histograms: tuple[Histogram, Histogram]
    root: Snapshot


def _truth(stretch: float, scale: float) -> tuple[Edit, ...]:
    numbers = values(phase__rutile__scale=scale, background__0=80.0)
    cells = [
        Edit("value", {"selector": f"phase.rutile.cell.{k}", "value": v * (1.0 + stretch)}) for k, v in CELL.items()
    ]
    # a coordinate is set alone: the site is x, x, 0
    place = [Edit("value", {"selector": f"phase.rutile.atom.O1.{axis}", "value": OXYGEN}) for axis in "xy"]
    return (*numbers, *cells, *place)


@pytest.fixture(scope="module")
def pair(gsasii: ProtocolSession) -> Pair:
    return _pair(gsasii, 20.0)


def _pair(gsasii: ProtocolSession, strength: float) -> Pair:
    xrays, _ = simulated(gsasii, LAB, (RUTILE,), _truth(0.0, 0.5 * strength))
    neutron = _truth(STRAIN, 50.0 * strength)
    neutrons, _ = simulated(gsasii, NEUTRON, (RUTILE,), neutron, upper=140.0, step=0.1, seed=8)
    histograms = (
        Histogram("1", xrays, LAB, {"background_terms": 2}),
        Histogram("2", neutrons, NEUTRON, {"background_terms": 2}),
    )
    return Pair(histograms, gsasii.prepare_several(histograms, (RUTILE,)))


def _fitted(session: ProtocolSession, root: Snapshot, *steps: Sequence[str]) -> tuple[Snapshot, EngineResult]:
    released: list[str] = []
    for step in steps:
        released += step
        root, result = session.execute(root, EngineCommand(released=tuple(released)))
    return root, result


def test_cells_and_atoms_are_common_and_a_strain_is_a_histograms_own(gsasii: ProtocolSession, pair: Pair) -> None:
    steps = (BASE, ("phase.*.cell",), ("histogram.2.phase.*.strain_hydrostatic",), ("phase.*.atom.O1.position",))
    _, result = _fitted(gsasii, pair.root, *steps)
    assert result.convergence.converged
    assert result.engine_r["gof"] == pytest.approx(1.0, abs=0.05)
    for key, true in CELL.items():
        for name, wanted in (
            (f"phase.rutile.cell.{key}", true),
            (f"histogram.2.phase.rutile.strain_hydrostatic.{key}", STRAIN),
        ):
            value, esd = parameter(result, name)
            assert esd is not None
            assert abs(value - wanted) < 4.0 * esd, name
        seen, esd = parameter(result, f"histogram.2.phase.rutile.effective_cell.{key}")
        assert esd is not None
        assert abs(seen - true * (1.0 + STRAIN)) < 4.0 * esd
    x, esd = parameter(result, "phase.rutile.atom.O1.x")
    assert esd is not None
    assert abs(x - OXYGEN) < 4.0 * esd
    assert not any(p.name.startswith("histogram.") and ".atom." in p.name for p in result.parameters)


def test_figures_are_of_each_and_of_all(gsasii: ProtocolSession, pair: Pair) -> None:
    _, result = _fitted(gsasii, pair.root, BASE)
    top = bottom = 0.0
    for part in result.histograms.values():
        weight = part.sigma**-2.0
        here = float(weight @ (part.y_obs - part.y_calc) ** 2), float(weight @ part.y_obs**2)
        assert part.engine_r["rwp"] == pytest.approx(math.sqrt(here[0] / here[1]), rel=1e-9)
        top, bottom = top + here[0], bottom + here[1]
    assert result.engine_r["rwp"] == pytest.approx(math.sqrt(top / bottom), rel=1e-9)
    assert result.x.size == sum(part.x.size for part in result.histograms.values())
    assert {name for part in result.histograms.values() for name in part.covariance_names} == {
        "background.0", "background.1", "phase.rutile.scale"
    }  # fmt: skip


def test_an_atom_is_known_better_from_both(gsasii: ProtocolSession, pair: Pair) -> None:
    own = ("phase.*.scale", "background.*", "phase.*.cell", "phase.*.atom.O1.position")
    alone = []
    for histogram in pair.histograms:
        root = gsasii.prepare(histogram.pattern, histogram.instrument, (RUTILE,), histogram.settings)
        _, result = gsasii.execute(root, EngineCommand(released=own))
        alone.append(parameter(result, "phase.rutile.atom.O1.x")[1] or 0.0)
    steps = (BASE, ("phase.*.cell", "histogram.2.phase.*.strain_hydrostatic", "phase.*.atom.O1.position"))
    _, result = _fitted(gsasii, pair.root, *steps)
    together = parameter(result, "phase.rutile.atom.O1.x")[1] or 0.0
    expected = sum(esd**-2.0 for esd in alone) ** -0.5
    assert together == pytest.approx(expected, rel=0.15)


def test_gains_tell_which_histogram_wants_what(gsasii: ProtocolSession, pair: Pair) -> None:
    _, result = _fitted(gsasii, pair.root, BASE, ("phase.*.cell",))
    assert "histogram.1.phase.rutile.strain_hydrostatic" not in result.gains
    wanted = result.gains["histogram.2.phase.rutile.strain_hydrostatic"]
    assert wanted > result.gains["histogram.2.instrument.zero"] > 0.0
    before = float(np.sum(((result.y_obs - result.y_calc) / result.sigma) ** 2))
    _, after = _fitted(gsasii, pair.root, BASE, ("phase.*.cell",), ("histogram.2.phase.*.strain_hydrostatic",))
    fell = before - float(np.sum(((after.y_obs - after.y_calc) / after.sigma) ** 2))
    assert fell == pytest.approx(wanted, rel=0.3)
    assert {"histogram.1.background.more", "histogram.2.profile.SH/L", "phase.rutile.uiso"} <= set(result.gains)


def test_the_same_command_gives_the_same_bytes(gsasii: ProtocolSession, pair: Pair) -> None:
    first, one = _fitted(gsasii, pair.root, BASE, ("phase.*.cell",))
    second, other = _fitted(gsasii, pair.root, BASE, ("phase.*.cell",))
    assert first.payload == second.payload
    assert np.array_equal(one.y_calc, other.y_calc)
    again, _ = gsasii.execute(first, EngineCommand(cycles=0))
    assert again.payload == first.payload


def test_a_change_of_one_histogram_leaves_the_other(gsasii: ProtocolSession, pair: Pair) -> None:
    cut = Edit("exclude", {"histogram": "2", "lower_deg": 50.0, "upper_deg": 60.0})
    _, result = gsasii.execute(pair.root, EngineCommand(cycles=0, edits=(cut,)))
    _, before = gsasii.execute(pair.root, EngineCommand(cycles=0))
    assert result.histograms["2"].x.size < before.histograms["2"].x.size
    assert np.array_equal(result.histograms["1"].y_calc, before.histograms["1"].y_calc)
    moved = Edit("value", {"selector": "phase.rutile.cell.a", "value": 4.61})
    _, result = gsasii.execute(pair.root, EngineCommand(cycles=0, edits=(moved,)))
    for part in result.histograms.values():
        assert parameter(part, "phase.rutile.cell.a")[0] == pytest.approx(4.61)
        assert parameter(part, "phase.rutile.cell.b")[0] == pytest.approx(4.61)


@pytest.mark.parametrize(
    ("edit", "code"),
    [
        (Edit("exclude", {"lower_deg": 50.0, "upper_deg": 60.0}), "histogram_unknown"),
        (Edit("background", {"histogram": "3", "terms": 4}), "histogram_unknown"),
        (Edit("value", {"selector": "histogram.2.phase.rutile.cell.a", "value": 4.6}), "edit_invalid"),
        (Edit("add_phase", {"structure": "{}"}), "edit_invalid"),
    ],
)
def test_what_names_no_histogram_is_refused(gsasii: ProtocolSession, pair: Pair, edit: Edit, code: str) -> None:
    with pytest.raises(UserInputError) as caught:
        gsasii.execute(pair.root, EngineCommand(cycles=0, edits=(edit,)))
    assert caught.value.code == code


def test_a_bare_name_of_one_histogram_frees_nothing_in_silence(gsasii: ProtocolSession, pair: Pair) -> None:
    _, result = gsasii.execute(pair.root, EngineCommand(released=(*BASE, "instrument.zero")))
    assert "instrument.zero" in result.convergence.dropped


def test_fractions_are_each_histograms_and_a_mean(gsasii: ProtocolSession) -> None:
    phases: tuple[CrystalStructure, ...] = (FLUORITE, ZINCITE)
    patterns = []
    for seed, (instrument, factor) in enumerate(((LAB, 1.0), (NEUTRON, 60.0))):
        truth = values(phase__fluorite__scale=0.2 * factor, phase__zincite__scale=1.2 * factor, background__0=60.0)
        patterns.append((simulated(gsasii, instrument, phases, truth, seed=seed, step=0.05), instrument))
    histograms = [
        Histogram(str(k), pattern, instrument, {"background_terms": 2})
        for k, ((pattern, _), instrument) in enumerate(patterns, 1)
    ]
    _, result = _fitted(gsasii, gsasii.prepare_several(histograms, phases), BASE)
    true = patterns[0][0][1].phases[0].weight_fraction
    assert true is not None
    mean = result.phases[0].weight_fraction
    assert mean is not None
    assert mean.esd is not None
    assert abs(mean.value - true.value) < 4.0 * mean.esd
    esds = []
    for name in ("1", "2"):
        value, esd = parameter(result, f"histogram.{name}.phase.fluorite.weight_fraction")
        assert esd is not None
        assert abs(value - true.value) < 4.0 * esd
        esds.append(esd)
    assert mean.esd < max(esds)


@pytest.mark.slow
def test_the_project_has_all_histograms_and_gsasii_agrees(gsasii: ProtocolSession, pair: Pair) -> None:
    steps = (BASE, ("phase.*.cell", "histogram.2.phase.*.strain_hydrostatic", "phase.*.atom.O1.position"))
    snapshot, _ = _fitted(gsasii, pair.root, *steps)
    exported = gsasii.export(snapshot, ["native", "hkl"])
    assert {"refinement.gpx", "snapshot.bin", "reflections_1.csv", "reflections_2.csv"} <= set(exported.files)
    figures = json.loads(exported.files["gsasii-check.json"])
    assert figures["rwp_gsasii"] == pytest.approx(figures["rwp"], rel=5e-3)
    assert exported.files["snapshot.bin"] == snapshot.payload


def test_uncertainties_let_go_what_the_fit_held(gsasii: ProtocolSession, pair: Pair) -> None:
    steps = (BASE, ("phase.*.cell", "histogram.2.phase.*.strain_hydrostatic"))
    _, result = _fitted(gsasii, pair.root, *steps)
    _, esd = parameter(result, "phase.rutile.cell.a")
    wider, _ = parameter(result, "phase.rutile.cell.a.uncertainty")
    assert esd is not None
    assert wider > 2.0 * esd  # a displacement of the specimen, which was held, moves lines alike
    moved = ("histogram.1.sample.displacement",)
    _, freed = _fitted(gsasii, pair.root, *steps, moved)
    _, freed_esd = parameter(freed, "phase.rutile.cell.a")
    assert freed_esd is not None
    assert esd < freed_esd < 1.2 * wider
    assert not any(p.name.endswith(".uncertainty") and "background" in p.name for p in result.parameters)


def test_tensors_are_asked_for_where_one_number_for_each_atom_is_free(gsasii: ProtocolSession) -> None:
    pair = _pair(gsasii, 50.0)
    gain = "phase.rutile.uiso@anisotropic"
    limits = tuple(Bound(selector=f"phase.rutile.atom.{a}.uiso", lower=0.0, upper=0.1) for a in ("Ti1", "O1"))
    steps = (*BASE, "phase.*.cell", "histogram.2.phase.*.strain_hydrostatic", "phase.*.atom.O1.position")
    snapshot, result = _fitted(gsasii, pair.root, BASE, ("phase.*.cell",), steps)
    assert gain not in result.gains
    released = (*steps, "phase.rutile.atom.Ti1.uiso", "phase.rutile.atom.O1.uiso")
    snapshot, result = gsasii.execute(snapshot, EngineCommand(released=released, bounds=limits))
    assert result.gain_counts[gain] == 4  # three each, less one each
    before = float(np.sum(((result.y_obs - result.y_calc) / result.sigma) ** 2))
    assert 0.0 < result.gains[gain] < 30.0  # the simulation has isotropic atoms: noise
    edit = Edit("anisotropic", {"phase": "rutile", "atoms": ["Ti1", "O1"], "model": "anisotropic"})
    command = EngineCommand(released=(*released, "phase.rutile.uiso"), bounds=limits, edits=(edit,))
    _, freed = gsasii.execute(snapshot, command)
    assert freed.convergence.converged
    fell = before - float(np.sum(((freed.y_obs - freed.y_calc) / freed.sigma) ** 2))
    assert fell == pytest.approx(result.gains[gain], abs=2.0)
    assert freed.gain_counts[gain] == 0
    assert not any(p.name.startswith("histogram.") and ".u11" in p.name for p in freed.parameters)


@pytest.mark.slow
def test_the_project_has_the_forms_of_each_histogram(gsasii: ProtocolSession) -> None:
    patterns = [
        (
            simulated(gsasii, instrument, (FLUORITE,), values(phase__fluorite__scale=scale, background__0=60.0))[0],
            instrument,
        )
        for instrument, scale in ((LAB, 20.0), (NEUTRON, 2000.0))
    ]
    histograms = [Histogram(str(k), *found, {"background_terms": 2}) for k, found in enumerate(patterns, 1)]
    root = gsasii.prepare_several(histograms, (FLUORITE,))
    broad = {"histogram": "1", "phase": "fluorite", "effect": "strain", "model": "generalised"}
    edits = (
        Edit("broadening", broad),
        Edit("value", {"selector": "histogram.2.phase.fluorite.strain_hydrostatic.a", "value": 1e-4}),
    )
    snapshot, result = gsasii.execute(root, EngineCommand(released=BASE, edits=edits))
    names = {p.name for p in result.parameters}
    assert "histogram.1.phase.fluorite.strain.S400" in names
    assert "histogram.2.phase.fluorite.strain.S400" not in names
    exported = gsasii.export(snapshot, ["native"])
    figures = json.loads(exported.files["gsasii-check.json"])
    assert figures["rwp_gsasii"] == pytest.approx(figures["rwp"], rel=1e-2)


@pytest.mark.real
@pytest.mark.slow
def test_pbso4_with_the_steps_by_hand_ends_where_gsasii_does(
    gsasii: ProtocolSession, shared_file: Callable[[str], Path]
) -> None:
    """GSAS-II 5.7.9 by hand, 38 parameters: Rwp 6.597 %, the neutrons' cell that of all, the X-rays' strained."""
    xray, neutron = "lab-pbso4-rrr-xray", "neut-pbso4-d1a-lambda"
    request = Request(
        pattern=shared_file(f"{xray}/PBSO4.XRA"),
        instrument=shared_file(f"{xray}/INST_XRY.PRM"),
        structures=(shared_file(f"{xray}/PbSO4-Wyckoff.cif"),),
        background_terms=3,
        engine="gsasii",
        others=(
            Measured(shared_file(f"{neutron}/PBSO4.CWN"), shared_file(f"{neutron}/inst_d1a.prm"), background_terms=3),
        ),
    )
    job, _ = load_job(request)
    radii = (200.0, 650.0)
    histograms = [
        dataclasses.replace(h, instrument=dataclasses.replace(h.instrument, goniometer_radius_mm=radius))
        for h, radius in zip(job.histograms, radii, strict=True)
    ]
    root = gsasii.prepare_several(histograms, job.structures)
    squared = 8.0 * math.log(2.0) / 1e4
    start = {f"profile.{key}": value * squared for key, value in {"U": 2.0, "V": -2.0, "W": 5.0}.items()}
    start |= {"profile.X": 0.0, "profile.Y": 0.0, "profile.S/L": 0.001}
    start |= {"phase.PbSO4-Wyckoff.size": 0.00883, "phase.PbSO4-Wyckoff.strain": 0.0573}
    edits = [Edit("value", {"selector": f"histogram.1.{key}", "value": value}) for key, value in start.items()]
    broad = {"profile.S/L": 0.001, "phase.PbSO4-Wyckoff.size": 0.0109, "phase.PbSO4-Wyckoff.strain": 0.0573}
    edits += [Edit("value", {"selector": f"histogram.2.{key}", "value": value}) for key, value in broad.items()]
    ends = (("1", 16.0, 158.4), ("2", 19.0, 153.0))
    cut = [Edit("range", {"histogram": h, "lower_deg": low, "upper_deg": high}) for h, low, high in ends]
    released: list[str] = []
    for changes, step in (
        (edits, BASE),
        ([], ("phase.*.cell",)),
        ([], ("histogram.2.phase.*.strain_hydrostatic",)),
        ([], ("histogram.1.phase.*.size", "histogram.1.phase.*.strain")),
        ([], ("histogram.1.sample.displacement", "histogram.2.sample.offset", *ATOMS)),
        (cut, ("histogram.2.profile.U", "histogram.2.profile.V", "histogram.2.profile.W")),
    ):
        released += step
        command = EngineCommand(released=tuple(released), edits=tuple(changes), gains=False)
        root, result = gsasii.execute(root, command)
    assert result.convergence.converged
    assert len(result.covariance_names) == 38
    assert result.x.size == 8378
    assert result.engine_r["rwp"] == pytest.approx(0.06597, rel=2e-3)
    reference = {"phase.PbSO4-Wyckoff.cell": XRAY_CELL, "histogram.2.phase.PbSO4-Wyckoff.effective_cell": NEUTRON_CELL}
    for head, cell in reference.items():
        for key, wanted in cell.items():
            value, esd = parameter(result, f"{head}.{key}")
            assert esd is not None
            assert abs(value / wanted - 1.0) < 2e-5, (head, key)
