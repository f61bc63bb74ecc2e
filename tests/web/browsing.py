"""A page in headless Chromium: what it says, what it asks for, and what axe finds wrong with it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Self

from axe_playwright_python.sync_playwright import Axe

from .serving import Service

HANDLERS = """[...document.querySelectorAll("*")]
    .filter(e => [...e.attributes].some(a => a.name.startsWith("on"))).length"""
HOSTILE = "<img src=x onerror=window.hacked=1>\"'&{{7*7}}"


@dataclass
class Opened:
    """A page with its console and its requests."""

    page: Any
    service: Service
    console: list[str] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)
    """Parts of console lines that the test provokes."""

    @classmethod
    def at(cls, browser: Any, service: Service, *, width: int = 1280, **context: Any) -> Self:
        """Open an empty page in a browser of its own, with its own cookies."""
        page = browser.new_context(viewport={"width": width, "height": 900}, **context).new_page()
        page.set_default_timeout(60_000)
        made = cls(page, service)
        page.on("console", lambda m: made.console.append(m.text) if m.type in {"error", "warning"} else None)
        page.on("pageerror", lambda e: made.console.append(str(e)))
        page.on("request", lambda r: made.strangers.append(r.url) if not _ours(r.url, service.url) else None)
        return made

    def go(self, path: str) -> None:
        """Open a page of the service."""
        self.page.goto(self.service.url + path)

    def log_in(self, key: str | None = None) -> None:
        """Log in by the form."""
        self.go("/login")
        self.page.fill("#key", key or self.service.key)
        self.page.click("text=Log in >> visible=true >> nth=-1")
        self.page.wait_for_url("**/jobs")

    def faults(self) -> list[str]:
        """Return what axe calls serious or critical, by rule and place."""
        found = Axe().run(self.page).response["violations"]
        return [
            f"{v['id']}: {node['target']}: {node['html'][:120]}"
            for v in found
            if v["impact"] in {"serious", "critical"}
            for node in v["nodes"]
        ]

    def overflow(self) -> int:
        """Return by how many pixels the page is wider than the window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - innerWidth"))

    def sound(self) -> None:
        """Check what must hold of every page."""
        faults = self.faults()
        assert not faults, faults
        assert self.overflow() <= 0
        assert self.page.evaluate("window.hacked") is None
        assert self.page.locator("script:not([src]):not([type='application/json'])").count() == 0
        assert self.page.evaluate(HANDLERS) == 0

    @property
    def complaints(self) -> list[str]:
        """Return unexpected lines of the console, and requests that left the service."""
        odd = [line for line in self.console if not any(part in line for part in self.expected)]
        return odd + self.strangers

    def close(self) -> None:
        """Close the page with its cookies."""
        self.page.context.close()


@contextlib.contextmanager
def logged_in(browser: Any, service: Service, **context: Any) -> Iterator[Opened]:
    """Open a page that is logged in; whatever it complains of fails the test."""
    visit = Opened.at(browser, service, **context)
    visit.log_in()
    yield visit
    visit.close()
    assert visit.complaints == []


def _ours(url: str, base: str) -> bool:
    return url.startswith((base, "data:", "blob:", "about:"))
