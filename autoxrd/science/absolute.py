"""How much of each phase is in the whole specimen, and how much is amorphous? By a standard.

A Rietveld fit gives weight fractions among the crystalline phases of the model. Where one of them, the standard, was
weighed, its known share sets the scale, and what the phases do not add up to is amorphous or not identified (De La
Torre, Bruque & Aranda 2001, doi:10.1107/S0021889801002485). Where none was weighed, a standard that was measured apart
sets it (`autoxrd.science.external`).
"""

from __future__ import annotations

import numpy as np

from autoxrd.domain.pattern import FloatArray
from autoxrd.domain.standard import (
    AMORPHOUS,
    AMORPHOUS_LEVERAGE,
    AMORPHOUS_WITHOUT_STANDARD,
    ExternalStandard,
    Standard,
    absolute_name,
)
from autoxrd.domain.state import ParameterValue
from autoxrd.science.external import external_quantities
from autoxrd.science.inputs import FitArrays
from autoxrd.science.scales import derived, scale_covariance

__all__ = ["absolute_quantities", "fraction_covariance"]


def fraction_covariance(result: FitArrays) -> FloatArray:
    """Return the covariance of the weight fractions, in the order of the phases, shape (n, n).

    w_i = S_i m_i / sum(S_k m_k) (Hill & Howard 1987, doi:10.1107/S0021889887086199), so dw_i/dS_j = (w_i / S_j)
    (delta_ij - w_j) with the scale factors S, whose covariance the fit gives. A scale that was not free counts as
    known. Where the covariance of a free scale is not on record, the esds of the fractions stand on the diagonal.
    """
    weights = np.array([0.0 if p.weight_fraction is None else p.weight_fraction.value for p in result.phases])
    found = scale_covariance(result)
    if found is None:
        esds = [0.0 if p.weight_fraction is None else p.weight_fraction.esd or 0.0 for p in result.phases]
        return np.diag(np.square(esds))
    values, covariance = found
    usable = values > 0.0
    inverse = np.where(usable, 1.0 / np.where(usable, values, 1.0), 0.0)
    jacobian = weights[:, None] * (np.eye(values.size) - weights[None, :]) * inverse[None, :]
    return np.asarray(jacobian @ covariance @ jacobian.T)


def absolute_quantities(result: FitArrays, standard: Standard | None) -> tuple[ParameterValue, ...]:
    """Return the fractions of the whole specimen and its amorphous remainder as derived quantities.

    With w the refined fractions, s the standard and c its weighed crystalline share: W_i = c w_i / w_s, amorphous
    = 1 - c / w_s. Uncertainties by error propagation from the fit alone: the weighed amount counts as exact, and what
    microabsorption, texture or a wrong crystallinity do is not in them.

    Args:
        result: a fit of any engine.
        standard: what was weighed, or measured apart.

    Returns:
        `absolute_name` of each phase, `AMORPHOUS`, `AMORPHOUS_WITHOUT_STANDARD` and `AMORPHOUS_LEVERAGE`; nothing
        without a standard, or where the fit does not have it or sees nothing of it. No esd where none follows: of the
        standard itself, whose amount is given, and of the remainder where the standard is the only phase. With an
        external standard see `external_quantities`.
    """
    if isinstance(standard, ExternalStandard):
        return external_quantities(result, standard)
    names = [phase.name for phase in result.phases]
    if standard is None or standard.phase not in names:
        return ()
    weights = np.array([0.0 if p.weight_fraction is None else p.weight_fraction.value for p in result.phases])
    place = names.index(standard.phase)
    share = float(weights[place])
    if not (np.all(np.isfinite(weights)) and share > 0.0):
        return ()
    given = standard.crystalline_fraction
    covariance = fraction_covariance(result)
    found = []
    for index, phase in enumerate(result.phases):
        if phase.weight_fraction is None:
            continue
        slope = np.zeros(len(names))
        slope[index] += given / share
        slope[place] -= given * weights[index] / share**2
        found.append(derived(absolute_name(phase.name), given * float(weights[index]) / share, slope, covariance))
    slope = np.zeros(len(names))
    slope[place] = given / share**2
    amorphous = 1.0 - given / share
    rest = 1.0 - standard.weight_fraction
    own = standard.weight_fraction - given
    return (
        *found,
        derived(AMORPHOUS, amorphous, slope, covariance),
        derived(AMORPHOUS_WITHOUT_STANDARD, (amorphous - own) / rest, slope / rest, covariance),
        ParameterValue(name=AMORPHOUS_LEVERAGE, value=given / share**2, derived=True),
    )
