"""Every command of every worked example, and every case of every tests.yaml, of every shipped skill."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from autoxrd.planners.skills import load_skills
from autoxrd.resources import resource_path
from benchmarks import example_pattern
from tests.skills.comparing import decimals, differences, states_number
from tests.skills.documents import Case, console_commands, look_up, prose, read_cases
from tests.skills.sandbox import Kitchen, Sandbox, run_command

SKILLS = load_skills()
EXAMPLE = resource_path("skills/example")
CASES = [
    pytest.param(name, case, id=f"{name}-{number}")
    for name in SKILLS
    for number, case in enumerate(read_cases(SKILLS[name].folder / "tests.yaml"), 1)
]


@pytest.fixture(scope="module")
def kitchen(tmp_path_factory: pytest.TempPathFactory) -> Kitchen:
    return Kitchen(tmp_path_factory.mktemp("kitchen"))


@pytest.fixture
def sandbox(tmp_path: Path, kitchen: Kitchen) -> Sandbox:
    return Sandbox(tmp_path, kitchen)


EXAMPLES = [
    pytest.param(
        path, id=f"{name}-{path.stem}", marks=[pytest.mark.gsasii, pytest.mark.slow] if path.stem == "gsasii" else []
    )
    for name in SKILLS
    for path in sorted((SKILLS[name].folder / "references").glob("*.md"))
]


@pytest.mark.parametrize("path", EXAMPLES)
def test_the_worked_example_gives_what_it_states(path: Path, sandbox: Sandbox) -> None:
    text = path.read_text(encoding="utf-8")
    seen = truth()
    commands = list(console_commands(text))
    assert commands
    for command in commands:
        answer = sandbox.run(command.line)
        seen += decimals(answer.out + answer.err)
        assert "Traceback" not in answer.err
        difference = differences(command.stated, answer.out if answer.out else answer.err)
        assert difference is None, f"$ {command.line}\n{difference}"
    assert [number for number in decimals(prose(text)) if not states_number(number, seen)] == []


def truth() -> list[str]:
    """Numbers that the example's pattern was made with."""
    return [f"{example_pattern.DISPLACEMENT_MM}", *example_pattern.true_cells()]


@pytest.mark.parametrize(("name", "case"), CASES)
def test_the_claim_holds(name: str, case: Case, sandbox: Sandbox) -> None:
    said = " ".join(SKILLS[name].text.split())
    assert " ".join(case.claim.split()) in said, "a claim is quoted from the skill word for word"
    run_command(["skills", "example", "."], sandbox.folder)
    for file, made in case.files.items():
        (sandbox.folder / file).write_text(made.make(EXAMPLE), encoding="utf-8")
    for line in case.setup:
        sandbox.run(line)
    answer = sandbox.run(case.run)
    everything = answer.out + answer.err
    assert answer.code == case.exit, everything
    assert "Traceback" not in everything
    for words in case.says:
        assert words in everything
    for words in case.silent:
        assert words not in everything
    assert [file for file in case.absent if (sandbox.folder / file).exists()] == []
    for path, wanted in case.json_.items():
        check_value(look_up(json.loads(answer.out), path), wanted, path)


def check_value(real: object, wanted: object, path: str) -> None:
    """Compare a value: numbers to a unit of the last stated digit, lists by what they have to hold."""
    if isinstance(wanted, list):
        assert isinstance(real, list), path
        assert wanted or not real, f"{path} is not empty: {real}"
        assert [item for item in wanted if item not in real] == [], f"{path}: {real}"
    elif isinstance(wanted, float):
        assert isinstance(real, int | float), path
        assert states_number(repr(wanted), [real]), f"{path}: {real}"
    else:
        assert real == wanted, path


@pytest.mark.parametrize("name", SKILLS)
def test_the_skill_is_whole(name: str) -> None:
    skill = SKILLS[name]
    assert skill.shipped
    assert "references/example.md" in skill.text
    assert "What the tool cannot do" in skill.text
    assert len(read_cases(skill.folder / "tests.yaml")) >= 3
    assert len(skill.text) < 6000, "a skill is given to a model beside the observation: about 1500 tokens"
