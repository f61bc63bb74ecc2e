"""The table of states, its page, and that nothing else changes a state."""

from __future__ import annotations

import ast
import itertools
from pathlib import Path

import pytest

from autoxrd.domain.lifecycle import FINAL, TRANSITIONS, JobState, Trigger, allowed, table, target
from autoxrd.errors import Conflict

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_shows_the_table() -> None:
    assert (ROOT / "docs" / "job-life.md").read_text(encoding="utf-8").endswith(table())


@pytest.mark.parametrize(("state", "trigger"), list(itertools.product(JobState, Trigger)))
def test_every_pair_leads_where_the_table_says_or_is_refused(state: JobState, trigger: Trigger) -> None:
    if allowed(state, trigger):
        assert target(state, trigger) is TRANSITIONS[trigger].target
        return
    with pytest.raises(Conflict) as error:
        target(state, trigger)
    assert error.value.code == "job_state"
    assert state.value in error.value.detail


def test_nothing_happens_to_a_job_that_is_over_unless_a_person_asks() -> None:
    asked = {Trigger.RESUME, Trigger.RETRY}
    for state in FINAL:
        assert {t for t in Trigger if allowed(state, t)} <= asked
    assert not any(allowed(JobState.COMPLETED, t) for t in Trigger)


def test_every_state_can_be_reached_and_left() -> None:
    reached = {row.target for row in TRANSITIONS.values()}
    assert reached | {JobState.QUEUED} == set(JobState)
    left = set().union(*(row.sources for row in TRANSITIONS.values()))
    assert left == set(JobState) - {JobState.COMPLETED}


def test_one_module_writes_the_state_of_a_job() -> None:
    writers = []
    for path in (ROOT / "autoxrd").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            targets = node.targets if isinstance(node, ast.Assign) else []
            if any(isinstance(t, ast.Attribute) and t.attr == "state" and "job" in ast.unparse(t) for t in targets):
                writers.append(path.relative_to(ROOT).as_posix())
    assert writers == ["autoxrd/store/service/transition.py"]
