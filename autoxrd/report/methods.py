"""The methods section for a paper, generated from what was done, with its citations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from autoxrd.domain.action import ActionKind
from autoxrd.domain.instrument import ANODE_LINES, Geometry, Radiation
from autoxrd.domain.pattern import AxisKind, SigmaOrigin
from autoxrd.domain.standard import AMORPHOUS, MASS_ABSORPTION, ExternalStandard
from autoxrd.domain.state import PhaseSummary
from autoxrd.report.citations import CITATIONS
from autoxrd.report.format import fixed, number, pretty
from autoxrd.report.model import ReportInput, Verdict
from autoxrd.report.parameters import ParameterRow, accepted_path, parameter_rows

__all__ = ["ENGINE_NAMES", "MethodsText", "methods_text"]

ENGINE_NAMES = {"rietx": "rietx", "gsasii": "GSAS-II", "fullprof": "FullProf"}
"""How each engine is written."""

_ESD_SCALED_ENGINES = frozenset({"rietx"})
"""Engines whose esds already carry the Berar-Lelann factor."""

_INSTRUMENT_WORDS = {
    "instrument.zero": "the zero offset",
    "sample.displacement": "the specimen displacement",
    "sample.offset_along": "the specimen offset along the beam",
    "sample.offset_across": "the specimen offset across the beam",
    "sample.transparency": "the specimen transparency",
    "sample.roughness": "the roughness of its surface",
    "instrument.wavelength": "the wavelength",
    "instrument.ka2_ratio": "the Kα₂/Kα₁ ratio",
}
_PHASE_WORDS = {
    "scale": "scale factor",
    "cell": "unit cell",
    "x": "free coordinates",
    "y": "free coordinates",
    "z": "free coordinates",
    "uiso": "isotropic displacement parameters",
    "occupancy": "site occupancies",
    "size": "Lorentzian size broadening",
    "size_gauss": "Gaussian size broadening",
    "strain": "Lorentzian strain broadening",
    "strain_gauss": "Gaussian strain broadening",
    "preferred_orientation": "March–Dollase coefficient",
    "extinction": "extinction coefficient",
}
_DIRECTED_WORDS = {
    "preferred_orientation.C_": "coefficients of a texture in spherical harmonics",
    "strain.S": "coefficients of an anisotropic microstrain (Stephens)",
    "strain.axial": "uniaxial microstrain",
    "size.axial": "uniaxial size broadening",
    "u1": "anisotropic displacement parameters",
    "u2": "anisotropic displacement parameters",
    "u3": "anisotropic displacement parameters",
}


@dataclass(frozen=True, slots=True)
class MethodsText:
    """Paragraphs, and the keys of the cited works in the order of their first citation."""

    paragraphs: tuple[str, ...]
    cited: tuple[str, ...]


class _Cited:
    """Collects citations in the order in which the text uses them."""

    def __init__(self) -> None:
        self.keys: list[str] = []

    def __call__(self, *keys: str) -> str:
        self.keys += [k for k in keys if k not in self.keys]
        return "(" + "; ".join(CITATIONS[k].short for k in keys) + ")"


def joined(words: Iterable[str]) -> str:
    """Join words as in a sentence: ``a, b and c``."""
    items = list(dict.fromkeys(words))
    return " and ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)


def _radiation(inp: ReportInput, cite: _Cited) -> str:
    ins = inp.job.instrument
    waves = joined(f"{w:.6g} Å" for w in ins.wavelengths_angstrom)
    if ins.flight is not None:
        return f"neutrons by time of flight (bank at 2θ = {ins.flight.two_theta_deg:g}°)"
    if ins.radiation is Radiation.NEUTRON:
        return f"constant-wavelength neutrons (λ = {waves})"
    for anode, lines in ANODE_LINES.items():
        if ins.wavelengths_angstrom == tuple(line.wavelength_angstrom for line in lines):
            source = f"; {CITATIONS['hoelzer'].short}" if anode not in {"Mo", "Ag"} else ""
            if source:
                cite("hoelzer")
            return f"{anode} Kα X-rays (λ = {waves}{source})"
    return f"X-rays (λ = {waves})"


def _data(inp: ReportInput, cite: _Cited) -> str:
    x, job = inp.arrays.x, inp.job
    geometry = "Bragg–Brentano" if job.instrument.geometry is Geometry.BRAGG_BRENTANO else "Debye–Scherrer"
    axis, unit = {
        AxisKind.TWO_THETA: ("2θ", "°"),
        AxisKind.D_SPACING: ("d", " Å"),
        AxisKind.Q: ("Q", " Å⁻¹"),
        AxisKind.TOF: ("time of flight", " µs"),
    }[job.axis]
    span = f"{number(float(x[0]))} to {number(float(x[-1]))}{unit}" if x.size else "an empty range"
    steps = np.diff(x)
    uniform = steps.size > 0 and float(np.ptp(steps)) < 0.01 * float(np.median(steps))
    step = f" in steps of {number(float(np.median(steps)), digits=3)}{unit}" if uniform else ""
    sigma = (
        "uncertainties were used as measured"
        if job.sigma_origin is SigmaOrigin.MEASURED
        else "uncertainties were taken from counting statistics"
    )
    holes = joined(f"{number(lo)}–{number(hi)}{unit}" for lo, hi in job.excluded_regions)
    excluded = f" Excluded: {holes}." if holes else ""
    return (
        f"The powder pattern ({x.size} points, {axis} from {span}{step}) was measured with {_radiation(inp, cite)} in "
        f"{geometry} geometry; {sigma}.{excluded}"
    )


def _procedure(inp: ReportInput, cite: _Cited) -> str:
    engine = ENGINE_NAMES.get(inp.state.engine, inp.state.engine)
    own = f" {cite(inp.state.engine)}" if CITATIONS.get(inp.state.engine, CITATIONS["toby"]).doi else ""
    if inp.state.engine == "rietx":
        cite("rietx")
    path = accepted_path(inp.steps, inp.state_id)
    rejected = sum(not s.accepted for s in inp.steps)
    tries = f"{len(inp.steps)} attempt{'s' * (len(inp.steps) != 1)}"
    le_bail = (
        f" In between, cells and profile were brought in by profile matching without a structural model"
        f" {cite('le_bail', 'pawley')}; the structures were refined from there."
        if any(s.action.kind is ActionKind.PROFILE_MATCH for s in path)
        else ""
    )
    model = f"The structural model was refined by the Rietveld method {cite('rietveld')}"
    if inp.job.profile_match:
        model = (
            f"The pattern was fitted without a structural model by profile matching {cite('le_bail', 'pawley')}: lines"
            " stand where the cells have them, their intensities are free, none below zero, and are solved for with"
            " everything else in one least squares. It was done"
        )
    return (
        f"{model} with {engine} "
        f"{inp.state.engine_version}{own}, driven by AutoXRD {inp.job.versions.get('autoxrd', '')}".rstrip()
        + f" (planner {inp.job.planner}, gate policy {inp.job.policy_name}). Parameters were released one group at a "
        f"time after the guidelines of the IUCr Commission on Powder Diffraction {cite('mccusker')}; a step was kept "
        "only when the fit did not worsen, an effect that had been predicted for it was measured, and the model stayed "
        f"physically and statistically admissible. Of {tries}, {rejected} "
        f"{'was' if rejected == 1 else 'were'} rejected; the final state lies {len(path)} accepted "
        f"step{'s' * (len(path) != 1)} from the start.{le_bail}"
    )


def _profile(rows: tuple[ParameterRow, ...], cite: _Cited) -> str:
    values = {r.name: r for r in rows}
    background = sum(r.name.removeprefix("background.").isdigit() for r in rows)
    drawn = values.get("background.estimate_wave")
    sentences = [
        f"Peak shapes were described by the Thompson–Cox–Hastings pseudo-Voigt function {cite('tch')}, its Gaussian "
        f"width by the Caglioti law {cite('caglioti')}"
    ]
    axial = [values[k] for k in ("profile.S/L", "profile.H/L") if k in values]
    if any(r.released or r.value > 0 for r in axial):
        sentences.append(f"asymmetry by axial divergence {cite('fcj')}")
    if drawn is not None:
        sentences.append(
            "the background by a curve estimated from the pattern by asymmetrically reweighted penalised least squares "
            f"{cite('arpls')}, which follows waves from {fixed(drawn.value, 1)}° on and was held, and a function of "
            f"{background} coefficients"
        )
    elif background:
        sentences.append(f"the background by a function of {background} coefficients")
    return joined(sentences) + "."


def _phase_word(quantity: str) -> str | None:
    """Return what a phase's refined number is called; one that depends on direction under the name of its law."""
    for start, word in _DIRECTED_WORDS.items():
        if quantity.startswith(start):
            return word
    return _PHASE_WORDS.get(quantity.split(".")[0])


