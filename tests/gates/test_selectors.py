"""Selectors mean what the grammar says: odd labels and names are exact, fragments mean nothing."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoxrd.errors import PolicyError
from autoxrd.gates.selectors import (
    Selector,
    canonical,
    covers,
    is_selector,
    overlaps,
    parse_parameter,
    parse_selector,
    resolve,
    resolve_all,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("phase.P.atom.O1.uiso", Selector("atom", "uiso", "P", "O1")),
        ("phase.P.atom.O1.position", Selector("atom", "position", "P", "O1")),
        ("phase.P.atom.O1.x", Selector("atom", "position", "P", "O1", "x")),
        ("phase.P.uiso", Selector("atom", "uiso", "P", "*")),
        ("phase.P.scale", Selector("phase", "scale", "P")),
        ("phase.P.cell", Selector("phase", "cell", "P")),
        ("phase.P.cell.alpha", Selector("phase", "cell", "P", component="alpha")),
        ("phase.Ca3-x_2+.size_gauss", Selector("phase", "size_gauss", "Ca3-x_2+")),
        ("background", Selector("background", "background")),
        ("background.*", Selector("background", "background")),
        ("background.07", Selector("background", "background", component="7")),
        ("background.fixed", Selector("background", "background", component="fixed")),
        ("background.peak2_gauss", Selector("background", "background", component="peak2_gauss")),
        ("phase.P.size.axial", Selector("phase", "size", "P", component="axial")),
        ("phase.P.strain.S400", Selector("phase", "strain", "P", component="S400")),
        ("phase.P.preferred_orientation.C_4_m2", Selector("phase", "preferred_orientation", "P", component="C_4_m2")),
        ("phase.P.atom.O1.u12", Selector("atom", "uiso", "P", "O1", "u12")),
        ("instrument.zero", Selector("instrument", "zero")),
        ("sample.offset", Selector("sample", "offset")),
        ("profile.SH/L", Selector("profile", "SH/L")),
        ("absorption", Selector("absorption", "absorption")),
        ("histogram.bank-2.instrument.zero", Selector("instrument", "zero", histogram="bank-2")),
        # names that look like other things
        ("phase.zero.scale", Selector("phase", "scale", "zero")),
        ("phase.atom.atom.atom.uiso", Selector("atom", "uiso", "atom", "atom")),
        ("phase.background.atom.scale.occupancy", Selector("atom", "occupancy", "background", "scale")),
        ("phase.P.atom.O1'.uiso", Selector("atom", "uiso", "P", "O1'")),
        ("phase.P.atom.O-1+_2*.uiso", Selector("atom", "uiso", "P", "O-1+_2*")),
        ("phase.P.atom.O1.2.uiso", Selector("atom", "uiso", "P", "O1.2")),
    ],
)
def test_parsing(text: str, expected: Selector) -> None:
    assert parse_selector(text) == expected
    assert parse_selector(expected.text) == expected


def test_a_quantity_covers_what_it_consists_of_along_directions() -> None:
    known = ["phase.P.size", "phase.P.size.axial", "phase.P.strain.S400", "phase.P.atom.O1.u11", "phase.P.atom.O1.x"]
    assert resolve("phase.P.size", known).names == ("phase.P.size", "phase.P.size.axial")
    assert resolve("phase.*.strain", known).names == ("phase.P.strain.S400",)
    assert resolve("phase.P.uiso", known).names == ("phase.P.atom.O1.u11",)
    assert resolve("phase.P.atom.O1.position", known).names == ("phase.P.atom.O1.x",)
    terms = ["background.0", "background.peak1_position"]
    assert resolve("background.*", terms).names == tuple(terms)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "background.peak_position",
        "background.peak1_colour",
        "phase.P.size.S400",
        "phase.P.strain.S40",
        "phase.P.scale.axial",
        "phase.P.atom.O1.u44",
        "zero",
        "scale",
        "phase",
        "phase.P",
        "phase..scale",
        "phase.P.",
        "phase.P.scales",
        "phase.P.scale.x",
        "phase.P.cell.volume",
        "phase.P.weight_fraction",
        "phase.P.atom.O1",
        "phase.P.atom..uiso",
        "phase.P.atom.O 1.uiso",
        "phase.P.atom.O1.uisos",
        "phase.P Q.scale",
        "phase.P.*",
        "phase.*",
        "*",
        "instrument.*",
        "instrument.zero.x",
        "sample.",
        "profile.u",
        "profile.U.V",
        "background.-1",
        "background.x",
        "background.1.2",
        "background.²",
        "histogram.H",
        "histogram.H.",
        "histogram.H.histogram.H.background",
        "Phase.P.scale",
        " instrument.zero",
        "instrument.zero\n",
        "phase.P.scale\n",
        "x" * 300,
    ],
)
def test_what_is_no_selector(text: str) -> None:
    assert not is_selector(text)
    assert parse_parameter(text) is None
    with pytest.raises(PolicyError) as caught:
        parse_selector(text)
    assert caught.value.code == "selector_invalid"


@pytest.mark.parametrize(
    ("text", "family"),
    [
        ("phase.P.atom.O1.x", "atom.position"),
        ("phase.P.uiso", "atom.uiso"),
        ("phase.P.cell.a", "phase.cell"),
        ("sample.offset_along", "sample.offset"),
        ("sample.displacement", "sample.displacement"),
        ("background.3", "background"),
        ("profile.S/L", "profile.S/L"),
        ("phase.zero.scale", "phase.scale"),
    ],
)
def test_families_are_meanings(text: str, family: str) -> None:
    assert parse_selector(text).family == family


KNOWN = (
    "phase.P.scale",
    "phase.P.cell.a",
    "phase.P.cell.volume",
    "phase.P.atom.O1.x",
    "phase.P.atom.O1.uiso",
    "phase.P.atom.O1*.uiso",
    "phase.P.atom.O12.uiso",
    "phase.Pq.scale",
    "phase.Pq.atom.O1.uiso",
    "background.0",
    "background.10",
    "profile.S/L",
    "profile.H/L",
    "sample.offset_along",
    "sample.offset_across",
    "sample.displacement",
)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("phase.P.scale", ["phase.P.scale"]),
        ("phase.*.scale", ["phase.P.scale", "phase.Pq.scale"]),
        ("phase.P*.scale", ["phase.P.scale", "phase.Pq.scale"]),
        ("phase.*q.scale", ["phase.Pq.scale"]),
        ("phase.P.cell", ["phase.P.cell.a"]),
        ("phase.P.atom.O1.uiso", ["phase.P.atom.O1.uiso"]),
        # the label is O1*, to the letter; O12 is another atom
        ("phase.P.atom.O1*.uiso", ["phase.P.atom.O1*.uiso"]),
        ("phase.Pq.atom.O1*.uiso", ["phase.Pq.atom.O1.uiso"]),
        ("phase.P.atom.*.uiso", ["phase.P.atom.O1.uiso", "phase.P.atom.O1*.uiso", "phase.P.atom.O12.uiso"]),
        ("phase.P.uiso", ["phase.P.atom.O1.uiso", "phase.P.atom.O1*.uiso", "phase.P.atom.O12.uiso"]),
        ("phase.P.atom.O1.position", ["phase.P.atom.O1.x"]),
        ("background", ["background.0", "background.10"]),
        ("background.1", []),
        ("background.10", ["background.10"]),
        ("profile.SH/L", ["profile.S/L", "profile.H/L"]),
        ("profile.*", ["profile.S/L", "profile.H/L"]),
        ("sample.offset", ["sample.offset_along", "sample.offset_across"]),
        ("phase.Q.scale", []),
    ],
)
def test_resolution(text: str, names: list[str]) -> None:
    assert list(resolve(text, KNOWN).names) == names


def test_a_label_that_is_a_star_does_not_narrow_the_wildcard() -> None:
    known = ("phase.P.atom.*.uiso", "phase.P.atom.O1.uiso")
    assert resolve("phase.P.atom.*.uiso", known).names == known


def test_helpers() -> None:
    assert canonical("background") == "background.*"
    assert overlaps("phase.P.uiso", "phase.P.atom.O12.uiso", KNOWN)
    assert not overlaps("phase.P.uiso", "phase.Pq.uiso", KNOWN)
    assert resolve_all(["nonsense", "background", "phase.P.scale"], KNOWN) == (
        "phase.P.scale",
        "background.0",
        "background.10",
    )
    bank = parse_selector("histogram.A*.instrument.zero")
    assert covers(bank, parse_selector("histogram.A1.instrument.zero"))
    assert not covers(bank, parse_selector("histogram.B1.instrument.zero"))
    assert covers(parse_selector("instrument.zero"), parse_selector("histogram.B1.instrument.zero"))


label_text = st.text(alphabet=st.sampled_from("ABCabc0123456789+-_'*"), min_size=1, max_size=8)
phase_text = st.text(alphabet=st.sampled_from("ABCabc0123456789+-_"), min_size=1, max_size=8)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(phase=phase_text, labels=st.lists(label_text, min_size=1, max_size=6, unique=True), pick=st.integers(0, 5))
def test_a_full_name_means_itself_and_nothing_else(phase: str, labels: list[str], pick: int) -> None:
    known = [f"phase.{phase}.atom.{label}.occupancy" for label in labels]
    wanted = known[pick % len(known)]
    found = resolve(wanted, known)
    if labels[pick % len(known)] == "*":
        assert list(found.names) == known
    else:
        assert found.names == (wanted,)
    assert found.selector.text == wanted
