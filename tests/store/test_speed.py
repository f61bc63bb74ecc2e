"""Recording a step must not be felt beside an engine's seconds."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from autoxrd.store.graph import Graph
from tests.support.pace import Pace

from .factory import POLICY, artifact_store, judge, make_action, make_job, make_state

ALLOWED_MS = 12.0


def test_recording_a_step_takes_a_few_milliseconds(tmp_path: Path) -> None:
    """80 features and 60 parameters; processor time against the machine's pace, as it may be busy with other things."""
    pace = Pace()
    store = artifact_store(tmp_path)
    cpu_ms, wall_ms = [], []
    with Graph.create(tmp_path, make_job(store)) as graph:
        parent = graph.add_root(make_state(store, 0, rwp=0.9))
        for step in range(1, 31):
            before, after = graph.state(parent), make_state(store, step, rwp=0.9 - step / 100)
            action = make_action(parent)
            decision = judge(action, before, after, POLICY)
            cpu, wall = time.process_time(), time.perf_counter()
            attempt = graph.record(parent, action, decision, after, planner={"name": "rules"})
            cpu_ms.append(1e3 * (time.process_time() - cpu))
            wall_ms.append(1e3 * (time.perf_counter() - wall))
            assert attempt.candidate is not None
            parent = attempt.candidate
            pace.sample()
    start = time.process_time()
    with Graph.open(tmp_path) as graph:
        opened_ms = 1e3 * (time.process_time() - start)
        assert len(graph.accepted_path()) == 30
    used = statistics.median(cpu_ms), statistics.median(wall_ms), pace.factor
    assert used[0] <= ALLOWED_MS * pace.factor, used
    assert opened_ms <= 50.0 * pace.factor
