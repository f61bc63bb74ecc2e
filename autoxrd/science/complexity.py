"""How large and how ill-conditioned is the least-squares problem?"""

from __future__ import annotations

import math
import re

import numpy as np

from autoxrd.domain.pattern import FloatArray
from autoxrd.domain.state import Complexity, Correlation
from autoxrd.science.inputs import FitArrays
from autoxrd.science.settings import Limits

__all__ = ["complexity_of", "correlation_matrix", "estimated_parameters"]

_ESTIMATED = "background.estimate_parameters"
_BACKGROUND = re.compile(r"^(?:(histogram\.[^.]+)\.)?background\.\d+$")


def correlation_matrix(covariance: FloatArray) -> FloatArray:
    """Return correlation coefficients; rows of parameters without a variance are zero off the diagonal."""
    esd = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    usable = np.isfinite(esd) & (esd > 0)
    inverse = np.where(usable, 1.0 / np.where(usable, esd, 1.0), 0.0)
    matrix = np.nan_to_num(np.clip(covariance * np.outer(inverse, inverse), -1.0, 1.0))
    np.fill_diagonal(matrix, 1.0)
    return np.asarray(matrix)


def estimated_parameters(result: FitArrays) -> int:
    """Return how many parameters the backgrounds stand for that were estimated from the data, rounded up.

    A curve that was drawn through the data leaves them that many degrees of freedom fewer, as if its parameters had
    been refined (Hastie & Tibshirani 1990, Generalized Additive Models, section 3.5: the trace of the smoother).
    """
    return sum(math.ceil(row.value) for row in result.parameters if row.derived and row.name.endswith(_ESTIMATED))


def complexity_of(result: FitArrays, limits: Limits) -> Complexity:
    """Return size, largest correlations and condition number (of the correlation matrix).

    Pairs inside one linear background basis correlate by construction and are reported apart (DESIGN section 9).
    """
    names = tuple(result.covariance_names)
    count, estimated = len(names), estimated_parameters(result)
    n_points = int(result.x.size)
    if count == 0 or result.covariance.shape != (count, count):
        return Complexity(n_free=count + estimated, n_points=n_points, n_estimated=estimated)
    matrix = correlation_matrix(result.covariance)
    eigenvalues = np.linalg.eigvalsh(matrix)
    condition = float(eigenvalues[-1] / eigenvalues[0]) if eigenvalues[0] > 0 else None
    basis = [_basis(name) for name in names]
    rows, columns = np.triu_indices(count, 1)
    values = matrix[rows, columns]
    inside = np.array([basis[i] is not None and basis[i] == basis[j] for i, j in zip(rows, columns, strict=True)], bool)
    order = np.argsort(-np.abs(values), kind="stable")
    outside = [k for k in order if not inside[k]]
    background = [abs(float(values[k])) for k in order if inside[k]]
    listed = [
        Correlation(first=names[rows[k]], second=names[columns[k]], value=float(values[k]))
        for k in outside[: limits.correlations_kept]
        if abs(values[k]) >= limits.correlation_listed
    ]
    return Complexity(
        n_free=count + estimated,
        n_points=n_points,
        max_correlation=abs(float(values[outside[0]])) if outside else None,
        max_correlation_pair=(names[rows[outside[0]]], names[columns[outside[0]]]) if outside else None,
        high_correlations=tuple(listed),
        background_max_correlation=background[0] if background else None,
        condition_number=condition,
        n_estimated=estimated,
    )


def _basis(name: str) -> str | None:
    match = _BACKGROUND.match(name)
    return None if match is None else match.group(1) or ""
