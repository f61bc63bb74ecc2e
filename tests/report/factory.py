"""A synthetic job: two phases with real structures, a pattern with noise and one unexplained peak."""

from __future__ import annotations

import dataclasses
from typing import Any

import gemmi
import numpy as np

from autoxrd.domain.action import Action, ActionKind, Bound, Evidence, Prediction, Stage
from autoxrd.domain.decision import Decision, GateCheck, PredictionOutcome
from autoxrd.domain.instrument import ANODE_LINES, Geometry, Instrument, Profile, Radiation
from autoxrd.domain.pattern import FloatArray, Notice
from autoxrd.domain.state import (
    Complexity,
    Convergence,
    Correlation,
    Feature,
    FitState,
    MeasuredValue,
    ParameterValue,
    PhaseSummary,
    Quality,
    UnexplainedPeak,
    Violation,
)
from autoxrd.domain.structure import AtomSite, CrystalStructure, UnitCell
from autoxrd.engines.protocol import ReflectionTable
from autoxrd.report.model import FitArrays, JobInfo, ReportInput, StepRecord, Verdict

HOSTILE = "<script>window.hacked=1</script>\"'</script><img src=x onerror=window.hacked=1>"
INSTRUMENT = Instrument(
    radiation=Radiation.XRAY,
    geometry=Geometry.BRAGG_BRENTANO,
    lines=ANODE_LINES["Cu"],
    polarization=0.5,
    goniometer_radius_mm=220.0,
    profile=Profile(u=0.0002, v=-0.0002, w=0.0022, x=0.02, y=0.03, s_l=0.02, h_l=0.02),
    origin="anode Cu",
)


def structure(
    name: str, group: str, cell: tuple[float, ...], sites: list[tuple[Any, ...]], title: str
) -> CrystalStructure:
    sg = gemmi.SpaceGroup(group)
    atoms = []
    for label, species, element, x, y, z, occ, u in sites:
        images = {tuple(round((v + 1e-6) % 1.0, 4) for v in op.apply_to_xyz([x, y, z])) for op in sg.operations()}
        atoms.append(AtomSite(label, species, element, x, y, z, occ, u, None, len(images)))
    return CrystalStructure(
        name=name,
        title=title,
        space_group=group,
        space_group_number=sg.number,
        operations=tuple(op.triplet() for op in sg.operations()),
        cell=UnitCell(*cell),
        atoms=tuple(atoms),
        formula="Ca5 F O12 P3" if name == "fluorapatite" else "Al2 O3",
        source_name=f"{name}.cif",
        source_sha256="ab" * 32,
    )


def structures() -> tuple[CrystalStructure, CrystalStructure]:
    apatite = [
        ("Ca1", "Ca2+", "Ca", 1 / 3, 2 / 3, 0.00105, 1.0, 0.0105),
        ("Ca2", "Ca2+", "Ca", 0.24222, -0.00714, 0.25, 1.0, 0.0091),
        ("P1", "P", "P", 0.39838, 0.36842, 0.25, 1.0, 0.0064),
        ("O1", "O2-", "O", 0.32642, 0.48442, 0.25, 1.0, 0.0102),
        ("O2", "O2-", "O", 0.58712, 0.46682, 0.25, 1.0, 0.0132),
        ("O3", "O2-", "O", 0.34162, 0.25672, 0.07042, 1.0, 0.0151),
        ("F1", "F1-", "F", 0.0, 0.0, 0.25, 0.96, 0.0191),
    ]
    corundum = [
        ("Al1", "Al3+", "Al", 0.0, 0.0, 0.35216, 1.0, 0.0033),
        ("O1", "O2-", "O", 0.30624, 0.0, 0.25, 1.0, 0.0041),
    ]
    return (
        structure("fluorapatite", "P 63/m", (9.371723, 9.371723, 6.885867, 90.0, 90.0, 120.0), apatite, "Fluorapatite"),
        structure("corundum", "R -3 c:H", (4.758684, 4.758684, 12.990812, 90.0, 90.0, 120.0), corundum, "Corundum"),
    )


