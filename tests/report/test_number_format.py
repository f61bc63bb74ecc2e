"""value(esd) by the IUCr rule of 19."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoxrd.report.format import fixed, number, pretty, value_with_esd


@pytest.mark.parametrize(
    ("value", "esd", "text"),
    [
        (9.371723, 4e-5, "9.37172(4)"),
        (6.885, 0.00186, "6.8850(19)"),
        (6.885, 0.00196, "6.885(2)"),
        (0.5, 0.0096, "0.500(10)"),
        (1234.2, 13.1, "1234(13)"),
        (1234.2, 35.1, "1230(40)"),
        (-0.12, 0.019, "-0.120(19)"),
        (-1e-5, 0.02, "0.00(2)"),
        (0.0, 1e-3, "0.0000(10)"),
        (90.0, None, "90"),
        (90.0, 0.0, "90"),
        (90.0, math.nan, "90"),
        (1 / 3, None, "0.333333"),
        (math.nan, 0.1, "?"),
    ],
)
def test_value_with_esd(value: float, esd: float | None, text: str) -> None:
    assert value_with_esd(value, esd) == text


@given(st.floats(-1e6, 1e6), st.floats(1e-8, 1e4))
def test_esd_has_two_digits_up_to_19_and_the_value_is_rounded_with_it(value: float, esd: float) -> None:
    text = value_with_esd(value, esd)
    match = re.fullmatch(r"-?(\d+)(?:\.(\d+))?\((\d+)\)", text)
    assert match
    decimals, su = len(match[2] or ""), int(match[3])
    digits = str(su) if decimals else str(su).rstrip("0") or "0"
    assert int(digits) <= 19
    assert len(digits) <= 2
    scale = 10.0**-decimals
    # Half a unit of the last place that the rule keeps.
    assert abs(su * scale - esd) <= 0.27 * esd
    assert abs(float(text.split("(")[0]) - value) <= 0.51 * max(scale, su * scale / 2) + 1e-9 * abs(value)


def test_other_forms() -> None:
    assert pretty(1.234e-5, 1.9e-8) == "1.2340(19)×10⁻⁵"
    assert pretty(-0.0512, 0.0011) == "−0.0512(11)"
    assert pretty(1e-6) == "1×10⁻⁶"
    assert pretty(None) == "–"
    assert fixed(0.08169, 2, scale=100) == "8.17"
    assert fixed(-0.0001, 2) == "0.00"
    assert fixed(None, 2) == "–"
    assert number(1.5405929, digits=8) == "1.5405929"
    assert number(0.0) == "0"
