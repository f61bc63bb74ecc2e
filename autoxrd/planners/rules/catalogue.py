"""Which rules does the expert follow? A table: what is released, when, on what evidence, and after whom.

Order of release: McCusker et al. (1999), doi:10.1107/S0021889898009856, section 6; choice inside a group by
the predicted drop of chi^2: Toby (2024), doi:10.1107/S1600576723011032.
"""

from __future__ import annotations

from dataclasses import dataclass

from autoxrd.domain.action import ActionKind, Stage
from autoxrd.domain.instrument import Geometry, Radiation

__all__ = ["CURRICULUM", "Rule", "order_of"]

HALO = "background.halo"
"""Feature that argues for a broad peak."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One way to improve a fit.

    Args:
        name: unique, for the record.
        group: order in the curriculum (`order_of`); inside a group the largest expected gain goes first.
        gains: patterns of the selectors whose release gains argue for it; ``*`` inside a name is a phase or atom.
        always: part of every model: release all that match, whatever the gain.
        together: release all significant ones in one action (True) or the best one alone.
        features: residual features that its mechanism moves, most telling first.
        structural: only for phases that scatter enough to support it.
        ruling: among several phases only for one that gives nearly all of the intensity.
        heavy_only: with X-rays not for hydrogen, which they hardly see.
        shared_sites: only for atoms that share their site with another species.
        uncalibrated_only: only where the instrument's widths are not known.
        flight: only over the time of flight.
        why_flight: what takes the place of ``why`` there, where the law is another.
        several: only for a further one of several histograms: its lengths over those of the first.
        known: of those also where the cell of a phase is certified, except of a tube's wavelength.
        why_known: what takes the place of ``why`` there.
        shared_uiso: one displacement parameter for all atoms of a phase (True), or only where the data tell the
            atoms apart (False); None for rules about anything else.
        parts_uiso: gives atoms that share a displacement parameter ones of their own.
        halo: a broad peak in the background, argued by its own features in the place of a release gain.
        patient: never ahead of its turn, whatever it promises: asymmetry and widths at low angles look like it.
        source: where the rule comes from.
    """

    name: str
    group: str
    kind: ActionKind
    stage: Stage
    gains: tuple[str, ...]
    why: str
    source: str
    together: bool = True
    always: bool = False
    features: tuple[str, ...] = ()
    structural: bool = False
    ruling: bool = False
    heavy_only: bool = False
    shared_sites: bool = False
    uncalibrated_only: bool = False
    flight: bool = False
    several: bool = False
    known: bool = False
    why_flight: str = ""
    why_known: str = ""
    shared_uiso: bool | None = None
    parts_uiso: bool = False
    halo: bool = False
    patient: bool = False
    waits_for: tuple[str, ...] = ()


def order_of(radiation: Radiation, geometry: Geometry) -> tuple[tuple[str, ...], ...]:
    """Return the groups in the order in which they are worked through; groups named together compete.

    In Bragg-Brentano geometry the specimen is off the axis more often than the cell is wrong, and zero and
    displacement are rivals (see `rivals`); elsewhere the shift, the cell and the axial asymmetry, which
    moves lines too, compete. X-ray lines of
    laboratories and synchrotrons are mainly Lorentzian by the specimen, neutron lines Gaussian by the instrument.
    """
    positions: tuple[tuple[str, ...], ...] = (("shift", "cell", "asymmetry"),)
    if geometry is Geometry.BRAGG_BRENTANO:
        positions = (("shift",), ("cell",))
    widths: tuple[tuple[str, ...], ...] = (("lorentzian",), ("gaussian",))
    if radiation is Radiation.NEUTRON:
        widths = (("gaussian",), ("lorentzian",))
    return (
        ("linear",),
        *positions,
        *widths,
        ("curve",),
        ("profile", "asymmetry"),
        ("surface",),
        ("intensity",),
        ("vibration",),
        ("direction",),
        ("rest",),
    )


_MCCUSKER = "McCusker et al. 1999, doi:10.1107/S0021889898009856"
_FLIGHT = "Von Dreele, Jorgensen & Windsor 1982, doi:10.1107/S0021889882012722"
_TOBY = "Toby 2024, doi:10.1107/S1600576723011032"

