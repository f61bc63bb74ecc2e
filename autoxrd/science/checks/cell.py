"""Is the refined cell a cell, and still that of the candidate?"""

from __future__ import annotations

import math

from autoxrd.domain.state import Violation
from autoxrd.domain.structure import CrystalStructure, UnitCell
from autoxrd.science.checks.common import Severity, violation
from autoxrd.science.inputs import PhaseOutcome
from autoxrd.science.settings import Limits

__all__ = ["cell_is_valid", "check_cell"]

_LENGTHS = ("a", "b", "c")
_ANGLES = ("alpha", "beta", "gamma")


def refined_cell(phase: PhaseOutcome) -> UnitCell:
    """Return the refined cell, from the phase's table where it is there, else from its structure."""
    base = phase.structure.cell
    values = {key: getattr(base, key) for key in (*_LENGTHS, *_ANGLES)}
    values.update({key: phase.cell[key].value for key in values if key in phase.cell})
    return UnitCell(**values)


def cell_is_valid(cell: UnitCell) -> bool:
    """Tell whether lengths are positive and the angles close a cell of positive volume."""
    values = cell.as_tuple()
    if not all(math.isfinite(v) and v > 0 for v in values) or max(values[3:]) >= 180.0:
        return False
    ca, cb, cg = (math.cos(math.radians(v)) for v in values[3:])
    return 1.0 - ca * ca - cb * cb - cg * cg + 2.0 * ca * cb * cg > 1e-6


def check_cell(phase: PhaseOutcome, initial: CrystalStructure | None, limits: Limits) -> list[Violation]:
    """Return ``cell_invalid`` (hard) and ``cell_far`` (hard, soft from the warning limit on)."""
    cell = refined_cell(phase)
    subject = f"phase.{phase.name}.cell"
    if not cell_is_valid(cell):
        shown = ", ".join(f"{v:.5g}" for v in cell.as_tuple())
        return [violation("cell_invalid", subject, f"The cell {shown} is not a cell.")]
    if initial is None:
        return []
    found = []
    for key in _LENGTHS:
        before, after = getattr(initial.cell, key), getattr(cell, key)
        change = after / before - 1.0
        severity = _severity(abs(change), limits.cell_length_relative, limits.cell_length_warn)
        if severity:
            limit = limits.cell_length_relative if severity == "hard" else limits.cell_length_warn
            text = f"{key} of {phase.name} went from {before:.4f} to {after:.4f} angstrom, {change:+.1%}."
            found.append(violation("cell_far", f"{subject}.{key}", text, value=change, limit=limit, severity=severity))
    for key in _ANGLES:
        change = getattr(cell, key) - getattr(initial.cell, key)
        if abs(change) > limits.cell_angle_deg:
            text = f"{key} of {phase.name} moved by {change:+.2f} degrees."
            found.append(violation("cell_far", f"{subject}.{key}", text, value=change, limit=limits.cell_angle_deg))
    return found


def _severity(value: float, hard: float, soft: float) -> Severity | None:
    if value > hard:
        return "hard"
    return "soft" if value > soft else None
