from __future__ import annotations

import json
import math
import resource
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from autoxrd.domain.action import ActionKind
from autoxrd.errors import NotFound, StorageError
from autoxrd.primitives import canonical_json
from autoxrd.store.graph import DATABASE_NAME, Graph
from autoxrd.store.records import NodeStatus
from autoxrd.store.rows import recorded_form

from .factory import (
    POLICY,
    artifact_store,
    build_graph,
    failed_decision,
    judge,
    make_action,
    make_job,
    make_state,
    try_step,
)


def test_a_graph_reads_back_what_was_recorded(tmp_path: Path) -> None:
    with build_graph(tmp_path) as graph:
        states, attempts = graph.states(), graph.attempts()
        finish = graph.finished()
    with Graph.open(tmp_path) as again:
        assert again.states() == states
        assert again.attempts() == attempts
        assert again.finished() == finish
        assert again.job == make_job(artifact_store(tmp_path))
        assert [n.status for n in states] == [
            NodeStatus.ROOT,
            NodeStatus.ACCEPTED,
            NodeStatus.REJECTED,
            NodeStatus.ACCEPTED,
            NodeStatus.ACCEPTED,
            NodeStatus.REJECTED,
        ]
        assert [a.accepted for a in attempts] == [True, False, True, True, False, False]
        assert attempts[-1].error == {"code": "engine_timeout", "detail": "The engine passed its wall clock."}
        assert again.artifacts.get(attempts[-1].files["log"]) == b"cycle 1\ncycle 2\n"
        assert states[0].telemetry["seconds"] == 2.5
        assert states[3].state == make_state(again.artifacts, 3, rwp=0.3, features=80, parameters=80)


def test_the_accepted_path_leads_from_the_root_to_the_current_state(tmp_path: Path) -> None:
    with build_graph(tmp_path) as graph:
        path = graph.accepted_path()
        assert [state.quality.rwp for _, state in path] == [0.4, 0.3, 0.2]
        assert [a.ordinal for a, _ in path] == [1, 3, 4]
        assert path[0][0].parent == graph.root()
        assert path[-1][0].candidate == graph.current()
        assert graph.leaves() == [graph.current()]
        assert len(graph.accepted_path(path[1][0].candidate)) == 2
        rejected = graph.attempts()[1].candidate
        assert rejected is not None
        with pytest.raises(NotFound, match="rejected"):
            graph.accepted_path(rejected)


def test_branches_have_several_leaves(tmp_path: Path) -> None:
    with build_graph(tmp_path, finish=False) as graph:
        first = graph.accepted_path()[0][0].candidate
        branch = try_step(graph, 99, rwp=0.25, parent=first)
        assert set(graph.leaves()) == {graph.accepted_path(branch)[-1][0].candidate, graph.attempts()[3].candidate}
        assert graph.current() == branch


def test_equal_input_gives_equal_hashes_and_telemetry_does_not_count(tmp_path: Path) -> None:
    exports, texts = [], []
    for name in ("one", "two"):
        with build_graph(tmp_path / name) as graph:
            exports.append(graph.export())
            texts.append([a.telemetry for a in graph.attempts()])
    assert canonical_json(exports[0]) == canonical_json(exports[1])
    assert texts[0] != texts[1]  # the clock is there


def test_the_export_names_every_artifact_once(tmp_path: Path) -> None:
    with build_graph(tmp_path) as graph:
        document = graph.export()
        assert document["schema"] == "autoxrd.graph/1"
        assert document["graph_root"] == graph.root_hash()
        assert [a["sha256"] for a in document["artifacts"]] == sorted(graph.artifacts.ids())
        assert document["finish"]["final_state"] == graph.current()
        assert json.loads(json.dumps(document)) == document


