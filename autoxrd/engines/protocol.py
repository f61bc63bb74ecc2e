"""The engine contract (DESIGN section 4): pure functions on snapshots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from autoxrd.domain.action import Bound
from autoxrd.domain.histogram import Histogram
from autoxrd.domain.instrument import Instrument
from autoxrd.domain.pattern import FloatArray, Notice, Pattern
from autoxrd.domain.state import Convergence, MeasuredValue, ParameterValue
from autoxrd.domain.structure import CrystalStructure

__all__ = [
    "Capabilities",
    "Edit",
    "Engine",
    "EngineCommand",
    "EngineResult",
    "EngineSession",
    "Exported",
    "PhaseResult",
    "ReflectionTable",
    "Snapshot",
]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that an engine needs to go on, as bytes of its own making.

    Args:
        engine: name of the engine that wrote it.
        payload: opaque bytes; equal states give equal bytes.
    """

    engine: str
    payload: bytes


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of the model that is not the release of a parameter.

    Kinds: ``background`` (terms: int), ``range`` (lower_deg, upper_deg), ``exclude`` (lower_deg, upper_deg),
    ``texture`` (phase, axis), ``add_phase`` (structure as JSON text, form_factors, strain of its cell lengths, name of
    the phase that it replaces or empty), ``remove_phase`` (phase), ``equal_uiso`` (phases), ``apart_uiso`` (phases that
    share one), ``background_fixed`` (x_deg, y; terms; parameters and wave_deg of a curve that was estimated from the
    data), ``value`` (selector, value; for deterministic code only, never from a planner).

    Where the engine has them: ``background`` (function beside terms), ``background_peak`` (position_deg, width_deg,
    shape), ``background_debye`` (distance_angstrom), ``broadening`` (phase, effect, model, axis), ``harmonics`` (phase,
    order), ``anisotropic`` (phase, atoms, model), ``restrain_distances`` (phase, from, to, distance_angstrom,
    esd_angstrom, within).

    With several histograms an edit of one of them names it (histogram).
    """

    kind: str
    values: Mapping[str, float | int | str | tuple[float, ...] | list[str]]


@dataclass(frozen=True, slots=True)
class EngineCommand:
    """What to do from a snapshot.

    Args:
        released: selectors that are free (cumulative set, globs allowed); all else is held.
        bounds: limits by selector, in the parameter's own unit.
        cycles: largest number of least-squares cycles; 0 evaluates only.
        edits: model changes made before refining, in order.
        mode: ``rietveld`` or ``lebail``.
        match_first: selectors of a profile match that is made before, from the edited state; the command goes on from
            where that ends, with the structure again.
    """

    released: tuple[str, ...] = ()
    bounds: tuple[Bound, ...] = ()
    cycles: int = 60
    edits: tuple[Edit, ...] = ()
    mode: str = "rietveld"
    gains: bool = True
    """Also report the release gains of what is not free."""
    match_first: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReflectionTable:
    """All reflections of all phases and lines inside the range; arrays of equal length m.

    Args:
        phase: index into the phases, shape (m,), int.
        line: index of the emission line, shape (m,), int.
        hkl: shape (m, 3), int.
        d_angstrom: shape (m,).
        position: calculated position on the pattern's axis, all shifts included, shape (m,).
        fwhm: full width at half maximum on the pattern's axis, shape (m,).
        eta: Lorentzian fraction of the pseudo-Voigt, 0 to 1, shape (m,).
        intensity: calculated integrated intensity of that line (profile area), shape (m,).
        f2_calc: squared structure factor, shape (m,), NaN where the engine has none.
        multiplicity: shape (m,), int.
        f2_esd: of a profile match, whose ``f2_calc`` is measured, shape (m,); zero where there is no intensity.
    """

    phase: NDArray[np.int64]
    line: NDArray[np.int64]
    hkl: NDArray[np.int64]
    d_angstrom: FloatArray
    position: FloatArray
    fwhm: FloatArray
    eta: FloatArray
    intensity: FloatArray
    f2_calc: FloatArray
    multiplicity: NDArray[np.int64]
    f2_esd: FloatArray | None = None


@dataclass(frozen=True, slots=True)
class PhaseResult:
    """Derived quantities of a phase as the engine gives them.

    Args:
        weight_fraction: 0 to 1 among the crystalline phases, None where it cannot be told.
        cell: keys a b c alpha beta gamma volume.
    """

    name: str
    space_group: str
    weight_fraction: MeasuredValue | None
    cell: Mapping[str, MeasuredValue]
    structure: CrystalStructure
    """The refined structure (coordinates, cell, occupancies, displacement parameters)."""


@dataclass(frozen=True, slots=True)
class EngineResult:
    """What came out; arrays have shape (n,) on the points that were used.

    Args:
        x, y_obs, sigma, y_calc, background: the pattern as fitted.
        phase_patterns: shape (n_phases, n), Bragg contribution of each phase.
        parameters: every parameter with value, esd, released flag and bound, in our names.
        covariance_names: names of the free parameters, length k.
        covariance: shape (k, k), esds as the engine states them; empty where k = 0.
        engine_r: the engine's own R factors (fractions), kept beside ours.
        gains: release gain by selector: predicted drop of sum(w e^2) when the selector is released
            beside all that is free (Gauss-Newton), where the engine offers derivatives.
            Beside selectors: ``background.more`` (the next terms of the background) and
            ``phase.P.preferred_orientation@h,k,l`` (that axis; the ``texture`` edit sets it).
        gain_counts: number of parameters that each gain would add.
        selectors: names of the parameters that each released selector freed; empty where symmetry
            or a constraint leaves nothing to move.
        seconds: engine time; not part of any hash.
        histograms: by name, where there are several: the part of each as if it were a fit of its own, under bare
            names. The curves of the whole are then those of all in a row (x rises within each only), its parameters
            have full names, and what is the sample's stands there once.
        matched: number of intensities that a profile match determined beside the free parameters; 0 of a structure.
    """

    x: FloatArray
    y_obs: FloatArray
    sigma: FloatArray
    y_calc: FloatArray
    background: FloatArray
    phase_patterns: FloatArray
    reflections: ReflectionTable
    phases: tuple[PhaseResult, ...]
    parameters: tuple[ParameterValue, ...]
    covariance_names: tuple[str, ...]
    covariance: FloatArray
    convergence: Convergence
    engine_r: Mapping[str, float]
    notices: tuple[Notice, ...] = ()
    gains: Mapping[str, float] = field(default_factory=dict)
    gain_counts: Mapping[str, int] = field(default_factory=dict)
    selectors: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    engine: str = ""
    engine_version: str = ""
    seconds: float = 0.0
    histograms: Mapping[str, EngineResult] = field(default_factory=dict)
    matched: int = 0


@dataclass(frozen=True, slots=True)
class Exported:
    """Files of a state as the engine writes them.

    Args:
        files: content by name.
        notices: what a person should know of them.
    """

    files: Mapping[str, bytes]
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an engine can do."""

    name: str
    version: str
    radiations: tuple[str, ...]
    axes: tuple[str, ...]
    selectors: tuple[str, ...]
    """Patterns of the selectors it maps, with ``P`` and ``LABEL`` as placeholders."""
    edits: tuple[str, ...]
    export_kinds: tuple[str, ...]
    several: bool = False
    """Whether it refines several histograms of one sample together."""
    scale_volume_power: int | None = None
    """p where scale S, mass m and volume V of a cell give a phase's mass as S m V^p: 1 where intensities are S |F|^2,
    0 where they are S |F|^2 / V; None: not known."""


