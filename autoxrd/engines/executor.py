"""A session with an engine whose backend speaks the protocol: encode, ask, decode, check.

Pre-starts the child, starts a new one when the last died, and holds no state of the job: what the
engine needs travels in the snapshot.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import shutil
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from autoxrd.domain.histogram import Histogram
from autoxrd.domain.instrument import Instrument
from autoxrd.domain.pattern import Notice, Pattern
from autoxrd.domain.structure import CrystalStructure
from autoxrd.engines.decoding import decode_result
from autoxrd.engines.encoding import structure_json
from autoxrd.engines.launcher import ChildProcess, Launcher
from autoxrd.engines.protocol import EngineCommand, EngineResult, Exported, Snapshot
from autoxrd.errors import (
    EngineCrashed,
    EngineDiverged,
    EngineError,
    EngineOutputInvalid,
    EngineTimeout,
    UserInputError,
)

__all__ = ["ProtocolSession", "SessionSettings", "command_json"]

PROTOCOL = 1
MOST_KILLED = 4
"""A command whose process was killed this often is given up."""
_UNWANTED = "unwanted"
"""Name of the file by which an engine is told that nobody waits for a command (`backends/common/axr_wanted.py`)."""
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """Wall clocks of a session.

    Args:
        command_seconds: wall clock of one command; the process is killed after it.
        soft_share: share of it after which the engine is asked to stop by itself, so that its
            process survives.
    """

    command_seconds: float = 600.0
    soft_share: float = 0.9


class ProtocolSession:
    """An engine session over one child process at a time; for one thread at a time.

    Args:
        name: engine's name, written into snapshots.
        launcher: how to start its process.
        settings: wall clocks.

    Attributes:
        engine_seconds: total time spent waiting for the engine, start included.
        starts: number of processes started so far.
    """

    def __init__(self, name: str, launcher: Launcher, settings: SessionSettings | None = None) -> None:
        self.name = name
        self.engine_seconds = 0.0
        self.starts = 0
        self._launcher = launcher
        self._settings = settings or SessionSettings()
        self._numbers = itertools.count(1)
        self._child: ChildProcess | None = None
        self._greeting: dict[str, object] | None = None
        self._aborted = False
        self._folder: Path | None = None
        self._start()

    def hello(self) -> Mapping[str, object]:
        """Return what the backend says of itself: version, selectors, edits, export kinds."""
        self._ready()
        assert self._greeting is not None
        return self._greeting

    def prepare(
        self,
        pattern: Pattern,
        instrument: Instrument,
        structures: Sequence[CrystalStructure],
        settings: Mapping[str, object],
    ) -> Snapshot:
        """Build the first snapshot from checked input.

        Raises:
            UserInputError: the engine cannot use this input.
            EngineError: the process failed.
        """
        return self._repeated(lambda: self._prepare(pattern, instrument, structures, settings))

    def _prepare(
        self,
        pattern: Pattern,
        instrument: Instrument,
        structures: Sequence[CrystalStructure],
        settings: Mapping[str, object],
    ) -> Snapshot:
        request = _described(pattern, instrument, settings)
        return self._first(request, structures, {"pattern.npz": pattern})

    def prepare_several(self, histograms: Sequence[Histogram], structures: Sequence[CrystalStructure]) -> Snapshot:
        """Build the first snapshot of several histograms of one sample; the engine must be one that can.

        Raises:
            UserInputError: the engine cannot use this input.
            EngineError: the process failed.
        """
        return self._repeated(lambda: self._prepare_several(histograms, structures))

    def _prepare_several(self, histograms: Sequence[Histogram], structures: Sequence[CrystalStructure]) -> Snapshot:
        described = [{"name": h.name, **_described(h.pattern, h.instrument, h.settings)} for h in histograms]
        patterns = {f"pattern.{number}.npz": histogram.pattern for number, histogram in enumerate(histograms)}
        return self._first({"histograms": described}, structures, patterns)

    def _first(
        self, request: dict[str, object], structures: Sequence[CrystalStructure], patterns: Mapping[str, Pattern]
    ) -> Snapshot:
        """Ask for the first snapshot; the patterns lie in the folder under their names."""
        request["structures"] = [structure_json(structure) for structure in structures]
        with _Folder(self) as folder:
            (folder / "input.json").write_text(json.dumps(request), encoding="utf-8")
            for name, pattern in patterns.items():
                np.savez(folder / name, x=pattern.x, y=pattern.y, sigma=pattern.sigma)
            self._ask("prepare", folder)
            return Snapshot(self.name, _read(folder / "snapshot.out"))

    def execute(self, snapshot: Snapshot, command: EngineCommand) -> tuple[Snapshot, EngineResult]:
        """Refine from a snapshot; the snapshot itself is never changed.

        Raises:
            EngineCrashed: the process ended.
            EngineTimeout: the wall clock was passed.
            EngineDiverged: the fit cannot be continued.
            EngineOutputInvalid: the answer is incomplete.
            UserInputError: the command cannot be carried out on this model.
        """
        self._check(snapshot)
        return self._repeated(lambda: self._execute(snapshot, command))

    def _execute(self, snapshot: Snapshot, command: EngineCommand) -> tuple[Snapshot, EngineResult]:
        with _Folder(self) as folder:
            (folder / "snapshot.in").write_bytes(snapshot.payload)
            soft = self._settings.soft_share * self._settings.command_seconds
            (folder / "command.json").write_text(
                json.dumps({**command_json(command), "soft_seconds": soft}), encoding="utf-8"
            )
            answer = self._ask("execute", folder)
            after = Snapshot(self.name, _read(folder / "snapshot.out"))
            return after, decode_result(
                folder / "result.json", folder / "result.npz", engine=self.name, seconds=_number(answer.get("seconds"))
            )

    def export(self, snapshot: Snapshot, kinds: Sequence[str]) -> Exported:
        """Return files (refined CIF, native project, reflection list) and what is to be said of them.

        Raises:
            EngineError: the process failed.
        """
        self._check(snapshot)
        return self._repeated(lambda: self._export(snapshot, kinds))

    def _export(self, snapshot: Snapshot, kinds: Sequence[str]) -> Exported:
        with _Folder(self) as folder:
            (folder / "snapshot.in").write_bytes(snapshot.payload)
            answer = self._ask("export", folder, kinds=list(kinds))
            files = {name: _read(folder / "files" / name) for name in _file_names(answer.get("files"))}
            return Exported(files, _notices(answer.get("notices")))

    def close(self) -> None:
        """End the engine's process."""
        if self._child is not None:
            self._child.close()
        self._child = None
        self._greeting = None

    def abort(self) -> None:
        """End the process for good, from any thread: a command that runs fails and is not repeated.

        Its folder is left to the thread that waits for it, or to `close`: two at once would leave something over.
        """
        self._aborted = True
        child = self._child
        if child is not None:
            child.kill()

    def cancel(self) -> None:
        """Tell the engine, from any thread, that nobody waits for the command that runs; its process lives on."""
        folder = self._folder
        if folder is not None:
            with contextlib.suppress(OSError):  # it has just ended
                (folder / _UNWANTED).touch()

    def _repeated(self, call: Callable[[], _T]) -> _T:
        """Carry out a command; again in a new process where the first one was ended.

        A command is a pure function of its files: to repeat it changes nothing. A process that ends by itself is tried
        once more; one that is killed met bad luck (memory was short, someone ended it) and is tried a few times.
        """
        ended = 0
        while True:
            try:
                return call()
            except EngineCrashed as error:
                ended += 1
                killed = error.context.get("exit_status") == -signal.SIGKILL
                if error.code != "engine_crashed" or ended > (MOST_KILLED if killed else 1):
                    raise

    def _check(self, snapshot: Snapshot) -> None:
        if snapshot.engine != self.name:
            raise UserInputError(
                "snapshot_of_other_engine", f"This snapshot was written by {snapshot.engine}, not by {self.name}."
            )

    def _start(self) -> ChildProcess:
        self._require_wanted()
        child = self._child = self._launcher.start()
        self._greeting = None
        self.starts += 1
        self._require_wanted()  # again: `abort` may have come while there was no child that it could end
        return child

    def _require_wanted(self) -> None:
        if self._aborted:
            self.close()
            raise EngineCrashed("engine_aborted", "The engine was ended while it was asked.")

    def _ready(self) -> ChildProcess:
        """Return a child that has answered ``hello``, starting one where needed."""
        child = self._child
        if child is None or not child.alive:
            if child is not None:
                child.close()
            child = self._start()
        if self._greeting is None:
            answer = self._exchange(child, {"command": "hello"}, self._launcher.settings.start_seconds)
            if answer.get("protocol") != PROTOCOL:
                self.close()
                spoken = answer.get("protocol")
                raise EngineOutputInvalid(
                    "engine_protocol_unknown", f"The engine speaks protocol {spoken}, not {PROTOCOL}."
                )
            self._greeting = answer
        return child

    def _ask(self, command: str, folder: Path, **fields: object) -> dict[str, object]:
        child = self._child
        assert child is not None
        message = {"command": command, "folder": str(folder), **fields}
        return self._exchange(child, message, self._settings.command_seconds)

    def _exchange(self, child: ChildProcess, message: Mapping[str, object], seconds: float) -> dict[str, object]:
        started = time.perf_counter()
        try:
            answer = child.request({"id": next(self._numbers), **message}, seconds)
        except BaseException:
            # interrupted or failed: the answer, should it still come, belongs to no one
            child.close()
            raise
        finally:
            self.engine_seconds += time.perf_counter() - started
        if answer.get("ok") is not True:
            raise _refusal(answer, child)
        return answer


