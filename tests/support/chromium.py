"""The browser of the tests: Debian's Chromium without a window, or a reason to skip."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

__all__ = ["chromium"]

_PROGRAM = Path("/usr/bin/chromium")
_ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """Run one, for one module at most: playwright keeps an event loop running that other tests cannot bear."""
    if not _PROGRAM.exists():
        pytest.skip(f"{_PROGRAM} is not installed")
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(_PROGRAM), args=_ARGUMENTS)
        yield browser
        browser.close()
