"""What the page shows of each of several histograms that were refined together."""

from __future__ import annotations

from dataclasses import dataclass

from autoxrd.domain.instrument import Radiation
from autoxrd.domain.state import MeasuredValue
from autoxrd.report.format import fixed, pretty
from autoxrd.report.model import ReportInput
from autoxrd.report.words import unit_words

__all__ = ["HistogramView", "histogram_view", "measured"]


def measured(m: MeasuredValue | None, *, scale: float = 1.0, digits: int = 6) -> str:
    """Write a measured value for reading."""
    if m is None:
        return "–"
    return pretty(scale * m.value, None if m.esd is None else scale * m.esd, digits=digits)


@dataclass(frozen=True, slots=True)
class HistogramView:
    """One of several histograms as written in the table."""

    name: str
    pattern: str
    radiation: str
    rwp: str
    rexp: str
    gof: str
    n_points: str
    phases: tuple[tuple[str, str, str], ...]
    """Name, cell lengths and weight percent of each phase as this histogram sees them."""
    lines: tuple[str, ...]
    """What places its lines: zero, displacement, wavelength, DIFC and strains that are not nothing."""


_PLACES = ("instrument.", "sample.", "absorption")


def histogram_view(name: str, seen: ReportInput) -> HistogramView:
    """Write one of several histograms for the table."""
    q, ins = seen.state.quality, seen.job.instrument
    radiation = "neutrons" if ins.radiation is Radiation.NEUTRON else "X-rays"
    waves = ", ".join(f"{w:.6g}" for w in ins.wavelengths_angstrom)
    beam = f"{radiation}, {waves} Å" if ins.flight is None else f"{radiation}, bank at {ins.flight.two_theta_deg:g}°"
    phases = tuple(
        (
            phase.name,
            ", ".join(measured(phase.cell[key]) for key in ("a", "b", "c")),
            measured(phase.weight_fraction, scale=100, digits=4),
        )
        for phase in seen.state.phases
    )
    places = tuple(
        f"{p.name} {pretty(p.value, p.esd)} {unit_words(p.unit)}".rstrip()
        for p in seen.state.parameters
        if (p.name.startswith(_PLACES) or ".strain_hydrostatic." in p.name) and p.released
    )
    return HistogramView(
        name=name,
        pattern=seen.job.pattern_name,
        radiation=beam,
        rwp=fixed(100 * q.rwp, 2),
        rexp=fixed(100 * q.rexp, 2),
        gof=fixed(q.gof, 2),
        n_points=str(q.n_points),
        phases=phases,
        lines=places,
    )
