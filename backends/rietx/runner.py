"""The rietx backend: one JSON command per line in, one JSON answer per line out.

Run by a Python interpreter that has rietx, started and watched by autoxrd's launcher. Holds no
state between commands: each names the files it reads and the directory it writes to.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

# Before numpy and rietx are imported: one thread per library (a forked child would deadlock on
# rietx's pool, and two jobs would fight for cores), no run records on disk.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RIETX_COMPILED_THREADS"):
    os.environ[_name] = "1"
os.environ["RIETX_TELEMETRY"] = "0"
sys.path.insert(0, str(Path(__file__).resolve().parent))

import json  # noqa: E402
import time  # noqa: E402
import traceback  # noqa: E402
from typing import Any  # noqa: E402

from axr_wire import PROTOCOL, Refused, claim_stdout, read_arrays, read_json, write_arrays, write_bytes, write_json  # noqa: E402


def _hello(request: dict[str, Any]) -> dict[str, Any]:
    import axr_fit  # noqa: F401  (loads all of rietx, so that the first real command does not wait for it)
    import rietx
    from axr_edits import EDITS
    from axr_export import KINDS
    from axr_names import SELECTORS

    return {
        "protocol": PROTOCOL,
        "engine": "rietx",
        "version": rietx.__version__,
        "python": sys.version.split()[0],
        "selectors": list(SELECTORS),
        "edits": sorted(EDITS),
        "export_kinds": list(KINDS),
        "pid": os.getpid(),
    }


def _prepare(request: dict[str, Any]) -> dict[str, Any]:
    from axr_prepare import prepare
    from axr_state import encode

    folder = Path(request["folder"])
    state = prepare(read_json(folder / "input.json"), read_arrays(folder / "pattern.npz"))
    write_bytes(folder / "snapshot.out", encode(state))
    return {"snapshot": "snapshot.out", "notices": [list(item) for item in state.notices]}


def _execute(request: dict[str, Any]) -> dict[str, Any]:
    from axr_fit import execute
    from axr_state import decode, encode

    folder = Path(request["folder"])
    state, meta, arrays = execute(decode((folder / "snapshot.in").read_bytes()), read_json(folder / "command.json"))
    write_bytes(folder / "snapshot.out", encode(state))
    write_json(folder / "result.json", meta)
    write_arrays(folder / "result.npz", arrays)
    return {"snapshot": "snapshot.out", "meta": "result.json", "arrays": "result.npz"}


def _export(request: dict[str, Any]) -> dict[str, Any]:
    from axr_export import export
    from axr_state import decode

    folder = Path(request["folder"])
    files = folder / "files"
    files.mkdir(exist_ok=True)
    names, notices = export(decode((folder / "snapshot.in").read_bytes()), request["kinds"], files)
    return {"files": names, "notices": [list(item) for item in notices]}


COMMANDS = {"hello": _hello, "prepare": _prepare, "execute": _execute, "export": _export}


def _answer(line: str) -> dict[str, Any]:
    """Carry out one line and return the answer; no exception leaves."""
    identity: object = None
    try:
        request = json.loads(line)
        identity = request.get("id")
        started = time.perf_counter()
        answer = COMMANDS[request["command"]](request)
        return {"id": identity, "ok": True, "seconds": time.perf_counter() - started, **answer}
    except Refused as error:
        return {"id": identity, "ok": False, "kind": error.kind, "code": error.code, "detail": error.detail}
    except MemoryError:
        return {
            "id": identity,
            "ok": False,
            "kind": "internal",
            "code": "out_of_memory",
            "detail": "The engine reached its memory limit.",
        }
    except Exception as error:  # the parent decides; the log has the traceback
        traceback.print_exc()
        return {
            "id": identity,
            "ok": False,
            "kind": "internal",
            "code": "engine_fault",
            "detail": f"{type(error).__name__}: {str(error)[:400]}",
        }


def main() -> int:
    """Serve until ``shutdown`` or the end of input."""
    channel = claim_stdout()
    for line in sys.stdin:
        if not line.strip():
            continue
        if '"shutdown"' in line and json.loads(line).get("command") == "shutdown":
            return 0
        channel.write(json.dumps(_answer(line), allow_nan=False) + "\n")
        channel.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
