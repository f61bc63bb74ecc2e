"""What the page shows: the report's figures written as text, ready for the template."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from autoxrd.domain.instrument import Geometry, Radiation
from autoxrd.domain.state import MeasuredValue
from autoxrd.report.details import Report
from autoxrd.report.facts import Fact, standard_facts
from autoxrd.report.figures import PHASE_COLOURS
from autoxrd.report.format import fixed, number, pretty
from autoxrd.report.histview import histogram_view, measured
from autoxrd.report.methods import ENGINE_NAMES
from autoxrd.report.model import ReportInput, Verdict
from autoxrd.report.parameters import ParameterRow, parameter_rows
from autoxrd.report.summary import PhaseReport
from autoxrd.report.words import VERDICT_WORDS, humanised, sentence, space_group_html, unit_words

__all__ = ["page_view"]

_VERDICT_TONE = {
    Verdict.ACCEPTED: "good",
    Verdict.ACCEPTED_WITH_WARNINGS: "warn",
    Verdict.ABSTAINED: "bad",
    Verdict.FAILED: "bad",
}


_CELL = ("a", "b", "c", "alpha", "beta", "gamma")
_TITLE_PHASES = 4
_BANNER_WARNINGS = 3
_PACKAGE_NAMES = {"autoxrd": "AutoXRD", "numpy": "NumPy", "python": "Python", "scipy": "SciPy", **ENGINE_NAMES}


def _r(subscript: str) -> Markup:
    return Markup("<i>R</i><sub>{}</sub>").format(subscript)


def _tiles(inp: ReportInput, report: Report) -> list[Fact]:
    q = report.quality
    ratio = report.unexplained_peak_ratio
    return [
        Fact(_r("wp"), f"{fixed(q.rwp_percent, 2)} %", Markup("expected: {} %").format(fixed(q.rexp_percent, 2))),
        Fact("Goodness of fit", fixed(q.gof, 2), "1 is the noise limit"),
        Fact("Unexplained peaks", "–" if ratio is None else f"{fixed(100 * ratio, 2)} %", "share of the peak area"),
        Fact("Parameters", str(q.n_parameters), f"on {q.n_points:,} points".replace(",", "\u202f")),
        *_lattice(report),
    ]


def _lattice(report: Report) -> list[Fact]:
    """Return what a profile match says of its lattice; nothing of a structure."""
    match = report.match
    if match is None:
        return []
    return [
        Fact("Lines with an intensity", f"{match.lines_seen} of {match.lines}", "profile match: intensities are free"),
        Fact("Figure of merit", fixed(match.figure_of_merit, 1), match.figure_of_merit_of),
    ]


def _quality(report: Report) -> list[Fact]:
    q = report.quality
    return [
        Fact(_r("wp"), f"{fixed(q.rwp_percent, 3)} %", "weighted profile R factor"),
        Fact(
            Markup("<i>R</i><sub>wp</sub>, background-corrected"),
            f"{fixed(q.rwp_without_background_percent, 3)} %",
            "background taken off the observed intensities",
        ),
        Fact(_r("exp"), f"{fixed(q.rexp_percent, 3)} %", "what counting statistics allow"),
        Fact("Goodness of fit", fixed(q.gof, 3), Markup("<i>R</i><sub>wp</sub> / <i>R</i><sub>exp</sub>")),
        Fact(_r("p"), f"{fixed(q.rp_percent, 3)} %", "profile R factor, unweighted"),
        Fact(Markup("Points, <i>N</i>"), str(q.n_points), ""),
        Fact(Markup("Parameters, <i>P</i>"), str(q.n_parameters), ""),
    ]


def _numerics(inp: ReportInput) -> list[Fact]:
    c, k = inp.state.convergence, inp.state.complexity
    facts = [
        Fact(
            "Convergence",
            f"{'yes' if c.converged else 'no'}, {c.cycles} cycles",
            "" if c.max_shift_over_esd is None else f"largest shift/esd {number(c.max_shift_over_esd, digits=2)}",
        )
    ]
    if c.dropped:
        facts.append(Fact("Held as singular", ", ".join(c.dropped), ""))
    if k.max_correlation is not None:
        pair = " – ".join(k.max_correlation_pair or ())
        facts.append(Fact("Largest correlation", fixed(k.max_correlation, 3), pair))
    return facts


def _instrument(inp: ReportInput, report: Report) -> list[Fact]:
    ins, found = inp.job.instrument, report.instrument
    geometry = "Bragg–Brentano" if ins.geometry is Geometry.BRAGG_BRENTANO else "Debye–Scherrer"
    radiation = "neutrons" if ins.radiation is Radiation.NEUTRON else "X-rays"
    waves = ", ".join(f"{w:.7g}" for w in found.wavelengths_angstrom)
    ratios = " : ".join(f"{line.relative_intensity:g}" for line in ins.lines)
    beam = Fact("Wavelengths", f"{waves} Å", f"intensities {ratios}" if len(ins.lines) > 1 else "")
    facts = [
        Fact("Radiation", radiation),
        beam if ins.flight is None else Fact("Time of flight", f"bank at {ins.flight.two_theta_deg:g}°"),
        Fact("Geometry", geometry, _radius(ins.goniometer_radius_mm)),
    ]
    if found.zero_deg is not None:
        facts.append(Fact("Zero offset", f"{measured(found.zero_deg)}°", _held(found.zero_deg)))
    if found.displacement_mm is not None:
        facts.append(Fact("Displacement", f"{measured(found.displacement_mm)} mm", _held(found.displacement_mm)))
    for p in inp.state.parameters:
        if ins.flight is not None and p.name == "instrument.zero":
            facts.append(Fact("Zero offset", f"{pretty(p.value, p.esd)} µs", "" if p.released else "not refined"))
        if p.name.startswith("sample.offset") and (p.released or p.value != 0):
            label = f"Offset {p.name.removeprefix('sample.offset_')} the beam"
            facts.append(Fact(label, f"{pretty(p.value, p.esd)} mm", "" if p.released else "not refined"))
    if ins.origin:
        facts.append(Fact("Settings from", "", ins.origin))
    return facts


def _radius(radius: float | None) -> str:
    return "" if radius is None else f"goniometer radius {number(radius)} mm"


def _held(m: MeasuredValue) -> str:
    return "not refined" if m.esd is None else ""


@dataclass(frozen=True, slots=True)
class AtomView:
    """One atom as written in the table."""

    label: str
    species: str
    x: str
    y: str
    z: str
    occupancy: str
    u_iso: str
    multiplicity: int


@dataclass(frozen=True, slots=True)
class PhaseView:
    """One phase as written in the table."""

    name: str
    title: str
    colour: str
    space_group: Markup
    cell: tuple[str, ...]
    cell_uncertainty: str
    certified: bool
    weight_uncertainty: str
    volume: str
    weight_percent: str
    r_bragg: str
    density: str
    detection_percent: str
    absolute_percent: str
    atoms: tuple[AtomView, ...]


def _atoms(inp: ReportInput, index: int) -> tuple[AtomView, ...]:
    structure = inp.structures[index]
    esd = {p.name: p.esd for p in inp.state.parameters}

    def written(label: str, quantity: str, value: float | None) -> str:
        return pretty(value, esd.get(f"phase.{structure.name}.atom.{label}.{quantity}"), digits=5)

    return tuple(
        AtomView(
            label=a.label,
            species=a.species,
            x=written(a.label, "x", a.x),
            y=written(a.label, "y", a.y),
            z=written(a.label, "z", a.z),
            occupancy=written(a.label, "occupancy", a.occupancy),
            u_iso=written(a.label, "uiso", a.u_iso),
            multiplicity=a.multiplicity,
        )
        for a in structure.atoms
    )


def _cell_uncertainty(phase: PhaseReport) -> str:
    """Write how uncertain the cell is; edges that symmetry makes equal are written once."""
    told, written = set(), []
    for name in _CELL:
        value = phase.cell_uncertainty.get(name)
        length = getattr(phase.cell, name).value
        if value is None or (name in "abc" and length in told):
            continue
        told.add(length)
        written.append(f"{name} ± {number(value, digits=2)} {'Å' if name in 'abc' else '°'}")
    return ", ".join(written)


def _phases(inp: ReportInput, report: Report) -> list[PhaseView]:
    density = {p.name: p for p in inp.state.parameters if p.name.endswith(".density")}
    views = []
    for i, phase in enumerate(report.phases):
        cell, found = phase.cell, density.get(f"phase.{phase.name}.density")
        views.append(
            PhaseView(
                name=phase.name,
                title=inp.structures[i].title,
                colour=PHASE_COLOURS[i % len(PHASE_COLOURS)],
                space_group=space_group_html(phase.space_group),
                cell=tuple(measured(m) for m in (cell.a, cell.b, cell.c, cell.alpha, cell.beta, cell.gamma)),
                cell_uncertainty=_cell_uncertainty(phase),
                certified=phase.cell_certified,
                weight_uncertainty=(
                    ""
                    if phase.weight_fraction_uncertainty is None
                    else f"± {number(100 * phase.weight_fraction_uncertainty, digits=2)} %"
                ),
                volume=measured(cell.volume),
                weight_percent=measured(phase.weight_fraction, scale=100, digits=4),
                r_bragg=fixed(phase.r_bragg_percent, 2),
                density="–" if found is None else pretty(found.value, found.esd, digits=4),
                detection_percent=fixed(phase.detection_limit, 2, scale=100),
                absolute_percent=measured(phase.absolute_weight_fraction, scale=100, digits=4),
                atoms=_atoms(inp, i),
            )
        )
    return views


@dataclass(frozen=True, slots=True)
class ParameterView:
    """One line of the parameter table."""

    row: ParameterRow
    value: str
    uncertainty: str
    unit: str
    bounds: str
    status: str
    at_bound: bool


def _parameter(row: ParameterRow) -> ParameterView:
    limits = (row.lower, row.upper)
    bounds = "" if limits == (None, None) else f"{_limit(row.lower, '−∞')} … {_limit(row.upper, '∞')}"
    near = [v for v in limits if v is not None and abs(row.value - v) <= 1e-9 * max(1.0, abs(v))]
    status = "refined" if row.released else "derived" if row.derived else "held"
    return ParameterView(
        row=row,
        value=pretty(row.value, row.esd),
        uncertainty="" if row.uncertainty is None else pretty(row.uncertainty, digits=2),
        unit=unit_words(row.unit),
        bounds=bounds,
        status=status,
        at_bound=bool(near) and row.released,
    )


def _limit(value: float | None, missing: str) -> str:
    return missing if value is None else number(value, digits=4).replace("-", "−")


@dataclass(frozen=True, slots=True)
class FeatureView:
    """One residual feature as written in the table."""

    name: str
    available: bool
    value: str
    unit: str
    significance: str
    n_used: str
    reason: str


def _features(inp: ReportInput) -> list[FeatureView]:
    return [
        FeatureView(
            name=name,
            available=f.available and f.value is not None,
            value=pretty(f.value, f.esd, digits=4),
            unit=unit_words(f.unit),
            significance=fixed(f.significance, 1, missing=""),
            n_used="" if f.n_used is None else str(f.n_used),
            reason=f.reason,
        )
        for name, f in inp.state.features.items()
    ]


def _versions(inp: ReportInput, report: Report) -> list[Fact]:
    job = inp.job
    facts = [Fact(_PACKAGE_NAMES.get(k, k), v) for k, v in sorted(job.versions.items())]
    return [
        *facts,
        Fact("Planner", job.planner),
        Fact("Gate policy", job.policy_name, job.policy_hash),
        *(
            Fact("Pattern", seen.job.pattern_name, seen.job.pattern_sha256)
            for seen in (inp.histograms.values() or [inp])
        ),
        *(Fact("Structure", s.source_name or s.name, s.source_sha256) for s in job.structures),
        Fact("Decision graph", "", report.graph_root),
        Fact("Final state", "", report.final_state),
    ]


def _title(inp: ReportInput) -> str:
    names = [p.name for p in inp.state.phases]
    more = f" and {len(names) - _TITLE_PHASES} more" if len(names) > _TITLE_PHASES else ""
    phases = ", ".join(names[:_TITLE_PHASES]) + more
    patterns = " + ".join(seen.job.pattern_name for seen in (inp.histograms.values() or [inp]))
    return f"{patterns}: {phases}" if phases else patterns


def _banner(inp: ReportInput) -> list[str]:
    """Say why the verdict is what it is; where the job names no reason, its warnings are the reason."""
    notices = inp.reasons or inp.warnings[:_BANNER_WARNINGS]
    if notices:
        return [sentence(n.text) or humanised(n.code) for n in notices]
    if inp.verdict is Verdict.ACCEPTED:
        return ["The last refinement converged, every hard check holds and there is nothing to warn of."]
    return []


def _time_words(report: Report) -> str:
    """Say where the time went; a resumed job's engine time is that of all its sessions."""
    if report.wall_seconds == report.engine.seconds == 0.0:
        return "left out, so that equal jobs give equal reports"
    engine = f"{fixed(report.engine.seconds, 1)} s in {ENGINE_NAMES.get(report.engine.name, report.engine.name)}"
    wall = f"{fixed(report.wall_seconds, 1)} s"
    if report.wall_seconds < report.engine.seconds:
        return f"{engine}; resumed, the last session took {wall}"
    return f"{wall}, of which {engine}"


def page_view(inp: ReportInput, report: Report) -> dict[str, Any]:
    """Return the names that the template uses."""
    return {
        "report": report,
        "details": report.details,
        "title": _title(inp),
        "banner": _banner(inp),
        "time_words": _time_words(report),
        "verdict_words": VERDICT_WORDS[inp.verdict],
        "verdict_tone": _VERDICT_TONE[inp.verdict],
        "engine_name": ENGINE_NAMES.get(report.engine.name, report.engine.name),
        "tiles": _tiles(inp, report),
        "quality": [*_quality(report), *_numerics(inp)],
        "instrument": _instrument(next(iter(inp.histograms.values()), inp), report),
        "histograms": [histogram_view(name, seen) for name, seen in inp.histograms.items()],
        "phases": _phases(inp, report),
        "amorphous": standard_facts(report.amorphous),
        "detection_esds": inp.job.detection_esds,
        "parameters": [_parameter(r) for r in parameter_rows(inp)],
        "features": _features(inp),
        "versions": _versions(inp, report),
        "profile_file": "profile.csv" if not inp.histograms else "the profile files",
        "peaks": inp.state.unexplained_peaks,
        "timed": inp.job.instrument.flight is not None,
        "violations": inp.state.violations,
    }
