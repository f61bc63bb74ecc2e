"""Rows of derived quantities, as the protocol has them beside the parameters: of every engine alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from axr_marginal import states_uncertainty

__all__ = ["derived_row", "rows_beside"]


def derived_row(name: str, value: float, esd: float | None, unit: str) -> dict[str, Any]:
    """Return the description of a derived quantity."""
    empty = {"released": False, "lower": None, "upper": None, "derived": True}
    return {"name": name, "value": value, "esd": esd, "unit": unit, **empty}


def rows_beside(stated: Sequence[dict[str, Any]], found: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return the uncertainties of parameters as derived quantities beside them; none is less than its esd.

    Args:
        stated: the rows of the parameters: those with an esd get an uncertainty, and cells that are held.
        found: uncertainty by name.
    """
    return [
        derived_row(f"{row['name']}.uncertainty", max(found[row["name"]], row["esd"] or 0.0), None, row["unit"])
        for row in stated
        if states_uncertainty(row["name"], refined=bool(row["esd"])) and found.get(row["name"])
    ]
