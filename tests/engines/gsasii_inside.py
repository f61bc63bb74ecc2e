"""Run by GSAS-II's interpreter: compares our arrays with GSAS-II's own functions, and derivatives with differences.

Usage: ``python gsasii_inside.py BACKENDS SNAPSHOT``; prints one JSON line.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

backends, snapshot = Path(sys.argv[1]), Path(sys.argv[2])
sys.path[:0] = [str(backends / "gsasii"), str(backends / "common")]

import numpy as np  # noqa: E402


def functions(state: Any, x: np.ndarray) -> dict[str, float]:
    """Compare every background function, with what stands beside it, with GSAS-II's."""
    from axg_background import FUNCTIONS, TIMELESS, Background
    from axg_edits import apply_edits
    from axg_model import build_model
    from GSASII import GSASIIpwd as G2pwd

    worst = {}
    for kind in FUNCTIONS if state.flight is None else TIMELESS:
        edit = {"kind": "background", "values": {"function": kind, "terms": 5}}
        shaped = {f"background.{number}": 10.0 + 3.0 * number for number in range(5)}
        changed = apply_edits(state, [edit]).with_values(shaped)
        with contextlib.redirect_stdout(io.StringIO()):
            parameters = build_model(changed).parameters
            probe = "PXC" if state.radiation == "xray" else "PNC" if state.flight is None else "PNT"
            theirs = G2pwd.getBackground(":0:", parameters, kind, probe, x)[0]
        ours = Background(changed, x).compute(changed.values).y
        worst[kind] = float(np.max(np.abs(ours - theirs)) / np.max(np.abs(theirs)))
    return worst


def main() -> dict[str, object]:
    with contextlib.redirect_stdout(io.StringIO()):
        from axg_model import build_model
        from axg_names import build_catalog
        from axg_pattern import Engine
        from axg_state import decode
        from GSASII import GSASIIstrMath as G2strMath

        state = decode(snapshot.read_bytes())
        model = build_model(state)
        engine = Engine(model)
        seen = engine.compute(state.values)
        theirs, background = G2strMath.getPowderProfile(
            model.parameters, {}, model.x, [], model.histogram, model.phases, model.controls, {}
        )
    rows = [model.reflections(index)["RefList"] for index in range(len(state.phases))]
    answer: dict[str, object] = {
        "pattern": float(np.max(np.abs(theirs + background - seen.y)) / np.max(seen.y)),
        "background": float(np.max(np.abs(background - seen.background)) / np.max(np.abs(background))),
    }
    for name, column, ours in (
        ("position", 5, lambda lines, f2: lines.position[0]),
        ("variance", 6, lambda lines, f2: lines.variance),
        ("lorentz", 7, lambda lines, f2: lines.lorentz),
        ("intensity", 11, lambda lines, f2: lines.factor),
    ):
        pairs = [(row[:, column], ours(lines, f2)) for row, lines, f2 in zip(rows, seen.lines, seen.f2, strict=True)]
        answer[name] = max(float(np.nanmax(np.abs(a / b - 1.0))) for a, b in pairs)
    if state.flight is not None:
        ours = [lines.exponentials for lines in seen.lines]
        pairs = [(row[:, 12 + k], both[k]) for row, both in zip(rows, ours, strict=True) for k in (0, 1)]
        answer["exponentials"] = max(float(np.max(np.abs(a / b - 1.0))) for a, b in pairs)
    answer["functions"] = functions(state, model.x)
    columns = tuple(build_catalog(model).columns.values())
    jacobian = engine.compute(state.values, columns).jacobian
    worst = {}
    for column, row in zip(columns, jacobian, strict=True):
        up, down, span = column.around(state.values)
        # windows and numbers of nodes hold still: the difference is smooth
        slope = (engine.compute(up).y - engine.compute(down).y) / span
        length = float(np.linalg.norm(slope))
        worst[column.name] = float(np.linalg.norm(row - slope)) / length if length > 0 else float(np.linalg.norm(row))
    answer["derivatives"] = worst
    return answer


sys.stdout.write("\n" + json.dumps(main()) + "\n")
