"""The bound of a parameter is the last that names it, by full name or by a set."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from autoxrd.domain.action import Bound
from autoxrd.gates.limits import BoundIndex
from autoxrd.gates.selectors import covers, parse_selector

NAMES = (
    "phase.P.atom.O1.uiso",
    "phase.P.atom.O2.uiso",
    "phase.P.atom.O1.x",
    "phase.P.cell.a",
    "phase.P.size",
    "background.3",
    "sample.offset_along",
    "profile.S/L",
    "instrument.zero",
)
SELECTORS = (
    *NAMES,
    "phase.*.uiso",
    "phase.P.atom.O*.uiso",
    "phase.P.atom.O1.position",
    "phase.P.cell",
    "phase.*.size",
    "background",
    "sample.offset",
    "profile.SH/L",
    "profile.*",
    "nonsense",
)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(SELECTORS), max_size=6), st.sampled_from(NAMES))
def test_the_last_bound_that_names_it(selectors: list[str], name: str) -> None:
    bounds = [Bound(selector=text, lower=-1.0, upper=float(place)) for place, text in enumerate(selectors)]
    expected = None
    for bound in bounds:
        if bound.selector != "nonsense" and covers(parse_selector(bound.selector), parse_selector(name)):
            expected = bound
    assert BoundIndex(bounds).of(name) == expected
