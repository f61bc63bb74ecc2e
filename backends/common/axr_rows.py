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


_STRUCTURAL = ("atom", "scale", "extinction", "preferred_orientation", "density", "linear_absorption")


def without_structure(rows: list[dict[str, Any]], bare: list[str]) -> list[dict[str, Any]]:
    """Return parameter rows less what only a structure has, of phases of which the cell alone is known.

    Args:
        rows: of all parameters.
        bare: names of these phases.
    """
    heads = tuple(f"phase.{name}.{part}" for name in bare for part in _STRUCTURAL)
    return [row for row in rows if not row["name"].startswith(heads)] if heads else rows
