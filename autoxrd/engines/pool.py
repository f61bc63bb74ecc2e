"""Several processes of one engine for one job: what is likely to be asked next is computed beside what is asked now.

A command is a pure function of a snapshot, so nothing of a result depends on which process computed it, or when. What
was computed and never asked for is dropped, and so is the error of a guess that was never asked.
"""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar, cast

from autoxrd.domain.histogram import Histogram
from autoxrd.domain.instrument import Instrument
from autoxrd.domain.pattern import Pattern
from autoxrd.domain.structure import CrystalStructure
from autoxrd.engines.protocol import EngineCommand, EngineResult, EngineSession, Exported, Snapshot
from autoxrd.engines.tasks import Task, Wish
from autoxrd.errors import EngineCrashed, EngineTimeout, EngineUnavailable

__all__ = ["MOST_RUNNERS", "RunnerPool", "RunnerSession"]

MOST_RUNNERS = 4
"""More are of no use: what comes after three refusals in a row is hardly ever what was thought of before the first."""
_OF_THE_PROCESS = (EngineCrashed, EngineTimeout, EngineUnavailable)
"""Errors of a guess that say nothing of the command: memory or time was short. The command is computed anew."""
_CLOSE_SECONDS = 10.0
_T = TypeVar("_T")


class RunnerSession(EngineSession, Protocol):
    """A session that can be ended while another thread waits for it."""

    def hello(self) -> Mapping[str, object]:
        """Return what the backend says of itself, once it has loaded."""
        ...

    def cancel(self) -> None:
        """Ask, from any thread, that the command that runs be given up."""
        ...

    def abort(self) -> None:
        """End it for good, from any thread: a command that runs fails."""
        ...


class _Runner:
    """One process with the thread that waits for it."""

    def __init__(self, session: RunnerSession | None) -> None:
        self.session = session
        self.task: Task | None = None
        self.loading = True
        self.aborted = False
        self.cold_seconds = 0.0
        self.thread: threading.Thread | None = None


