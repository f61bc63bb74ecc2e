"""Are the amounts possible, and is every phase really there?"""

from __future__ import annotations

import gemmi
import numpy as np

from autoxrd.domain.instrument import Radiation
from autoxrd.domain.pattern import FloatArray
from autoxrd.domain.state import Violation
from autoxrd.domain.structure import CrystalStructure
from autoxrd.science.checks.common import Parameters, violation
from autoxrd.science.inputs import FitArrays, MeasureContext
from autoxrd.science.settings import Limits

__all__ = ["check_amounts", "intensity_shares", "scattering_per_mass"]


def intensity_shares(result: FitArrays) -> FloatArray:
    """Return each phase's share of the calculated Bragg intensity, shape (n_phases,)."""
    if len(result.phases) == 0 or result.x.size < 2:
        return np.zeros(len(result.phases))
    totals = np.maximum(result.phase_patterns @ np.gradient(result.x), 0.0)
    return np.asarray(totals / totals.sum()) if totals.sum() > 0 else np.zeros_like(totals)


def scattering_per_mass(structure: CrystalStructure, radiation: Radiation) -> float:
    """Return the sum of squared scattering over the mass of the cell's content.

    The integrated powder intensity of a mass of a phase goes with it (Warren 1969, chapter 4, the sum over all
    reflections). X-rays: squared atomic numbers; neutrons: squared coherent lengths in fm.
    """
    power = mass = 0.0
    for atom in structure.atoms:
        element = gemmi.Element(atom.element)
        amount = max(atom.occupancy, 0.0) * atom.multiplicity
        neutron = element.neutron92.get_coefs()[0] if radiation is Radiation.NEUTRON else 0.0
        power += amount * (float(neutron) ** 2 if radiation is Radiation.NEUTRON else float(element.atomic_number) ** 2)
        mass += amount * float(element.weight)
    return power / mass if mass > 0 else 0.0


def check_amounts(result: FitArrays, parameters: Parameters, context: MeasureContext) -> list[Violation]:
    """Return ``fraction_range``, ``ghost_phase``, ``phase_not_significant`` and ``phase_overlapped``."""
    limits = context.limits
    shares = intensity_shares(result)
    found = _fractions(result, limits)
    found += _ghosts(result, shares, context)
    found += _significance(result, parameters, limits)
    if len(result.phases) > 1:
        found += _overlapped(result, limits)
    return found


def _fractions(result: FitArrays, limits: Limits) -> list[Violation]:
    found = []
    values = [p.weight_fraction.value for p in result.phases if p.weight_fraction is not None]
    for phase in result.phases:
        fraction = phase.weight_fraction
        if (
            fraction is not None
            and not -limits.fraction_sum_tolerance <= fraction.value <= 1 + limits.fraction_sum_tolerance
        ):
            text = f"The weight fraction of {phase.name} is {fraction.value:.3f}."
            limit = 0.0 if fraction.value < 0 else 1.0
            found.append(
                violation(
                    "fraction_range", f"phase.{phase.name}.weight_fraction", text, value=fraction.value, limit=limit
                )
            )
    total = sum(values)
    if values and len(values) == len(result.phases) and abs(total - 1.0) > limits.fraction_sum_tolerance:
        text = f"The weight fractions sum to {total:.4f}."
        found.append(violation("fraction_range", "weight_fractions", text, value=total, limit=1.0))
    return found


def _ghosts(result: FitArrays, shares: FloatArray, context: MeasureContext) -> list[Violation]:
    """Compare each weight fraction with that which its intensity supports."""
    limits = context.limits
    power = np.array([scattering_per_mass(p.structure, context.instrument.radiation) for p in result.phases])
    if len(result.phases) < 2 or np.any(power <= 0):
        return []
    supported = shares / power
    supported = supported / supported.sum() if supported.sum() > 0 else supported
    found = []
    for phase, expected in zip(result.phases, supported, strict=True):
        fraction = phase.weight_fraction
        if fraction is None or fraction.value < limits.ghost_min_fraction:
            continue
        ratio = fraction.value / max(float(expected), 1e-12)
        if ratio > limits.ghost_ratio:
            text = (
                f"{phase.name} is given {fraction.value:.1%} by weight, but its intensity supports only "
                f"{float(expected):.1%}: its scattering is suppressed, or it is not there."
            )
            subject = f"phase.{phase.name}.weight_fraction"
            found.append(violation("ghost_phase", subject, text, value=ratio, limit=limits.ghost_ratio))
    return found


def _significance(result: FitArrays, parameters: Parameters, limits: Limits) -> list[Violation]:
    found = []
    for phase in result.phases:
        subject = f"phase.{phase.name}.scale"
        esd = parameters.esd(subject)
        scale = parameters.value(subject)
        if esd > 0 and scale < limits.significance_min * esd:
            text = f"The scale of {phase.name} is {scale / esd:.1f} esd: the data do not show this phase."
            found.append(
                violation(
                    "phase_not_significant",
                    subject,
                    text,
                    value=scale / esd,
                    limit=limits.significance_min,
                    severity="soft",
                )
            )
    return found


def _overlapped(result: FitArrays, limits: Limits) -> list[Violation]:
    """Tell phases whose calculated intensity lies almost wholly under another phase's."""
    patterns = np.maximum(result.phase_patterns, 0.0)
    total = patterns.sum(axis=0)
    step = np.gradient(result.x)
    found = []
    for phase, own in zip(result.phases, patterns, strict=True):
        area = float(own @ step)
        if area <= 0:
            continue
        free = float((own * (own > 0.5 * total)) @ step) / area
        if free < limits.overlap_share:
            text = (
                f"Only {free:.1%} of {phase.name}'s intensity is not under another phase's: they cannot be told apart."
            )
            subject = f"phase.{phase.name}"
            found.append(
                violation("phase_overlapped", subject, text, value=free, limit=limits.overlap_share, severity="soft")
            )
    return found
