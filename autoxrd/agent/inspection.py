"""What can be said of a pattern and of structures before anything is refined? Reads, checks, and changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import gemmi
import numpy as np

from autoxrd.agent.answers import Answer, Coded
from autoxrd.domain.instrument import Instrument
from autoxrd.domain.pattern import AxisKind, Notice, Pattern
from autoxrd.domain.state import MeasuredValue, Violation
from autoxrd.domain.structure import CrystalStructure
from autoxrd.errors import AutoxrdError, UserInputError
from autoxrd.gates.policy import load_policy, plausibility_limits
from autoxrd.io import assess_pattern, axis_of, name_structures, read_pattern, read_structures, resolve_instrument
from autoxrd.io.quality import strongest_line_width
from autoxrd.science.checks.atoms import check_atoms
from autoxrd.science.checks.common import Parameters
from autoxrd.science.settings import Limits

__all__ = ["Inspection", "InstrumentChoice", "inspect_files"]

_AVOGADRO = 6.02214076
"""CODATA 2018, in 1e23/mol: with angstrom^3 and g/mol the density comes in g/cm^3 after division by 10."""


@dataclass(frozen=True, slots=True)
class InstrumentChoice:
    """What the user says of the instrument; the names are those of `refine`."""

    file: Path | None = None
    anode: str | None = None
    wavelength: str | None = None
    radiation: str | None = None
    geometry: str | None = None


class AtomLook(Answer):
    """One atom of the asymmetric unit."""

    label: str
    species: str
    x: float
    y: float
    z: float
    occupancy: float
    u_iso: float | None
    multiplicity: int


class StructureLook(Answer):
    """A candidate structure as read, with what is wrong or odd about it."""

    name: str
    file: str
    formula: str
    space_group: str
    cell: tuple[float, float, float, float, float, float]
    """a b c in angstrom, alpha beta gamma in degrees."""
    volume: float
    """Cubic angstrom."""
    density: float
    """g/cm^3 of the cell's content as given."""
    atoms: tuple[AtomLook, ...]
    notices: tuple[Coded, ...]
    violations: tuple[Violation, ...]
    """Physical checks, as they are made of a refined state."""


class PatternLook(Answer):
    """A pattern as read, with what limits what it can tell."""

    file: str
    format: str
    axis: str
    first: float
    last: float
    step: float
    """Median step."""
    n_points: int
    sigma: str
    """``measured`` or ``counting`` (assumed)."""
    highest: float
    """Intensity of the highest point."""
    line_width: float
    """Full width at half maximum of the strongest line, to about a step."""
    steps_per_width: float
    notices: tuple[Coded, ...]


class InstrumentLook(Answer):
    """The instrument that a job would start with."""

    radiation: str
    geometry: str
    wavelengths_angstrom: tuple[float, ...]
    profile_known: bool
    origin: str
    notices: tuple[Coded, ...]


class Inspection(Answer):
    """What was found. ``usable``: every file could be read, and no structure has a hard violation."""

    usable: bool
    pattern: PatternLook | None = None
    structures: tuple[StructureLook, ...] = ()
    instrument: InstrumentLook | None = None
    problems: tuple[Coded, ...] = ()
    """Why a file, or the instrument, cannot be used."""