def _refined(inp: ReportInput, rows: tuple[ParameterRow, ...], cite: _Cited) -> str:
    free = [r for r in rows if r.released]
    common = [_INSTRUMENT_WORDS[r.name] for r in free if r.name in _INSTRUMENT_WORDS]
    profile = [r.quantity.removeprefix("profile.") for r in free if r.name.startswith("profile.")]
    if profile:
        common.append(f"the profile parameters {joined(profile)}")
    if any(r.name.startswith("background.") for r in free):
        common.append("the background")
    parts = [f"Refined in the last cycle were {joined(common)}"] if common else []
    for phase in inp.state.phases:
        own = [r for r in free if r.phase == phase.name]
        words = [word for r in own if (word := _phase_word(r.quantity))]
        if any(r.quantity == "preferred_orientation" for r in own):
            cite("march_dollase")
        if words:
            parts.append(f"for {phase.name} ({phase.space_group}) the {joined(words)}")
    quality = inp.state.quality
    held = inp.state.complexity.n_estimated
    counted = f" ({held} of them those that the estimated background counts as)" if held else ""
    count = f"{quality.n_parameters} parameters{counted} against {quality.n_points} points"
    if inp.job.profile_match:
        count = f"{quality.n_parameters} parameters, intensities among them, against {quality.n_points} points"
    return ("; ".join(parts) + f": {count}.") if parts else f"The last cycle refined {count}."


