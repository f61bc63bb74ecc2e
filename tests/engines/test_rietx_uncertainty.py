"""Axial divergence is seen from zero, and uncertainties hold whatever else shaped the lines."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from autoxrd.domain.instrument import EmissionLine
from autoxrd.engines.executor import ProtocolSession
from autoxrd.engines.protocol import Edit, EngineCommand, EngineResult
from tests.engines.samples import FLUORITE, LAB, NEUTRON, RUTILE, parameter, simulated, values

FREE = ("phase.rutile.scale", "background", "sample.displacement", "phase.rutile.cell", "profile.W")
STRONG = {"phase__rutile__scale": 0.02}
UNCERTAINTY = "phase.rutile.cell.a.uncertainty"


def _fitted(session: ProtocolSession, seed: int, free: tuple[str, ...] = FREE, **true: float) -> EngineResult:
    pattern, _ = simulated(session, LAB, (RUTILE,), values(**STRONG, **true), lower=15.0, seed=seed)
    root = session.prepare(pattern, LAB, (RUTILE,), {})
    start, _ = session.execute(root, EngineCommand(released=("phase.rutile.scale", "background"), gains=False))
    _, result = session.execute(start, EngineCommand(released=free, cycles=40))
    return result


@pytest.mark.parametrize("true", [0.02, 0.05])
def test_axial_divergence_is_found_from_zero(rietx: ProtocolSession, true: float) -> None:
    axial = {"profile__S/L": true, "profile__H/L": true}
    before = _fitted(rietx, 3, **axial)
    assert before.gains["profile.SH/L"] > 25.0
    after = _fitted(rietx, 3, (*FREE, "profile.SH/L"), **axial)
    value, esd = parameter(after, "profile.S/L")
    assert esd is not None
    assert abs(value - true) < max(4.0 * esd, 0.1 * true)


def test_no_axial_divergence_gains_nothing_beyond_noise(rietx: ProtocolSession) -> None:
    assert _fitted(rietx, 3).gains["profile.SH/L"] < 15.0


def test_the_uncertainty_of_a_cell_covers_what_was_held(rietx: ProtocolSession) -> None:
    """Zero, transparency and axial divergence drawn from what is usual, and held at zero in the fit."""
    random, off, esds = np.random.default_rng(5), [], []
    for seed in range(8):
        axial = float(random.uniform(0.0, 0.03))
        result = _fitted(
            rietx,
            seed,
            instrument__zero=random.normal(0.0, 0.02),
            sample__transparency=abs(random.normal(0.0, 4e-4)),
            **{"profile__S/L": axial, "profile__H/L": axial},
        )
        value, esd = parameter(result, "phase.rutile.cell.a")
        stated, _ = parameter(result, UNCERTAINTY)
        assert esd is not None
        assert stated >= esd
        off.append((value - RUTILE.cell.a) / stated)
        esds.append((value - RUTILE.cell.a) / esd)
    assert np.sqrt(np.mean(np.square(esds))) > 3.0, "the esd alone would do"
    assert 0.2 < np.sqrt(np.mean(np.square(off))) < 1.6
    assert np.max(np.abs(off)) < 3.0


def test_the_uncertainty_of_a_width_covers_what_was_held(rietx: ProtocolSession) -> None:
    """Strain and the instrument's widths drawn from what is usual, and held elsewhere in the fit."""
    random, off, esds = np.random.default_rng(11), [], []
    free = ("phase.rutile.scale", "background", "phase.rutile.cell", "phase.rutile.size")
    for seed in range(6):
        truth = {
            "phase__rutile__size": 0.1,
            "phase__rutile__strain": random.uniform(0.0, 0.2),
            "profile__W": 0.01 * random.uniform(0.8, 1.2),
        }
        result = _fitted(rietx, seed, free, **truth)
        value, esd = parameter(result, "phase.rutile.size")
        stated, _ = parameter(result, "phase.rutile.size.uncertainty")
        assert esd is not None
        off.append((value - 0.1) / stated)
        esds.append((value - 0.1) / esd)
    assert np.sqrt(np.mean(np.square(esds))) > 3.0, "the esd alone would do"
    assert 0.2 < np.sqrt(np.mean(np.square(off))) < 1.6
    assert np.max(np.abs(off)) < 3.0


def test_a_cell_that_was_held_is_as_uncertain_as_the_data_leave_it(rietx: ProtocolSession) -> None:
    free = ("phase.rutile.scale", "background", "profile.W")
    result = _fitted(rietx, 2, free)
    stated, _ = parameter(result, UNCERTAINTY)
    # before the data have spoken it is 5e-4 of the length
    assert 1e-6 < stated / RUTILE.cell.a < 4e-4
    assert not [p.name for p in result.parameters if p.name.startswith("background") and p.name.endswith("tainty")]


def test_displacement_parameters_moved_together_are_as_uncertain_as_what_the_atoms_differ_by(
    rietx: ProtocolSession,
) -> None:
    truth = values(
        phase__fluorite__scale=0.02, phase__fluorite__atom__Ca1__uiso=0.006, phase__fluorite__atom__F1__uiso=0.012
    )
    pattern, _ = simulated(rietx, LAB, (FLUORITE,), truth, lower=15.0, upper=130.0)
    root = rietx.prepare(pattern, LAB, (FLUORITE,), {})
    free = ("phase.fluorite.scale", "background", "phase.fluorite.uiso")
    shared = (Edit("equal_uiso", {"phases": ["fluorite"]}),)
    _, result = rietx.execute(root, EngineCommand(released=free, edits=shared))
    for name, true in (("Ca1", 0.006), ("F1", 0.012)):
        value, esd = parameter(result, f"phase.fluorite.atom.{name}.uiso")
        stated, _ = parameter(result, f"phase.fluorite.atom.{name}.uiso.uncertainty")
        assert esd is not None
        assert 3.0 * esd < abs(value - true) < 2.0 * stated


def test_a_cell_is_as_uncertain_as_the_last_digit_of_a_given_wavelength(rietx: ProtocolSession) -> None:
    coarse = replace(NEUTRON, lines=(EmissionLine(1.54),))
    pattern, _ = simulated(rietx, coarse, (RUTILE,), values(phase__rutile__scale=5.0), upper=150.0, step=0.05)
    root = rietx.prepare(pattern, coarse, (RUTILE,), {})
    _, result = rietx.execute(root, EngineCommand(released=("phase.rutile.scale", "background", "phase.rutile.cell")))
    stated, _ = parameter(result, UNCERTAINTY)
    assert stated / RUTILE.cell.a > 0.005 / 1.54 / np.sqrt(3.0)
    assert stated / RUTILE.cell.a < 0.005 / 1.54
