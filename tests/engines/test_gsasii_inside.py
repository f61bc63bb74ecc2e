"""What runs on arrays in the backend is what GSAS-II computes one reflection at a time; derivatives are derivatives."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from autoxrd.domain.instrument import Instrument
from autoxrd.domain.structure import CrystalStructure
from autoxrd.engines.executor import ProtocolSession
from autoxrd.engines.gsasii import find_interpreter
from autoxrd.engines.protocol import Edit, EngineCommand
from autoxrd.resources import resource_path
from tests.engines.samples import BANK, FLUORITE, LAB, NEUTRON, RUTILE, ZINCITE, simulated, timed, values

pytestmark = pytest.mark.gsasii

TEXTURE = Edit("texture", {"phase": "zincite", "axis": (0.0, 0.0, 1.0)})
PEAK = Edit("background_peak", {"position_deg": 41.0, "width_deg": 6.0})
DEBYE = Edit("background_debye", {"distance_angstrom": 2.3})
LAB_VALUES = values(
    phase__zincite__scale=30.0,
    phase__fluorite__scale=20.0,
    phase__zincite__preferred_orientation=0.8,
    phase__zincite__extinction=0.05,
    phase__zincite__size=0.02,
    phase__fluorite__strain=0.1,
    sample__displacement=0.1,
    sample__transparency=0.0005,
    sample__roughness=0.05,
    instrument__zero=0.02,
    background__0=100.0,
    background__peak1_intensity=300.0,
    background__debye1_amplitude=2.0,
)
UNIAXIAL = {"phase": "zincite", "model": "uniaxial", "axis": (0.0, 0.0, 1.0)}
ANISOTROPIC = (
    Edit("broadening", {**UNIAXIAL, "effect": "size"}),
    Edit("broadening", {**UNIAXIAL, "effect": "strain"}),
    Edit("broadening", {"phase": "fluorite", "effect": "strain", "model": "generalised"}),
    Edit("harmonics", {"phase": "zincite", "order": 4}),
    Edit("harmonics", {"phase": "fluorite", "order": 6}),
    *values(
        phase__zincite__scale=30.0,
        phase__fluorite__scale=20.0,
        phase__zincite__size=0.1,
        phase__zincite__size__axial=0.03,
        phase__zincite__strain=0.05,
        phase__zincite__strain__axial=0.2,
        phase__fluorite__strain__S400=6000.0,
        phase__fluorite__strain__S220=9000.0,
        phase__zincite__preferred_orientation__C_2_0=0.4,
        phase__zincite__preferred_orientation__C_4_0=-0.2,
        phase__fluorite__preferred_orientation__C_4_1=0.5,
        background__0=100.0,
    ),
)
TENSORS = Edit("anisotropic", {"phase": "rutile"})
NEUTRON_VALUES = values(
    phase__rutile__atom__Ti1__u11=0.006,
    phase__rutile__atom__Ti1__u33=0.012,
    phase__rutile__atom__O1__u11=0.010,
    phase__rutile__atom__O1__u33=0.005,
    phase__rutile__atom__O1__u12=0.003,
    phase__rutile__scale=3e4,
    phase__rutile__extinction=30.0,
    sample__offset_along=0.3,
    sample__offset_across=-0.2,
    absorption=0.7,
    background__0=100.0,
)


FLIGHT_VALUES = (
    TEXTURE,
    Edit("harmonics", {"phase": "fluorite", "order": 4}),
    Edit("broadening", {**UNIAXIAL, "effect": "strain"}),
    *values(
        phase__zincite__scale=30.0,
        phase__fluorite__scale=20.0,
        phase__zincite__preferred_orientation=0.8,
        phase__zincite__extinction=0.5,
        phase__zincite__strain=10.0,
        phase__zincite__strain__axial=20.0,
        phase__fluorite__size=3.0,
        phase__fluorite__preferred_orientation__C_4_1=0.5,
        absorption=0.3,
        background__0=10.0,
    ),
)


def inside(
    session: ProtocolSession,
    instrument: Instrument,
    phases: tuple[CrystalStructure, ...],
    edits: tuple[Edit, ...],
    folder: Path,
) -> dict[str, Any]:
    make = simulated if instrument.flight is None else timed
    span = {"upper": 75.0, "step": 0.1} if instrument.flight is None else {"upper": 50000.0, "step": 1.5e-3}
    pattern, _ = make(session, instrument, phases, edits, seed=None, **span)
    root = session.prepare(pattern, instrument, phases, {})
    snapshot, _ = session.execute(root, EngineCommand(cycles=0, edits=edits, gains=False))
    (folder / "snapshot").write_bytes(snapshot.payload)
    script = Path(__file__).with_name("gsasii_inside.py")
    command = [str(find_interpreter()), "-s", "-P", "-B", script, resource_path("backends"), folder / "snapshot"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder, timeout=300)
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


@pytest.mark.parametrize("probe", ["xray", "anisotropic", "neutron", "flight"])
def test_lines_are_those_of_gsasii_and_derivatives_those_of_the_pattern(
    probe: str, gsasii: ProtocolSession, tmp_path: Path
) -> None:
    if probe == "xray":
        found = inside(gsasii, LAB, (ZINCITE, FLUORITE), (TEXTURE, PEAK, DEBYE, *LAB_VALUES), tmp_path)
    elif probe == "anisotropic":
        found = inside(gsasii, LAB, (ZINCITE, FLUORITE), ANISOTROPIC, tmp_path)
    elif probe == "flight":
        found = inside(gsasii, BANK, (ZINCITE, FLUORITE), FLIGHT_VALUES, tmp_path)
        assert found["exponentials"] < 1e-9
    else:
        found = inside(gsasii, NEUTRON, (RUTILE,), (TENSORS, *NEUTRON_VALUES), tmp_path)
    for name in ("position", "variance"):
        assert found[name] < 1e-9, name
    assert found["background"] < 2e-4
    # GSAS-II's size has no infinity: 1 m stands for it
    assert found["lorentz"] < 1e-6
    assert found["intensity"] < 1e-6
    # at the floor of the axial divergence GSAS-II's nodes are as good as ours
    assert found["pattern"] < 2e-3
    # a single peak is drawn on all points here, within a window there
    assert max(found["functions"].values()) < 2e-4
    bad = {name: error for name, error in found["derivatives"].items() if error > 0.025}
    assert bad == {}
