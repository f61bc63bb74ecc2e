"""How are numbers in an option's text read? ``--range 20,150``."""

from __future__ import annotations

__all__ = ["limits_pair"]


def limits_pair(text: str, option: str) -> tuple[float, float]:
    """Read two numbers of an option, as in ``20,150``."""
    from autoxrd.errors import UserInputError

    parts = text.replace(":", ",").split(",")
    try:
        lower, upper = (float(part) for part in parts)
    except ValueError:
        raise UserInputError(
            "range_invalid", f"{option} needs two numbers, as in {option} 20,150; got {text!r}."
        ) from None
    return lower, upper
