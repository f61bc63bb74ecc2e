"""Phases, instruments and simulated patterns of known truth."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import gemmi
import numpy as np

from autoxrd.domain.instrument import (
    ANODE_LINES,
    EmissionLine,
    FlightBank,
    Geometry,
    Instrument,
    Profile,
    Radiation,
)
from autoxrd.domain.pattern import AxisKind, Pattern
from autoxrd.domain.structure import AtomSite, CrystalStructure, UnitCell
from autoxrd.engines.protocol import Edit, EngineCommand, EngineResult, EngineSession

LAB = Instrument(
    Radiation.XRAY,
    Geometry.BRAGG_BRENTANO,
    ANODE_LINES["Cu"],
    goniometer_radius_mm=200.0,
    profile=Profile(u=0.01, v=-0.01, w=0.01, x=0.05, y=0.02),
)
NEUTRON = Instrument(
    Radiation.NEUTRON,
    Geometry.DEBYE_SCHERRER,
    (EmissionLine(1.5),),
    goniometer_radius_mm=500.0,
    profile=Profile(u=0.1, v=-0.1, w=0.1),
)


BANK = Instrument(
    Radiation.NEUTRON,
    Geometry.DEBYE_SCHERRER,
    (),
    profile_calibrated=True,
    flight=FlightBank(
        two_theta_deg=90.0,
        path_m=60.0,
        dif_c=22580.0,
        dif_a=-1.0,
        dif_b=2.0,
        zero=-5.0,
        alpha=0.15,
        beta_0=0.1,
        beta_1=0.003,
        beta_q=0.002,
        sig_0=60.0,
        sig_1=50.0,
        sig_2=150.0,
        sig_q=3.0,
        x=1.0,
        y=1.0,
        z=0.5,
    ),
)


def phase(name: str, symbol: str, cell: Sequence[float], atoms: Sequence[AtomSite]) -> CrystalStructure:
    """A phase in a tabulated setting."""
    group = gemmi.find_spacegroup_by_name(symbol)
    assert group is not None
    operations = tuple(operation.triplet() for operation in group.operations())
    return CrystalStructure(
        name=name,
        title=name,
        space_group=group.xhm(),
        space_group_number=group.number,
        operations=operations,
        cell=UnitCell(*cell),
        atoms=tuple(atoms),
    )


def site(label: str, species: str, x: float, y: float, z: float, **more: float) -> AtomSite:
    """An atom; the element is the species without its charge."""
    element = species.rstrip("0123456789+-")
    return AtomSite(label, species, element, x, y, z, occupancy=more.get("occ", 1.0), u_iso=more.get("u", 0.008))


FLUORITE = phase(
    "fluorite",
    "F m -3 m",
    (5.4635, 5.4635, 5.4635, 90, 90, 90),
    [site("Ca1", "Ca2+", 0, 0, 0), site("F1", "F1-", 0.25, 0.25, 0.25)],
)
ZINCITE = phase(
    "zincite",
    "P 63 m c",
    (3.2494, 3.2494, 5.2054, 90, 90, 120),
    [site("Zn1", "Zn", 1 / 3, 2 / 3, 0.0), site("O1", "O", 1 / 3, 2 / 3, 0.3826)],
)
WUSTITE = phase(
    "wustite",
    "F m -3 m",
    (4.26, 4.26, 4.26, 90, 90, 90),
    [site("Mg1", "Mg", 0, 0, 0, occ=0.6), site("Fe1", "Fe", 0, 0, 0, occ=0.4), site("O1", "O", 0.5, 0.5, 0.5)],
)
RUTILE = phase(
    "rutile",
    "P 42/m n m",
    (4.5937, 4.5937, 2.9587, 90, 90, 90),
    [site("Ti1", "Ti", 0, 0, 0), site("O1", "O", 0.3048, 0.3048, 0)],
)


def flat(lower: float, upper: float, step: float, level: float = 100.0) -> Pattern:
    """A pattern without peaks."""
    x = np.arange(lower, upper + step / 2, step)
    y = np.full(x.size, level)
    return Pattern(x=x, y=y, sigma=np.sqrt(y))


def values(**given: float) -> tuple[Edit, ...]:
    """Edits that set parameters; ``__`` stands for a dot."""
    return tuple(Edit("value", {"selector": name.replace("__", "."), "value": value}) for name, value in given.items())


def simulated(
    session: EngineSession,
    instrument: Instrument,
    phases: Sequence[CrystalStructure],
    truth: Sequence[Edit],
    *,
    lower: float = 20.0,
    upper: float = 90.0,
    step: float = 0.03,
    seed: int | None = 7,
) -> tuple[Pattern, EngineResult]:
    """A pattern with counting noise (none without a seed) and the result that it was drawn from."""
    blank = flat(lower, upper, step)
    root = session.prepare(blank, instrument, phases, {})
    _, result = session.execute(root, EngineCommand(cycles=0, edits=tuple(truth), gains=False))
    y = result.y_calc if seed is None else np.random.default_rng(seed).poisson(result.y_calc).astype(float)
    return dataclasses.replace(blank, y=y, sigma=np.sqrt(np.maximum(y, 1.0))), result


def timed(
    session: EngineSession,
    instrument: Instrument,
    phases: Sequence[CrystalStructure],
    truth: Sequence[Edit],
    *,
    lower: float = 20000.0,
    upper: float = 70000.0,
    step: float = 8e-4,
    seed: int | None = 7,
    counts: float = 300.0,
) -> tuple[Pattern, EngineResult]:
    """The same over the time of flight, in channels of equal relative width; ``counts`` per unit of intensity."""
    x = lower * (1.0 + step) ** np.arange(int(np.log(upper / lower) / np.log1p(step)))
    blank = Pattern(x=x, y=np.full(x.size, 10.0), sigma=np.ones(x.size), axis=AxisKind.TOF)
    root = session.prepare(blank, instrument, phases, {})
    _, result = session.execute(root, EngineCommand(cycles=0, edits=tuple(truth), gains=False))
    y = result.y_calc
    if seed is not None:
        y = np.random.default_rng(seed).poisson(counts * y) / counts
    return dataclasses.replace(blank, y=y, sigma=np.sqrt(np.maximum(y, 1.0 / counts) / counts)), result


def parameter(result: EngineResult, name: str) -> tuple[float, float | None]:
    """Value and esd of a parameter."""
    (found,) = [item for item in result.parameters if item.name == name]
    return found.value, found.esd
