"""What may an agent from outside ask for? The tools, confined to one folder; no protocol here.

Whatever comes in is text of a stranger. A path is taken only when it is relative, climbs nowhere and, links followed,
lies inside the folder; the process stands in that folder, so that answers name files as the agent does, never where
they lie on the machine. What an action may do is for schema and gates to say, as for any planner.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from autoxrd.agent import stepping
from autoxrd.agent.answers import Audit, Diagnosis, Features, Gated, Proposed, StateHead, Stepped
from autoxrd.agent.asking import ask_audit, ask_diagnosis, ask_features, find_state, head_of
from autoxrd.agent.drafting import draft
from autoxrd.agent.external import ExternalRequest
from autoxrd.agent.inputs import Request, load_job
from autoxrd.agent.inspection import Inspection, InstrumentChoice, inspect_files
from autoxrd.agent.job import Job
from autoxrd.agent.run import finish_job, prepare_job
from autoxrd.domain.standard import KnownCell
from autoxrd.errors import NotFound, PolicyError, UserInputError
from autoxrd.report.summary import ReportSummary
from autoxrd.store.graph import ARTIFACTS_NAME, DATABASE_NAME, LOCK_NAME, Graph

__all__ = ["MOST_FILES", "MOST_TEXT", "Desk"]

MOST_TEXT = 1024
"""Longest path, name or option, characters."""
MOST_FILES = 20
"""Most structures of one request."""
_MOST_REPORT_BYTES = 64_000_000
_REPORT = "report.json"


class Desk:
    """Answers for one folder.

    Args:
        root: everything that may be read or written lies in it; the process must stand in it.
        writable: jobs may be made and stepped.
    """

    def __init__(self, root: Path, *, writable: bool = True) -> None:
        self._root = root.resolve(strict=True)
        self._writable = writable

    def path(self, text: str) -> Path:
        """Return a path inside the folder, relative to it.

        Raises:
            PolicyError: ``path_outside``: it is absolute, climbs, or a link leads out.
            UserInputError: ``text_too_long``.
        """
        _short(text)
        given = PurePosixPath(text.replace("\\", "/"))
        wild = not text.strip() or not given.parts or any(ord(char) < 32 for char in text)
        if wild or given.is_absolute() or ".." in given.parts or ":" in given.parts[0]:
            raise _outside(text)
        path = Path(*given.parts)
        try:
            resolved = (self._root / path).resolve()
        except (OSError, RuntimeError, ValueError) as error:
            raise _outside(text) from error
        if not resolved.is_relative_to(self._root):
            raise _outside(text)
        return path

    def job(self, text: str) -> Path:
        """Return the directory of a job inside the folder, with all that is read or written of it."""
        directory = self.path(text)
        for name in (
            DATABASE_NAME,
            f"{DATABASE_NAME}-wal",
            f"{DATABASE_NAME}-journal",
            ARTIFACTS_NAME,
            LOCK_NAME,
            _REPORT,
        ):
            self.path(str(PurePosixPath(*directory.parts, name)))
        return directory

    def inspect(self, pattern: str | None, structures: Sequence[str], **instrument: str | None) -> Inspection:
        """Read and check files."""
        if pattern is None and not structures:
            raise UserInputError("inspect_what", "Give a pattern, or structures, or both.")
        return inspect_files(
            None if pattern is None else self.path(pattern), self._paths(structures), self._choice(instrument)
        )

    def prepare(
        self,
        job: str,
        pattern: str,
        structures: Sequence[str],
        known_cells: Sequence[KnownCell] = (),
        external: ExternalRequest | None = None,
        **instrument: str | None,
    ) -> StateHead:
        """Make a job and its starting state; the job of an external standard lies in the folder too."""
        self._may_write()
        directory = self.job(job)
        if os.path.lexists(directory):
            raise UserInputError("job_exists", f"{directory} is there already: give the name of a new directory.")
        choice = self._choice(instrument)
        if external is not None:
            external = replace(external, job=self.job(external.job.as_posix()))
        loaded, sources = load_job(
            Request(
                pattern=self.path(pattern),
                structures=self._paths(structures),
                instrument=choice.file,
                anode=choice.anode,
                wavelength=choice.wavelength,
                radiation=choice.radiation,
                geometry=choice.geometry,
                known_cells=tuple(known_cells),
                external=external,
            )
        )
        prepare_job(loaded, directory, sources=sources)
        with Graph.open(directory, read_only=True) as graph:
            return head_of(graph, find_state(graph, "root"))

    def features(self, job: str, state: str | None) -> Features:
        """Return the measured features of a state."""
        with self._graph(job) as graph:
            return ask_features(graph, _short(state))

    def diagnose(self, job: str, state: str | None) -> Diagnosis:
        """Return what the residual of a state speaks for."""
        with self._graph(job) as graph:
            return ask_diagnosis(graph, _short(state))

    def audit(self, job: str, state: str | None) -> Audit:
        """Return what the final audit finds in a state."""
        with self._graph(job) as graph:
            return ask_audit(graph, Job.from_record(graph.job, graph.artifacts), _short(state))

    def propose(self, job: str) -> Proposed:
        """Return what the rules planner would do next."""
        return stepping.propose(self._existing(job))

    def draft(self, job: str, kind: str, selectors: Sequence[str], why: str | None, state: str | None) -> Proposed:
        """Write an action for an idea, its evidence and predictions from the record."""
        for text in (kind, why, *selectors):
            _short(text)
        return draft(
            self._existing(job), kind, selectors, why=why or "Chosen by an agent", state=_short(state) or "current"
        )

    def check_action(self, job: str, action: str) -> Gated:
        """Say whether an action may be tried."""
        return stepping.gate_action(self._existing(job), action)

    def judge_attempt(self, job: str, attempt: int) -> Gated:
        """Judge a recorded attempt again."""
        return stepping.gate_attempt(self._existing(job), attempt)

    def run_step(self, job: str, action: str) -> Stepped:
        """Take a step; the record names an agent."""
        self._may_write()
        return stepping.take_step(self._existing(job), action, by="agent")

    def finish(self, job: str, state: str | None) -> ReportSummary:
        """End a job with a state, and return the head of its report."""
        self._may_write()
        directory = self._existing(job)
        with Graph.open(directory, read_only=True) as graph:
            state_id = find_state(graph, _short(state) or "current")
        finish_job(directory, state_id, by="agent")
        return self.report(job)

    def report(self, job: str) -> ReportSummary:
        """Return the head of a finished job's report."""
        path = self._existing(job) / _REPORT
        if not path.is_file():
            raise NotFound("report_missing", f"{job} has no report yet: finish the job first.")
        if path.stat().st_size > _MOST_REPORT_BYTES:
            raise UserInputError("report_too_large", f"{path} is larger than {_MOST_REPORT_BYTES} bytes.")
        data = json.loads(path.read_bytes())
        names = {field.alias or name for name, field in ReportSummary.model_fields.items()}
        return ReportSummary.model_validate({key: value for key, value in data.items() if key in names})

    def _graph(self, job: str) -> Graph:
        return Graph.open(self._existing(job), read_only=True)

    def _existing(self, job: str) -> Path:
        directory = self.job(job)
        if not directory.is_dir():
            raise NotFound("job_not_found", f"There is no job {job!r} in the folder of this server.")
        return directory

    def _may_write(self) -> None:
        if not self._writable:
            raise PolicyError("server_read_only", "This server only looks: start it without --read-only to take steps.")

    def _paths(self, texts: Sequence[str]) -> tuple[Path, ...]:
        if len(texts) > MOST_FILES:
            raise UserInputError("too_many_files", f"At most {MOST_FILES} structures are taken.")
        return tuple(self.path(text) for text in texts)

    def _choice(self, given: dict[str, str | None]) -> InstrumentChoice:
        short = {key: _short(value) for key, value in given.items()}
        file = short.pop("instrument", None)
        return InstrumentChoice(file=None if file is None else self.path(file), **short)


def _short(text: str | None) -> str | None:
    if text is not None and len(text) > MOST_TEXT:
        raise UserInputError("text_too_long", f"A name or path is longer than {MOST_TEXT} characters.")
    return text


def _outside(text: str) -> PolicyError:
    shown = "".join(char if char.isprintable() else "?" for char in text)[:60]
    return PolicyError("path_outside", f"{shown!r} is no path inside the folder of this server; give a relative one.")
