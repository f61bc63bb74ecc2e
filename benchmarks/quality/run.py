"""What came out of a case? Runs the command in a process of its own and keeps what the table needs."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.quality.cases import Case

__all__ = ["Outcome", "run_case"]

_ESD_FACTOR = 3.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one case.

    Args:
        summary: the command's JSON; empty where it failed.
        trouble: the end of what it said on standard error.
        seconds: wall time of the whole command.
    """

    case: Case
    summary: dict[str, Any]
    trouble: str
    seconds: float

    @property
    def rwp(self) -> float | None:
        """Rwp, percent."""
        return self.summary.get("quality", {}).get("rwp_percent")

    @property
    def codes(self) -> list[str]:
        """Codes of reasons and warnings, reasons first."""
        reasons = [str(r["code"]) if isinstance(r, dict) else str(r) for r in self.summary.get("reasons", ())]
        return reasons + [str(w["code"]) for w in self.summary.get("warnings", ())]

    @property
    def ratio(self) -> float | None:
        """Rwp (or GoF) over the published one."""
        if self.rwp is not None and self.case.rwp:
            return self.rwp / self.case.rwp
        gof = self.summary.get("quality", {}).get("gof")
        return gof / self.case.gof if gof is not None and self.case.gof else None

    def cell_errors(self) -> list[tuple[str, float, float | None]]:
        """Return (name, refined - known, stated uncertainty) for each known cell parameter of the first phase."""
        phases = self.summary.get("phases", ())
        found = phases[0]["cell"] if phases else {}
        stated = phases[0].get("cell_uncertainty", {}) if phases else {}
        return [
            (name, found[name]["value"] - known, stated.get(name, found[name].get("esd")))
            for name, known in self.case.cell.items()
            if name in found
        ]

    @property
    def cell_held(self) -> bool | None:
        """Whether all known cell values lie within window or three stated uncertainties; None where none is known."""
        errors = self.cell_errors()
        if not self.case.cell:
            return None
        return bool(errors) and all(
            abs(error) <= max(self.case.window, _ESD_FACTOR * (esd or 0.0)) for _, error, esd in errors
        )

    def weight_errors(self) -> list[float]:
        """Return refined - weighed, percent by weight, in the order of the structures."""
        phases = self.summary.get("phases", ())
        if not self.case.weights or len(phases) != len(self.case.weights):
            return []
        return [100 * p["weight_fraction"]["value"] - known for p, known in zip(phases, self.case.weights, strict=True)]


def run_case(case: Case, *, data: Path, out: Path, engine: str = "rietx") -> Outcome:
    """Run a case; the job's folder is kept under ``out``."""
    code = "from autoxrd.cli.main import main; main()"
    words = ["refine", *case.words(data), "--engine", engine, "--out", str(out), "--json"]
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)
    seconds = time.monotonic() - began
    try:
        summary = json.loads(done.stdout)
    except json.JSONDecodeError:
        summary = {}
    return Outcome(case, summary, done.stderr.strip()[-300:], seconds)
