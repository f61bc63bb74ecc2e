"""How is a further pattern of one sample named on the command line? ``--with FILE,instrument=FILE,range=19:153``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from autoxrd.cli.reading import limits_pair

if TYPE_CHECKING:
    from autoxrd.agent.inputs import Measured

__all__ = ["further_of"]

_KEYS = (
    "instrument",
    "anode",
    "wavelength",
    "radiation",
    "geometry",
    "monochromator",
    "range",
    "exclude",
    "background_terms",
)
_MARK = re.compile(rf",\s*(?=(?:{'|'.join(_KEYS)})=)")
_KEYED = re.compile(r",\s*([A-Za-z_-]+)=")


def further_of(text: str) -> Measured:
    """Read what ``--with`` says: a file, and after commas how it was measured.

    Raises:
        UserInputError: ``with_invalid``, ``range_invalid``.
    """
    from autoxrd.agent.inputs import Measured

    name, *parts = _MARK.split(text)
    unknown = [key for part in (name, *parts) for key in _KEYED.findall(part)]
    if unknown or not name.strip():
        raise _invalid(f"{unknown[0]!r} is none of {', '.join(_KEYS)}" if unknown else "it names no file")
    given: dict[str, str] = {}
    excluded = []
    for part in parts:
        key, _, value = part.partition("=")
        if key == "exclude":
            excluded.append(value)
        elif key in given:
            raise _invalid(f"{key!r} is given twice")
        given[key] = value.strip()
    return Measured(
        pattern=Path(name.strip()),
        instrument=Path(given["instrument"]) if "instrument" in given else None,
        anode=given.get("anode"),
        wavelength=given.get("wavelength"),
        radiation=given.get("radiation"),
        geometry=given.get("geometry"),
        monochromator_two_theta_deg=_number(given, "monochromator"),
        two_theta_limits=_pair(given["range"]) if "range" in given else None,
        excluded_regions=tuple(_pair(value) for value in excluded),
        background_terms=_count(given),
    )


def _pair(text: str) -> tuple[float, float]:
    return limits_pair(text, "--with")


def _number(given: dict[str, str], key: str) -> float | None:
    if key not in given:
        return None
    try:
        return float(given[key])
    except ValueError:
        raise _invalid(f"{key} is a number, not {given[key][:40]!r}") from None


def _count(given: dict[str, str]) -> int | None:
    value = _number(given, "background_terms")
    if value is not None and value != int(value):
        raise _invalid("background_terms is a whole number")
    return None if value is None else int(value)


def _invalid(why: str) -> Exception:
    from autoxrd.errors import UserInputError

    example = "--with pattern.xye,instrument=neutrons.prm,range=19:153"
    return UserInputError("with_invalid", f"--with is a file and what belongs to it, as in {example}: {why}.")
