from __future__ import annotations

import json
import shutil
import sqlite3
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from autoxrd.errors import NotFound
from autoxrd.primitives import canonical_json, sha256_hex
from autoxrd.store.document import verify_export
from autoxrd.store.graph import DATABASE_NAME, Graph
from autoxrd.store.hashing import chain_hash, row_hash, text_hash
from autoxrd.store.verify import VerifyReport, verify

from .factory import build_graph, judge, make_state, try_step


@contextmanager
def raw(directory: Path, *, keep_triggers: bool = True) -> Iterator[sqlite3.Connection]:
    """Write to the tables as an attacker would: triggers away, change, triggers back as they were."""
    with closing(sqlite3.connect(directory / DATABASE_NAME)) as connection:
        triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        yield connection
        for _, sql in triggers if keep_triggers else ():
            connection.execute(sql)
        connection.commit()


def write_documents(directory: Path) -> None:
    """What a report leaves beside the graph, as far as a verification reads it."""
    with Graph.open(directory, read_only=True) as graph:
        export, finish = graph.export(), graph.finished()
        report = {"graph_root": graph.root_hash(), "final_state": finish.final_state if finish else None}
    files = {"graph.json": canonical_json(export).encode() + b"\n", "report.json": json.dumps(report).encode()}
    listed = {name: {"sha256": sha256_hex(data), "size": len(data)} for name, data in files.items()}
    manifest = json.dumps({"schema": "autoxrd.bundle/1", "files": listed}).encode()
    for name, data in {**files, "manifest.json": manifest}.items():
        (directory / name).write_bytes(data)
    with zipfile.ZipFile(directory / "bundle.zip", "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, data in {**files, "manifest.json": manifest}.items():
            bundle.writestr(name, data)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("sound")
    build_graph(directory).close()
    write_documents(directory)
    return directory


@pytest.fixture
def job(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "job"))


def codes(directory: Path) -> frozenset[str]:
    return verify(directory, judge=judge).codes


def test_a_sound_record_passes(job: Path) -> None:
    report = verify(job, judge=judge)
    assert report == VerifyReport(
        findings=(),
        n_states=6,
        n_edges=6,
        n_events=2,
        n_artifacts=21,
        graph_root=report.graph_root,
        finished=True,
        judged=5,
    )
    assert report.ok
    assert sorted(p.name for p in job.iterdir()) == sorted(
        ["artifacts", "bundle.zip", "graph.json", DATABASE_NAME, "job.lock", "manifest.json", "report.json"]
    )


def test_it_works_while_the_job_runs_and_after_a_cut(tmp_path: Path) -> None:
    with build_graph(tmp_path, finish=False) as graph:
        report = verify(tmp_path, judge=judge)
        assert report.ok
        assert [f.code for f in report.findings] == ["job_open"]
        graph.artifacts.put(b"of a step that was never recorded")
        assert [f.code for f in verify(tmp_path, judge=judge).findings] == ["job_open", "artifact_unnamed"]


def test_without_a_judge_it_says_so(job: Path) -> None:
    assert verify(job, judge=None).judged is None


def test_a_directory_without_graph_is_no_finding_but_an_error(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        verify(tmp_path, judge=None)


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("DELETE FROM edges WHERE ordinal = 2", "ordinal_gap"),
        ("DELETE FROM states WHERE ordinal = 2", "reference_dangling"),
        ("DELETE FROM edges WHERE ordinal = 6", "rows_missing"),
        ("DELETE FROM events WHERE ordinal = 1", "ordinal_gap"),
        ("DELETE FROM jobs", "job_rows"),
        ("INSERT INTO jobs SELECT 'x', 'a', 'b', 'c', 'd', 'e', 'f'", "job_rows"),
        ("UPDATE edges SET ordinal = 17 - ordinal WHERE ordinal > 4", "ordinal_gap"),
        ("UPDATE states SET telemetry = telemetry || ' '", "row_hash"),
        ("UPDATE states SET stage = CAST(stage AS BLOB)", "row_type"),
        ("CREATE TABLE more (a TEXT)", "schema_extra"),
        ("DROP INDEX ix_edges_job_id_parent_id", "schema_missing"),
        ("ALTER TABLE edges ADD COLUMN more TEXT", "schema_changed"),
        ("UPDATE alembic_version SET version_num = '0000'", "schema_revision"),
        ("INSERT INTO alembic_version VALUES ('0002')", "schema_revision"),
        ("DROP TABLE events", "database_damaged"),
    ],
)  # fmt: skip
def test_tampering_by_statement_is_found(job: Path, statement: str, code: str) -> None:
    with raw(job, keep_triggers=statement != "DROP TABLE events") as connection:
        connection.execute(statement)
    assert code in codes(job)


