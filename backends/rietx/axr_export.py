"""The ``export`` command: files for people and for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from axr_state import State

__all__ = ["KINDS", "export"]

KINDS = ("cif", "pdcif", "hkl", "native", "topas")


def export(state: State, kinds: list[str], folder: Path) -> tuple[list[str], list[Any]]:
    """Write no files yet."""
    return [], []
