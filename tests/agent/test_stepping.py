"""A person takes steps on a recorded job: through the same gates, in the same record, under another name."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from autoxrd.agent.asking import find_state
from autoxrd.agent.controller import rejudge
from autoxrd.agent.drafting import draft
from autoxrd.agent.stepping import gate_action, gate_attempt, propose, take_step
from autoxrd.domain.action import Action
from autoxrd.errors import NotFound, PolicyError, StorageError, UserInputError
from autoxrd.store.graph import Graph
from autoxrd.store.verify import verify
from tests.agent.checks import check_graph
from tests.agent.conftest import Run


@pytest.fixture
def job(finished: tuple[Path, str], tmp_path: Path) -> Path:
    """A copy of the finished small job."""
    copy = tmp_path / "job"
    shutil.copytree(finished[0], copy)
    return copy


def drafted(job: Path, kind: str, *selectors: str, state: str = "current") -> Action:
    action = draft(job, kind, selectors, state=state).action
    assert action is not None
    return action


def test_a_finished_job_is_gone_on_with_only_when_asked(job: Path, autoxrd: Run) -> None:
    action = drafted(job, "joint").model_dump_json()
    with pytest.raises(StorageError, match="reopen"):
        take_step(job, action)
    stepped = take_step(job, action, by="person", reopen=True)
    assert stepped.by == "person"
    ended = autoxrd("finish", job, "--json")
    summary = json.loads(ended.stdout)
    assert "ended_by_person" in [warning["code"] for warning in summary["warnings"]]
    with Graph.open(job, read_only=True) as graph:
        assert [a.planner["name"] for a in graph.attempts()][-1] == "person"
        assert [e.data.get("by") for e in graph.events() if e.kind == "resumed"] == ["person"]
    check_graph(job)
    again = autoxrd("finish", job)
    assert again.returncode == 1
    assert "is finished" in again.stderr


def test_planners_go_on_from_a_persons_step(inputs: tuple[Path, Path], autoxrd: Run, tmp_path: Path) -> None:
    pattern, cif = inputs
    job = tmp_path / "job"
    start = autoxrd("refine", pattern, "-s", cif, "--anode", "Cu", "--out", job, "--prepare", "--json")
    assert json.loads(start.stdout)["status"] == "root"
    take_step(job, propose(job).model_dump_json())
    done = json.loads(autoxrd("resume", job, "--json").stdout)
    assert done["quality"]["gof"] < 1.1
    with Graph.open(job, read_only=True) as graph:
        names = [a.planner["name"] for a in graph.attempts()]
    assert names[0] == "person"
    assert set(names[1:]) == {"rules"}
    assert verify(job, judge=rejudge).ok


def test_every_recorded_attempt_is_judged_again_as_it_was(job: Path) -> None:
    with Graph.open(job, read_only=True) as graph:
        attempts = graph.attempts()
    for attempt in attempts:
        judged = gate_attempt(job, attempt.ordinal)
        assert judged.accepted == attempt.accepted
        assert tuple(judged.reasons) == attempt.decision.reasons
    with pytest.raises(NotFound, match="no attempt 999"):
        gate_attempt(job, 999)


def test_states_are_named_in_short(job: Path) -> None:
    with Graph.open(job, read_only=True) as graph:
        final = find_state(graph)
        assert find_state(graph, "final") == find_state(graph, final[:6]) == final
        assert find_state(graph, "root") == graph.root()
        for unknown in ("", "f", "ffffffff", "../" + final, "current "):
            with pytest.raises(NotFound, match="no state"):
                find_state(graph, unknown)


def test_what_may_not_be_tried_is_refused_before_and_recorded_as_refused(job: Path) -> None:
    action = drafted(job, "lattice", "phase.fluorite.cell", state="root")
    assert gate_action(job, action.model_dump_json()).legal
    claim = action.evidence[0].model_copy(update={"value": 2 * action.evidence[0].value})
    lie = action.model_copy(update={"evidence": (claim,)})
    gated = gate_action(job, lie.model_dump_json())
    assert not gated.legal
    assert list(gated.reasons) == ["evidence_not_supported"]
    stepped = take_step(job, lie.model_dump_json(), reopen=True)
    assert not stepped.accepted
    assert stepped.candidate is None
    assert "repeat_of_rejected" in gate_action(job, lie.model_dump_json()).reasons


def test_a_rejected_state_is_no_start(job: Path) -> None:
    action = drafted(job, "lattice", "phase.fluorite.cell", state="root")
    told = action.predictions[-1]
    assert told.metric == "rwp"
    with Graph.open(job, read_only=True) as graph:
        rwp = graph.state(action.parent).quality.rwp
    much = told.model_copy(update={"minimum_effect": 0.99 * rwp})
    bold = action.model_copy(update={"predictions": (*action.predictions[:-1], much)})
    stepped = take_step(job, bold.model_dump_json(), reopen=True)
    assert list(stepped.reasons) == ["prediction_not_met"]
    assert stepped.candidate is not None
    text = action.model_copy(update={"parent": stepped.candidate}).model_dump_json()
    for ask in (gate_action, take_step):
        with pytest.raises(PolicyError, match="was rejected"):
            ask(job, text)


@pytest.mark.parametrize(
    ("kind", "selectors", "word"),
    [
        ("levitation", ("phase.fluorite.cell",), "no kind"),
        ("lattice", (), "Name what"),
        ("lattice", ("phase.fluorite.cell.a",), "gain"),
        ("lattice", ("phase.absent.cell",), "no parameter"),
        ("lattice", ("__import__('os')",), "no parameter"),
        ("scale", ("phase.fluorite.scale",), "free already"),
    ],
)
def test_a_draft_needs_something_on_record(job: Path, kind: str, selectors: tuple[str, ...], word: str) -> None:
    with pytest.raises(UserInputError, match=word):
        draft(job, kind, selectors)


def test_the_command_says_what_to_do(job: Path, autoxrd: Run, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}")
    for words, code, said in (
        (("gate", job), 2, "--attempt"),
        (("gate", job, tmp_path / "absent.json"), 2, "cannot be read"),
        (("gate", job, tmp_path / "a.json"), 2, "propose --json"),
        (("step", job, tmp_path / "a.json", "--by", "ghost"), 2, "person or agent"),
        (("propose", tmp_path), 2, "graph.sqlite"),
    ):
        done = autoxrd(*words)
        assert done.returncode == code, done.stderr
        assert said in done.stderr
        assert "Traceback" not in done.stderr