class EngineSession(Protocol):
    """A live engine for one job. It holds no state between commands."""

    engine_seconds: float
    """Time spent waiting for the engine so far; part of no hash."""

    def prepare(
        self,
        pattern: Pattern,
        instrument: Instrument,
        structures: Sequence[CrystalStructure],
        settings: Mapping[str, object],
    ) -> Snapshot:
        """Build the first snapshot from checked input."""
        ...

    def prepare_several(self, histograms: Sequence[Histogram], structures: Sequence[CrystalStructure]) -> Snapshot:
        """Build the first snapshot of several histograms of one sample."""
        ...

    def execute(self, snapshot: Snapshot, command: EngineCommand) -> tuple[Snapshot, EngineResult]:
        """Refine from a snapshot; the snapshot itself is never changed.

        Raises:
            EngineCrashed: the process ended.
            EngineTimeout: the wall clock was passed.
            EngineDiverged: the fit cannot be continued.
            EngineOutputInvalid: the answer is incomplete.
        """
        ...

    def export(self, snapshot: Snapshot, kinds: Sequence[str]) -> Exported:
        """Return files (refined CIF, native project, reflection list)."""
        ...

    def close(self) -> None:
        """End the engine's process."""
        ...


class Engine(Protocol):
    """An engine that can be started."""

    name: str

    def available(self) -> tuple[bool, str]:
        """Return whether it can be used here, and the version or the reason why not."""
        ...

    def capabilities(self) -> Capabilities:
        """Return what it can do."""
        ...

    def start(self) -> EngineSession:
        """Start a session.

        Raises:
            EngineUnavailable: it cannot be used here.
        """
        ...
