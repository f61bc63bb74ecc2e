"""Fixtures that every test package shares."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from autoxrd.engines.gsasii import VARIABLE, GsasiiEngine
from tests.support.engines import need

ROOT = Path(__file__).resolve().parents[1]


def _make_importable(name: str) -> None:
    """Load a package of the repository by its place.

    The repository itself is on no path while the tests run: the installed ``autoxrd`` is what is tested.
    """
    if name not in sys.modules:
        folder = ROOT / name
        spec = importlib.util.spec_from_file_location(
            name, folder / "__init__.py", submodule_search_locations=[str(folder)]
        )
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)


_make_importable("benchmarks")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark a test that asks for a session with GSAS-II, itself or by another fixture."""
    if "gsasii" in getattr(item, "fixturenames", ()):
        item.add_marker(pytest.mark.gsasii)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Hide GSAS-II from tests that are not marked as needing it.

    A test that needs it and does not say so then fails on every machine, not only on those without it.
    """
    with pytest.MonkeyPatch.context() as patch:
        if item.get_closest_marker("gsasii") is None:
            patch.delenv(VARIABLE, raising=False)
        return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what is marked as needing GSAS-II where it cannot be used, before any fixture asks for it."""
    if item.get_closest_marker("gsasii") is not None:
        need(GsasiiEngine())


SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of the real data sets; the test is skipped where it is absent."""
    if not SHARED_DATA.is_dir():
        pytest.skip("the shared data sets are not on this machine")
    return SHARED_DATA


@pytest.fixture(scope="session")
def shared_file() -> Callable[[str], Path]:
    """Path of one shared data file, e.g. ``shared_file("lab-fap-gsas2/FAP.XRA")``; skips where it is absent."""

    def find(relative: str) -> Path:
        path = SHARED_DATA / relative
        if not path.is_file():
            pytest.skip(f"shared data file {relative} is not on this machine")
        return path

    return find
