"""Every touch of rietx that its public interface does not offer, in one place.

rietx 1.10.0 declares its whole interface unfrozen; what is below has, besides, no public spelling:

* the answer's full covariance (public: only the five largest correlations),
* bounds on a coordinate's displacement (public: none, "DOFs are unbounded"),
* a stage without its report, for the way towards the minimum (public: ``run_stage``, twice as long),
* carrying Le Bail intensities into a fresh object (public: only through a history tree),
* remembering site orbits, what sites and lattices allow, and reflections (public: none; each parameter table and each
  compiled model works them out anew, in Python),
* several ties in one move (public: one by one, each with two parameter tables),
* a free wavelength beside free cells where one phase's cell is held (public: only where no cell is free),
* the number of nodes of the axial-divergence integral (public: none; a constant made for laboratories),
* the profile of single reflections, and of all for other intensities (public: only their sum),
* how many small steps in a row end a fit (public: none; three, also where only the way is wanted),
* the Jacobian that ``Refinement.suggest`` builds (public: only its ranking of single parameters), at any values,
* writing values found elsewhere into a refinement object, and the factor on its esds.

An upgrade of rietx starts by reading this file, and `axr_private_match`, which has what a profile match needs.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import rietx as rx
from rietx.crystallography import stephens, structure_factor, symmetry, wyckoff
from rietx.model import compiled as compiled_kernels
from rietx.model import forward
from rietx.model.forward import accumulate_planes, compile_model
from rietx.optimize import lm
from rietx.optimize.least_squares import _jacobian_for, _make_residual
from rietx.params import vector
from rietx.params.vector import ParameterTable
from rietx.schemas.history import RefinementState, ReflectionState

__all__ = [
    "COARSE_AREA",
    "WINDOW_AREA",
    "Answer",
    "BoundedRefinement",
    "Ties",
    "answer_covariance",
    "build_table",
    "compiled",
    "jacobian_and_residual",
    "narrow",
    "restored",
    "shaped",
    "table_of",
]


WINDOW_AREA = 0.005
"""Share of each peak's area that its window may leave out; GSAS-II uses the same (Lorentzian: 64 widths each side).
rietx's own 0.001 costs four times the time and moves no parameter by more than a few hundredths of its esd."""


COARSE_AREA = 0.02
"""The same where only a direction is wanted: rietx's setting for the stages before the last."""


AXIAL_FLOOR = forward.AXIAL_SIZING_FLOOR
"""rietx sizes the axial integral as if S/L and H/L were at least this (0.02, a laboratory's)."""
AXIAL_HEADROOM = 2.0
"""Growth of the apertures within one pass that the integral is still exact for."""


def _size_axial_integral(instrument: Any) -> None:
    """Size the integral for the apertures at hand: for a synchrotron (0.001) the constant costs six times the time."""
    largest = max(instrument.geometry.axial_sl.value, instrument.geometry.axial_hl.value)
    forward.AXIAL_SIZING_FLOOR = min(AXIAL_FLOOR, AXIAL_HEADROOM * largest) if largest > 0 else AXIAL_FLOOR


Ties = dict[str, tuple[list[tuple[str, float]], float]]
"""By tied path: the paths that it follows with their factors, and a constant."""


class BoundedRefinement(rx.Refinement):
    """A refinement whose parameter table takes extra bounds by path.

    Bounds live here and not in the models, so that a bound of one command does not outlive it.
    """

    extra_bounds: Mapping[str, tuple[float, float]] = {}

    def _run_stage(self, *args: Any, **options: Any) -> Any:
        # "not the last stage" leaves out the scan of exchangeable parameters, which only rietx's own
        # report reads and which costs as much as two cycles
        return super()._run_stage(*args, **{"n_stages": 2, **options})

    def approach(self, pattern: Any, stage: Any, *, mode: str, limits: Any, cancel: Any, area: float) -> int:
        """Run a stage for where it ends only, and return its cycles: ``run_stage`` without its report."""
        table = self._prepare_table(restore=True)
        with _ended_by_one_small_step():
            _, outcome, *_ = self._run_stage(
                stage, pattern, mode, table, None, limits, 0.98, cancel=cancel, ftol=stage.ftol, window_area_tol=area
            )
        self._write_back(table)
        return int(outcome.n_iterations)

    def tie_together(self, ties: Ties) -> None:
        """Tie targets to sums of (source, factor) and a constant: as ``tie`` one by one, with one table in all."""
        if ties:
            self._declare_ties(ties)

    def _prepare_table(self, *, restore: bool) -> Any:
        table = super()._prepare_table(restore=restore)
        narrow(table, self.extra_bounds)
        return table


