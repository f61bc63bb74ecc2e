"""The figure of merit of a profile match: high for the right lattice, 2 for one that is not there, however dense."""

from __future__ import annotations

from dataclasses import replace

import pytest

from autoxrd.domain.state import Feature
from autoxrd.gates.matching import MatchLimits
from autoxrd.science.observe import measure
from tests.science.simulate import Phase, base, context, simulate

RIGHT = Phase("p", (7.1, 8.3, 9.2, 90.0, 103.0, 90.0), "P 1 21/c 1")
WRONG = {
    "small": Phase("p", (5.1, 6.3, 7.7, 90.0, 90.0, 90.0), "P 2 2 2"),
    "dense": Phase("p", (10.3, 12.1, 15.2, 90.0, 90.0, 90.0), "P 2 2 2"),
    "skew": Phase("p", (6.1, 7.2, 9.3, 95.0, 101.0, 105.0), "P 1"),
}


def _seen(truth: Phase, fit: Phase, matched: int | None = 50) -> dict[str, Feature]:
    true, model = base(truth, upper=70.0), base(fit, upper=70.0)
    return dict(measure(simulate(true, model), replace(context(model), matched=matched)).features)


def test_the_right_lattice_is_supported() -> None:
    seen = _seen(RIGHT, RIGHT)
    merit = seen["match.figure_of_merit"]
    assert merit.value is not None
    assert merit.value > MatchLimits().merit_warn
    assert merit.reason.startswith("20 of the first 20 observed lines explained")
    assert seen["match.seen_share"].value == pytest.approx(1.0, abs=0.3)


@pytest.mark.parametrize("name", WRONG)
def test_a_lattice_that_is_not_there_is_as_good_as_chance(name: str) -> None:
    merit = _seen(RIGHT, WRONG[name])["match.figure_of_merit"]
    assert merit.value is not None
    assert merit.value < MatchLimits().merit_abstain


def test_a_lattice_of_twice_the_length_has_lines_that_nothing_shows() -> None:
    double = replace(RIGHT, cell=(14.2, 16.6, 18.4, 90.0, 103.0, 90.0), space_group="P 1 2 1")
    one, two = _seen(RIGHT, RIGHT), _seen(RIGHT, double)
    assert (two["match.lines"].value or 0.0) > 2.0 * (one["match.lines"].value or 0.0)
    assert (two["match.figure_of_merit"].value or 0.0) < (one["match.figure_of_merit"].value or 0.0)


def test_a_match_has_no_measure_of_a_structure_and_a_structure_none_of_a_match() -> None:
    matched, refined = _seen(RIGHT, RIGHT), _seen(RIGHT, RIGHT, None)
    structural = {"intensity.angle_trend", "intensity.misfit", "intensity.texture.p", "missing_peak_ratio", "r_bragg.p"}
    assert structural <= set(refined) - set(matched)
    assert not [name for name in refined if name.startswith("match.")]
    assert "unexplained_peak_ratio" in matched
    assert matched["rwp"] == refined["rwp"]
    assert (matched["rexp"].value or 1.0) < (refined["rexp"].value or 0.0)