@dataclass(frozen=True)
class _AsGiven:
    """A structure in the form in which the physical checks take a refined phase."""

    structure: CrystalStructure
    weight_fraction: MeasuredValue | None = None
    cell: dict[str, MeasuredValue] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name of the phase."""
        return self.structure.name

    @property
    def space_group(self) -> str:
        """Hermann-Mauguin symbol."""
        return self.structure.space_group


def inspect_files(
    pattern: Path | None,
    structures: Sequence[Path] = (),
    instrument: InstrumentChoice | None = None,
    *,
    policy: str = "default",
) -> Inspection:
    """Read everything that is given and say what was found; one bad file does not hide the others.

    Args:
        pattern: measured pattern.
        structures: CIF files.
        instrument: what else is known; its problems are told only where something is said or a pattern given.
        policy: whose limits the structures are held against.
    """
    limits = plausibility_limits(load_policy(policy))
    problems: list[Coded] = []
    found = _read_pattern(pattern, _axis(instrument), problems)
    looks = _structures(structures, limits, problems)
    usable = not problems and not any(v.severity == "hard" for look in looks for v in look.violations)
    beam = None
    if found is not None:
        beam = _instrument(found, instrument or InstrumentChoice(), problems)
    return Inspection(
        usable=usable and not problems,
        pattern=None if found is None else _pattern_look(found),
        structures=looks,
        instrument=None if beam is None else _instrument_look(beam),
        problems=tuple(problems),
    )


def _problem(error: AutoxrdError) -> Coded:
    return Coded(code=error.code, text=error.detail)


def _told(notices: Sequence[Notice]) -> tuple[Coded, ...]:
    return tuple(Coded(code=n.code, text=n.text) for n in dict.fromkeys(notices))


def _axis(choice: InstrumentChoice | None) -> AxisKind | None:
    try:
        return axis_of(choice.file) if choice is not None else None
    except UserInputError:  # told where the instrument is settled
        return None


def _read_pattern(path: Path | None, axis: AxisKind | None, problems: list[Coded]) -> Pattern | None:
    if path is None:
        return None
    try:
        return read_pattern(path, axis=axis)
    except UserInputError as error:
        problems.append(_problem(error))
        return None


def _pattern_look(pattern: Pattern) -> PatternLook:
    step, width = float(np.median(np.diff(pattern.x))), strongest_line_width(pattern)
    return PatternLook(
        file=pattern.source_name,
        format=pattern.format,
        axis=pattern.axis.value,
        first=float(pattern.x[0]),
        last=float(pattern.x[-1]),
        step=round(step, 9),
        n_points=pattern.n_points,
        sigma=pattern.sigma_origin.value,
        highest=float(pattern.y.max()),
        line_width=width,
        steps_per_width=width / step,
        notices=_told((*pattern.notices, *assess_pattern(pattern))),
    )


def _instrument(pattern: Pattern, choice: InstrumentChoice, problems: list[Coded]) -> Instrument | None:
    try:
        return resolve_instrument(
            pattern,
            file=choice.file,
            anode=choice.anode,
            wavelength=choice.wavelength,
            radiation=choice.radiation,
            geometry=choice.geometry,
        )
    except UserInputError as error:
        problems.append(_problem(error))
        return None


def _instrument_look(instrument: Instrument) -> InstrumentLook:
    return InstrumentLook(
        radiation=instrument.radiation.value,
        geometry=instrument.geometry.value,
        wavelengths_angstrom=instrument.wavelengths_angstrom,
        profile_known=instrument.profile is not None or instrument.flight is not None,
        origin=instrument.origin,
        notices=_told(instrument.notices),
    )


def _structures(paths: Sequence[Path], limits: Limits, problems: list[Coded]) -> tuple[StructureLook, ...]:
    read: list[CrystalStructure] = []
    for path in paths:
        try:
            read += read_structures(path)
        except UserInputError as error:
            problems.append(_problem(error))
    return tuple(_structure_look(s, limits) for s in name_structures(read)) if read else ()


def _structure_look(structure: CrystalStructure, limits: Limits) -> StructureLook:
    volume = float(gemmi.UnitCell(*structure.cell.as_tuple()).volume)
    mass = sum(a.occupancy * a.multiplicity * float(gemmi.Element(a.element).weight) for a in structure.atoms)
    return StructureLook(
        name=structure.name,
        file=structure.source_name,
        formula=structure.formula,
        space_group=structure.space_group,
        cell=structure.cell.as_tuple(),
        volume=volume,
        density=mass / volume / _AVOGADRO * 10.0,
        atoms=tuple(
            AtomLook(
                label=a.label,
                species=a.species,
                x=a.x,
                y=a.y,
                z=a.z,
                occupancy=a.occupancy,
                u_iso=a.u_iso,
                multiplicity=a.multiplicity,
            )
            for a in structure.atoms
        ),
        notices=_told(structure.notices),
        violations=tuple(check_atoms(_AsGiven(structure), Parameters(()), limits)),
    )