def test_an_equal_candidate_of_one_parent_is_one_node(tmp_path: Path) -> None:
    with build_graph(tmp_path, finish=False) as graph:
        before = len(graph.states())
        parent = graph.current()
        one = try_step(graph, 50, rwp=0.9, parent=parent)
        assert graph.node(one).status is NodeStatus.REJECTED
        two = try_step(graph, 50, rwp=0.9, parent=parent, rationale="once more")
        assert one == two
        assert len(graph.states()) == before + 1
        assert len({a.id for a in graph.attempts()}) == len(graph.attempts())


def test_the_state_id_depends_on_the_accepted_path_only(tmp_path: Path) -> None:
    """So a replay of the path, without the rejected attempts, gives the same ids."""
    with build_graph(tmp_path / "full") as full:
        path = full.accepted_path()
    store = artifact_store(tmp_path / "replay")
    with Graph.create(tmp_path / "replay", make_job(store)) as replay:
        assert replay.current() is None
        replay.add_root(make_state(store, 0, rwp=0.6, features=80, parameters=80))
        for seed in (1, 3, 4):
            try_step(replay, seed, rwp={1: 0.4, 3: 0.3, 4: 0.2}[seed])
        assert [a.candidate for a, _ in replay.accepted_path()] == [a.candidate for a, _ in path]


def test_non_finite_figures_are_stored_as_unknown_or_refused(tmp_path: Path) -> None:
    store = artifact_store(tmp_path)
    with Graph.create(tmp_path, make_job(store)) as graph:
        state = make_state(store, 1)
        infinite = state.complexity.model_copy(update={"condition_number": math.inf})
        open_ended = state.model_copy(update={"complexity": infinite})
        bad = state.model_copy(update={"quality": state.quality.model_copy(update={"rwp": math.nan})})
        with pytest.raises(StorageError, match=r"quality\.rwp") as caught:
            graph.add_root(bad)
        assert caught.value.code == "not_recordable"
        root = graph.add_root(open_ended)
        assert graph.state(root).complexity.condition_number is None
        assert graph.state(root) == recorded_form(open_ended)


def test_one_process_at_a_time(tmp_path: Path) -> None:
    with build_graph(tmp_path) as graph:
        with pytest.raises(StorageError, match="Wait until it ends") as caught:
            Graph.open(tmp_path)
        assert caught.value.code == "job_locked"
        with Graph.open(tmp_path, read_only=True) as reader:
            assert reader.root_hash() == graph.root_hash()
            with pytest.raises(StorageError) as refused:
                reader.add_event("note")
            assert refused.value.code == "graph_read_only"
    Graph.open(tmp_path).close()


