"""``autoxrd skills`` lists, shows, checks and copies; what is wrong ends in one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.skills.sandbox import run_command

TEN = {
    "final-scientific-review", "gsas-ii-workflow", "le-bail-initialization", "pattern-quality-control",
    "residual-diagnosis", "residual-extraction", "result-acceptance", "staged-refinement",
    "structure-validity-checking", "validated-pcr-generation",
}  # fmt: skip
OWN = """---
name: result-acceptance
description: Ours.
metadata:
  version: "7"
  when-to-use: Always.
  inputs: A job.
  outputs: A verdict.
---
# Ours
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    path = tmp_path / "own" / "result-acceptance" / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text(OWN)
    return tmp_path / "own"


def test_the_ten_are_listed_with_version_and_hash(tmp_path: Path) -> None:
    found = {skill["name"]: skill for skill in json.loads(run_command(["skills", "list", "--json"], tmp_path).out)}
    assert set(found) == TEN
    assert all(len(skill["sha256"]) == 64 and skill["version"] for skill in found.values())
    assert all(skill["when_to_use"] and skill["inputs"] and skill["outputs"] for skill in found.values())
    stages = [stage for skill in found.values() for stage in skill["stages"]]
    assert sorted(stages) == ["final_audit", "instrument", "microstructure", "profile_match", "qc", "structure"]


def test_own_skills_are_seen(own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = run_command(["skills", "show", "result-acceptance", "--skills", str(own)], tmp_path)
    assert "# Ours" in shown.out
    monkeypatch.setenv("AUTOXRD_SKILLS", str(own))
    assert "result-acceptance 7  (own)" in run_command(["skills", "list"], tmp_path).out
    checked = run_command(["skills", "check", str(own), "--json"], tmp_path)
    assert json.loads(checked.out)["override"] == ["result-acceptance"]


def test_what_is_wrong_ends_in_one_sentence(own: Path, tmp_path: Path) -> None:
    (own / "result-acceptance" / "SKILL.md").write_text(OWN.replace('"7"', "7"))
    for words, said in (
        (["skills", "check", str(own)], "quotes"),
        (["skills", "check", "nowhere"], "no directory"),
        (["skills", "show", "nothing"], "There is no skill"),
        (["mcp", "--root", "nowhere"], "no directory"),
    ):
        answer = run_command(words, tmp_path)
        assert answer.code == 2
        assert said in answer.err
        assert answer.err.startswith("Error: ")


def test_the_example_overwrites_nothing(tmp_path: Path) -> None:
    assert run_command(["skills", "example", "."], tmp_path).code == 0
    (tmp_path / "zincite.cif").write_text("mine")
    again = run_command(["skills", "example", "."], tmp_path)
    assert again.code == 2
    assert (tmp_path / "zincite.cif").read_text() == "mine"
    shown = run_command(["skills", "show", "staged-refinement", "--example"], tmp_path)
    assert "$ autoxrd step" in shown.out