class _Folder:
    """A directory for the files of one command, inside the child's scratch; gone afterwards."""

    def __init__(self, session: ProtocolSession) -> None:
        child = session._ready()
        self._session = session
        self._path = child.scratch / f"command-{next(session._numbers):06d}"

    def __enter__(self) -> Path:
        self._path.mkdir()
        self._session._folder = self._path
        return self._path

    def __exit__(self, *_: object) -> None:
        self._session._folder = None
        shutil.rmtree(self._path, ignore_errors=True)


def _refusal(answer: Mapping[str, object], child: ChildProcess) -> UserInputError | EngineError:
    """Turn a refused command into the exception that it stands for."""
    code, detail = str(answer.get("code")), str(answer.get("detail"))
    kinds: dict[object, type[UserInputError] | type[EngineError]] = {
        "input": UserInputError,
        "diverged": EngineDiverged,
        "timeout": EngineTimeout,
        "internal": EngineCrashed,
        "unwanted": EngineError,
    }
    context = {"log": child.log_tail()} if answer.get("kind") == "internal" else {}
    return kinds.get(answer.get("kind"), EngineOutputInvalid)(code, detail, context=context)


def _file_names(names: object) -> list[str]:
    """Return the names of exported files, each of which must be a bare name."""
    if isinstance(names, list) and all(isinstance(name, str) and name and Path(name).name == name for name in names):
        return names
    raise EngineOutputInvalid("engine_files_invalid", "The engine's list of files is not one.")


