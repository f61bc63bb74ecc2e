"""A small pattern simulator for the tests of the measures: a true model makes the data, another one the fit."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache

import gemmi
import numpy as np

from autoxrd.domain.instrument import EmissionLine, Geometry, Instrument, Radiation
from autoxrd.domain.state import Convergence, MeasuredValue, ParameterValue
from autoxrd.domain.structure import AtomSite, CrystalStructure, UnitCell
from autoxrd.engines.protocol import EngineResult, PhaseResult, ReflectionTable
from autoxrd.science.inputs import MeasureContext

CU = (EmissionLine(1.5405929), EmissionLine(1.5444274, 0.5))


@dataclass(frozen=True)
class Phase:
    name: str
    cell: tuple[float, float, float, float, float, float]
    space_group: str
    scale: float = 1.0
    delta_b: float = 0.0
    """Added to B, angstrom^2."""
    march: float = 1.0
    axis: tuple[int, int, int] = (0, 0, 1)
    seed: int = 1
    size_deg: float = 0.0
    strain_deg: float = 0.0


@dataclass(frozen=True)
class Model:
    phases: tuple[Phase, ...]
    lower: float = 15.0
    upper: float = 100.0
    step: float = 0.02
    lines: tuple[EmissionLine, ...] = CU
    zero: float = 0.0
    displacement_mm: float = 0.0
    radius_mm: float = 200.0
    geometry: Geometry = Geometry.BRAGG_BRENTANO
    u: float = 0.004
    v: float = -0.002
    w: float = 0.006
    x: float = 0.03
    y: float = 0.03
    asymmetry: float = 0.0
    """Skewness at 2theta = 30 deg, falling as cot(theta)."""
    axial: float = 0.0
    """(S + H) / L of equal slits: a tail towards low angle, (S + H)^2 / (2 L^2) cot(2theta) radians long."""
    background: tuple[float, ...] = (60.0, -20.0, 10.0)
    """Chebyshev coefficients over the range."""
    counts: float = 5.0e4
    """Area scale, counts degree."""
    names: tuple[str, ...] = field(default=())


@lru_cache(maxsize=64)
def _hkl(cell: tuple[float, ...], group: str, d_min: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    unit, sg = gemmi.UnitCell(*cell), gemmi.SpaceGroup(group)
    hkl = gemmi.make_miller_array(unit, sg, d_min)
    ops = sg.operations()
    multiplicity = np.array(
        [
            len(
                {tuple(op.apply_to_hkl(list(h))) for op in ops.sym_ops}
                | {tuple(-v for v in op.apply_to_hkl(list(h))) for op in ops.sym_ops}
            )
            for h in hkl
        ]
    )
    return hkl.astype(np.int64), np.array([unit.calculate_d(list(h)) for h in hkl]), multiplicity


def operations(group: str) -> tuple[str, ...]:
    return tuple(op.triplet() for op in gemmi.SpaceGroup(group).operations())


def march_factor(phase: Phase, hkl: np.ndarray) -> np.ndarray:
    """March-Dollase, averaged over the equivalents."""
    if phase.march == 1.0:
        return np.ones(len(hkl))
    unit = gemmi.UnitCell(*phase.cell)
    frac = np.array(unit.frac.mat.tolist())  # rows a* b* c* in cartesian
    axis = np.array(phase.axis) @ frac
    r = phase.march
    ops = [np.array(op.rot) // op.DEN for op in gemmi.SpaceGroup(phase.space_group).operations().sym_ops]
    total = np.zeros(len(hkl))
    for rot in ops:
        vector = (hkl @ rot) @ frac
        cosine2 = (vector @ axis) ** 2 / (np.sum(vector**2, axis=1) * (axis @ axis))
        total += (r**2 * cosine2 + (1 - cosine2) / r) ** -1.5
    return total / len(ops)


def reflections(model: Model) -> ReflectionTable:
    columns: dict[str, list] = {k: [] for k in ("phase", "line", "hkl", "d", "pos", "fwhm", "eta", "area", "mult")}
    shortest = min(line.wavelength_angstrom for line in model.lines)
    for index, phase in enumerate(model.phases):
        hkl, d, mult = _hkl(phase.cell, phase.space_group, 0.5 * shortest / np.sin(np.deg2rad(model.upper / 2 + 0.5)))
        rng = np.random.default_rng(phase.seed)
        # |F|^2 by hash of hkl, so that a changed cell keeps them
        key = (hkl[:, 0] * 73856093) ^ (hkl[:, 1] * 19349663) ^ (hkl[:, 2] * 83492791) ^ (phase.seed * 7919)
        f2 = np.array([np.random.default_rng(abs(int(k))).exponential(1.0) + 0.05 for k in key])
        del rng
        f2 = f2 * march_factor(phase, hkl)
        for number, line in enumerate(model.lines):
            sine = line.wavelength_angstrom / (2 * d)
            ok = sine < np.sin(np.deg2rad(85))
            theta = np.arcsin(np.where(ok, sine, 0.5))
            bragg = np.rad2deg(2 * theta)
            shift = np.full_like(bragg, model.zero)
            if model.geometry is Geometry.BRAGG_BRENTANO:
                shift -= np.rad2deg(2 * model.displacement_mm / model.radius_mm * np.cos(theta))
            else:
                shift += np.rad2deg(model.displacement_mm / model.radius_mm * np.cos(2 * theta))
            position = bragg + shift
            t = np.tan(theta)
            hg = np.sqrt(np.maximum(model.u * t**2 + model.v * t + model.w, 1e-8))
            hl = (model.x + phase.size_deg) / np.cos(theta) + (model.y + phase.strain_deg) * t
            total = (
                hg**5
                + 2.69269 * hg**4 * hl
                + 2.42843 * hg**3 * hl**2
                + 4.47163 * hg**2 * hl**3
                + 0.07842 * hg * hl**4
                + hl**5
            ) ** 0.2
            ratio = hl / total
            eta = 1.36603 * ratio - 0.47719 * ratio**2 + 0.11116 * ratio**3
            lp = (1 + np.cos(2 * theta) ** 2) / (np.sin(theta) ** 2 * np.cos(theta))
            area = (
                phase.scale
                * model.counts
                * mult
                * f2
                * lp
                * np.exp(-2 * (1.0 + phase.delta_b) * sine**2 / line.wavelength_angstrom**2)
            )
            area = area * line.relative_intensity * 1e-3
            ok &= (position > model.lower - 0.3) & (position < model.upper + 0.3)
            for name, values in (
                ("hkl", hkl),
                ("d", d),
                ("pos", position),
                ("fwhm", total),
                ("eta", eta),
                ("area", area),
                ("mult", mult),
            ):
                columns[name].append(values[ok])
            columns["phase"].append(np.full(int(ok.sum()), index))
            columns["line"].append(np.full(int(ok.sum()), number))
    joined = {k: np.concatenate(v) for k, v in columns.items()}
    return ReflectionTable(
        phase=joined["phase"].astype(np.int64),
        line=joined["line"].astype(np.int64),
        hkl=joined["hkl"].astype(np.int64).reshape(-1, 3),
        d_angstrom=joined["d"],
        position=joined["pos"],
        fwhm=joined["fwhm"],
        eta=joined["eta"],
        intensity=joined["area"],
        f2_calc=np.full(joined["d"].size, np.nan),
        multiplicity=joined["mult"].astype(np.int64),
    )


def axis(model: Model) -> np.ndarray:
    return model.lower + model.step * np.arange(round((model.upper - model.lower) / model.step) + 1)


def background(model: Model) -> np.ndarray:
    x = axis(model)
    return np.polynomial.chebyshev.chebval(2 * (x - x[0]) / (x[-1] - x[0]) - 1, model.background)


def phase_patterns(model: Model, table: ReflectionTable) -> np.ndarray:
    """Full pseudo-Voigts (tails to 100 FWHM), skewed when asked."""
    x = axis(model)
    out = np.zeros((len(model.phases), x.size))
    for p, pos, w, eta, area in zip(table.phase, table.position, table.fwhm, table.eta, table.intensity, strict=True):
        low, high = np.searchsorted(x, (pos - 100 * w, pos + 100 * w))
        t = x[low:high] - pos
        width = w
        if model.asymmetry:
            a = model.asymmetry / np.tan(np.deg2rad(pos / 2)) * np.tan(np.deg2rad(15.0))
            width = 2 * w / (1 + np.exp(np.clip(a * t / w, -30, 30)))
        z2 = (2 * t / width) ** 2
        shape = (
            eta * 2 / np.pi / (1 + z2) + (1 - eta) * 2 * np.sqrt(np.log(2) / np.pi) * np.exp(-np.log(2) * z2)
        ) / width
        out[p, low:high] += area * shape
    return _with_axial_tails(model, out)


def _with_axial_tails(model: Model, patterns: np.ndarray) -> np.ndarray:
    """Convolve with the distribution of axial divergence, 1 / sqrt(reach d) - 1 / reach, at its quantiles.

    At small angles (Finger, Cox & Jephcoat 1994, doi:10.1107/S0021889894004218). The mean shift is taken off, as a
    refined zero or cell would.
    """
    if not model.axial:
        return patterns
    x = axis(model)
    reach = np.rad2deg(0.5 * model.axial**2 / np.tan(np.deg2rad(x)))
    quantiles = (np.arange(60) + 0.5) / 60
    shifts = np.square(1.0 - np.sqrt(1.0 - quantiles))
    shifts -= shifts.mean()
    return np.stack([np.mean([np.interp(x + shift * reach, x, row) for shift in shifts], axis=0) for row in patterns])


def structure(phase: Phase) -> CrystalStructure:
    return CrystalStructure(
        name=phase.name,
        title=phase.name,
        space_group=phase.space_group,
        space_group_number=gemmi.SpaceGroup(phase.space_group).number,
        operations=operations(phase.space_group),
        cell=UnitCell(*phase.cell),
        atoms=(AtomSite("Si1", "Si", "Si", 0.0, 0.0, 0.0, 1.0, 0.006),),
    )


def instrument(model: Model) -> Instrument:
    return Instrument(Radiation.XRAY, model.geometry, model.lines, goniometer_radius_mm=model.radius_mm)


def context(model: Model, **changes: object) -> MeasureContext:
    base = MeasureContext(instrument(model), initial={p.name: structure(p) for p in model.phases})
    return replace(base, **changes)


def simulate(truth: Model, fit: Model, seed: int | None = 0) -> EngineResult:
    """Observed from ``truth`` (Poisson noise unless seed is None), calculated from ``fit``."""
    x = axis(fit)
    true_table = reflections(truth)
    y_true = background(truth) + phase_patterns(truth, true_table).sum(axis=0)
    y = np.random.default_rng(seed).poisson(y_true).astype(float) if seed is not None else y_true
    table = true_table if truth is fit else reflections(fit)
    patterns = phase_patterns(fit, table)
    level = background(fit)
    shares = np.array([table.intensity[table.phase == i].sum() for i in range(len(fit.phases))])
    phases = tuple(
        PhaseResult(
            name=p.name,
            space_group=p.space_group,
            weight_fraction=MeasuredValue(value=float(s / shares.sum()), esd=0.01),
            cell={
                k: MeasuredValue(value=v)
                for k, v in zip(("a", "b", "c", "alpha", "beta", "gamma"), p.cell, strict=True)
            }
            | {"volume": MeasuredValue(value=gemmi.UnitCell(*p.cell).volume)},
            structure=structure(p),
        )
        for p, s in zip(fit.phases, shares, strict=True)
    )
    names = tuple(f"phase.{p.name}.scale" for p in fit.phases) + tuple(
        f"background.{i}" for i in range(len(fit.background))
    )
    values = [p.scale for p in fit.phases] + list(fit.background)
    parameters = tuple(
        ParameterValue(name=n, value=v, esd=max(abs(v), 1e-3) * 0.01, released=True)
        for n, v in zip(names, values, strict=True)
    )
    return EngineResult(
        x=x,
        y_obs=y,
        sigma=np.sqrt(np.maximum(y, 1.0)),
        y_calc=patterns.sum(axis=0) + level,
        background=level,
        phase_patterns=patterns,
        reflections=table,
        phases=phases,
        parameters=parameters,
        covariance_names=names,
        covariance=np.diag([p.esd**2 for p in parameters if p.esd]),
        convergence=Convergence(converged=True, cycles=5, max_shift_over_esd=0.001, status="ok"),
        engine_r={},
        engine="simulated",
        engine_version="1",
    )


CORUNDUM = Phase("corundum", (4.7588, 4.7588, 12.9920, 90, 90, 120), "R -3 c:H", seed=3)
FLUORITE = Phase("fluorite", (5.4631, 5.4631, 5.4631, 90, 90, 90), "F m -3 m", seed=5)
ZINCITE = Phase("zincite", (3.2494, 3.2494, 5.2054, 90, 90, 120), "P 63 m c", seed=7)
ORTHO = Phase("ortho", (8.478, 5.397, 6.958, 90, 90, 90), "P n m a", seed=11)


def base(*phases: Phase, **changes: object) -> Model:
    return replace(Model(phases or (CORUNDUM,)), **changes)