@contextlib.contextmanager
def _ended_by_one_small_step() -> Iterator[None]:
    """Let a fit end with the first small step: what follows is a fit of its own, which takes rietx's three."""
    usual = lm._CONVERGED_RUNS
    lm._CONVERGED_RUNS = 1
    try:
        yield
    finally:
        lm._CONVERGED_RUNS = usual


def narrow(table: Any, bounds: Mapping[str, tuple[float, float]]) -> None:
    """Intersect the bounds of a table's entries with others, by path."""
    if not bounds:
        return
    for entry in table.entries:
        if entry.path in bounds:
            lower, upper = bounds[entry.path]
            entry.lo, entry.hi = max(entry.lo, lower), min(entry.hi, upper)
            if entry.tie is None and not entry.locked:
                entry.value = min(max(entry.value, entry.lo), entry.hi)
    table.refresh_ties()


def restored(
    structure: Any, instrument: Any, *, mode: str, limits: tuple[float, float] | None, reflections: list[dict[str, Any]]
) -> BoundedRefinement:
    """Return a fresh refinement object in the given state, with nothing free."""
    _size_axial_integral(instrument)
    ref = BoundedRefinement(structure, instrument, history=False)
    ref._restore_state(
        RefinementState(
            structure=structure,
            instrument=instrument,
            mode=mode,
            free_declared=True,
            two_theta_limits=limits,
            reflections=[ReflectionState.model_validate(item) for item in reflections],
        )
    )
    return ref


def build_table(ref: Any) -> Any:
    """Return the parameter table of the working state, ties, holds and extra bounds applied, nothing free."""
    table = ref._working_table()
    table.set_vary(["*"], False)
    return table


def compiled(
    structure: Any,
    instrument: Any,
    pattern: Any,
    *,
    mode: str,
    limits: tuple[float, float] | None,
    moving: set[str] | None = None,
    area: float = WINDOW_AREA,
) -> Any:
    """Return the forward model at the models' values.

    ``moving`` None makes no claim about what may move, so that what comes out is a function of the
    values alone and not of which parameters happen to be free. ``area`` is what windows leave out.
    """
    return compile_model(
        structure,
        instrument,
        pattern,
        mode=mode,
        two_theta_limits=limits,
        moving_paths=moving,
        window_area_tol=area,
    )


def _remember_orbits() -> None:
    """Let rietx work out the orbit of a position once.

    A pure function of group and position that takes 30 ms in a cubic group and is asked for dozens of
    times in a fit: unremembered, it was three quarters of a step on a garnet.
    """
    plain = symmetry.site_orbit

    @functools.lru_cache(maxsize=8192)
    def remembered(_key: object, position: bytes, tolerance: float, group: Any) -> Any:
        orbit = plain(group.value, np.frombuffer(position), tol=tolerance)
        for item in vars(orbit).values():
            if isinstance(item, np.ndarray):
                item.flags.writeable = False
        return orbit

    def site_orbit(sg: Any, xyz: Any, *, tol: float = symmetry.SITE_TOL) -> Any:
        position = np.asarray(xyz, dtype=np.float64).reshape(3).tobytes()
        return remembered(symmetry.group_key(sg), position, float(tol), _Unhashed(sg))

    for module in (symmetry, wyckoff, structure_factor):
        if hasattr(module, "site_orbit"):
            module.site_orbit = site_orbit


def _remember_bases() -> None:
    """Let rietx work out once what a site or a lattice allows: exact fractions in Python, a fifth of a short step."""
    for home, name in ((wyckoff, "coordinate_basis"), (wyckoff, "adp_basis"), (stephens, "strain_basis")):
        once = _remembering(getattr(home, name))
        for module in (home, vector):
            setattr(module, name, once)


def _remembering(plain: Callable[[list[np.ndarray]], np.ndarray]) -> Callable[[list[np.ndarray]], np.ndarray]:
    @functools.lru_cache(maxsize=4096)
    def remembered(rotations: bytes) -> np.ndarray:
        return plain(list(np.frombuffer(rotations, dtype=np.int64).reshape(-1, 3, 3)))

    def basis(rotations: list[np.ndarray]) -> np.ndarray:
        return remembered(np.asarray(rotations, dtype=np.int64).tobytes()).copy()

    return basis


