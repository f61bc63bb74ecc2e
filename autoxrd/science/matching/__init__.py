"""Which candidate phases could stand behind a pattern's peaks? Line patterns moved over the data, and sets of them."""

from autoxrd.science.matching.bank import Bank, Match
from autoxrd.science.matching.lines import CandidateLines, lines_of
from autoxrd.science.matching.search import MatchedSet, alike_pairs, first_choice, search_sets, seen_lines
from autoxrd.science.matching.settings import MatchSettings
from autoxrd.science.matching.target import Axis, Target, axis_for, background_under, pattern_target

__all__ = [
    "Axis",
    "Bank",
    "CandidateLines",
    "Match",
    "MatchSettings",
    "MatchedSet",
    "Target",
    "alike_pairs",
    "axis_for",
    "background_under",
    "first_choice",
    "lines_of",
    "pattern_target",
    "search_sets",
    "seen_lines",
]
