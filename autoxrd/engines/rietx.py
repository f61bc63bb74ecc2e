"""The embedded engine: rietx, in a process of this interpreter."""

from __future__ import annotations

import functools
import importlib.metadata
import sys

from autoxrd.engines.executor import ProtocolSession, SessionSettings
from autoxrd.engines.launcher import Launcher, LaunchSettings
from autoxrd.engines.protocol import Capabilities
from autoxrd.errors import EngineUnavailable
from autoxrd.resources import resource_path

__all__ = ["RietxEngine"]

SUPPORTED = "1.10.0"
"""rietx declares its interface unfrozen: the adapter is written and tested against this version."""

SELECTORS = (
    "phase.P.scale",
    "background",
    "background.N",
    "background.fixed",
    "background.peakN_KEY",
    "instrument.zero",
    "instrument.wavelength",
    "instrument.ka2_ratio",
    "sample.displacement",
    "sample.transparency",
    "sample.roughness",
    "sample.offset",
    "sample.offset_along",
    "sample.offset_across",
    "profile.U",
    "profile.V",
    "profile.W",
    "profile.X",
    "profile.Y",
    "profile.SH/L",
    "phase.P.cell",
    "phase.P.size",
    "phase.P.strain",
    "phase.P.size_gauss",
    "phase.P.strain_gauss",
    "phase.P.preferred_orientation",
    "phase.P.extinction",
    "phase.P.uiso",
    "phase.P.atom.LABEL.position",
    "phase.P.atom.LABEL.uiso",
    "phase.P.atom.LABEL.occupancy",
)


@functools.cache  # reads a file of the installation, which a process does not outlive
def _installed() -> str:
    return importlib.metadata.version("rietx")


class RietxEngine:
    """Constant-wavelength Rietveld and Le Bail refinement, X-rays and neutrons.

    Args:
        launch: limits of the process.
        session: wall clocks of its commands.
    """

    name = "rietx"

    def __init__(self, *, launch: LaunchSettings | None = None, session: SessionSettings | None = None) -> None:
        self._launch = launch or LaunchSettings()
        self._session = session or SessionSettings()

    def available(self) -> tuple[bool, str]:
        """Return whether it can be used here, and the version or the reason why not."""
        try:
            version = _installed()
        except importlib.metadata.PackageNotFoundError:
            return False, f"rietx is not installed; install rietx=={SUPPORTED}"
        if version != SUPPORTED:
            return False, f"rietx {version} is installed, but {SUPPORTED} is needed"
        return True, version

    def capabilities(self) -> Capabilities:
        """Return what it can do."""
        return Capabilities(
            name=self.name,
            version=self.available()[1],
            scale_volume_power=1,
            radiations=("xray", "neutron"),
            axes=("two_theta_deg",),
            selectors=SELECTORS,
            edits=(
                "background",
                "background_fixed",
                "background_peak",
                "range",
                "exclude",
                "texture",
                "add_phase",
                "remove_phase",
                "value",
                "neutral",
                "equal_uiso",
                "broadening",
                "apart_uiso",
                "stretch",
            ),
            export_kinds=("cif", "pdcif", "hkl", "native", "topas"),
        )

    def start(self) -> ProtocolSession:
        """Start a session; the process loads its libraries in the background.

        Raises:
            EngineUnavailable: it cannot be used here.
        """
        usable, reason = self.available()
        if not usable:
            raise EngineUnavailable("engine_unavailable", f"The engine rietx cannot be used: {reason}.")
        runner = str(resource_path("backends/rietx/runner.py"))
        # -P: nothing beside the script is importable by accident; its own modules it finds itself
        launcher = Launcher(command=(sys.executable, "-s", "-P", "-B", runner), settings=self._launch)
        return ProtocolSession(self.name, launcher, self._session)
