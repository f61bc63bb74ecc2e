"""A real `autoxrd serve` with the stub in place of the engine, and a browser that is logged in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.chromium import chromium

from .browsing import Opened, logged_in
from .serving import Service, started


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service whose steps cost 50 ms."""
    with started(tmp_path_factory.mktemp("service")) as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as running:
        yield running


@pytest.fixture
def opened(browser: Any, service: Service) -> Iterator[Opened]:
    """A page of a browser that is logged in; whatever it complains of fails the test."""
    with logged_in(browser, service) as visit:
        yield visit


@pytest.fixture(scope="session")
def small_job(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Pattern and CIF of a small real job."""
    from tests.agent.small import write_inputs

    return write_inputs(tmp_path_factory.mktemp("small"))