def _reflections_of(
    s: CrystalStructure, index: int, limits: tuple[float, float], scale: float
) -> list[tuple[Any, ...]]:
    cell = gemmi.UnitCell(*s.cell.as_tuple())
    sg = gemmi.SpaceGroup(s.space_group)
    ops = sg.operations()
    lines = ANODE_LINES["Cu"]
    d_min = lines[0].wavelength_angstrom / 2 / np.sin(np.radians(limits[1] / 2))
    rows = []
    for hkl in gemmi.make_miller_array(cell, sg, d_min, 30.0, unique=True):
        h = tuple(int(v) for v in hkl)
        d = cell.calculate_d(h)
        multiplicity = len(
            {tuple(op.apply_to_hkl(h)) for op in ops.sym_ops}
            | {tuple(-v for v in op.apply_to_hkl(h)) for op in ops.sym_ops}
        )
        f = 0j
        for a in s.atoms:
            z = (
                gemmi.Element(a.element).atomic_number
                * np.exp(-0.12 / d**2)
                * np.exp(-8 * np.pi**2 * (a.u_iso or 0.01) / (4 * d * d))
            )
            for op in ops:
                x = op.apply_to_xyz([a.x, a.y, a.z])
                f += z * a.occupancy * a.multiplicity / len(ops) * np.exp(2j * np.pi * np.dot(h, x))
        f2 = float(abs(f) ** 2)
        if f2 < 1:
            continue
        for j, line in enumerate(lines):
            theta = np.arcsin(line.wavelength_angstrom / 2 / d)
            tt = float(np.degrees(2 * theta))
            lp = (1 + np.cos(2 * theta) ** 2) / (np.sin(theta) ** 2 * np.cos(theta))
            fwhm = 0.06 + 0.03 * np.tan(theta)
            rows.append(
                (
                    index,
                    j,
                    h,
                    d,
                    tt,
                    fwhm,
                    0.5,
                    scale * multiplicity * f2 * lp * line.relative_intensity,
                    f2,
                    multiplicity,
                )
            )
    return [r for r in rows if limits[0] < r[4] < limits[1]]


def reflections(phases: tuple[CrystalStructure, ...], limits: tuple[float, float]) -> ReflectionTable:
    rows: list[tuple[Any, ...]] = []
    for i, s in enumerate(phases):
        rows += _reflections_of(s, i, limits, (4e-5, 3.8e-5)[i % 2])
    rows.sort(key=lambda r: (r[0], r[4]))
    columns = list(zip(*rows, strict=True)) if rows else [()] * 10
    floats = [np.array(columns[k], dtype=float) for k in (3, 4, 5, 6, 7, 8)]
    return ReflectionTable(
        phase=np.array(columns[0], dtype=np.int64),
        line=np.array(columns[1], dtype=np.int64),
        hkl=np.array(columns[2], dtype=np.int64).reshape(-1, 3),
        d_angstrom=floats[0],
        position=floats[1],
        fwhm=floats[2],
        eta=floats[3],
        intensity=floats[4],
        f2_calc=floats[5],
        multiplicity=np.array(columns[9], dtype=np.int64),
    )


def peak(x: FloatArray, center: float, fwhm: float) -> FloatArray:
    t = 2 * (x - center) / fwhm
    return 0.5 * (2 / np.pi / fwhm) / (1 + t * t) + 0.5 * np.sqrt(4 * np.log(2) / np.pi) / fwhm * np.exp(
        -np.log(2) * t * t
    )


def fit_arrays(refs: ReflectionTable, n_phases: int, limits: tuple[float, float], n: int) -> FitArrays:
    rng = np.random.default_rng(20)
    x = np.linspace(*limits, n)
    parts = np.zeros((n_phases, n))
    for i in range(refs.phase.size):
        c, w = refs.position[i], refs.fwhm[i]
        lo, hi = np.searchsorted(x, (c - 12 * w, c + 12 * w))
        parts[refs.phase[i], lo:hi] += refs.intensity[i] * peak(x[lo:hi], c, w)
    background = 90 + 160 * np.exp(-x / 25) + 10 * np.sin(x / 18)
    calc = background + parts.sum(axis=0)
    truth = background + 1.03 * parts.sum(axis=0) + 170 * 0.09 * peak(x, 37.3, 0.09) + 90 * 0.09 * peak(x, 44.7, 0.09)
    obs = rng.poisson(truth).astype(float)
    return FitArrays(
        x=x, y_obs=obs, sigma=np.sqrt(np.maximum(obs, 1)), y_calc=calc, background=background, phase_patterns=parts
    )


