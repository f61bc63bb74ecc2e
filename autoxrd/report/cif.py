"""The refined structures as CIF with powder data (pdCIF): one file per phase, structure block and pattern block.

Data names are those of the IUCr core and powder dictionaries (Hall, Allen & Brown, 1991, doi:10.1107/S010876739101067X;
Toby, 2006, International Tables G, chapter 3.3) in their underscore form, which every program reads.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

import gemmi
import numpy as np

from autoxrd.domain.instrument import Geometry, Radiation
from autoxrd.domain.pattern import AxisKind, SigmaOrigin
from autoxrd.domain.state import MeasuredValue, PhaseSummary
from autoxrd.domain.structure import AtomSite, CrystalStructure
from autoxrd.report.format import number, value_with_esd
from autoxrd.report.model import ReportInput
from autoxrd.report.summary import build_summary

__all__ = ["block_name", "phase_cif"]

_AXIS_TAG = {
    AxisKind.TWO_THETA: "_pd_meas_2theta_scan",
    AxisKind.TOF: "_pd_meas_time_of_flight",
    AxisKind.D_SPACING: "_pd_proc_d_spacing",
    AxisKind.Q: "_pd_proc_recip_len_Q",
}
_CELL_TAGS = {
    "a": "_cell_length_a", "b": "_cell_length_b", "c": "_cell_length_c",
    "alpha": "_cell_angle_alpha", "beta": "_cell_angle_beta", "gamma": "_cell_angle_gamma", "volume": "_cell_volume",
}  # fmt: skip


def block_name(text: str) -> str:
    """Turn any text into a legal CIF block name of at most 60 characters."""
    return re.sub(r"[^A-Za-z0-9_.+-]", "_", text)[:60] or "phase"


def _text(value: str) -> str:
    """Quote untrusted text: one line of ASCII, as CIF 1.1 demands."""
    plain = unicodedata.normalize("NFKD", value).encode("ascii", "ignore").decode()
    plain = " ".join("".join(c if c.isprintable() else " " for c in plain).split())[:1000]
    return str(gemmi.cif.quote(plain)) if plain else "?"


def _percent(value: float | None) -> str:
    return "?" if value is None else number(value, digits=6)


class _Esds:
    """Looks up the esd of a quantity of one phase by its dotted name."""

    def __init__(self, inp: ReportInput, phase: str) -> None:
        self._prefix = f"phase.{phase}."
        self._esd = {p.name: p.esd for p in inp.state.parameters}
        self._value = {p.name: p for p in inp.state.parameters}

    def written(self, quantity: str, value: float | None) -> str:
        """Write the value with the esd of that quantity."""
        return "?" if value is None else value_with_esd(value, self._esd.get(self._prefix + quantity))

    def measured(self, quantity: str) -> MeasuredValue | None:
        """Return a parameter of the phase."""
        p = self._value.get(self._prefix + quantity)
        return None if p is None else MeasuredValue(value=p.value, esd=p.esd)


def _measured(m: MeasuredValue | None, *, scale: float = 1.0) -> str:
    if m is None:
        return "?"
    return value_with_esd(scale * m.value, None if m.esd is None else scale * m.esd)


def _pairs(block: gemmi.cif.Block, items: Sequence[tuple[str, str]]) -> None:
    for tag, value in items:
        block.set_pair(tag, value)


def _audit(block: gemmi.cif.Block, inp: ReportInput, block_id: str) -> None:
    versions = ", ".join(f"{k} {v}" for k, v in sorted(inp.job.versions.items()))
    _pairs(
        block,
        [
            ("_pd_block_id", _text(block_id)),
            ("_audit_creation_method", _text(f"AutoXRD ({versions})" if versions else "AutoXRD")),
            ("_audit_creation_date", inp.job.created[:10] or "?"),
            ("_computing_structure_refinement", _text(f"{inp.state.engine} {inp.state.engine_version} by AutoXRD")),
        ],
    )


def _symmetry(block: gemmi.cif.Block, structure: CrystalStructure) -> None:
    group = gemmi.find_spacegroup_by_name(structure.space_group)
    _pairs(
        block,
        [
            ("_space_group_name_H-M_alt", _text(structure.space_group)),
            ("_space_group_IT_number", str(structure.space_group_number)),
            ("_space_group_crystal_system", group.crystal_system_str() if group else "?"),
        ],
    )
    loop = block.init_loop("_space_group_symop_", ["id", "operation_xyz"])
    for i, operation in enumerate(structure.operations, start=1):
        loop.add_row([str(i), _text(operation)])


def _u_equivalent(atom: AtomSite, structure: CrystalStructure) -> float | None:
    if atom.u_iso is not None or atom.u_aniso is None:
        return atom.u_iso
    cell = gemmi.UnitCell(*structure.cell.as_tuple())
    return float(cell.calculate_u_eq(gemmi.SMat33d(*atom.u_aniso)))


def _atoms(block: gemmi.cif.Block, structure: CrystalStructure, esds: _Esds) -> None:
    if not structure.atoms:  # a profile match: a loop may not be empty
        return
    types = block.init_loop("_atom_type_", ["symbol"])
    for species in dict.fromkeys(a.species for a in structure.atoms):
        types.add_row([_text(species)])
    columns = [
        "label", "type_symbol", "fract_x", "fract_y", "fract_z", "occupancy", "adp_type", "U_iso_or_equiv",
        "site_symmetry_multiplicity",
    ]  # fmt: skip
    loop = block.init_loop("_atom_site_", columns)
    for a in structure.atoms:
        key = f"atom.{a.label}."
        loop.add_row(
            [
                _text(a.label), _text(a.species), esds.written(key + "x", a.x), esds.written(key + "y", a.y),
                esds.written(key + "z", a.z), esds.written(key + "occupancy", a.occupancy),
                "Uani" if a.u_aniso else "Uiso", esds.written(key + "uiso", _u_equivalent(a, structure)),
                str(a.multiplicity),
            ]
        )  # fmt: skip
    aniso = [a for a in structure.atoms if a.u_aniso]
    if aniso:
        names = ["label", "U_11", "U_22", "U_33", "U_12", "U_13", "U_23"]
        tensor = block.init_loop("_atom_site_aniso_", names)
        for a in aniso:
            tensor.add_row([_text(a.label), *(number(u) for u in a.u_aniso or ())])


def _reflections(block: gemmi.cif.Block, inp: ReportInput, index: int) -> None:
    r = inp.reflections
    mine = np.flatnonzero((r.phase == index) & (r.line == 0))
    if not mine.size:
        return
    measured = r.f2_esd
    kind = ["F_squared_calc"] if measured is None else ["F_squared_meas", "F_squared_sigma"]
    names = ["index_h", "index_k", "index_l", "symmetry_multiplicity", "d_spacing", *kind]
    loop = block.init_loop("_refln_", names)
    columns = [[str(int(v)) for v in r.hkl[mine, j]] for j in range(3)]
    columns.append([str(int(v)) for v in r.multiplicity[mine]])
    columns.append([number(float(v), digits=7) for v in r.d_angstrom[mine]])
    columns.append([number(float(v), digits=6) for v in r.f2_calc[mine]])
    if measured is not None:
        columns.append([number(float(v), digits=4) for v in measured[mine]])
    loop.set_all_values(columns)


def _phase_block(
    doc: gemmi.cif.Document, inp: ReportInput, index: int, phase_id: str, pattern_ids: Sequence[str]
) -> None:
    phase: PhaseSummary = inp.state.phases[index]
    structure, esds = inp.structures[index], _Esds(inp, phase.name)
    r_bragg = inp.state.quality.r_bragg.get(phase.name, phase.r_bragg)
    block = doc.add_new_block(block_name(phase.name))
    _audit(block, inp, phase_id)
    if len(pattern_ids) == 1:
        block.set_pair("_pd_block_diffractogram_id", _text(pattern_ids[0]))
    else:
        block.init_loop("", ["_pd_block_diffractogram_id"]).set_all_values([[_text(item) for item in pattern_ids]])
    _pairs(
        block,
        [
            ("_pd_phase_name", _text(phase.name)),
            ("_chemical_name_common", _text(structure.title)),
            ("_chemical_formula_sum", _text(structure.formula)),
            *((tag, _measured(phase.cell.get(key))) for key, tag in _CELL_TAGS.items()),
            ("_exptl_crystal_density_diffrn", _measured(esds.measured("density"))),
            ("_refine_ls_R_I_factor", "?" if r_bragg is None else number(r_bragg)),
        ],
    )
    _symmetry(block, structure)
    _atoms(block, structure, esds)
    _reflections(block, inp, index)


def _refinement(block: gemmi.cif.Block, inp: ReportInput) -> None:
    q, state = inp.state.quality, inp.state
    shift = state.convergence.max_shift_over_esd
    verdict = f"AutoXRD verdict: {inp.verdict.value}. " + " ".join(r.text for r in inp.reasons)
    _pairs(
        block,
        [
            ("_refine_ls_goodness_of_fit_all", number(q.gof)),
            ("_refine_ls_number_parameters", str(q.n_parameters)),
            ("_refine_ls_number_restraints", "0"),
            ("_refine_ls_matrix_type", "full"),
            ("_refine_ls_structure_factor_coef", "Inet"),
            ("_refine_ls_weighting_scheme", "sigma"),
            ("_refine_ls_shift/su_max", "?" if shift is None else number(shift, digits=3)),
            ("_refine_special_details", _text(verdict)),
            ("_pd_proc_ls_prof_R_factor", number(q.rp)),
            ("_pd_proc_ls_prof_wR_factor", number(q.rwp)),
            ("_pd_proc_ls_prof_wR_expected", number(q.rexp)),
            ("_pd_proc_ls_profile_function", _text("Thompson-Cox-Hastings pseudo-Voigt")),
            ("_pd_calc_method", _text("Pawley profile match" if inp.job.profile_match else "Rietveld")),
        ],
    )


def _corrections(inp: ReportInput) -> str:
    """Say which shifts of the calculated positions the model has; pdCIF has no data names for them."""
    wanted = {
        "instrument.zero": ("zero offset, added to the calculated 2theta", "deg"),
        "sample.displacement": ("specimen displacement", "mm"),
        "sample.offset_along": ("specimen offset along the beam", "mm"),
        "sample.offset_across": ("specimen offset across the beam", "mm"),
    }
    parts = [
        f"{wanted[p.name][0]} {value_with_esd(p.value, p.esd)} {wanted[p.name][1]}"
        for p in inp.state.parameters
        if p.name in wanted
    ]
    return f"Positions: {'; '.join(parts)}." if parts else ""


def _measurement(block: gemmi.cif.Block, inp: ReportInput) -> None:
    x, job, ins = inp.arrays.x, inp.job, inp.job.instrument
    bragg = ins.geometry is Geometry.BRAGG_BRENTANO
    sigma = "as measured" if job.sigma_origin is SigmaOrigin.MEASURED else "from counting statistics"
    holes = "; ".join(f"{number(lo)} to {number(hi)}" for lo, hi in job.excluded_regions)
    items = [
        ("_pd_instr_geometry", _text("Bragg-Brentano" if bragg else "Debye-Scherrer")),
        ("_diffrn_radiation_probe", "neutron" if ins.radiation is Radiation.NEUTRON else "x-ray"),
        ("_pd_proc_number_of_points", str(x.size)),
        ("_pd_proc_info_excluded_regions", _text(holes) if holes else "none"),
        ("_pd_proc_ls_special_details", _text(f"Weights 1/sigma^2, sigma {sigma}. {_corrections(inp)}")),
    ]
    if job.axis is AxisKind.TWO_THETA and x.size:
        items += [
            ("_pd_meas_2theta_range_min", number(float(x[0]), digits=8)),
            ("_pd_meas_2theta_range_max", number(float(x[-1]), digits=8)),
        ]
    _pairs(block, items)
    waves = build_summary(inp, {}).instrument.wavelengths_angstrom
    if ins.flight is not None:
        return
    # The value's data name is the category's own name, hence the empty suffix.
    loop = block.init_loop("_diffrn_radiation_wavelength", ["_id", "", "_wt"])
    for i, (wave, line) in enumerate(zip(waves, ins.lines, strict=True), start=1):
        loop.add_row([str(i), number(wave, digits=8), number(line.relative_intensity, digits=4)])


def _profile(block: gemmi.cif.Block, inp: ReportInput) -> None:
    a = inp.arrays
    tags = [
        _AXIS_TAG[inp.job.axis], "_pd_meas_intensity_total", "_pd_calc_intensity_total",
        "_pd_proc_intensity_bkg_calc", "_pd_proc_ls_weight",
    ]  # fmt: skip
    columns = [a.x, a.y_obs, a.y_calc, a.background, 1.0 / a.sigma**2]
    loop = block.init_loop("", tags)
    loop.set_all_values([[f"{v:.9g}" for v in c.tolist()] for c in columns])


def _pattern_block(doc: gemmi.cif.Document, inp: ReportInput, phase_ids: Sequence[str], pattern_id: str) -> None:
    name = "pattern"
    while doc.find_block(name) is not None:
        name += "_1"
    block = doc.add_new_block(name)
    _audit(block, inp, pattern_id)
    _refinement(block, inp)
    _measurement(block, inp)
    loop = block.init_loop("_pd_phase_", ["block_id", "name", "mass_%"])
    for phase, phase_id in zip(inp.state.phases, phase_ids, strict=True):
        loop.add_row([_text(phase_id), _text(phase.name), _measured(phase.weight_fraction, scale=100.0)])
    _profile(block, inp)


def phase_cif(inp: ReportInput, index: int) -> bytes:
    """Write the refined structure of one phase with the pattern it was refined against.

    Args:
        inp: the report's input.
        index: phase of the final state.

    Returns:
        CIF 1.1 text, ASCII: a block with the structure, a block with each pattern and its R factors.
    """
    stem = f"{inp.job.created}|{{}}|AutoXRD|{inp.state_id}"
    phase_ids = [stem.format(block_name(p.name)) for p in inp.state.phases]
    doc = gemmi.cif.Document()
    patterns = {stem.format(f"pattern_{name}"): seen for name, seen in inp.histograms.items()}
    patterns = patterns or {stem.format("pattern"): inp}
    _phase_block(doc, inp, index, phase_ids[index], list(patterns))
    for pattern_id, seen in patterns.items():
        _pattern_block(doc, seen, phase_ids, pattern_id)
    return bytes(doc.as_string().encode("ascii"))
