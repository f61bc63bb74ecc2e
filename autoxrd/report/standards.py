"""What does a standard, weighed in or measured apart, tell of the whole specimen? Its part of report.json."""

from __future__ import annotations

import math
from typing import Literal

from autoxrd.domain.standard import (
    AMORPHOUS,
    AMORPHOUS_LEVERAGE,
    AMORPHOUS_WITHOUT_STANDARD,
    MASS_ABSORPTION,
    ExternalStandard,
)
from autoxrd.domain.state import MeasuredValue
from autoxrd.report.boundary import Boundary
from autoxrd.report.model import ReportInput

__all__ = ["AmorphousReport", "ExternalAmorphousReport", "amorphous_report"]


class AmorphousReport(Boundary):
    """What an internal standard tells of the whole specimen; fractions 0 to 1 by weight."""

    method: Literal["internal"] = "internal"
    standard: str
    standard_weight_fraction: float
    """Of the specimen, as declared."""
    standard_crystallinity: float
    weight_fraction: MeasuredValue
    """Amorphous or not identified, of the specimen with its standard."""
    weight_fraction_without_standard: MeasuredValue
    """The same of the sample before the standard was mixed in."""
    detection_limit: float | None
    """With what weight fractions are wrong by beside their esd; null where the fit measured nothing."""
    change_for_one_percent: float
    """By how much the amorphous fraction moves when the standard's refined share is wrong by 0.01."""


class ExternalAmorphousReport(Boundary):
    """What a standard that was measured apart tells of the whole specimen; fractions 0 to 1 by weight."""

    method: Literal["external"] = "external"
    standard: str
    """Phases of the standard."""
    standard_pattern: str
    """Name of its file."""
    standard_graph_root: str
    """Hash of the job that refined it."""
    standard_crystallinity: float
    standard_mass_absorption_cm2_g: float
    constant: MeasuredValue
    """The diffractometer's constant G by that job, in the engine's unit of scale factors."""
    mass_absorption_cm2_g: float
    """Of the specimen."""
    mass_absorption_origin: Literal["given", "composition", "phases"]
    """Stated, of the composition that was stated, or that of the refined phases."""
    composition: str
    """As stated; empty where it was not."""
    intensity_ratio: float
    """Counting time times incident intensity of the specimen over those of the standard."""
    intensity_origin: Literal["given", "files", "assumed"]
    """Stated, by the counting times of both files, or taken as 1."""
    weight_fraction: MeasuredValue
    """Amorphous or not identified, of the specimen."""
    detection_limit: float | None
    """With what such fractions are wrong by beside their esd; null where the fit measured nothing."""
    change_for_one_percent: float
    """By how much the amorphous fraction moves when constant, mass absorption or intensity ratio is wrong by a
    hundredth of itself."""


def amorphous_report(inp: ReportInput) -> AmorphousReport | ExternalAmorphousReport | None:
    """Return what the standard tells of a job, None where there is none or nothing follows by it."""
    standard, value, leverage = inp.job.standard, _value(inp, AMORPHOUS), _value(inp, AMORPHOUS_LEVERAGE)
    if standard is None or value is None or leverage is None:
        return None
    beside = inp.job.external_error if isinstance(standard, ExternalStandard) else inp.job.fraction_error
    whole = None if value.esd is None else math.hypot(value.esd, beside * leverage.value)
    limit = None if whole is None else inp.job.detection_esds * whole
    if isinstance(standard, ExternalStandard):
        return _by_external(inp, standard, value, limit, 0.01 * leverage.value)
    rest = _value(inp, AMORPHOUS_WITHOUT_STANDARD)
    if rest is None:
        return None
    return AmorphousReport(
        standard=standard.phase,
        standard_weight_fraction=standard.weight_fraction,
        standard_crystallinity=standard.crystallinity,
        weight_fraction=value,
        weight_fraction_without_standard=rest,
        detection_limit=limit,
        change_for_one_percent=0.01 * leverage.value,
    )


def _by_external(
    inp: ReportInput, standard: ExternalStandard, value: MeasuredValue, limit: float | None, change: float
) -> ExternalAmorphousReport | None:
    absorption = _value(inp, MASS_ABSORPTION)
    if absorption is None:
        return None
    return ExternalAmorphousReport(
        standard=standard.label,
        standard_pattern=standard.source.get("pattern", ""),
        standard_graph_root=standard.source.get("graph_root", ""),
        standard_crystallinity=standard.crystallinity,
        standard_mass_absorption_cm2_g=standard.mass_absorption_cm2_g,
        constant=MeasuredValue(value=standard.constant, esd=standard.constant_esd),
        mass_absorption_cm2_g=absorption.value,
        mass_absorption_origin=standard.absorption_origin,
        composition=standard.composition,
        intensity_ratio=standard.intensity_ratio,
        intensity_origin=standard.intensity_origin,
        weight_fraction=value,
        detection_limit=limit,
        change_for_one_percent=change,
    )


def _value(inp: ReportInput, name: str) -> MeasuredValue | None:
    return next((MeasuredValue(value=p.value, esd=p.esd) for p in inp.state.parameters if p.name == name), None)