def quality(a: FitArrays, n_parameters: int, factor: float = 1.0) -> Quality:
    w = 1 / a.sigma**2
    swy2 = float(np.sum(w * a.y_obs**2))
    chi2 = float(np.sum(w * a.difference**2)) * factor**2
    nb = float(np.sum(w * (a.y_obs - a.background) ** 2))
    n = a.x.size
    rwp, rexp = (chi2 / swy2) ** 0.5, ((n - n_parameters) / swy2) ** 0.5
    absolute = float(np.sum(np.abs(a.difference)) / np.sum(np.abs(a.y_obs))) * factor
    return Quality(
        rp=absolute,
        rwp=rwp,
        rexp=rexp,
        gof=rwp / rexp,
        chi2=chi2,
        rwp_no_background=(chi2 / nb) ** 0.5,
        n_points=n,
        n_parameters=n_parameters,
        abs_residual=absolute,
        r_bragg={"fluorapatite": 0.0312, "corundum": 0.0274},
    )


def parameters() -> tuple[ParameterValue, ...]:
    p: list[ParameterValue] = []

    def add(name: str, value: float, esd: float | None = None, **kw: Any) -> None:
        p.append(
            ParameterValue(name=name, value=value, esd=esd, released=esd is not None and not kw.get("derived"), **kw)
        )

    for s in structures():
        b = f"phase.{s.name}."
        add(b + "scale", 1.234e-5, 1.9e-8)
        add(b + "cell.a", s.cell.a, 4.3e-5)
        add(b + "cell.b", s.cell.b, 4.3e-5, derived=True)
        add(b + "cell.c", s.cell.c, 5.8e-5)
        for angle in ("alpha", "beta", "gamma"):
            add(b + f"cell.{angle}", getattr(s.cell, angle))
        add(b + "size", 0.0412, 0.0019, lower=0.0, upper=2.0)
        add(b + "strain", 0.021, 0.004, lower=0.0, upper=2.0)
        add(b + "preferred_orientation", 1.0)
        for a in s.atoms:
            add(b + f"atom.{a.label}.x", a.x, 0.00012 if a.label not in {"Ca1", "F1", "Al1"} else None)
            add(b + f"atom.{a.label}.y", a.y, 0.00013 if a.label not in {"Ca1", "F1", "Al1", "O1"} else None)
            add(b + f"atom.{a.label}.z", a.z, 0.00016 if a.label in {"Ca1", "O3", "Al1"} else None)
            add(b + f"atom.{a.label}.occupancy", a.occupancy)
            add(b + f"atom.{a.label}.uiso", a.u_iso or 0.0, 0.00042, lower=0.0, upper=0.1)
        add(b + "weight_fraction", 0.7213 if s.name == "fluorapatite" else 0.2787, 0.0016, derived=True)
        add(b + "density", 3.199, 0.0001, derived=True)
        add(b + "cell.volume", gemmi.UnitCell(*s.cell.as_tuple()).volume, 0.0061, derived=True)
    for i, v in enumerate((118.2, -41.7, 20.3, -8.1, 3.3, -0.9)):
        add(f"background.{i}", v, 0.7)
    add("instrument.zero", 0.0)
    add("sample.displacement", -0.0512, 0.0011, lower=-0.5, upper=0.5)
    for k, v, e in (
        ("U", 2e-4, None),
        ("V", -2e-4, None),
        ("W", 0.00221, 4e-5),
        ("X", 0.0213, 0.0008),
        ("Y", 0.0304, 0.0021),
        ("S/L", 0.0231, 0.0004),
        ("H/L", 0.0231, 0.0004),
    ):
        add(f"profile.{k}", v, e)
    return tuple(p)


