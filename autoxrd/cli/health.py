"""What works on this machine? Engines, planners, the store, and what the report needs."""

from __future__ import annotations

import importlib.util
import platform
import sqlite3
import sys
from dataclasses import asdict, dataclass

from autoxrd.errors import AutoxrdError

__all__ = ["Health", "examine"]

_RESERVED_ENGINES = {
    "fullprof": "FullProf; comes with a later version",
}
_RESERVED_SERVICES = {
    "api": "REST service; comes with a later version",
    "worker": "distributed workers; come with a later version",
}


@dataclass(frozen=True, slots=True)
class Health:
    """One thing that can be used or not, and the version or the reason."""

    kind: str
    name: str
    usable: bool
    text: str

    def as_dict(self) -> dict[str, object]:
        """Return JSON content."""
        return asdict(self)


def examine() -> list[Health]:
    """Examine everything; nothing is started but the engines' own version look-up."""
    checks = [
        Health("python", platform.python_implementation(), sys.version_info >= (3, 11), platform.python_version())
    ]
    checks += _engines()
    checks += _planners()
    checks.append(Health("store", "sqlite", True, f"SQLite {sqlite3.sqlite_version}"))
    checks.append(_module("service", "mcp", "tools for agents (autoxrd mcp); extra mcp"))
    checks += [Health("service", name, False, text) for name, text in _RESERVED_SERVICES.items()]
    checks += [_module("report", "jinja2", "HTML report"), _module("input", "gemmi", "CIF and symmetry")]
    return checks


def _engines() -> list[Health]:
    from autoxrd.engines.registry import engine_names, get_engine

    found = []
    for name in engine_names():
        try:
            usable, text = get_engine(name).available()
        except AutoxrdError as error:
            usable, text = False, error.detail
        found.append(Health("engine", name, usable, text))
    return found + [
        Health("engine", name, False, text) for name, text in _RESERVED_ENGINES.items() if name not in engine_names()
    ]


def _planners() -> list[Health]:
    from autoxrd.planners.llm.client import litellm_available
    from autoxrd.planners.registry import planner_info, planner_names

    found = []
    for info in map(planner_info, planner_names()):
        usable, text = litellm_available() if info.needs_model else (True, "")
        found.append(Health("planner", info.name, usable, f"version {info.version}" + (f"; {text}" if text else "")))
    return found


def _module(kind: str, name: str, purpose: str) -> Health:
    usable = importlib.util.find_spec(name) is not None
    return Health(kind, name, usable, purpose if usable else f"{purpose}: not installed")
