"""One engine process for all tests of this package: its imports take two seconds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from autoxrd.domain.pattern import Pattern
from autoxrd.engines.executor import ProtocolSession
from autoxrd.engines.gsasii import GsasiiEngine
from autoxrd.engines.protocol import EngineResult, Snapshot
from autoxrd.engines.rietx import RietxEngine
from tests.engines.samples import FLUORITE, LAB, ZINCITE, simulated, values
from tests.support.engines import need


@pytest.fixture(scope="session")
def rietx() -> Iterator[ProtocolSession]:
    """A session with rietx; skipped where it is not installed."""
    engine = RietxEngine()
    need(engine)
    session = engine.start()
    yield session
    session.close()


@pytest.fixture(scope="session")
def gsasii() -> Iterator[ProtocolSession]:
    """A session with GSAS-II; skipped where it is not configured."""
    session = GsasiiEngine().start()
    yield session
    session.close()


@pytest.fixture(params=["rietx", pytest.param("gsasii", marks=pytest.mark.gsasii)])
def either(request: pytest.FixtureRequest) -> ProtocolSession:
    """A session with each of the two in turn."""
    session: ProtocolSession = request.getfixturevalue(request.param)
    return session


@dataclass(frozen=True)
class Mixture:
    """A simulated two-phase pattern, where it came from, and its root state."""

    pattern: Pattern
    truth: EngineResult
    root: Snapshot


@pytest.fixture(scope="session")
def mixture(rietx: ProtocolSession) -> Mixture:
    """Fluorite and zincite, displaced by 0.1 mm, cells a little off the start values."""
    truth = values(
        phase__fluorite__scale=2e-4,
        phase__zincite__scale=6e-4,
        phase__fluorite__cell__a=5.4648,
        phase__zincite__cell__a=3.2502,
        phase__zincite__cell__c=5.2070,
        sample__displacement=0.1,
        background__0=200.0,
        background__1=-30.0,
    )
    pattern, result = simulated(rietx, LAB, (FLUORITE, ZINCITE), truth)
    return Mixture(pattern, result, rietx.prepare(pattern, LAB, (FLUORITE, ZINCITE), {}))
