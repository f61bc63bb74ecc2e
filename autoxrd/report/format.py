"""How numbers are written: value(esd) by the rule of 19, percentages, signs of the field."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_EVEN, Decimal

__all__ = ["fixed", "number", "pretty", "value_with_esd"]

_RULE = 19
"""IUCr (Acta Cryst. C notes for authors): the s.u. is given with two digits up to 19, else with one."""


def _rounded_esd(esd: float) -> tuple[int, int]:
    """Round an esd by the rule of 19.

    Returns:
        (digits, exponent): the esd is ``digits * 10**exponent``, ``2 <= digits <= 19``.
    """
    exact = Decimal(repr(esd))
    exponent = exact.adjusted() - 1
    digits = int(exact.scaleb(-exponent).to_integral_value(ROUND_HALF_EVEN))
    if digits <= _RULE:
        return digits, exponent
    exponent += 1
    digits = int(exact.scaleb(-exponent).to_integral_value(ROUND_HALF_EVEN))
    # 0.0096 rounds to one digit as 0.010: that is two digits again, and 10 <= 19.
    return digits, exponent


def value_with_esd(value: float, esd: float | None, *, digits: int = 6) -> str:
    """Write a value with its esd in parentheses, as in ``9.37172(4)``.

    Args:
        value: the value.
        esd: one standard uncertainty in the same unit; None, zero or non-finite writes the value alone.
        digits: significant digits of a value without esd.

    Returns:
        The text; ``?`` for a value that is not finite (the CIF sign for unknown).
    """
    if not math.isfinite(value):
        return "?"
    if esd is None or not math.isfinite(esd) or esd <= 0:
        return number(value, digits=digits)
    su, exponent = _rounded_esd(esd)
    if exponent > 0:
        # An esd of 35 on 1234 is written 1230(40): both are rounded to the same place.
        su *= 10**exponent
    quantum = Decimal(1).scaleb(exponent)
    rounded = Decimal(repr(value)).quantize(quantum, ROUND_HALF_EVEN)
    text = f"{rounded:f}" if exponent <= 0 else f"{int(rounded)}"
    if rounded == 0:
        text = text.lstrip("-")
    return f"{text}({su})"


def number(value: float | None, *, digits: int = 6) -> str:
    """Write a number without esd in ``digits`` significant digits, without an exponent where it stays readable."""
    if value is None or not math.isfinite(value):
        return "?"
    if value == 0:
        return "0"
    magnitude = math.floor(math.log10(abs(value)))
    if -5 <= magnitude < 9:
        decimals = max(0, digits - 1 - magnitude)
        text = f"{value:.{decimals}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    return f"{value:.{digits - 1}e}"


def fixed(value: float | None, decimals: int, *, scale: float = 1.0, missing: str = "–") -> str:
    """Write ``scale * value`` with a fixed number of decimals, ``missing`` where there is none."""
    if value is None or not math.isfinite(value):
        return missing
    text = f"{scale * value:.{decimals}f}"
    return text[1:] if text.startswith("-") and not any(c in text for c in "123456789") else text


_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def pretty(value: float | None, esd: float | None = None, *, digits: int = 6) -> str:
    """Write for reading: value(esd), a true minus sign, and a power of ten for very small or large values."""
    if value is None or not math.isfinite(value):
        return "–"
    size = max(abs(value), esd if esd is not None and math.isfinite(esd) else 0.0)
    magnitude = math.floor(math.log10(size)) if size > 0 else 0
    if -4 <= magnitude < 7:
        return value_with_esd(value, esd, digits=digits).replace("-", "−")
    factor = 10.0**-magnitude
    scaled_esd = esd * factor if esd is not None else None
    mantissa = value_with_esd(value * factor, scaled_esd, digits=digits).replace("-", "−")
    return f"{mantissa}×10{str(magnitude).translate(_SUPERSCRIPT)}"