def _notices(told: object) -> tuple[Notice, ...]:
    """Return what the engine says of its files: pairs of code and text."""
    found = []
    for pair in told if isinstance(told, list) else [None]:
        if not (isinstance(pair, list) and len(pair) == 2 and all(isinstance(item, str) for item in pair)):
            text = "What the engine says of its files is no list of notices."
            raise EngineOutputInvalid("engine_notices_invalid", text)
        found.append(Notice(pair[0], pair[1]))
    return tuple(found)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise EngineOutputInvalid("engine_file_missing", f"The engine left out the file {path.name}.") from error


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _described(pattern: Pattern, instrument: Instrument, settings: Mapping[str, object]) -> dict[str, object]:
    """Return what an engine is told of a pattern beside its arrays."""
    return {"axis": pattern.axis.value, "instrument": _instrument_json(instrument), "settings": dict(settings)}


def _instrument_json(instrument: Instrument) -> dict[str, object]:
    return {
        "radiation": instrument.radiation.value,
        "geometry": instrument.geometry.value,
        "lines": [dataclasses.asdict(line) for line in instrument.lines],
        "polarization": instrument.polarization,
        "goniometer_radius_mm": instrument.goniometer_radius_mm,
        "zero_deg": instrument.zero_deg,
        "profile": None if instrument.profile is None else dataclasses.asdict(instrument.profile),
        "flight": None if instrument.flight is None else dataclasses.asdict(instrument.flight),
    }


def command_json(command: EngineCommand) -> dict[str, object]:
    """Return a command as its engine reads it, less the wall clock."""
    return {
        "released": list(command.released),
        "bounds": [bound.model_dump() for bound in command.bounds],
        "cycles": command.cycles,
        "mode": command.mode,
        "gains": command.gains,
        "edits": [{"kind": edit.kind, "values": dict(edit.values)} for edit in command.edits],
    } | ({"match_first": list(command.match_first)} if command.match_first else {})
