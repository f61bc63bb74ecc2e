"""``--with``: a further pattern and what belongs to it, in one word."""

from __future__ import annotations

from pathlib import Path

import pytest

from autoxrd.cli.several import further_of
from autoxrd.errors import UserInputError


def test_a_file_alone() -> None:
    assert further_of("a/b.xye").pattern == Path("a/b.xye")


def test_what_belongs_to_it() -> None:
    found = further_of(
        "n.xye, instrument=i,1.prm,range=19:153,exclude=20:21,exclude=30:31,background_terms=6,radiation=neutron"
    )
    assert found.instrument == Path("i,1.prm")
    assert found.two_theta_limits == (19.0, 153.0)
    assert found.excluded_regions == ((20.0, 21.0), (30.0, 31.0))
    assert found.background_terms == 6
    assert found.radiation == "neutron"


def test_two_lines_of_a_tube_have_commas_of_their_own() -> None:
    found = further_of("x.xy,wavelength=1.5406,1.5444:0.5,geometry=bragg_brentano,monochromator=26.6")
    assert found.wavelength == "1.5406,1.5444:0.5"
    assert found.geometry == "bragg_brentano"
    assert found.monochromator_two_theta_deg == 26.6


@pytest.mark.parametrize(
    "text",
    ["", ",instrument=a.prm", "a.xy,instrumnt=b", "a.xy,anode=Cu,anode=Co", "a.xy,background_terms=many",
     "a.xy,background_terms=3.5", "a.xy,monochromator=graphite"],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused(text: str) -> None:
    with pytest.raises(UserInputError) as caught:
        further_of(text)
    assert caught.value.code == "with_invalid"


def test_a_range_has_two_numbers() -> None:
    with pytest.raises(UserInputError) as caught:
        further_of("a.xy,range=19")
    assert caught.value.code == "range_invalid"