PLAN: list[
    tuple[ActionKind, Stage, tuple[str, ...], str, tuple[str, float, str, float], tuple[str, str, float], bool, float]
] = [
    (
        ActionKind.SCALE,
        Stage.INSTRUMENT,
        ("phase.*.scale",),
        "The calculated pattern is far too weak; set the scales first.",
        ("intensity.scale.fluorapatite", 2.31, "abs>", 0.05),
        ("rwp", "decrease", 0.3),
        True,
        5.2,
    ),
    (
        ActionKind.BACKGROUND,
        Stage.INSTRUMENT,
        ("background.*",),
        "A slow residual is left between the peaks.",
        ("background.slow", 0.41, ">", 0.1),
        ("background.slow", "decrease", 0.1),
        True,
        3.4,
    ),
    (
        ActionKind.ZERO,
        Stage.INSTRUMENT,
        ("instrument.zero",),
        "All peaks sit to one side of where they are calculated.",
        ("position.rms", 0.31, ">", 0.05),
        ("position.zero", "toward_zero", 0.01),
        False,
        3.1,
    ),
    (
        ActionKind.DISPLACEMENT,
        Stage.INSTRUMENT,
        ("sample.displacement",),
        "The offsets follow cos(theta): the specimen lies low.",
        ("position.displacement", -0.051, "abs>", 0.005),
        ("position.displacement", "toward_zero", 0.03),
        True,
        2.2,
    ),
    (
        ActionKind.LATTICE,
        Stage.INSTRUMENT,
        ("phase.*.cell",),
        "The offsets that remain grow with tan(theta).",
        ("position.cell", 2.1e-4, "abs>", 5e-5),
        ("position.rms", "decrease", 0.02),
        True,
        1.75,
    ),
    (
        ActionKind.PROFILE,
        Stage.INSTRUMENT,
        ("profile.W", "profile.X", "profile.Y"),
        "Observed peaks are wider than calculated over the whole range.",
        ("width.low", 0.18, ">", 0.03),
        ("width.low", "toward_zero", 0.05),
        True,
        1.32,
    ),
    (
        ActionKind.PREFERRED_ORIENTATION,
        Stage.STRUCTURE,
        ("phase.corundum.preferred_orientation",),
        "The ratios of corundum depend on the angle to 0,0,1.",
        ("intensity.texture.corundum", 0.09, ">", 0.05),
        ("intensity.texture.corundum", "decrease", 0.05),
        False,
        1.31,
    ),
    (
        ActionKind.ASYMMETRY,
        Stage.INSTRUMENT,
        ("profile.SH/L",),
        "Low-angle peaks lean to low angles.",
        ("asymmetry.low_angle", -0.22, "abs>", 0.05),
        ("asymmetry.low_angle", "toward_zero", 0.1),
        True,
        1.18,
    ),
    (
        ActionKind.POSITIONS,
        Stage.STRUCTURE,
        ("phase.fluorapatite.atom.*.position", "phase.corundum.atom.*.position"),
        "The intensities scatter more than counting explains.",
        ("intensity.scatter.fluorapatite", 7.9, ">", 2.0),
        ("r_bragg.fluorapatite", "decrease", 0.004),
        True,
        1.08,
    ),
    (
        ActionKind.DISPLACEMENT_PARAMETERS,
        Stage.STRUCTURE,
        ("phase.fluorapatite.uiso", "phase.corundum.uiso"),
        "Observed over calculated intensities fall with s squared.",
        ("intensity.angle_trend", -0.61, "abs>", 0.1),
        ("intensity.angle_trend", "toward_zero", 0.2),
        True,
        1.03,
    ),
    (
        ActionKind.OCCUPANCY,
        Stage.STRUCTURE,
        ("phase.fluorapatite.atom.F1.occupancy",),
        "Fluorine may be deficient.",
        ("intensity.scatter.fluorapatite", 2.9, ">", 2.0),
        ("intensity.scatter.fluorapatite", "decrease", 0.5),
        False,
        1.029,
    ),
    (
        ActionKind.SIZE_STRAIN,
        Stage.MICROSTRUCTURE,
        ("phase.*.size", "phase.*.strain"),
        "The two phases differ in width.",
        ("width.high", 0.061, ">", 0.03),
        ("width.high", "toward_zero", 0.02),
        True,
        1.005,
    ),
    (
        ActionKind.JOINT,
        Stage.FINAL_AUDIT,
        ("phase.*.scale", "background.*", "sample.displacement", "phase.*.cell"),
        "All that was released, together, to the end.",
        ("rwp", 0.0852, ">", 0.0),
        ("rwp", "decrease", 1e-6),
        True,
        1.0,
    ),
]


def _checks(kind: ActionKind, accepted: bool, parent: Quality, child: Quality | None) -> tuple[GateCheck, ...]:
    rwp = None if child is None else child.rwp
    correlated = not accepted and kind is ActionKind.ZERO
    unmet = not accepted and kind is ActionKind.PREFERRED_ORIENTATION
    return (
        GateCheck(rule="preflight.selectors", passed=True),
        GateCheck(rule="preflight.evidence", passed=True, text="Each claim agrees with the record."),
        GateCheck(rule="engine", passed=True, text="Converged in 6 cycles."),
        GateCheck(
            rule="violations",
            passed=kind is not ActionKind.OCCUPANCY,
            codes=("occupancy_out_of_range",) if kind is ActionKind.OCCUPANCY else (),
            measured=1.043 if kind is ActionKind.OCCUPANCY else None,
            limit=1.0 if kind is ActionKind.OCCUPANCY else None,
            text="Occupancy of F1 leaves the interval 0 to 1." if kind is ActionKind.OCCUPANCY else "",
        ),
        GateCheck(
            rule="rwp", passed=True, measured=rwp, limit=1.02 * parent.rwp, text="Rwp against 1.02 times the parent's."
        ),
        GateCheck(rule="unexplained_peaks", passed=True, measured=0.012, limit=0.034),
        GateCheck(
            rule="correlation",
            passed=not correlated,
            codes=("correlation_too_high",) if correlated else (),
            measured=0.991 if correlated else 0.83,
            limit=0.98,
            text="instrument.zero with phase.fluorapatite.cell.a" if correlated else "",
        ),
        GateCheck(rule="predictions", passed=not unmet, codes=("prediction_not_met",) if unmet else ()),
        GateCheck(
            rule="utility",
            passed=accepted,
            codes=() if accepted else ("utility_not_better",),
            measured=-1.3,
            limit=-1.4,
        ),
    )


