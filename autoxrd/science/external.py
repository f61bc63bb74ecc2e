"""How much of each phase is in the whole specimen, by a standard that was measured apart?

A phase's intensity goes with its weight fraction over the specimen's mass absorption coefficient mu: W = Q mu / G,
where Q = S rho V^2 is what the fit gives and G holds all that is the diffractometer's. A standard of known
crystallinity c, refined alike, gives G = Q mu / c; what the phases of the specimen do not add up to is amorphous or not
identified (O'Connor & Raven 1988, doi:10.1017/S0885715600013026; Jansen et al. 2011,
doi:10.1016/j.cemconres.2011.03.004).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from autoxrd.domain.pattern import FloatArray
from autoxrd.domain.standard import AMORPHOUS, AMORPHOUS_LEVERAGE, MASS_ABSORPTION, ExternalStandard, absolute_name
from autoxrd.domain.state import MeasuredValue, ParameterValue
from autoxrd.science.inputs import ScaledFit
from autoxrd.science.scales import derived, scattered_mass

__all__ = ["external_quantities", "standard_constant"]


def standard_constant(
    result: ScaledFit, *, phase_absorption_cm2_g: Mapping[str, float], volume_power: int, crystallinity: float
) -> tuple[MeasuredValue, float] | None:
    """Return G of a standard's fit, and the standard's mass absorption coefficient in cm2/g.

    Args:
        result: the standard's fit, of one phase or of several that make it up.
        phase_absorption_cm2_g: of each phase by name.
        volume_power: of its engine, see `scattered_mass`.
        crystallinity: share of the standard that diffracts.

    Returns:
        None where the fit sees nothing of it, or a phase's absorption is not known.
    """
    found = scattered_mass(result, volume_power)
    if found is None or not found[0].size or not np.all(found[0] > 0.0):
        return None
    masses, covariance = found
    if any(phase.name not in phase_absorption_cm2_g for phase in result.phases):
        return None
    absorptions = np.array([phase_absorption_cm2_g[phase.name] for phase in result.phases])
    # Q mu = sum of Q_k mu_k, as mu is the mean by weight
    value = float(masses @ absorptions) / crystallinity
    variance = float(absorptions @ covariance @ absorptions) / crystallinity**2
    esd = math.sqrt(variance) if variance > 0.0 else None
    return MeasuredValue(value=value, esd=esd), float(masses @ absorptions / masses.sum())


def external_quantities(result: ScaledFit, standard: ExternalStandard) -> tuple[ParameterValue, ...]:
    """Return the fractions of the whole specimen and its amorphous remainder as derived quantities.

    Uncertainties by error propagation from both fits: mass absorption, crystallinity and intensity ratio count as
    exact, and what microabsorption, roughness or displacement parameters that were held do is not in them.

    Args:
        result: a fit, of the engine that refined the standard.
        standard: what was measured apart.

    Returns:
        `absolute_name` of each phase, `AMORPHOUS`, `AMORPHOUS_LEVERAGE` and `MASS_ABSORPTION`; nothing where the fit
        sees no phase. No esd where no scale was free.
    """
    found = scattered_mass(result, standard.volume_power)
    if found is None:
        return ()
    masses, covariance = found
    total = float(masses.sum())
    if not (np.all(np.isfinite(masses)) and total > 0.0):
        return ()
    absorption, slopes = _absorption(result, standard, masses)
    if absorption is None:
        return ()
    constant = standard.constant * standard.intensity_ratio
    fractions = masses * absorption / constant
    # rows: dW_i/dQ_j, and last dW_i/dG times G
    jacobian = np.zeros((masses.size, masses.size + 1))
    jacobian[:, :-1] = (np.eye(masses.size) * absorption + np.outer(masses, slopes)) / constant
    jacobian[:, -1] = -fractions
    whole = np.zeros((masses.size + 1, masses.size + 1))
    whole[:-1, :-1] = covariance
    whole[-1, -1] = ((standard.constant_esd or 0.0) / standard.constant) ** 2
    rows = zip(result.phases, fractions, jacobian, strict=True)
    return (
        *(derived(absolute_name(phase.name), float(value), row, whole) for phase, value, row in rows),
        derived(AMORPHOUS, 1.0 - float(fractions.sum()), -jacobian.sum(axis=0), whole),
        ParameterValue(name=AMORPHOUS_LEVERAGE, value=float(fractions.sum()), derived=True),
        ParameterValue(name=MASS_ABSORPTION, value=absorption, unit="cm2/g", derived=True),
    )


def _absorption(result: ScaledFit, standard: ExternalStandard, masses: FloatArray) -> tuple[float | None, FloatArray]:
    """Return the specimen's mass absorption coefficient, cm2/g, and its slope by each of the masses, shape (n,)."""
    if standard.sample_absorption_cm2_g is not None:
        return standard.sample_absorption_cm2_g, np.zeros(masses.size)
    known = [standard.phase_absorption_cm2_g.get(phase.name) for phase in result.phases]
    if any(value is None for value in known):
        return None, np.zeros(masses.size)
    values = np.array(known, dtype=np.float64)
    mean = float(values @ masses / masses.sum())
    return mean, (values - mean) / masses.sum()
