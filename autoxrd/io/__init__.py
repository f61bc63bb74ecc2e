"""Reading patterns, instruments and structures; artifacts by SHA-256.

The public names load on first use, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from autoxrd.io.cif import read_structures
    from autoxrd.io.naming import name_structures
    from autoxrd.io.patterns import read_pattern

__all__ = ["name_structures", "read_pattern", "read_structures"]

_HOME = {
    "name_structures": "autoxrd.io.naming",
    "read_pattern": "autoxrd.io.patterns",
    "read_structures": "autoxrd.io.cif",
}


def __getattr__(name: str) -> object:
    """Load a public name from its module."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