def steps(final: Quality, arrays: FitArrays) -> tuple[StepRecord, ...]:
    out, parent, q_parent, number = [], "s00", quality(arrays, 1, 7.0), 0
    for ordinal, (kind, stage, names, why, ev, pred, accepted, factor) in enumerate(PLAN, start=1):
        child = f"s{ordinal:02d}"
        q = final if ordinal == len(PLAN) else quality(arrays, 4 + 3 * ordinal, factor)
        prediction = Prediction(metric=pred[0], direction=pred[1], minimum_effect=pred[2])  # type: ignore[arg-type]
        unmet = not accepted and kind is ActionKind.PREFERRED_ORIENTATION
        outcome = PredictionOutcome(
            prediction=prediction,
            before=ev[1],
            after=ev[1] * (0.97 if unmet else 0.2),
            effect=abs(ev[1]) * (0.03 if unmet else 0.8),
            met=not unmet,
            of_mechanism=kind is not ActionKind.JOINT,
        )
        checks = _checks(kind, accepted, q_parent, q)
        reasons = tuple(c for check in checks for c in check.codes)
        decision = Decision(
            accepted=accepted,
            numerically_better=True,
            mechanism_supported=not unmet,
            admissible=kind is not ActionKind.OCCUPANCY,
            reasons=reasons,
            checks=checks,
            predictions=(outcome,),
            utility_before=-1.4 - 0.1 * factor,
            utility_after=-1.3 - 0.1 * factor,
            policy_name="default",
            policy_hash="c0ffee" * 10,
            details={
                c: f"{c.replace('_', ' ').capitalize()}: measured and limit are in the gate table." for c in reasons
            },
        )
        action = Action(
            kind=kind,
            stage=stage,
            parameters=names,
            rationale=why,
            parent=parent,
            bounds=(Bound(selector=names[0], lower=0.0, upper=1.0),) if kind is ActionKind.OCCUPANCY else (),
            evidence=(Evidence(feature=ev[0], value=ev[1], comparison=ev[2], threshold=ev[3], source=parent),),  # type: ignore[arg-type]
            predictions=(prediction,),
        )
        violations = (
            (
                Violation(
                    code="occupancy_out_of_range",
                    subject="phase.fluorapatite.atom.F1",
                    value=1.043,
                    limit=1.0,
                    text="Occupancy of F1 is 1.043(12), above 1.",
                ),
            )
            if kind is ActionKind.OCCUPANCY
            else ()
        )
        out.append(
            StepRecord(
                ordinal=ordinal,
                action=action,
                decision=decision,
                parent_state=parent,
                candidate_state=child,
                quality_before=q_parent,
                quality_after=q,
                violations=violations,
                seconds=0.4 + 0.13 * ordinal,
            )
        )
        if accepted:
            parent, q_parent, number = child, q, number + 1
    return tuple(out)


def features() -> dict[str, Feature]:
    return {
        "rwp": Feature(value=0.0852),
        "lag1": Feature(value=0.18, esd=0.012, significance=15.0, n_used=6001),
        "bias_low": Feature(value=0.004),
        "structured_fraction": Feature(value=0.0021, n_used=6001),
        "unexplained_peak_ratio": Feature(value=0.0123, n_used=2),
        "position.zero": Feature(value=0.0004, esd=0.0003, significance=1.3, n_used=112, unit="deg"),
        "position.displacement": Feature(
            value=None, available=False, reason="zero and displacement cannot be told apart on 9 reflections", unit="mm"
        ),
        "width.low": Feature(value=0.011, esd=0.006, significance=1.8, n_used=38),
        "intensity.angle_trend": Feature(value=-0.02, esd=0.03, significance=0.7, n_used=98, unit="angstrom^2"),
    }


