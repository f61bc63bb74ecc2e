"""Small programs that play the engine's part, and what tests ask of processes."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from autoxrd.engines.launcher import Launcher, LaunchSettings

ENGINE = """
import json, os, subprocess, sys, time

def answer(request, **fields):
    sys.stdout.write(json.dumps({"id": request["id"], "ok": True, **fields}) + "\\n")
    sys.stdout.flush()

for line in sys.stdin:
    request = json.loads(line)
    what = request["command"]
    if what == "execute":
        # a session's tests say in the first selector what shall go wrong
        with open(os.path.join(request["folder"], "command.json")) as handle:
            what, *values = json.load(handle)["released"][0].split()
        request |= {"seconds": float(values[0])} if what == "sleep" else {"kind": values[0]} if values else {}
    if what == "hello":
        answer(request, protocol=1, pid=os.getpid())
    elif what in ("pid", "nothing"):
        answer(request, pid=os.getpid())
    elif what == "environment":
        answer(request, environment=dict(os.environ), folder=os.getcwd(), session=os.getsid(0))
    elif what == "sleep":
        time.sleep(request["seconds"])
        answer(request)
    elif what == "wait":
        while not os.path.exists(os.path.join(request["folder"], "unwanted")):
            time.sleep(0.01)
        answer(request, ok=False, kind="unwanted", code="engine_command_unwanted", detail="Given up.")
    elif what == "crash":
        sys.stderr.write("the reason of the crash\\n")
        sys.stderr.flush()
        os._exit(7)
    elif what == "killed":
        # by itself, until it was as often as the selector says: counted in a file that outlives it
        log = os.path.join(os.path.dirname(os.path.abspath(sys.argv[0])), "kills")
        with open(log, "a") as handle:
            handle.write("x")
        if os.path.getsize(log) <= int(request["kind"]):
            os.kill(os.getpid(), 9)
        answer(request)
    elif what == "garbage":
        sys.stdout.write("Rwp = 9.4 %\\n")
        sys.stdout.flush()
    elif what == "chatter":
        sys.stderr.write("x" * request["size"])
        sys.stderr.flush()
        answer(request)
    elif what == "spawn":
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        answer(request, pid=child.pid)
    elif what == "allocate":
        block = bytearray(request["size"])
        answer(request, size=len(block))
    elif what == "write":
        with open("big", "wb") as handle:
            for _ in range(request["size"] // 65536):
                handle.write(b"0" * 65536)
        answer(request)
    else:
        answer(request, ok=False, kind=request.get("kind", "input"), code="refused", detail="No.")
"""


def toy_launcher(folder: Path, **settings: object) -> Launcher:
    """A launcher of the toy engine."""
    program = folder / "toy_engine.py"
    program.write_text(ENGINE, encoding="utf-8")
    return Launcher(command=(sys.executable, str(program)), settings=LaunchSettings(**settings))  # type: ignore[arg-type]


def is_running(pid: int) -> bool:
    """True while a process computes; one that only waits to be collected does not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rsplit(")", 1)[1].split()[0] not in "ZX"


def ends_within(pid: int, seconds: float) -> bool:
    """Wait for a process to end."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not is_running(pid):
            return True
        time.sleep(0.02)
    return not is_running(pid)
