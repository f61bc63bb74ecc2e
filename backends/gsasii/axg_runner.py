"""The GSAS-II backend: one JSON command per line in, one JSON answer per line out.

Run by a Python interpreter that has GSAS-II, started and watched by autoxrd's launcher in an empty folder that is
also its home. Holds no state between commands. No project, instrument or importer file of anyone is ever read.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

# Before numpy is imported: one thread per library.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"
_HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE), str(_HERE.parent / "common")]

from typing import Any  # noqa: E402

from axr_serve import serve  # noqa: E402
from axr_wire import PROTOCOL, claim_stdout, read_arrays, read_json, write_arrays, write_bytes, write_json  # noqa: E402


def _hello(request: dict[str, Any]) -> dict[str, Any]:
    import axg_joint_fit  # noqa: F401  (loads all of GSAS-II, so that the first real command does not wait for it)
    from axg_edits import EDITS
    from axg_export import KINDS
    from axg_names import SELECTORS
    from axg_version import version

    # GSAS-II puts the working folder on the path
    sys.path[:] = [entry for entry in sys.path if entry not in (".", "")]
    return {
        "protocol": PROTOCOL,
        "engine": "gsasii",
        "version": version(),
        "python": sys.version.split()[0],
        "selectors": list(SELECTORS),
        "edits": sorted(EDITS),
        "export_kinds": list(KINDS),
        "pid": os.getpid(),
    }


def _prepare(request: dict[str, Any]) -> dict[str, Any]:
    from axg_joint import encode_any
    from axg_joint_fit import prepare_joint
    from axg_prepare import prepare

    folder = Path(request["folder"])
    given = read_json(folder / "input.json")
    state: Any
    if "histograms" in given:
        state = prepare_joint(given, folder)
    else:
        state = prepare(given, read_arrays(folder / "pattern.npz"))
    write_bytes(folder / "snapshot.out", encode_any(state))
    return {"snapshot": "snapshot.out", "notices": [list(item) for item in state.notices]}


def _execute(request: dict[str, Any]) -> dict[str, Any]:
    from axg_fit import execute
    from axg_joint import JointState, decode_any, encode_any
    from axg_joint_fit import execute_joint

    folder = Path(request["folder"])
    state: Any
    before, command = decode_any((folder / "snapshot.in").read_bytes()), read_json(folder / "command.json")
    if isinstance(before, JointState):
        state, meta, arrays = execute_joint(before, command)
    else:
        state, meta, arrays = execute(before, command)
    write_bytes(folder / "snapshot.out", encode_any(state))
    write_json(folder / "result.json", meta)
    write_arrays(folder / "result.npz", arrays)
    return {"snapshot": "snapshot.out", "meta": "result.json", "arrays": "result.npz"}


def _export(request: dict[str, Any]) -> dict[str, Any]:
    from axg_export import export
    from axg_joint import JointState, decode_any

    folder = Path(request["folder"])
    files = folder / "files"
    files.mkdir(exist_ok=True)
    state = decode_any((folder / "snapshot.in").read_bytes())
    if isinstance(state, JointState):
        from axg_joint_export import export_joint  # here: it loads GSAS-II's scripting and all its readers

        names, notices = export_joint(state, request["kinds"], files)
    else:
        names, notices = export(state, request["kinds"], files)
    return {"files": names, "notices": [list(item) for item in notices]}


COMMANDS = {"hello": _hello, "prepare": _prepare, "execute": _execute, "export": _export}


if __name__ == "__main__":
    sys.exit(serve(claim_stdout(), COMMANDS))
