"""The two real patterns that rietx ships, refined the usual way by hand."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from autoxrd.domain.instrument import EmissionLine, Geometry, Instrument, Radiation
from autoxrd.engines.executor import ProtocolSession
from autoxrd.engines.protocol import EngineCommand, EngineResult
from autoxrd.io import read_pattern, read_structures
from tests.engines.samples import parameter

pytestmark = pytest.mark.real


def example(name: str) -> Path:
    spec = importlib.util.find_spec("rietx")
    if spec is None or spec.origin is None:
        pytest.skip("rietx is not installed")
    return Path(spec.origin).parent / "data" / "examples" / name


def staged(
    session: ProtocolSession,
    pattern: str,
    structure: str,
    instrument: Instrument,
    stages: list[tuple[str, ...]],
    **given: object,
) -> list[EngineResult]:
    """Release one group after the other, all earlier ones staying free."""
    snapshot = session.prepare(read_pattern(example(pattern)), instrument, read_structures(example(structure)), given)
    released: tuple[str, ...] = ()
    results = []
    for stage in stages:
        released += stage
        snapshot, result = session.execute(snapshot, EngineCommand(released=released))
        results.append(result)
    return results


def test_fluorapatite_of_the_laboratory(rietx: ProtocolSession) -> None:
    lines = (EmissionLine(1.5405), EmissionLine(1.5443, 0.5))
    instrument = Instrument(Radiation.XRAY, Geometry.BRAGG_BRENTANO, lines)
    stages = [
        ("phase.*.scale", "background.*"),
        ("sample.displacement",),
        ("phase.*.cell",),
        ("profile.U", "profile.V", "profile.W", "profile.X", "profile.Y"),
        ("profile.SH/L",),
        ("phase.*.uiso", "phase.*.atom.*.position"),
    ]
    results = staged(rietx, "FAP.XRA", "fluorapatite.cif", instrument, stages)
    assert all(result.convergence.converged for result in results)
    last = results[-1]
    assert last.engine_r["rwp"] < 0.102
    name = last.phases[0].name
    assert parameter(last, f"phase.{name}.cell.a")[0] == pytest.approx(9.3719, abs=0.0010)
    assert parameter(last, f"phase.{name}.cell.c")[0] == pytest.approx(6.8859, abs=0.0008)
    assert all(gain < 1.0 for key, gain in last.gains.items() if last.gain_counts[key] == 0)


def test_nac_of_the_synchrotron(rietx: ProtocolSession) -> None:
    instrument = Instrument(Radiation.XRAY, Geometry.DEBYE_SCHERRER, (EmissionLine(0.413909),), polarization=0.99)
    stages = [
        ("phase.*.scale", "background.*"),
        ("instrument.zero", "phase.*.cell"),
        ("profile.W", "profile.X", "profile.Y"),
        ("phase.*.uiso", "phase.*.atom.*.position"),
    ]
    limits = (3.0, 25.0)
    results = staged(rietx, "11BM_NAC.fxye", "cod_1000236.cif", instrument, stages, two_theta_limits=limits)
    last = results[-1]
    assert last.convergence.converged
    assert last.x.size > 20_000
    assert "gains_thinned" in {notice.code for notice in last.notices}
    name = last.phases[0].name
    assert parameter(last, f"phase.{name}.cell.a")[0] == pytest.approx(10.2505, abs=0.0015)
    # calcium fluoride is in the specimen and not in the model
    assert 0.10 < last.engine_r["rwp"] < 0.16
