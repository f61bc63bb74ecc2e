"""Bad input ends with exit code 2 and one clear sentence; no traceback, no folder left half-made."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from autoxrd.cli.standards import standard_of
from autoxrd.errors import UserInputError
from tests.agent.conftest import COMMAND
from tests.agent.small import CIF

GOOD = "".join(f"{x:.3f} {100 + 900 * np.exp(-(((x - 28.3) / 0.1) ** 2)):.0f}\n" for x in np.arange(20, 60, 0.05))


def _lines(change: Callable[[list[str]], list[str]]) -> str:
    return "\n".join(change(GOOD.splitlines())) + "\n"


PATTERNS = {
    "empty": ("", "empty"),
    "html": ("<!DOCTYPE html><html><body>not found</body></html>", "HTML"),
    "nan": (_lines(lambda rows: [*rows[:300], "35.000 nan", *rows[301:]]), "301"),
    "backwards": (_lines(lambda rows: [*rows[:300], *rows[200:]]), "jumps back"),
    "short": ("\n".join(GOOD.splitlines()[:8]), "points"),
}


def _run(directory: Path, pattern: str, cif: str, *more: str) -> subprocess.CompletedProcess[str]:
    (directory / "p.xy").write_text(pattern)
    (directory / "s.cif").write_text(cif)
    words = ["refine", "p.xy", "--structure", "s.cif", "--out", "out", *more]
    return subprocess.run([*COMMAND, *words], cwd=directory, capture_output=True, text=True, timeout=120, check=False)


def _refused(done: subprocess.CompletedProcess[str], directory: Path, *words: str) -> None:
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    sentence = done.stderr.strip()
    assert sentence.startswith("Error: ")
    assert len(sentence.splitlines()) == 1
    for word in words:
        assert word in sentence
    assert not (directory / "out").exists()
    assert not done.stdout.strip()


@pytest.mark.parametrize("name", PATTERNS)
def test_patterns(name: str, tmp_path: Path) -> None:
    text, word = PATTERNS[name]
    _refused(_run(tmp_path, text, CIF, "--anode", "Cu"), tmp_path, "p.xy", word)


def test_missing_pattern(tmp_path: Path) -> None:
    (tmp_path / "s.cif").write_text(CIF)
    words = ["refine", "nowhere.xy", "-s", "s.cif", "--anode", "Cu", "--out", "out"]
    done = subprocess.run([*COMMAND, *words], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    _refused(done, tmp_path, "nowhere.xy")


def test_wavelength_missing(tmp_path: Path) -> None:
    _refused(_run(tmp_path, GOOD, CIF), tmp_path, "--wavelength", "--anode")


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda text: text[: text.index("loop_")], "atoms"),
        (lambda text: text.replace("Ca Ca 0", "Xx Xx 0"), "Xx"),
        (lambda text: text.replace("_cell_length_a 5.4631\n", ""), "cell"),
        (lambda text: text.replace("0 0 0 1 0.006", "0 0 0 1.7 0.006"), "occupancy"),
        (lambda text: "not a cif at all", "s.cif"),
    ],
)
def test_structures(change: Callable[[str], str], word: str, tmp_path: Path) -> None:
    _refused(_run(tmp_path, GOOD, change(CIF), "--anode", "Cu"), tmp_path, word)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (("--anode", "Unobtainium"), "Unobtainium"),
        (("--wavelength", "one"), "one"),
        (("--anode", "Cu", "--range", "80,20"), "--range"),
        (("--anode", "Cu", "--engine", "abacus"), "abacus"),
        (("--anode", "Cu", "--planner", "oracle"), "oracle"),
        (("--anode", "Cu", "--policy", "lenient"), "lenient"),
        (("--anode", "Cu", "--form-factors", "none"), "form"),
    ],
)
def test_options(options: tuple[str, ...], word: str, tmp_path: Path) -> None:
    _refused(_run(tmp_path, GOOD, CIF, *options), tmp_path, word)


def test_a_standard_that_is_no_phase(tmp_path: Path) -> None:
    _refused(_run(tmp_path, GOOD, CIF, "--anode", "Cu", "--standard", "quartz=20"), tmp_path, "quartz", "name one of s")


@pytest.mark.parametrize(
    ("text", "crystallinity", "said"),
    [
        ("fluorite", 100.0, "corundum=20"),
        ("=20", 100.0, "corundum=20"),
        ("fluorite=twenty", 100.0, "corundum=20"),
        ("fluorite=120", 100.0, "120"),
        ("fluorite=20", 0.0, "crystallinity"),
        (None, 90.0, "--standard PHASE"),
    ],
)
def test_standards_that_cannot_be(text: str | None, crystallinity: float, said: str) -> None:
    with pytest.raises(UserInputError, match=said):
        standard_of(text, crystallinity)
