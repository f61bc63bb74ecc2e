"""Skills: the form is held to the letter, one's own folder overrides, and the hash names the very text."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from autoxrd.domain.action import Stage
from autoxrd.errors import NotFound, UserInputError
from autoxrd.planners.frontmatter import HeadError, split_head
from autoxrd.planners.skills import load_skills, own_folders, read_skill, skill_for

HEAD = """---
name: {name}
description: Does a thing. Use it when the thing is to be done.
metadata:
  version: "2.1"
  when-to-use: Always.
  inputs: A job.
  outputs: An answer.
{more}---
# Title

Text.
"""


def write(folder: Path, name: str = "own-skill", more: str = "", text: str | None = None) -> Path:
    path = folder / name / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text(HEAD.format(name=name, more=more) if text is None else text, encoding="utf-8")
    return path


def test_the_shipped_skills_read_as_a_yaml_library_reads_them() -> None:
    skills = load_skills()
    assert len(skills) >= 3
    for skill in skills.values():
        text = (skill.folder / "SKILL.md").read_text(encoding="utf-8")
        head, body = split_head(text)
        assert yaml.safe_load(text.split("---\n")[1]) == head
        assert body == skill.text
        assert set(head) <= {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
        assert all(isinstance(value, str) for value in head["metadata"].values())  # type: ignore[union-attr]


def test_the_hash_is_that_of_the_file() -> None:
    skill = load_skills()["result-acceptance"]
    assert skill.sha256 == hashlib.sha256((skill.folder / "SKILL.md").read_bytes()).hexdigest()
    assert skill.reference() == {"name": skill.name, "version": skill.version, "sha256": skill.sha256}


def test_the_stage_finds_its_skill() -> None:
    assert skill_for(Stage.FINAL_AUDIT) == load_skills()["result-acceptance"]


def test_own_skills_add_and_override(tmp_path: Path) -> None:
    write(tmp_path)
    write(tmp_path, "my-acceptance", more="  stages: final_audit\n")
    write(tmp_path, "residual-diagnosis")
    skills = load_skills([tmp_path])
    assert skills["own-skill"].version == "2.1"
    assert not skills["own-skill"].shipped
    assert skills["result-acceptance"].shipped
    assert skill_for(Stage.FINAL_AUDIT, skills) == skills["my-acceptance"]
    # the one that was overridden served these stages; the one in its place does not
    shipped = {stage for stage in Stage if (found := skill_for(stage)) and found.name == "residual-diagnosis"}
    assert shipped
    assert [skill_for(stage, skills) for stage in shipped] == [None] * len(shipped)


def test_folders_come_from_the_environment_and_then_the_command_line(tmp_path: Path) -> None:
    first, second, third = (tmp_path / name for name in "abc")
    assert own_folders({"AUTOXRD_SKILLS": f"{first}:{second}"}, third) == (first, second, third)
    assert own_folders({}) == ()


def test_a_later_folder_wins(tmp_path: Path) -> None:
    write(tmp_path / "one")
    late = write(tmp_path / "two", text=HEAD.format(name="own-skill", more="").replace("2.1", "3"))
    assert load_skills([tmp_path / "one", tmp_path / "two"])["own-skill"].folder == late.parent


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda t: t.replace("---\n", "", 1), "head"),
        (lambda t: t.replace("name: own-skill", "name: other"), "folder"),
        (lambda t: t.replace("name: own-skill", "name: Own_Skill"), "name"),
        (lambda t: t.replace('  version: "2.1"\n', ""), "version"),
        (lambda t: t.replace('"2.1"', "2.1"), "quotes"),
        (lambda t: t.replace('"2.1"', '"two"'), "version"),
        (lambda t: t.replace("  inputs: A job.\n", "  inputs: A job.\n  inputs: Two.\n"), "second time"),
        (lambda t: t.replace("  outputs: An answer.\n", "  outputs: An answer.\n  author: me\n"), "author"),
        (lambda t: t.replace("description: Does", "description: &x Does"), "quotes"),
        (lambda t: t.replace("description: Does a", "description: |\n  Does a"), "quotes"),
        (lambda t: t.replace("  inputs", "    inputs"), "indented"),
        (lambda t: t.replace("metadata:\n", "metadata:\n  stages: midnight\n"), "stages"),
        (lambda t: t.replace("# Title", "Title"), "title"),
        (lambda t: t.replace("Does a thing", "x" * 1100), "description"),
        (lambda t: t + "x" * 70000, "longer"),
        (lambda t: t.replace("Text.", "\udcff"), "UTF-8"),
        (lambda t: t.replace("Does a thing", "Does\x00a thing"), "description"),
    ],
)
def test_a_skill_out_of_form_is_refused_with_the_reason(change, word: str, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    path = write(tmp_path)
    path.write_bytes(change(path.read_text(encoding="utf-8")).encode("utf-8", "surrogateescape"))
    with pytest.raises(UserInputError, match=r"SKILL\.md") as refused:
        load_skills([tmp_path])
    assert refused.value.code == "skill_invalid"
    assert word in refused.value.detail


def test_two_skills_of_a_folder_cannot_serve_one_stage(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write(tmp_path, name, more="  stages: qc\n")
    with pytest.raises(UserInputError, match="both serve the stage qc"):
        load_skills([tmp_path])


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserInputError, match="no directory"):
        load_skills([tmp_path / "nowhere"])
    with pytest.raises(NotFound, match="residual-diagnosis"):
        load_skills()["nothing"]
    with pytest.raises(UserInputError, match="cannot be read"):
        read_skill(tmp_path)


@given(st.text(max_size=300))
def test_any_text_is_a_head_or_is_refused(text: str) -> None:
    """What we take as a head, YAML reads alike."""
    try:
        head, _ = split_head(f"---\n{text}\n---\n")
    except HeadError:
        return
    assert all(isinstance(key, str) for key in head)


@example("a: =")
@example("a: <<")
@example("a: 0x1F")
@example("a: -0b101")
@example("a: 2001-12-14t21:59:43.10Z")
@example("a: 2001-12-14 21:59:43")
@given(st.from_regex(r"[a-z]{1,4}: [ -~]{0,30}", fullmatch=True))
def test_a_line_that_is_taken_means_the_same_in_yaml(line: str) -> None:
    try:
        head, _ = split_head(f"---\n{line}\n---\n")
    except HeadError:
        return
    read = yaml.safe_load(line)
    assert {key: value or None for key, value in head.items()} == {key: value or None for key, value in read.items()}
