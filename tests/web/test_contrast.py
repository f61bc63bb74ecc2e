"""What is told of two fits side by side."""

from __future__ import annotations

from autoxrd.domain.state import MeasuredValue
from autoxrd.web.contrast import contrast
from tests.report.factory import report_input


def test_differences_are_told_in_esds() -> None:
    """Two cells 5 combined esds apart are marked; a value without an esd has a difference and no significance."""
    state = report_input(n=301).state
    phase = state.phases[0]
    cell = {**phase.cell, "a": MeasuredValue(value=9.0, esd=0.003), "b": MeasuredValue(value=9.0)}
    other = {**phase.cell, "a": MeasuredValue(value=9.025, esd=0.004), "b": MeasuredValue(value=9.5)}
    pair = [
        state.model_copy(update={"phases": (phase.model_copy(update={"cell": c}), *state.phases[1:])})
        for c in (cell, other)
    ]
    shown = contrast(*pair)
    rows = {row.name: row for row in dict(shown.phases)[phase.name]}
    assert (rows["a"].first, rows["a"].second, rows["a"].change) == ("9.000(3)", "9.025(4)", "+0.025")
    assert (rows["a"].esds, rows["a"].notable) == ("+5.0", True)
    assert (rows["b"].change, rows["b"].esds, rows["b"].notable) == ("+0.5", "", False)
    assert all(row.change.strip("+−") in {"0", "0.000", "0.00", ""} for row in shown.figures)