def _result(inp: ReportInput, cite: _Cited) -> str:
    q = inp.state.quality
    text = (
        f"The agreement factors {cite('toby')} of the final state are Rwp = {fixed(q.rwp, 2, scale=100)} %, "
        f"Rexp = {fixed(q.rexp, 2, scale=100)} %, goodness of fit = {fixed(q.gof, 2)}, "
        f"Rp = {fixed(q.rp, 2, scale=100)} % and, with the background subtracted from the observed intensities, "
        f"Rwp = {fixed(q.rwp_no_background, 2, scale=100)} %."
    )
    if inp.state.engine in _ESD_SCALED_ENGINES:
        text += (
            " Standard uncertainties are those of least squares, enlarged for serial correlation of the residuals "
            f"{cite('berar')}; systematic errors are not in them."
        )
    else:
        text += " Standard uncertainties are those of least squares; systematic errors are not in them."
    weighed = [p for p in inp.state.phases if p.weight_fraction is not None]
    if len(weighed) > 1:
        shares = joined(
            f"{p.name} {pretty(100 * m.value, None if m.esd is None else 100 * m.esd, digits=3)} %"
            for p in weighed
            if (m := p.weight_fraction) is not None
        )
        text += (
            f" Weight fractions follow from the scale factors {cite('hill_howard')} and are relative to the "
            f"crystalline phases of the model: {shares}."
            " The standard uncertainties of the report widen these by what mixtures of known composition are wrong by "
            f"beside the fit: {number(100 * inp.job.fraction_error)} % by weight at one half, as the square root of "
            "w(1 - w)."
        )
    return text + _certified(inp) + _standard(inp, cite) + _lattice(inp, cite)


def _certified(inp: ReportInput) -> str:
    """Write whose cell was held as certified, and what was fitted to it."""
    names = {known.phase: bool(known.values) for known in inp.job.known_cells}
    told = [
        f"{p.name} ({_edges(p)}; {'as stated' if names[p.name] else 'from its structure file'})"
        for p in inp.state.phases
        if p.name in names
    ]
    if not told:
        return ""
    movers = [word for name, word in _MOVERS.items() if any(r.endswith(name) for r in inp.state.released)]
    fitted = f"; {joined(movers)} and the other cells were fitted to its lines" if movers else ""
    return f" The certified cell of {joined(told)} was held as an internal standard for line positions{fitted}."


_MOVERS = {
    "instrument.zero": "the zero offset",
    "sample.displacement": "the specimen displacement",
    "sample.transparency": "the specimen transparency",
    "instrument.wavelength": "the wavelength",
    "instrument.difC": "DIFC",
}


def _edges(phase: PhaseSummary) -> str:
    """Write the cell lengths of a phase, equal ones once, and angles that are not right or 120 degrees."""
    cell, told = phase.cell, dict[float, str]()
    for key in ("a", "b", "c"):
        told.setdefault(cell[key].value, f"{key} = {number(cell[key].value, digits=7)} Å")
    names = {"alpha": "α", "beta": "β", "gamma": "γ"}
    angles = [f"{names[k]} = {number(cell[k].value, digits=7)}°" for k in names if cell[k].value not in (90.0, 120.0)]
    return ", ".join([*told.values(), *angles])


