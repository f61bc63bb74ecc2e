"""Real patterns whose model is of the wrong kind, and real mixtures among distractors, through the command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.quality import identify, traps

pytestmark = pytest.mark.real

File = Callable[[str], Path]

TRAPS = ("LaMnO3 at 50 K, nuclear model", "Co pattern labelled Cu", "no wavelength given", "unknown sample")
PATTERNS = ("GeO2 + ZnO, partly reacted", "Mn2O3 + LiF", "CPD-1a")


def _data(case: dict[str, str], shared_file: File) -> Path:
    """Return the folder of data sets, or skip where it is not there."""
    return shared_file(case["pattern"]).parents[1]


@pytest.mark.parametrize("name", TRAPS)
def test_a_trap_is_recognised_for_the_right_reason(name: str, shared_file: File, tmp_path: Path) -> None:
    (case,) = [trap for trap in traps.load_traps() if trap["name"] == name]
    outcome = traps.run_trap(case, data=_data(case, shared_file), out=tmp_path / "out")
    assert outcome.right, (outcome.verdict, outcome.codes)


@pytest.mark.parametrize("name", PATTERNS)
def test_the_right_phases_come_first_among_distractors(name: str, shared_file: File) -> None:
    (case,) = [pattern for pattern in identify.load_patterns() if pattern["name"] == name]
    outcome = identify.run_pattern(case, data=_data(case, shared_file))
    assert outcome.held, outcome.first
