"""GSAS-II, in a process of an interpreter of its own: where it is, and what it can do."""

from __future__ import annotations

import json
import os
import shutil
from functools import lru_cache
from pathlib import Path

from autoxrd.engines.executor import ProtocolSession, SessionSettings
from autoxrd.engines.launcher import Launcher, LaunchSettings, run_once
from autoxrd.engines.protocol import Capabilities
from autoxrd.errors import EngineError, EngineUnavailable
from autoxrd.resources import resource_path

__all__ = ["VARIABLE", "GsasiiEngine", "find_interpreter"]

VARIABLE = "AUTOXRD_GSASII_PYTHON"
"""Names a Python interpreter in which ``from GSASII import GSASIIscriptable`` works."""
PLACES = ("gsas2full", "g2full", "gsas2main", "g2main", "GSAS2", "GSASII", "miniforge3/envs/GSASII")
"""Folders of GSAS-II's own installers, under the home folder, ``/opt`` and ``/usr/local``."""

SELECTORS = (
    "phase.P.scale",
    "background",
    "background.N",
    "background.peakN_KEY",
    "background.debyeN_KEY",
    "background.fixed",
    "instrument.zero",
    "instrument.wavelength",
    "instrument.ka2_ratio",
    "instrument.difC",
    "instrument.difA",
    "instrument.difB",
    "sample.displacement",
    "sample.transparency",
    "sample.roughness",
    "sample.offset",
    "sample.offset_along",
    "sample.offset_across",
    "absorption",
    "profile.U",
    "profile.V",
    "profile.W",
    "profile.X",
    "profile.Y",
    "profile.Z",
    "profile.SH/L",
    "profile.alpha",
    "profile.beta-0",
    "profile.beta-1",
    "profile.beta-q",
    "profile.sig-0",
    "profile.sig-1",
    "profile.sig-2",
    "profile.sig-q",
    "phase.P.cell",
    "phase.P.strain_hydrostatic",
    "phase.P.size",
    "phase.P.strain",
    "phase.P.preferred_orientation",
    "phase.P.extinction",
    "phase.P.uiso",
    "phase.P.atom.LABEL.position",
    "phase.P.atom.LABEL.uiso",
    "phase.P.atom.LABEL.occupancy",
)


def find_interpreter() -> str | None:
    """Return GSAS-II's interpreter: the one that is named, or the first of the usual places; None without one."""
    named = os.environ.get(VARIABLE)
    if named:
        return named
    for root in (Path.home(), Path("/opt"), Path("/usr/local")):
        for place in PLACES:
            for python in ("bin/python", "python.exe"):
                candidate = root / place / python
                if candidate.is_file():
                    return str(candidate)
    return None


@lru_cache(maxsize=4)
def _examined(interpreter: str) -> tuple[bool, str]:
    """Return whether an interpreter has GSAS-II, and the version or the reason why not; asked once per process."""
    if shutil.which(interpreter) is None:
        return False, f"{interpreter} is not a program; set {VARIABLE} to GSAS-II's Python"
    script = str(resource_path("backends/gsasii/axg_version.py"))
    try:
        answer = json.loads(run_once((interpreter, "-s", "-P", "-B", script), seconds=60.0))
        return True, str(answer["version"])
    except (EngineError, ValueError, KeyError) as error:
        return False, f"{interpreter} has no usable GSAS-II ({str(error)[:200]})"


class GsasiiEngine:
    """Rietveld and Le Bail refinement with GSAS-II's model: X-rays, neutrons of one wavelength, times of flight.

    Args:
        launch: limits of the process.
        session: wall clocks of its commands.
    """

    name = "gsasii"

    def __init__(self, *, launch: LaunchSettings | None = None, session: SessionSettings | None = None) -> None:
        self._launch = launch or LaunchSettings()
        self._session = session or SessionSettings()

    def available(self) -> tuple[bool, str]:
        """Return whether it can be used here, and version and source hash or the reason why not."""
        interpreter = find_interpreter()
        if interpreter is None:
            return False, f"GSAS-II was not found; set {VARIABLE} to the Python that has it (README, Engines)"
        return _examined(interpreter)

    def capabilities(self) -> Capabilities:
        """Return what it can do."""
        return Capabilities(
            name=self.name,
            version=self.available()[1],
            scale_volume_power=0,
            radiations=("xray", "neutron"),
            axes=("two_theta_deg", "tof_us"),
            selectors=SELECTORS,
            edits=(
                "background",
                "background_peak",
                "background_debye",
                "background_fixed",
                "exclude",
                "range",
                "add_phase",
                "remove_phase",
                "texture",
                "value",
                "neutral",
                "equal_uiso",
                "apart_uiso",
                "stretch",
                "broadening",
                "harmonics",
                "anisotropic",
                "restrain_distances",
            ),
            export_kinds=("hkl", "native"),
            several=True,
        )

    def start(self) -> ProtocolSession:
        """Start a session; the process loads its libraries in the background.

        Raises:
            EngineUnavailable: it cannot be used here.
        """
        usable, reason = self.available()
        interpreter = find_interpreter()
        if not usable or interpreter is None:
            raise EngineUnavailable("engine_unavailable", f"The engine gsasii cannot be used: {reason}.")
        runner = str(resource_path("backends/gsasii/axg_runner.py"))
        launcher = Launcher(command=(interpreter, "-s", "-P", "-B", runner), settings=self._launch)
        return ProtocolSession(self.name, launcher, self._session)