def report_input(
    *, n: int = 6001, limits: tuple[float, float] = (15.0, 120.0), n_phases: int = 2, **changes: Any
) -> ReportInput:
    """Build the synthetic job; ``changes`` replace fields of the result."""
    phases = structures()[:n_phases]
    refs = reflections(phases, limits)
    arrays = fit_arrays(refs, len(phases), limits, n)
    q = quality(arrays, 41)
    rows = tuple(p for p in parameters() if n_phases > 1 or not p.name.startswith("phase.corundum"))
    by_name = {p.name: MeasuredValue(value=p.value, esd=p.esd) for p in rows}
    summaries = tuple(
        PhaseSummary(
            name=s.name,
            space_group=s.space_group,
            weight_fraction=by_name[f"phase.{s.name}.weight_fraction"] if n_phases > 1 else MeasuredValue(value=1.0),
            cell={k: by_name[f"phase.{s.name}.cell.{k}"] for k in ("a", "b", "c", "alpha", "beta", "gamma", "volume")},
            r_bragg=q.r_bragg[s.name],
            intensity_share=0.5,
        )
        for s in phases
    )
    state = FitState(
        stage=Stage.FINAL_AUDIT,
        engine="rietx",
        engine_version="1.10.0",
        snapshot="a" * 64,
        arrays="b" * 64,
        quality=q,
        features=features(),
        violations=(
            Violation(
                code="size_at_lower_bound",
                subject="phase.corundum.size",
                value=0.0,
                limit=0.0,
                text="The Lorentzian size of corundum sits at its lower bound.",
                severity="soft",
            ),
        ),
        complexity=Complexity(
            n_free=41,
            n_points=n,
            max_correlation=0.91,
            max_correlation_pair=("profile.X", "phase.fluorapatite.size"),
            high_correlations=(Correlation(first="profile.X", second="phase.fluorapatite.size", value=-0.91),),
            background_max_correlation=0.97,
            condition_number=4.1e5,
        ),
        convergence=Convergence(converged=True, cycles=7, max_shift_over_esd=0.004, status="converged"),
        parameters=rows,
        phases=summaries,
        unexplained_peaks=(
            UnexplainedPeak(two_theta_deg=37.3, d_angstrom=2.4088, area=15.2, area_share=0.0081, significance=9.7),
            UnexplainedPeak(two_theta_deg=44.7, d_angstrom=2.0257, area=8.1, area_share=0.0042, significance=6.1),
        ),
        released=("phase.*.scale", "background.*"),
    )
    job = JobInfo(
        pattern_name="FAP.XRA",
        pattern_sha256="0123456789abcdef" * 4,
        pattern_format="gsas-std",
        pattern_title="Fluorapatite with corundum, CuKa",
        instrument=INSTRUMENT,
        structures=phases,
        planner="rules",
        policy_name="default",
        policy_hash="c0ffee" * 10,
        versions={"autoxrd": "0.1.0", "rietx": "1.10.0", "python": "3.11.7", "numpy": "2.4.6", "gemmi": "0.7.5"},
        command="autoxrd refine FAP.XRA --structure fluorapatite.cif --structure corundum.cif --anode Cu",
        created="2026-01-15T09:30:00+00:00",
    )
    base = ReportInput(
        job=job,
        verdict=Verdict.ACCEPTED_WITH_WARNINGS,
        reasons=(
            Notice("converged", "The joint refinement converged and no hard check fails."),
            Notice("unexplained_peaks", "Two peaks that no phase explains hold 1.2 % of the peak area."),
        ),
        warnings=(
            Notice("unexplained_peaks", "Peaks at 37.30 and 44.70 degrees belong to no phase of the model."),
            Notice("systematic_qpa_error", "Weight fractions carry a systematic error of about 1 wt% beside the esd."),
        ),
        qc_notices=(Notice("sigma_from_counts", "The file has no uncertainties; counting statistics are assumed."),),
        state=state,
        state_id=f"s{len(PLAN):02d}",
        graph_root="s00",
        arrays=arrays,
        reflections=refs,
        structures=phases,
        steps=steps(q, arrays),
        graph={"schema": "autoxrd.graph/1", "root": "s00", "states": [], "edges": []},
        engine_files={"project.json": b'{"rietx": "1.10.0"}\n'},
        engine_seconds=14.2,
        wall_seconds=15.6,
    )
    return dataclasses.replace(base, **changes)
