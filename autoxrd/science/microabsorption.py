"""What would coarse grains do to weight fractions? Brindley's correction for a particle size that is not measured.

In a mixture a strongly absorbing grain hides part of itself, so that its phase comes out too low, and a weakly
absorbing one too high. A fit cannot see this; only the size of the grains tells.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Absorber", "brindley_factor", "corrected_fractions"]

_ROUNDS = 100


@dataclass(frozen=True, slots=True)
class Absorber:
    """One phase of a mixture.

    Args:
        weight_fraction: as refined, 0 to 1.
        density_g_cm3: of the crystal.
        absorption_per_cm: linear absorption coefficient of the crystal.
    """

    weight_fraction: float
    density_g_cm3: float
    absorption_per_cm: float


def brindley_factor(contrast: float) -> float:
    """Return the share of its intensity that a spherical grain keeps in a mixture.

    Incident and diffracted beam along one chord (Brindley 1945, doi:10.1080/14786444508520918): 3 (2 - exp(-u)
    (u^2 + 2 u + 2)) / u^3 with u = 2 contrast; 1 without contrast, above 1 for a grain that absorbs less than the rest.

    Args:
        contrast: (mu of the phase - mean mu) times the radius, dimensionless.
    """
    u = 2.0 * contrast
    if abs(u) < 0.05:
        # the closed form cancels its leading digits here
        return 1.0 + u * (-0.75 + u * (0.3 + u * (-1.0 / 12.0 + u / 56.0)))
    return 3.0 * (2.0 - math.exp(-u) * (u * u + 2.0 * u + 2.0)) / u**3


def corrected_fractions(phases: Sequence[Absorber], radius_um: float) -> tuple[float, ...]:
    """Return the weight fractions if all grains were spheres of one radius, in the order of the phases.

    The mean absorption is that of the corrected mixture, by volume and without pores; fixed point of
    w' = (w / tau) / sum(w / tau).
    """
    refined = [phase.weight_fraction for phase in phases]
    fractions = list(refined)
    for _ in range(_ROUNDS):
        volumes = [w / phase.density_g_cm3 for w, phase in zip(fractions, phases, strict=True)]
        mean = sum(v * phase.absorption_per_cm for v, phase in zip(volumes, phases, strict=True)) / sum(volumes)
        kept = [brindley_factor((phase.absorption_per_cm - mean) * radius_um * 1e-4) for phase in phases]
        shares = [w / k for w, k in zip(refined, kept, strict=True)]
        following = [share / sum(shares) for share in shares]
        settled = max(abs(new - old) for new, old in zip(following, fractions, strict=True)) < 1e-12
        fractions = following
        if settled:
            break
    return tuple(fractions)
