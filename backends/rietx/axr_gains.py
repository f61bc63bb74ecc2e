"""Release gains: what a Gauss-Newton step would win if a selector were freed."""

from __future__ import annotations

from typing import Any

from axr_names import Catalog
from axr_state import State

__all__ = ["release_gains"]


def release_gains(
    state: State, catalog: Catalog, free: list[str]
) -> tuple[dict[str, float], dict[str, int], list[Any]]:
    """Return no gains yet."""
    return {}, {}, []
