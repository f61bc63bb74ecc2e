"""What would a Gauss-Newton step win in sum(w e^2) if more columns were freed? Linear algebra of the score test.

Rao (1948), doi:10.1017/S0305004100023987, on the linearised problem: with the free columns projected out of the
residual and of the new columns, the gain is the squared length of the residual's projection on those columns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["Step", "basis", "best_share", "best_step", "gain_of", "project", "solve_beside"]


@dataclass(frozen=True)
class Step:
    """The best of some trial steps: which, how much of it (0 to 1), and what that takes off the squared residual."""

    number: int
    share: float
    gain: float


def basis(columns: list[np.ndarray], rank: float) -> np.ndarray:
    """Return an orthonormal basis of the columns' span, shape (rows, rank).

    Args:
        columns: each of shape (rows,).
        rank: singular values below this share of the largest count as nothing.
    """
    if not columns:
        return np.zeros((0, 0))
    matrix = np.stack(columns, axis=1)
    norms = np.linalg.norm(matrix, axis=0)
    matrix = matrix[:, norms > 0] / norms[norms > 0]
    left, singular, _ = np.linalg.svd(matrix, full_matrices=False)
    return left[:, singular > rank * max(float(singular[0]), 1.0)] if singular.size else left


def project(base: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Return vectors less what lies in a basis, same shape."""
    return vectors if base.size == 0 else vectors - base @ (base.T @ vectors)


def gain_of(columns: list[np.ndarray], ways: list[int], base: np.ndarray, rest: np.ndarray, rank: float) -> float:
    """Return what freeing columns together would win, each only in its possible direction.

    Args:
        columns: new columns of the residual's Jacobian, each of shape (rows,).
        ways: for each -1 or +1 where it may move one way only, 0 where both.
        base: basis of the free columns.
        rest: residual with that basis projected out, shape (rows,).
        rank: columns shorter than this share of their length after projection count as dependent.
    """
    chosen = list(range(len(columns)))
    while chosen:
        steps, gain = solve_beside(np.stack([columns[k] for k in chosen], axis=1), base, rest, rank)
        wrong = {k for k, step in zip(chosen, steps, strict=True) if ways[k] * step < 0}
        if not wrong:
            return gain
        chosen = [k for k in chosen if k not in wrong]
    return 0.0


def solve_beside(matrix: np.ndarray, base: np.ndarray, rest: np.ndarray, rank: float) -> tuple[np.ndarray, float]:
    """Return the Gauss-Newton steps of columns beside a base, and the squared length they take off the residual."""
    projected = project(base, matrix)
    lengths, whole = np.linalg.norm(projected, axis=0), np.linalg.norm(matrix, axis=0)
    usable = lengths > rank * whole
    steps = np.zeros(matrix.shape[1])
    if not np.any(usable):
        return steps, 0.0
    scaled = projected[:, usable] / lengths[usable]
    solution = np.linalg.lstsq(scaled, -rest, rcond=rank)[0]
    steps[usable] = solution / lengths[usable]
    fitted = scaled @ solution
    return steps, float(fitted @ fitted)


def best_share(steps: np.ndarray, rest: np.ndarray) -> float:
    """Return the most that any of the steps, shape (rows, steps), or a part of it takes off the squared residual."""
    return best_step(steps, rest).gain


def best_step(steps: np.ndarray, rest: np.ndarray) -> Step:
    """Return which of some trial steps, shape (rows, steps), takes most off the squared residual, whole or in part.

    An effect weaker than the weakest trial is part of the way to it, and the change of the pattern is taken as straight
    up to there. With the whole step as the only choice a weak effect would gain nothing: the step overshoots it.
    """
    along, square = steps.T @ rest, np.sum(np.square(steps), axis=0)
    share = np.clip(along / np.where(square > 0, square, 1.0), 0.0, 1.0)
    gains = share * (2.0 * along - share * square)
    best = int(np.argmax(gains))
    return Step(number=best, share=float(share[best]), gain=max(float(gains[best]), 0.0))
