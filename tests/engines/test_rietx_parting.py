"""Atoms that share a displacement parameter in rietx: what parting them promises, and what it gives."""

from __future__ import annotations

import numpy as np
import pytest

from autoxrd.engines.executor import ProtocolSession
from autoxrd.engines.protocol import Edit, EngineCommand, EngineResult
from autoxrd.errors import UserInputError
from tests.engines.samples import FLUORITE, LAB, WUSTITE, parameter, simulated, values

BASIC = ("phase.*.scale", "background.*")


def chi2(result: EngineResult) -> float:
    return float(np.sum(((result.y_obs - result.y_calc) / result.sigma) ** 2))


def test_species_of_one_site_stay_together(rietx: ProtocolSession) -> None:
    pattern, _ = simulated(rietx, LAB, (WUSTITE,), values(phase__wustite__scale=0.05))
    root = rietx.prepare(pattern, LAB, (WUSTITE,), {})
    free, phases = (*BASIC, "phase.wustite.uiso"), {"phases": ["wustite"]}
    snapshot, shared = rietx.execute(root, EngineCommand(released=free, edits=(Edit("equal_uiso", phases),)))
    assert shared.gain_counts["phase.wustite.uiso@apart"] == 1
    _, parted = rietx.execute(snapshot, EngineCommand(released=free, edits=(Edit("apart_uiso", phases),)))
    metal = {parameter(parted, f"phase.wustite.atom.{name}.uiso")[0] for name in ("Mg1", "Fe1")}
    assert len(metal) == 1
    assert parameter(parted, "phase.wustite.atom.O1.uiso")[0] not in metal


def test_only_atoms_that_share_one_are_parted(rietx: ProtocolSession) -> None:
    pattern, _ = simulated(rietx, LAB, (FLUORITE,), values(phase__fluorite__scale=0.05))
    root = rietx.prepare(pattern, LAB, (FLUORITE,), {})
    for names in (["fluorite"], [], ["anatase"]):
        with pytest.raises(UserInputError) as caught:
            rietx.execute(root, EngineCommand(edits=(Edit("apart_uiso", {"phases": names}),)))
        assert caught.value.code == "edit_invalid"
    _, plain = rietx.execute(root, EngineCommand(released=BASIC))
    assert "phase.fluorite.uiso@apart" not in plain.gains