def test_the_lock_ends_with_its_process(tmp_path: Path) -> None:
    build_graph(tmp_path).close()
    script = (
        "import sys, time; from pathlib import Path; from autoxrd.store.graph import Graph\n"
        "g = Graph.open(Path(sys.argv[1])); print('open', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"open\n"
        with pytest.raises(StorageError, match=str(child.pid)):
            Graph.open(tmp_path)
        child.kill()
    Graph.open(tmp_path).close()


@pytest.mark.parametrize("table", ["jobs", "states", "edges", "events"])
def test_the_database_refuses_changes(tmp_path: Path, table: str) -> None:
    build_graph(tmp_path).close()
    connection = sqlite3.connect(tmp_path / DATABASE_NAME)
    try:
        for statement in (
            f"UPDATE {table} SET telemetry = '{{}}'",
            f"DELETE FROM {table}",
            f"INSERT OR REPLACE INTO {table} SELECT * FROM {table}",
        ):
            with pytest.raises(sqlite3.IntegrityError, match="append_only"):
                connection.execute(statement)
    finally:
        connection.close()


def test_what_cannot_be_recorded_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    with build_graph(tmp_path, finish=False) as graph:
        root, current = graph.root(), graph.current()
        assert root is not None
        assert current is not None
        before = graph.export()
        state = make_state(graph.artifacts, 70, rwp=0.1)
        action = make_action(current)
        accepted = judge(action, graph.state(current), state, POLICY)
        rejected = graph.attempts()[1].candidate
        assert rejected is not None

        def code(call: object, *args: object, **kwargs: object) -> str:
            with pytest.raises((StorageError, NotFound)) as caught:
                call(*args, **kwargs)  # type: ignore[operator]
            return str(caught.value.code)

        planner = {"name": "rules"}
        assert code(graph.add_root, state) == "root_exists"
        assert code(graph.record, "0" * 16, action, failed_decision(), planner=planner) == "state_unknown"
        assert code(graph.record, current, action, accepted, planner=planner) == "accepted_without_candidate"
        assert code(graph.record, root, action, accepted, state, planner=planner) == "accepted_without_candidate"
        elsewhere = make_action(rejected)
        assert code(graph.record, rejected, elsewhere, failed_decision(), planner=planner) == "parent_rejected"
        gone = state.model_copy(update={"arrays": "0" * 64})
        assert code(graph.record, current, action, accepted, gone, planner=planner) == "artifact_missing"
        strange = {"name": "rules", "when": object()}
        assert code(graph.record, current, action, accepted, state, planner=strange) == "not_recordable"
        assert code(graph.record, current, action, accepted, state, planner={"name": "\ud800"}) == "not_recordable"
        assert code(graph.add_event, "finished") == "event_unknown"
        assert code(graph.finish, rejected, {}) == "path_unknown"
        assert graph.export() == before


def test_a_finished_job_is_closed_until_it_is_resumed(tmp_path: Path) -> None:
    with build_graph(tmp_path) as graph:
        with pytest.raises(StorageError, match="finished"):
            try_step(graph, 80, rwp=0.1)
        graph.add_event("note", {"text": "looked at"})
        assert graph.finished() is not None
        graph.add_event("resumed")
        assert graph.finished() is None
        try_step(graph, 80, rwp=0.1)
        graph.finish(graph.current(), {"verdict": "accepted"})
        assert [e.kind for e in graph.events()] == ["started", "finished", "note", "resumed", "finished"]


def test_create_refuses_a_directory_that_has_a_job(tmp_path: Path) -> None:
    with build_graph(tmp_path):
        pass
    with pytest.raises(StorageError, match="already holds a job"):
        Graph.create(tmp_path, make_job(artifact_store(tmp_path)))
    with pytest.raises(NotFound, match="give the directory of a job"):
        Graph.open(tmp_path / "nowhere")


def test_a_closed_directory_is_plain_files(tmp_path: Path) -> None:
    build_graph(tmp_path).close()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["artifacts", DATABASE_NAME, "job.lock"]


def test_a_file_that_is_no_database_is_said_to_be_damaged(tmp_path: Path) -> None:
    (tmp_path / DATABASE_NAME).write_bytes(b"SQLite format 3\x00" + b"\xff" * 4000)
    with pytest.raises(StorageError, match="restore it from a copy"):
        Graph.open(tmp_path)


def test_a_full_disk_is_reported_and_loses_only_the_step(tmp_path: Path) -> None:
    with build_graph(tmp_path, finish=False) as graph:
        before = graph.root_hash()
        make_state(graph.artifacts, 81, rwp=0.1)
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, ((tmp_path / DATABASE_NAME).stat().st_size, hard))
        try:
            with pytest.raises(StorageError, match="then resume") as caught:
                try_step(graph, 81, rwp=0.1)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert caught.value.code == "graph_not_written"
        assert graph.root_hash() == before
        try_step(graph, 81, rwp=0.1)


def test_kinds_and_planners_are_columns(tmp_path: Path) -> None:
    build_graph(tmp_path).close()
    connection = sqlite3.connect(tmp_path / DATABASE_NAME)
    rows = connection.execute("SELECT kind, planner, status FROM edges ORDER BY ordinal").fetchall()
    connection.close()
    assert rows[-1] == (ActionKind.JOINT, "rules", "rejected")
