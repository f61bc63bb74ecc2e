"""Which files of its own does an engine write of a state?"""

from __future__ import annotations

from autoxrd.domain.pattern import Notice
from autoxrd.domain.state import FitState
from autoxrd.engines.protocol import EngineSession, Snapshot
from autoxrd.engines.registry import get_engine
from autoxrd.errors import EngineError
from autoxrd.gates.matching import is_match
from autoxrd.store.writing import GraphWriter

__all__ = ["export_files", "export_kinds"]

_EXPORTS = ("native", "topas", "hkl")
_STRUCTURAL = ("topas",)
"""Input of a refinement with atoms, which a profile match has none of."""


def export_kinds(engine: str) -> tuple[str, ...]:
    """Return the kinds of files that a job's report takes from an engine; each is asked for by itself."""
    offered = get_engine(engine).capabilities().export_kinds
    return tuple(kind for kind in _EXPORTS if kind in offered)


def export_files(session: EngineSession, graph: GraphWriter, state: FitState) -> tuple[dict[str, bytes], list[Notice]]:
    """Return the engine's own files of a state; a failure costs the files, not the report."""
    snapshot = Snapshot(state.engine, graph.artifacts.get(state.snapshot))
    files: dict[str, bytes] = {}
    notices: list[Notice] = []
    for kind in export_kinds(state.engine):
        if kind in _STRUCTURAL and is_match(state):
            continue
        try:
            written = session.export(snapshot, [kind])
        except EngineError as error:
            notices.append(Notice("export_failed", f"The engine could not write its {kind} file: {error.detail}"))
            continue
        files |= written.files
        notices += written.notices
    return files, notices