def _lattice(inp: ReportInput, cite: _Cited) -> str:
    """Write what a profile match proves of its lattice."""
    if not inp.job.profile_match:
        return ""
    value = {name: f.value for name, f in inp.state.features.items() if f.value is not None}
    text = ""
    if "match.lines" in value:
        text = (
            f" Of {value['match.lines']:.0f} calculated lines that can be told apart,"
            f" {value.get('match.lines_seen', 0.0):.0f} have an intensity."
        )
    merit = inp.state.features.get("match.figure_of_merit")
    if merit is not None and merit.value is not None:
        text += f" The figure of merit of the lattice {cite('de_wolff')} is {number(merit.value, digits=3)}"
        text += f" ({merit.reason})." if merit.reason else "."
    return text + " Weight fractions and agreement of intensities do not exist without a structure."


def _standard(inp: ReportInput, cite: _Cited) -> str:
    """Write what a standard gave."""
    values = {p.name: p for p in inp.state.parameters}
    amorphous, standard = values.get(AMORPHOUS), inp.job.standard
    if standard is None or amorphous is None:
        return ""
    share = pretty(100 * amorphous.value, None if amorphous.esd is None else 100 * amorphous.esd, digits=3)
    if isinstance(standard, ExternalStandard):
        absorption = values[MASS_ABSORPTION].value
        return _external(standard, f"{number(absorption, digits=4)} cm²/g", share) + f" {cite('external_standard')}."
    return (
        f" With {standard.phase} as internal standard ({number(100 * standard.weight_fraction)} % of the specimen by "
        f"weight, {number(100 * standard.crystallinity)} % of it crystalline) the amorphous or unidentified part of "
        f"the specimen is {share} % by weight {cite('internal_standard')}."
    )


def _external(standard: ExternalStandard, absorption: str, share: str) -> str:
    """Write what a standard that was measured apart gave, and what it rests on."""
    origin = {
        "given": "as stated",
        "composition": f"of the stated composition {standard.composition}",
        "phases": "that of the refined phases",
    }[standard.absorption_origin]
    ratio = {"given": "stated", "files": "of the counting times", "assumed": "assumed"}[standard.intensity_origin]
    return (
        f" With {standard.label} as external standard ({number(100 * standard.crystallinity)} % of it crystalline, mass"
        f" absorption {number(standard.mass_absorption_cm2_g, digits=4)} cm²/g), refined by the same engine, a mass"
        f" absorption of the specimen of {absorption}, {origin}, and {number(standard.intensity_ratio, digits=5)} times"
        f" the standard's counting time and incident intensity ({ratio}), the amorphous or unidentified part of the"
        f" specimen is {share} % by weight; the uncertainty is that of both fits alone"
    )


def _several(inp: ReportInput, cite: _Cited) -> list[str]:
    """Write what was measured and refined of each of several histograms of one sample."""
    names = list(inp.histograms)
    found = [f"Histogram {name}: {_data(seen, cite)}" for name, seen in inp.histograms.items()]
    found.append(
        f"{_procedure(inp, cite)} The histograms {joined(names)} were fitted together in one least squares: cells and"
        " atoms are common to all; scale, background, instrument, widths and texture are each histogram's own."
    )
    for name, seen in inp.histograms.items():
        rows = parameter_rows(seen)
        q = seen.state.quality
        found.append(
            f"Histogram {name}: {_profile(rows, cite)} {_refined(seen, rows, cite)}"
            f" Rwp = {fixed(q.rwp, 2, scale=100)} %."
        )
    return found


def methods_text(inp: ReportInput) -> MethodsText:
    """Write the methods section from the record of the job."""
    cite = _Cited()
    rows = parameter_rows(inp)
    if inp.histograms:
        paragraphs = [*_several(inp, cite), _result(inp, cite)]
    else:
        paragraphs = [
            _data(inp, cite),
            _procedure(inp, cite),
            f"{_profile(rows, cite)} {_refined(inp, rows, cite)}",
            _result(inp, cite),
        ]
    if inp.verdict in {Verdict.ABSTAINED, Verdict.FAILED}:
        why = joined(r.text.rstrip(".") or r.code for r in inp.reasons)
        paragraphs.append(
            f"AutoXRD did not accept this refinement as a result: {why}. The figures above describe its last state."
        )
    paragraphs.append(f"Structure files and symmetry were handled by GEMMI {cite('gemmi')}.")
    return MethodsText(tuple(paragraphs), tuple(cite.keys))
