"""A process that is killed at any moment loses at most the step it was recording."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from autoxrd.store.graph import DATABASE_NAME, Graph
from autoxrd.store.verify import verify

from .factory import artifact_store, judge, make_job, make_state, try_step

STEPS = 25

WORKER = """
import sys
from pathlib import Path
from tests.store.test_kill import run
print("ready", flush=True)
run(Path(sys.argv[1]))
print("done", flush=True)
"""


def run(directory: Path) -> None:
    """Start or resume a job of so many steps, as a controller would."""
    store = artifact_store(directory)
    job = make_job(store)
    fresh = not (directory / DATABASE_NAME).exists()
    with Graph.create(directory, job) if fresh else Graph.open(directory) as graph:
        if not fresh:
            graph.add_event("resumed")
        if graph.root() is None:
            graph.add_root(make_state(graph.artifacts, 0, rwp=0.9))
        for step in range(len(graph.attempts()) + 1, STEPS + 1):
            try_step(graph, step, rwp=0.9 - step / 100)
        graph.finish(graph.current(), {"verdict": "accepted"})


def start(directory: Path) -> subprocess.Popen[bytes]:
    root = Path(__file__).resolve().parents[2]
    child = subprocess.Popen(
        [sys.executable, "-c", WORKER, str(directory)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    return child


def test_kill_9_at_random_moments_and_resume(tmp_path: Path) -> None:
    undisturbed, killed = tmp_path / "undisturbed", tmp_path / "killed"
    run(undisturbed)
    with Graph.open(undisturbed) as graph:
        expected = graph.export()
    killed.mkdir()
    moments, known = random.Random(7), 0
    for _ in range(12):
        child = start(killed)
        time.sleep(moments.uniform(0.0, 0.45))
        child.send_signal(signal.SIGKILL)
        child.communicate()
        if not (killed / DATABASE_NAME).exists():
            continue
        copy = shutil.copytree(killed, tmp_path / "copy")
        report = verify(copy, judge=judge)
        assert report.ok, report.errors
        assert report.n_edges >= known, "a committed step was lost"
        known = report.n_edges
        shutil.rmtree(copy)
        if report.finished:
            break
    if not (killed / DATABASE_NAME).exists() or not verify(killed, judge=judge).finished:
        run(killed)
    assert verify(killed, judge=judge).ok
    with Graph.open(killed) as graph:
        assert graph.export() == expected
    assert not list((killed / "artifacts" / "tmp").iterdir())


class Killed(BaseException):
    """Stands for the death of the process at one point."""


@pytest.mark.parametrize("point", ["before the rows", "between the rows", "before the commit"])
def test_dying_at_each_point_of_a_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    target = {
        "before the rows": "autoxrd.store.writing.state_row",
        "between the rows": "autoxrd.store.writing.edge_row",
        "before the commit": "autoxrd.store.writing.GraphWriter._wrote",
    }[point]
    store = artifact_store(tmp_path)
    with Graph.create(tmp_path, make_job(store)) as graph:
        graph.add_root(make_state(store, 0, rwp=0.9))
        try_step(graph, 1, rwp=0.8)
        before = graph.export()

        def die(*_: object, **__: object) -> None:
            raise Killed

        with monkeypatch.context() as patch:
            patch.setattr(target, die)
            with pytest.raises(Killed):
                try_step(graph, 2, rwp=0.7)
    with Graph.open(tmp_path) as graph:
        assert graph.export() == before
    assert verify(tmp_path, judge=judge).ok


def test_dying_while_a_job_is_made_leaves_no_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = artifact_store(tmp_path)

    def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("autoxrd.store.graph.migrate.upgrade", die)
        with pytest.raises(Killed):
            Graph.create(tmp_path, make_job(store))
    assert not (tmp_path / DATABASE_NAME).exists()
    Graph.create(tmp_path, make_job(store)).close()


def test_a_journal_left_by_a_kill_is_rolled_back_for_readers_too(tmp_path: Path) -> None:
    """A transaction that spilled to the file before its process died is undone by whoever opens it next."""
    with Graph.create(tmp_path / "job", make_job(artifact_store(tmp_path / "job"))) as graph:
        graph.add_root(make_state(graph.artifacts, 0, rwp=0.9))
        sound = graph.export()
    script = (
        "import os, sqlite3, sys\n"
        "c = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "c.execute('PRAGMA cache_size=1'); c.execute('PRAGMA cache_spill=1'); c.execute('BEGIN IMMEDIATE')\n"
        "c.executemany(\"INSERT INTO events SELECT job_id, ?, 'note', content, content_hash, artifacts, \"\n"
        '              "chain_hash, telemetry, row_hash FROM jobs", [(i,) for i in range(1, 400)])\n'
        "os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "job" / DATABASE_NAME)], check=False)
    journal = tmp_path / "job" / f"{DATABASE_NAME}-journal"
    assert journal.stat().st_size > 0
    shutil.copytree(tmp_path / "job", tmp_path / "verified")
    assert verify(tmp_path / "verified", judge=judge).ok
    with Graph.open(tmp_path / "job", read_only=True) as graph:
        assert graph.export() == sound
    assert not journal.exists()
