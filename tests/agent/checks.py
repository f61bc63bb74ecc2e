"""What must hold of every graph, whatever the pattern."""

from __future__ import annotations

from pathlib import Path

from autoxrd.agent.controller import rejudge
from autoxrd.gates.evidence import comparison_holds
from autoxrd.gates.metrics import read_metric
from autoxrd.store.graph import Graph
from autoxrd.store.verify import verify


def check_graph(directory: Path) -> None:
    """Evidence checks out, mechanisms are met, rejected attempts keep files and reasons, nothing coupled is free."""
    with Graph.open(directory, read_only=True) as graph:
        states = {node.id: node.state for node in graph.states()}
        for attempt in graph.attempts():
            parent = states[attempt.parent]
            if attempt.accepted:
                assert attempt.action.evidence
                for claim in attempt.action.evidence:
                    level = read_metric(parent, claim.feature).level
                    assert level is not None
                    assert abs(level - claim.value) <= 0.01 * abs(level)
                    assert comparison_holds(claim.comparison, level, claim.threshold)
                    assert claim.source == attempt.parent
                assert any(p.met and p.of_mechanism for p in attempt.decision.predictions)
                assert all(p.met for p in attempt.decision.predictions)
            else:
                assert attempt.decision.reasons
                if attempt.candidate is not None:
                    kept = states[attempt.candidate]
                    assert graph.artifacts.has(kept.snapshot)
                    assert graph.artifacts.has(kept.arrays)
        for state in states.values():
            assert not {"instrument.zero", "sample.displacement"} <= set(state.released)
    report = verify(directory, judge=rejudge)
    assert report.ok, [f"{f.code} {f.row} {f.text}" for f in report.errors]
    assert report.judged
