"""How an engine's process is started, watched and ended. The only module that starts processes.

A child gets its own session, dies with its parent (``backends/_guard.py``), runs inside limits of
memory and file size, in a scratch directory of its own that is also its home, with a short list of
environment variables, and is killed with its whole group when a command passes its wall clock.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from autoxrd.errors import EngineCrashed, EngineOutputInvalid, EngineTimeout, EngineUnavailable
from autoxrd.resources import resource_path

__all__ = ["ChildProcess", "LaunchSettings", "Launcher", "die_with_parent", "run_once"]

_PASSED_ON = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH", "OPENBLAS_CORETYPE", "VIRTUAL_ENV")
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


@dataclass(frozen=True, slots=True)
class LaunchSettings:
    """Limits of an engine's process.

    Args:
        address_space_bytes: largest virtual memory, 0 for no limit.
        file_size_bytes: largest file it may write, 0 for no limit.
        log_bytes: how much of its stderr is kept (the first and the last halves).
        line_bytes: longest answer line.
        start_seconds: wall clock of the first answer, imports included.
        scratch_root: parent of the scratch directories; None for the system's.
    """

    address_space_bytes: int = 6 * 2**30
    file_size_bytes: int = 2 * 2**30
    log_bytes: int = 256 * 2**10
    line_bytes: int = 16 * 2**20
    start_seconds: float = 120.0
    scratch_root: Path | None = None


@dataclass(frozen=True, slots=True)
class Launcher:
    """Starts children of one kind.

    Args:
        command: program and arguments.
        settings: limits.
        environment: variables beside the passed-on ones.
    """

    command: tuple[str, ...]
    settings: LaunchSettings = field(default_factory=LaunchSettings)
    environment: Mapping[str, str] = field(default_factory=dict)

    def start(self) -> ChildProcess:
        """Start a child and return at once; its imports go on in the background.

        Raises:
            EngineUnavailable: the program cannot be started.
        """
        return ChildProcess(self)


def run_once(command: Sequence[str], *, seconds: float) -> bytes:
    """Run a short program to its end and return what it wrote to standard output.

    Raises:
        EngineUnavailable: it cannot be started, failed, or did not end in time.
    """
    scratch = Path(tempfile.mkdtemp(prefix="autoxrd-engine-"))
    environment = _environment(Launcher(command=tuple(command)), scratch)
    try:
        done = subprocess.run(
            tuple(command), capture_output=True, timeout=seconds, check=True, cwd=scratch, env=environment
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise EngineUnavailable("engine_not_startable", f"{Path(command[0]).name} failed: {error}.") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return done.stdout


class ChildProcess:
    """One running child that speaks JSON lines."""

    def __init__(self, launcher: Launcher) -> None:
        settings = launcher.settings
        root = None if settings.scratch_root is None else str(settings.scratch_root)
        self.scratch = Path(tempfile.mkdtemp(prefix="autoxrd-engine-", dir=root))
        self._settings = settings
        self._answers: queue.Queue[bytes | None] = queue.Queue()
        self._log = _CappedLog(settings.log_bytes)
        self._closed = False
        guard = [
            sys.executable,
            "-S",
            "-E",
            str(resource_path("backends/_guard.py")),
            str(os.getpid()),
            str(settings.address_space_bytes),
            str(settings.file_size_bytes),
        ]
        command, environment = [*guard, *launcher.command], _environment(launcher, self.scratch)
        started: queue.Queue[subprocess.Popen[bytes] | OSError] = queue.Queue()
        reader = threading.Thread(target=self._live, args=(command, environment, started), daemon=True)
        reader.start()
        process = started.get()
        if isinstance(process, OSError):
            shutil.rmtree(self.scratch, ignore_errors=True)
            raise EngineUnavailable("engine_not_startable", f"The engine cannot be started: {process}.") from process
        self._process = process
        self.pid = process.pid
        # at the latest when this interpreter ends: no process and no directory stays behind
        self._end = weakref.finalize(self, _end_process, process, self.scratch)
        log = threading.Thread(target=self._read_log, daemon=True)
        log.start()
        self._threads = (reader, log)

    @property
    def alive(self) -> bool:
        """True while the process runs."""
        return not self._closed and self._process.poll() is None

    def request(self, message: Mapping[str, object], timeout_seconds: float) -> dict[str, object]:
        """Send one message and return its answer.

        Raises:
            EngineTimeout: no answer in time; the child has been killed.
            EngineCrashed: the child ended without an answer.
            EngineOutputInvalid: the answer is not a JSON object; the child has been killed.
        """
        self.send(message)
        answer = self.receive(message, timeout_seconds)
        if answer is None:
            self.close()
            detail = f"The engine gave no answer within {timeout_seconds:g} s and was stopped."
            context = {"seconds": timeout_seconds, "command": str(message.get("command"))}
            raise EngineTimeout("engine_wall_clock", detail, context=context)
        return answer

    def receive(self, message: Mapping[str, object], timeout_seconds: float) -> dict[str, object] | None:
        """Return the answer to a message that was sent, None while there is none; the child goes on then.

        Raises:
            EngineCrashed: the child ended without an answer.
            EngineOutputInvalid: the answer is not a JSON object; the child has been killed.
        """
        try:
            line = self._answers.get(timeout=timeout_seconds)
        except queue.Empty:
            return None
        if line is None:
            raise self._crashed()
        return self._parsed(line, message)

    def send(self, message: Mapping[str, object]) -> None:
        """Send one message and return at once; `receive` gets its answer.

        Raises:
            EngineCrashed: the child has ended.
        """
        stdin = self._process.stdin
        assert stdin is not None
        try:
            stdin.write(json.dumps(dict(message)).encode() + b"\n")
            stdin.flush()
        except (OSError, ValueError):
            raise self._crashed() from None

    def _parsed(self, line: bytes, message: Mapping[str, object]) -> dict[str, object]:
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if not isinstance(answer, dict) or answer.get("id") != message.get("id"):
            self.close()
            raise EngineOutputInvalid(
                "engine_answer_unreadable",
                "The engine's answer is not what the protocol says.",
                context={"answer": line[:200].decode("utf-8", "replace")},
            )
        return answer

    def _crashed(self) -> EngineCrashed:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=5.0)
        code = self._process.poll()
        log = self.log_tail()
        self.close()
        return EngineCrashed(
            "engine_crashed",
            f"The engine's process ended without an answer (exit status {code}).",
            context={"exit_status": code, "log": log},
        )

    def log_tail(self, size: int = 2000) -> str:
        """Return the end of what the child wrote to stderr."""
        return self._log.text()[-size:]

    def kill(self) -> None:
        """Kill the child, from any thread; whoever waits for it is told that it ended, and closes it."""
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        """Kill the child with its group and remove its scratch directory."""
        if self._closed:
            return
        self._closed = True
        self._end()
        for thread in self._threads:
            thread.join(timeout=2.0)
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    def _live(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        started: queue.Queue[subprocess.Popen[bytes] | OSError],
    ) -> None:
        """Start the child and read its answers until it ends, all in one thread.

        The kernel sends the parent-death signal when the *thread* that forked the child ends: a
        child started from a pool's short-lived thread would be killed with that thread. This one
        lives exactly as long as the child does.
        """
        try:
            process = subprocess.Popen(
                command,
                cwd=self.scratch,
                env=dict(environment),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            started.put(error)
            return
        started.put(process)
        assert process.stdout is not None
        with contextlib.suppress(OSError, ValueError):
            while line := process.stdout.readline(self._settings.line_bytes):
                self._answers.put(line)
        self._answers.put(None)
        process.wait()

    def _read_log(self) -> None:
        stream = self._process.stderr
        assert stream is not None
        with contextlib.suppress(OSError, ValueError):
            while block := stream.read1(8192):  # type: ignore[attr-defined]
                self._log.add(block)


class _CappedLog:
    """Keeps the beginning and the end of a stream that may be endless."""

    def __init__(self, size: int) -> None:
        self._half = size // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._skipped = 0
        self._lock = threading.Lock()

    def add(self, block: bytes) -> None:
        with self._lock:
            room = self._half - len(self._head)
            self._head += block[:room] if room > 0 else b""
            self._tail += block[max(room, 0) :]
            excess = len(self._tail) - self._half
            if excess > 0:
                del self._tail[:excess]
                self._skipped += excess

    def text(self) -> str:
        with self._lock:
            middle = f"\n[... {self._skipped} bytes left out ...]\n".encode() if self._skipped else b""
            return bytes(self._head + middle + self._tail).decode("utf-8", "replace")


def die_with_parent() -> None:
    """Ask the kernel to kill this process when its parent ends: for one that was forked and not started from here.

    Does nothing where the kernel has no such wish to fulfil (other than Linux).
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, int(signal.SIGKILL), 0, 0, 0)  # PR_SET_PDEATHSIG


def _end_process(process: subprocess.Popen[bytes], scratch: Path) -> None:
    """Kill a child with its group and remove its scratch directory."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=10.0)
    shutil.rmtree(scratch, ignore_errors=True)


def _environment(launcher: Launcher, scratch: Path) -> dict[str, str]:
    passed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    # A fixed hash seed: the order of a set of names must not decide the order of a sum.
    fixed = {"HOME": str(scratch), "TMPDIR": str(scratch), "PYTHONHASHSEED": "0", "PYTHONNOUSERSITE": "1"}
    return {**passed, **dict.fromkeys(_THREAD_VARIABLES, "1"), **fixed, **launcher.environment}