def test_a_dropped_or_weakened_trigger_is_found(job: Path) -> None:
    with closing(sqlite3.connect(job / DATABASE_NAME)) as connection:
        connection.execute("DROP TRIGGER edges_no_update")
    assert codes(job) == {"schema_missing"}
    with closing(sqlite3.connect(job / DATABASE_NAME)) as connection:
        connection.execute("CREATE TRIGGER edges_no_update BEFORE UPDATE ON edges BEGIN SELECT 1; END")
    assert codes(job) == {"schema_changed"}


def test_damage_to_the_file_itself_is_a_finding(job: Path) -> None:
    database = job / DATABASE_NAME
    data = bytearray(database.read_bytes())
    data[4096:4196] = bytes(100)
    database.write_bytes(data)
    assert not verify(job, judge=judge).ok
    database.write_bytes(data[:5000])
    assert "database_damaged" in codes(job)
    database.write_bytes(b"")
    assert "database_damaged" in codes(job)


def _rehash(connection: sqlite3.Connection, ordinal: int, change: Callable[[dict[str, Any]], None]) -> None:
    """Change an edge's content and make its own hashes anew, as one who knows the formulas would."""
    connection.row_factory = sqlite3.Row
    row = dict(connection.execute("SELECT * FROM edges WHERE ordinal = ?", (ordinal,)).fetchone())
    content = json.loads(row["content"])
    change(content)
    previous = connection.execute("SELECT chain_hash FROM edges WHERE ordinal = ?", (ordinal - 1,)).fetchone()[0]
    parents = [
        connection.execute("SELECT chain_hash FROM states WHERE id = ?", (row[key],)).fetchone()[0]
        for key in ("parent_id", "candidate_id")
    ]
    row |= {
        "content": canonical_json(content),
        "status": "accepted" if content["decision"]["accepted"] else "rejected",
    }
    row["content_hash"] = text_hash(row["content"])
    row["chain_hash"] = chain_hash(
        "edge", row["content_hash"], [parents[0], previous, parents[1]], json.loads(row["artifacts"])
    )
    row["id"] = row["chain_hash"][:16]
    row["row_hash"] = row_hash("edges", {k: v for k, v in row.items() if k != "row_hash"})
    connection.execute(f"UPDATE edges SET {', '.join(f'{k} = :{k}' for k in row)} WHERE ordinal = :ordinal", row)


def _drop_documents(job: Path) -> None:
    for name in ("graph.json", "report.json", "manifest.json", "bundle.zip"):
        (job / name).unlink()


@pytest.fixture
def open_job(tmp_path: Path) -> Path:
    """A job whose last attempt is a rejection with a candidate, not finished: the easiest to forge."""
    with build_graph(tmp_path, finish=False) as graph:
        try_step(graph, 30, rwp=0.9)
    return tmp_path


def test_a_rejection_forged_into_an_acceptance_is_found_by_the_judge(open_job: Path) -> None:
    def accept(content: dict[str, Any]) -> None:
        content["decision"]["accepted"] = True
        content["decision"]["reasons"] = []
        content["decision"]["checks"][0]["passed"] = True

    with raw(open_job) as connection:
        _rehash(connection, 7, accept)
    report = verify(open_job, judge=judge)
    assert report.codes == {"decision_differs"}
    assert "accepted" in report.errors[0].text
    assert verify(open_job, judge=None).ok  # the hashes fit: only the figures tell


@pytest.mark.parametrize(
    "field", ["utility_after", "numerically_better", "policy_hash", "reasons", "predictions", "checks", "details"]
)
def test_every_field_of_a_decision_is_compared(open_job: Path, field: str) -> None:
    def change(content: dict[str, Any]) -> None:
        decision = content["decision"]
        if field == "predictions":
            decision["predictions"][0]["after"] = 0.5
        elif field == "checks":
            decision["checks"][0]["limit"] = 2.0
        else:
            decision[field] = {
                "utility_after": -1.0,
                "numerically_better": True,
                "policy_hash": "0" * 64,
                "reasons": ["other"],
                "details": {"rwp_rose": "it did"},
            }[field]

    with raw(open_job) as connection:
        _rehash(connection, 7, change)
    report = verify(open_job, judge=judge)
    assert report.codes == {"decision_differs"}
    assert field in report.errors[0].text


def test_a_changed_edge_with_fitting_hashes_breaks_the_chain_after_it(open_job: Path) -> None:
    with raw(open_job) as connection:
        _rehash(connection, 2, lambda content: content["planner"].update(name="other"))
    assert "chain_hash" in codes(open_job)