class RunnerPool:
    """An engine session over several processes; for one asking thread at a time.

    Args:
        start: starts a session of the engine.
        runners: largest number of processes, at least 1. The first starts at once, the others with the first command.
        clock: s, for tests.

    Attributes:
        engine_seconds: time that the asking thread spent waiting.
        guessed, used: how many commands were begun before they were asked for, and how many of those were asked for.
    """

    def __init__(
        self, start: Callable[[], RunnerSession], runners: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.runners = runners
        self.engine_seconds = 0.0
        self.guessed = 0
        self.used = 0
        self._begin_session = start
        self._clock = clock
        self._changed = threading.Condition()
        self._tasks: list[Task] = []
        self._runners: list[_Runner] = []
        self._closed = False
        self._add(start())
        # before the launcher's own hook ends the children: nobody shall start them again then
        atexit.register(self.close)

    def prepare(
        self,
        pattern: Pattern,
        instrument: Instrument,
        structures: Sequence[CrystalStructure],
        settings: Mapping[str, object],
    ) -> Snapshot:
        """Build the first snapshot from checked input; see `EngineSession`."""
        return self._asked(Task("", lambda s: s.prepare(pattern, instrument, structures, settings)), Snapshot)

    def prepare_several(self, histograms: Sequence[Histogram], structures: Sequence[CrystalStructure]) -> Snapshot:
        """Build the first snapshot of several histograms of one sample; see `EngineSession`."""
        return self._asked(Task("", lambda s: s.prepare_several(histograms, structures)), Snapshot)

    def execute(self, snapshot: Snapshot, command: EngineCommand) -> tuple[Snapshot, EngineResult]:
        """Refine from a snapshot, or take what was computed ahead; see `EngineSession`."""
        found: Any = self._asked(Wish(snapshot, command).task(), tuple)
        return cast("tuple[Snapshot, EngineResult]", found)

    def export(self, snapshot: Snapshot, kinds: Sequence[str]) -> Exported:
        """Return files of a state, or take what was written ahead; see `EngineSession`."""
        return self._asked(Wish(snapshot, tuple(kinds)).task(), Exported)

    def close(self) -> None:
        """End all processes; what they were computing is lost."""
        with self._changed:
            if self._closed:
                return
            self._closed = True
            self._changed.notify_all()
            runners = list(self._runners)
        atexit.unregister(self.close)
        for runner in runners:
            if runner.session is not None:
                runner.session.abort()
        for runner in runners:
            if runner.thread is not None:
                runner.thread.join(timeout=_CLOSE_SECONDS)

    def begin(self, wish: Wish) -> None:
        """Begin what is sure to be asked next, before anything else, and return at once."""
        with self._changed:
            self._grow()
            for old in self._tasks:  # nobody waits for one now
                old.sure = False
            task = self._known(wish.key) or self._put(wish.task())
            task.sure = task.wanted = True
            self._dispatch()

    def expect(self, wishes: Iterable[Wish]) -> None:
        """Compute what may be asked next, the likeliest first, where a runner has nothing better to do.

        What was expected before and is not any more is dropped, save what is sure; a process that is at it is told.
        """
        with self._changed:
            self._grow()
            expected = list(dict.fromkeys(self._known(w.key) or self._put(w.task()) for w in wishes))
            for task in list(self._tasks):
                task.wanted = task.sure or task in expected
                if not task.wanted:
                    self._drop(task)
            others = [task for task in self._tasks if task not in expected]
            self._tasks = others + expected
            self._dispatch()

    def _asked(self, task: Task, kind: type[_T]) -> _T:
        """Wait for a task: the one that was begun ahead where there is one like it."""
        began = time.perf_counter()
        try:
            with self._changed:
                ahead = self._known(task.key)
                answer = self._waited_for(ahead or self._put(task))
                if ahead is not None and isinstance(answer.error, _OF_THE_PROCESS) and answer.guess:
                    answer = self._waited_for(self._put(task))
        finally:
            self.engine_seconds += time.perf_counter() - began
        if answer.error is not None:
            raise answer.error
        assert isinstance(answer.outcome, kind)
        return answer.outcome

    def _waited_for(self, task: Task) -> Task:
        self._grow()
        task.sure = task.wanted = True
        self.used += task.guess
        self._dispatch()
        try:
            while not task.done:
                if self._closed:
                    task.error = EngineCrashed("engine_closed", "The engine was closed while it was asked.")
                    break
                self._changed.wait(self._end_useless())
        except BaseException:  # interrupted: the answer, should it still come, belongs to no one
            for runner in self._runners:
                if runner.task is task:
                    self._abort(runner)
            raise
        finally:
            if task in self._tasks:
                self._tasks.remove(task)
        return task

    def _known(self, key: str) -> Task | None:
        return next((task for task in self._tasks if key and task.key == key and not task.ended), None)

    def _put(self, task: Task) -> Task:
        self._tasks.append(task)
        return task

    def _dispatch(self) -> None:
        """Give work to idle runners: what is sure at once, a guess where the next command will still find one idle."""
        for task in sorted((t for t in self._tasks if t.open), key=lambda t: not t.sure):
            idle = [runner for runner in self._runners if runner.task is None and not runner.loading]
            if not idle:
                return
            if not task.sure and len(idle) < 2 and not any(t.sure and t.running for t in self._tasks):
                return
            task.running, task.guess = True, not task.sure
            self.guessed += task.guess
            idle[0].task = task
            self._changed.notify_all()

    def _drop(self, task: Task) -> None:
        """Forget a task that nobody wants; a process that is at it shall give it up."""
        self._tasks.remove(task)
        for runner in self._runners:
            if runner.task is task and runner.session is not None:
                task.ended, task.useless_since = True, self._clock()
                runner.session.cancel()

    def _end_useless(self) -> float | None:
        """End processes that keep what is wanted waiting; return after how many s to look again, None for never.

        One that was told that its command is not wanted gets as long as a new one would take to load: it is then more
        likely to be slower than the new one.
        """
        if not any(task.open for task in self._tasks):
            return None
        waits = []
        for runner in self._runners:
            since = None if runner.task is None or runner.aborted else runner.task.useless_since
            if since is not None:
                left = since + runner.cold_seconds - self._clock()
                if left <= 0.0:
                    self._abort(runner)
                else:
                    waits.append(left)
        return min(waits, default=None)

    def _abort(self, runner: _Runner) -> None:
        """End a process; a new one is loaded in its place."""
        if runner.session is not None and runner.task is not None:
            runner.aborted = runner.task.ended = True
            runner.session.abort()

    def _grow(self) -> None:
        while len(self._runners) < self.runners and not self._closed:
            self._add(None)

    def _add(self, session: RunnerSession | None) -> None:
        runner = _Runner(session)
        runner.thread = threading.Thread(target=self._serve, args=(runner,), name="autoxrd-runner", daemon=True)
        self._runners.append(runner)
        runner.thread.start()

    def _serve(self, runner: _Runner) -> None:
        """Do tasks with one process after another, until the pool is closed; the work of a runner's thread."""
        try:
            while self._load(runner):
                while (task := self._next(runner)) is not None and self._done(runner, task):
                    pass
        finally:
            if runner.session is not None:
                runner.session.close()

    def _load(self, runner: _Runner) -> bool:
        """Have a process that has loaded; False where the pool was closed or none can be started beside the others."""
        began = self._clock()
        try:
            if runner.session is None:
                session = self._begin_session()
                with self._changed:
                    runner.session = session
            if self._closed:
                return False
            runner.session.hello()
        except Exception as error:  # one that was started tells with its first command
            if runner.session is None:
                self._without(runner, error)
                return False
        with self._changed:
            runner.loading, runner.cold_seconds = False, self._clock() - began
            self._dispatch()
        return not self._closed

    def _without(self, runner: _Runner, error: Exception) -> None:
        """Go on without a runner that cannot be started; what waits fails where it was the last one."""
        with self._changed:
            self._runners.remove(runner)
            self.runners = max(1, len(self._runners))
            for task in self._tasks if not self._runners else ():
                task.error, task.done = error, True
            self._changed.notify_all()

    def _next(self, runner: _Runner) -> Task | None:
        """Return the runner's next task, None at the end."""
        with self._changed:
            while runner.task is None and not self._closed:
                self._changed.wait()
            return None if self._closed else runner.task

    def _done(self, runner: _Runner, task: Task) -> bool:
        """Do a task; return whether the process lives on."""
        session = runner.session
        assert session is not None
        try:
            if not task.ended:
                task.outcome = task.call(session)
        except BaseException as error:
            task.error = error
        with self._changed:
            task.running, task.done = False, True
            runner.task, lost = None, runner.aborted
            if lost:
                runner.session, runner.loading, runner.aborted = None, True, False
            self._dispatch()
            self._changed.notify_all()
        if lost:
            session.close()
        return not lost