CURRICULUM: tuple[Rule, ...] = (
    Rule(
        "scale_background",
        "linear",
        ActionKind.SCALE,
        Stage.INSTRUMENT,
        ("phase.*.scale", "background"),
        "scale factors and background are linear and dominate the misfit of a starting model",
        _MCCUSKER,
        always=True,
    ),
    Rule(
        "background_terms",
        "curve",
        ActionKind.BACKGROUND_MODEL,
        Stage.INSTRUMENT,
        ("background.more",),
        "the background bends more often than its terms can follow",
        "order by gain per coefficient; McCusker et al. 1999, doi:10.1107/S0021889898009856, section 5",
        features=("background.slow",),
    ),
    Rule(
        "background_halo",
        "curve",
        ActionKind.BACKGROUND_MODEL,
        Stage.INSTRUMENT,
        (HALO,),
        "between the lines stands one broad maximum, as of a glass, a polymer or a holder",
        "background peaks: Toby & Von Dreele 2013, doi:10.1107/S0021889813003531",
        features=("background.slow",),
        halo=True,
    ),
    Rule(
        "zero",
        "shift",
        ActionKind.ZERO,
        Stage.INSTRUMENT,
        ("instrument.zero",),
        "calculated lines stand off the observed ones by a constant",
        _MCCUSKER,
        features=("position.zero", "position.rms"),
    ),
    Rule(
        "displacement",
        "shift",
        ActionKind.DISPLACEMENT,
        Stage.INSTRUMENT,
        ("sample.displacement",),
        "calculated lines stand off the observed ones as cos(theta)",
        "Wilson 1963, Mathematical Theory of X-ray Powder Diffractometry",
        features=("position.displacement", "position.rms"),
    ),
    Rule(
        "lattice",
        "cell",
        ActionKind.LATTICE,
        Stage.INSTRUMENT,
        ("phase.*.cell",),
        "line positions ask for another cell",
        _MCCUSKER,
        features=("position.cell", "position.rms"),
    ),
    Rule(
        "length_scale",
        "cell",
        ActionKind.LATTICE,
        Stage.INSTRUMENT,
        ("instrument.wavelength", "instrument.difC"),
        "this histogram's lengths stand off those of the first in one proportion: its wavelength, or DIFC",
        "Larson & Von Dreele 2004, General Structure Analysis System (GSAS), LANL report LAUR 86-748",
        features=("position.cell", "position.rms"),
        several=True,
        known=True,
        why_known="lines stand off in one proportion from where the certified cell has them: the wavelength, or DIFC",
    ),
    Rule(
        "hydrostatic_strain",
        "cell",
        ActionKind.LATTICE,
        Stage.INSTRUMENT,
        ("phase.*.strain_hydrostatic",),
        "this histogram sees another cell than the first, and not in one proportion: another temperature or specimen",
        "Larson & Von Dreele 2004, General Structure Analysis System (GSAS), LANL report LAUR 86-748",
        features=("position.cell", "position.rms"),
        several=True,
    ),
    Rule(
        "width_constant",
        "gaussian",
        ActionKind.PROFILE,
        Stage.INSTRUMENT,
        ("profile.W",),
        "lines are broader or narrower than calculated",
        "Caglioti et al. 1958, doi:10.1016/0369-643X(58)90029-X",
        features=("width.low",),
        uncalibrated_only=True,
    ),
    Rule(
        "width_angle",
        "profile",
        ActionKind.PROFILE,
        Stage.INSTRUMENT,
        ("profile.U", "profile.V"),
        "the width misfit changes with angle",
        "Caglioti et al. 1958, doi:10.1016/0369-643X(58)90029-X",
        features=("width.trend",),
        uncalibrated_only=True,
    ),
    Rule(
        "size",
        "lorentzian",
        ActionKind.SIZE_STRAIN,
        Stage.MICROSTRUCTURE,
        ("phase.*.size",),
        "Lorentzian broadening that goes as 1/cos(theta), by phase",
        "Thompson, Cox & Hastings 1987, doi:10.1107/S0021889887087090",
        features=("width.low",),
        why_flight="Lorentzian broadening that goes as d^2, by phase",
    ),
    Rule(
        "strain",
        "profile",
        ActionKind.SIZE_STRAIN,
        Stage.MICROSTRUCTURE,
        ("phase.*.strain",),
        "Lorentzian broadening that goes as tan(theta), by phase",
        "Thompson, Cox & Hastings 1987, doi:10.1107/S0021889887087090",
        features=("width.trend",),
        why_flight="Lorentzian broadening that goes as d, by phase",
    ),
    Rule(
        "axial",
        "asymmetry",
        ActionKind.ASYMMETRY,
        Stage.INSTRUMENT,
        ("profile.SH/L",),
        "low-angle lines lean to low angles",
        "Finger, Cox & Jephcoat 1994, doi:10.1107/S0021889894004218",
        features=("asymmetry.low_angle",),
        waits_for=("sample.transparency", "sample.displacement", "instrument.zero", "phase.*.cell"),
    ),
    Rule(
        "texture",
        "intensity",
        ActionKind.PREFERRED_ORIENTATION,
        Stage.STRUCTURE,
        ("phase.*.preferred_orientation",),
        "intensities depend on the angle to one crystal axis",
        "Dollase 1986, doi:10.1107/S0021889886089458",
        together=False,
    ),
    Rule(
        "site_occupancy",
        "intensity",
        ActionKind.OCCUPANCY,
        Stage.STRUCTURE,
        ("phase.*.atom.*.occupancy",),
        "species that share a site scatter differently from the given ratio",
        _MCCUSKER,
        structural=True,
        ruling=True,
        shared_sites=True,
    ),
    Rule(
        "coordinates",
        "intensity",
        ActionKind.POSITIONS,
        Stage.STRUCTURE,
        ("phase.*.atom.*.position",),
        "intensities ask for other coordinates",
        _MCCUSKER,
        heavy_only=True,
        structural=True,
    ),
    Rule(
        "surface",
        "surface",
        ActionKind.ABSORPTION,
        Stage.STRUCTURE,
        ("sample.roughness",),
        "lines at low angles are weaker than calculated, alike in all phases: one parameter explains more than the"
        " displacement parameters of any phase, or these went to zero",
        "Suortti 1972, doi:10.1107/S0021889872009707",
        patient=True,
    ),
    Rule(
        "displacement_parameters",
        "vibration",
        ActionKind.DISPLACEMENT_PARAMETERS,
        Stage.STRUCTURE,
        ("phase.*.atom.*.uiso",),
        "intensities fall with angle otherwise than calculated, and differently for the atoms of a phase",
        _MCCUSKER,
        heavy_only=True,
        structural=True,
        shared_uiso=False,
    ),
    Rule(
        "overall_displacement",
        "vibration",
        ActionKind.DISPLACEMENT_PARAMETERS,
        Stage.STRUCTURE,
        ("phase.*.uiso",),
        "intensities fall with angle otherwise than calculated, alike for all atoms of a phase",
        "Hill & Howard 1987, doi:10.1107/S0021889887086199",
        structural=True,
        shared_uiso=True,
    ),
    Rule(
        "atoms_apart",
        "vibration",
        ActionKind.DISPLACEMENT_PARAMETERS,
        Stage.STRUCTURE,
        ("phase.*.uiso@apart",),
        "the atoms of a phase share one displacement parameter, and what is left of the misfit tells them apart",
        _MCCUSKER,
        heavy_only=True,
        structural=True,
        parts_uiso=True,
    ),
    Rule(
        "directed_strain",
        "direction",
        ActionKind.SIZE_STRAIN,
        Stage.MICROSTRUCTURE,
        ("phase.*.strain@generalised",),
        "lines of a phase are broader along some directions of its lattice than along others",
        "Stephens 1999, doi:10.1107/S0021889898006001",
        together=False,
        structural=True,
        patient=True,
    ),
    Rule(
        "transparency",
        "rest",
        ActionKind.DISPLACEMENT,
        Stage.INSTRUMENT,
        ("sample.transparency",),
        "positions carry a sin(2 theta) term left by zero, displacement and cell",
        _TOBY,
    ),
    Rule(
        "width_rest",
        "profile",
        ActionKind.PROFILE,
        Stage.STRUCTURE,
        ("profile.W", "profile.U", "profile.V"),
        "line widths still differ from the calibrated ones after all that belongs to the specimen",
        _TOBY,
        features=("width.low", "width.trend"),
    ),
    Rule(
        "flight_widths",
        "profile",
        ActionKind.PROFILE,
        Stage.STRUCTURE,
        ("profile.sig-1", "profile.sig-2"),
        "Gaussian widths still differ from the calibrated ones after all that belongs to the specimen",
        _FLIGHT,
        features=("width.low", "width.high"),
        flight=True,
    ),
    Rule(
        "flight_exponentials",
        "profile",
        ActionKind.PROFILE,
        Stage.STRUCTURE,
        ("profile.alpha", "profile.beta-0", "profile.beta-1"),
        "rise or decay of the lines differ from the calibrated ones",
        _FLIGHT,
        flight=True,
    ),
    Rule(
        "flight_absorption",
        "vibration",
        ActionKind.ABSORPTION,
        Stage.STRUCTURE,
        ("absorption",),
        "intensities fall with wavelength as absorption in a cylinder makes them",
        "Hewat 1979, doi:10.1107/S0567739479000504",
        flight=True,
    ),
)