def _remember_reflections() -> None:
    """Let rietx list the reflections of a cell once: a step compiles a score of models of the same cells."""
    plain = forward.generate_reflections

    @functools.lru_cache(maxsize=64)
    def remembered(_key: object, group: Any, cell: tuple[float, ...], *limits: float, **options: bool) -> Any:
        return plain(group.value, cell, *limits, **options)

    def generate_reflections(group: Any, cell: Any, *limits: float, **options: bool) -> Any:
        lengths = tuple(float(value) for value in cell)
        found = remembered(symmetry.group_key(symmetry.as_group(group)), _Unhashed(group), lengths, *limits, **options)
        arrays = {name: value.copy() for name, value in vars(found).items() if isinstance(value, np.ndarray)}
        return dataclasses.replace(found, **arrays)

    forward.generate_reflections = generate_reflections
    # asked reflection by reflection, in Python, for the same lines of the same widths again and again
    forward.fcj_node_count = functools.lru_cache(maxsize=2**16)(forward.fcj_node_count)


@dataclass(frozen=True, eq=False)
class _Unhashed:
    """Carries a value through a cache without being part of its key."""

    value: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Unhashed)

    def __hash__(self) -> int:
        return 0


def _phases_all_free(table: Any) -> bool:
    """Return whether every phase has a free cell: the lines of one that holds its cell give a wavelength its scale."""
    cells = [(entry.path.partition(".cell."), bool(entry.vary)) for entry in table.entries if ".cell." in entry.path]
    return {phase for (phase, _, _), free in cells if free} == {phase for (phase, _, _), _ in cells}


def _check_wavelength(table: Any, plain: Callable[[Any], None] = ParameterTable.check_wavelength_against_cell) -> None:
    if _phases_all_free(table):
        plain(table)


ParameterTable._cell_is_free = _phases_all_free
ParameterTable.check_wavelength_against_cell = _check_wavelength
_remember_orbits()
_remember_bases()
_remember_reflections()


@dataclass(frozen=True)
class Answer:
    """The covariance that the last fit's esds were read from.

    Args:
        table: the parameter table of the answer.
        theta: free vector, shape (k,).
        stderr: esds of the free vector, shape (k,), Berar-Lelann factor included.
        correlation: shape (k, k), or None.
    """

    table: Any
    theta: np.ndarray
    stderr: np.ndarray | None
    correlation: np.ndarray | None

    def covariance(self, paths: list[str]) -> np.ndarray:
        """Return the covariance of free or tied entries, shape (n, n), in rietx's units."""
        if self.stderr is None:
            return np.zeros((len(paths), len(paths)))
        return np.asarray(self.table.physical_covariance(self.theta, self.stderr, self.correlation, paths))

    def esds(self) -> dict[str, float]:
        """Return the esd of every free or tied entry that the data measured, by path."""
        if self.stderr is None:
            return {}
        return dict(self.table.stderr_physical(self.theta, self.stderr, self.correlation))


def answer_covariance(ref: Any) -> Answer:
    """Return the covariance of the last fit of a refinement object."""
    _, table, theta, stderr, correlation = ref._answer_covariance
    return Answer(table, np.asarray(theta), stderr, correlation)


def shaped(model: Any, index: int, values: dict[str, float]) -> Callable[[Any, dict[str, float]], np.ndarray]:
    """Return what gives a phase's pattern, shape (n,), for values that change nothing but its intensities.

    The lines' shapes are computed once; the pattern is that of ``phase_component`` to the last bit. The function takes
    the model whose intensities are meant, which may be another one of the same lines, and the values.
    """
    layout = model.phases[index].batch
    axial = (values["instrument.geometry.axial_sl"], values["instrument.geometry.axial_hl"])
    peaks = model.phase_peaks(index, values)
    position, first, second = (layout.gather(peaks, number) for number in range(3))
    planes = model._omega_batch(
        layout, position, first, second, np.isfinite(position), *axial, compiled_kernels.SPELL_FORWARD
    )

    def pattern(other: Any, changed: dict[str, float]) -> np.ndarray:
        intensities = layout.gather(other.phase_peaks(index, changed), 3)
        return np.asarray(accumulate_planes(len(model.tt), [(layout, [(intensities, planes)])]))

    return pattern


def jacobian_and_residual(model: Any, table: Any, theta: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the weighted Jacobian (rows, free columns) and residual (rows,) of a table's free set.

    Without ``theta`` where the table stands. In a profile match the intensities are those of the model now.
    """
    theta = table.x0() if theta is None else theta
    return np.asarray(_jacobian_for(model, table, "numpy")(theta)), np.asarray(_make_residual(model, table)(theta))


def table_of(structure: Any, instrument: Any) -> Any:
    """Return a plain parameter table (no user ties) for reading values."""
    return ParameterTable(structure, instrument)