def test_rows_added_after_the_end_are_found(job: Path) -> None:
    _drop_documents(job)
    with raw(job) as connection:  # the end is taken away, a step made, the end put back
        end = connection.execute("SELECT * FROM events WHERE kind = 'finished'").fetchone()
        connection.execute("DELETE FROM events WHERE kind = 'finished'")
    with Graph.open(job) as graph:
        try_step(graph, 40, rwp=0.1)
    with raw(job) as connection:
        connection.execute(f"INSERT INTO events VALUES ({', '.join('?' * len(end))})", end)
    assert codes(job) == {"rows_added"}


def test_missing_last_rows_are_found_by_the_end_of_the_log_or_by_the_export(job: Path) -> None:
    def cut(connection: sqlite3.Connection, *, events: bool) -> None:
        connection.execute("DELETE FROM edges WHERE ordinal >= 5")
        connection.execute("DELETE FROM states WHERE ordinal >= 5")
        if events:
            connection.execute("DELETE FROM events WHERE ordinal >= 2")

    with raw(job) as connection:
        cut(connection, events=False)
    assert "rows_missing" in codes(job)
    with raw(job) as connection:
        cut(connection, events=True)
    assert {"export_differs", "report_differs"} <= codes(job)
    _drop_documents(job)
    report = verify(job, judge=judge)
    assert report.ok  # nothing is left that could tell
    assert next(f.code for f in report.findings) == "job_open"


def test_artifacts_missing_damaged_and_foreign(job: Path) -> None:
    files = sorted((job / "artifacts").glob("??/*"))
    files[0].unlink()
    assert "artifact_missing" in codes(job)
    files[1].write_bytes(files[1].read_bytes() + b"\0")
    assert {"artifact_missing", "artifact_damaged"} <= codes(job)
    (job / "artifacts" / "notes.txt").write_text("mine")
    assert "artifact_stranger" in {f.code for f in verify(job, judge=judge).findings}


@pytest.mark.parametrize("name", ["graph.json", "report.json", "manifest.json", "bundle.zip"])
def test_documents_that_are_not_what_was_written_are_found(job: Path, name: str) -> None:
    data = (job / name).read_bytes()
    for broken in (b"", b"{}", b"[1]", data[:-20], b"[" * 100_000, b'{"files": {"../x": "0", "/etc/passwd": "0"}}'):
        (job / name).write_bytes(broken)
        assert codes(job), broken[:40]
    (job / name).write_bytes(data)
    assert not codes(job)


def test_a_stale_report_is_found(job: Path) -> None:
    with Graph.open(job) as graph:
        graph.add_event("resumed")
        try_step(graph, 41, rwp=0.1)
    assert {"export_differs", "report_differs"} <= codes(job)


def test_a_changed_file_of_the_manifest_is_found(job: Path) -> None:
    (job / "report.json").write_bytes((job / "report.json").read_bytes() + b" ")
    assert codes(job) == {"file_differs"}
    (job / "report.json").unlink()
    assert codes(job) == {"file_missing"}


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict | list) and value:
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _leaves(item, (*path, key))
    else:
        yield path


def test_an_export_is_checked_against_itself(tmp_path: Path) -> None:
    with build_graph(tmp_path) as graph:
        document = graph.export()
    assert verify_export(document) == ()
    unchecked = []
    for path in list(_leaves(document))[::101]:
        changed = json.loads(canonical_json(document))
        place = changed
        for key in path[:-1]:
            place = place[key]
        old = place[path[-1]]
        place[path[-1]] = (
            not old
            if isinstance(old, bool)
            else (old or 0) + 1
            if not isinstance(old, str | list | dict)
            else f"{old}x"
        )
        if not verify_export(changed):
            unchecked.append(path)
    assert all(path[0] == "finish" or path[-1] == "bytes" for path in unchecked), unchecked


@pytest.mark.parametrize("broken", [{}, {"schema": "autoxrd.graph/2"}, {"schema": "autoxrd.graph/1", "nodes": 3}])
def test_an_export_of_another_form_is_refused(broken: dict[str, Any]) -> None:
    assert {f.code for f in verify_export(broken)} == {"document_form"}


def test_a_text_that_is_not_unicode_is_a_finding(tmp_path: Path) -> None:
    with build_graph(tmp_path) as graph:
        document = graph.export()
    document["edges"][0]["content"]["planner"]["name"] = "\ud800"
    document["edges"][1]["content"]["files"]["log"] = "\ud800"
    assert {"content_hash", "artifacts_differ"} <= {f.code for f in verify_export(document)}


def test_a_gate_that_fails_on_forged_figures_is_a_finding(job: Path) -> None:
    def fails(*_: object) -> Any:
        raise ZeroDivisionError("rwp")

    report = verify(job, judge=fails)
    assert report.codes == {"decision_not_recomputed"}
    assert report.judged == 5


def test_the_state_factory_is_deterministic(tmp_path: Path) -> None:
    with build_graph(tmp_path) as graph:
        assert make_state(graph.artifacts, 4) == make_state(graph.artifacts, 4)
