"""Which of GSAS-II's space groups is ours, where is its origin, and along which directions may a site move?

GSAS-II knows one origin for each symbol and takes coordinates literally: an origin choice 1 would double
the number of atoms without a word. So our own operations are compared with GSAS-II's, one by one, and the
origin is shifted where that makes them equal.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import re
from fractions import Fraction
from typing import Any

import numpy as np
from axr_wire import Refused
from GSASII import GSASIIspc as G2spc

__all__ = [
    "all_operations",
    "free_directions",
    "origin_shift",
    "parse_triplet",
    "polar_space",
    "reduced_rows",
    "site_rotations",
    "space_group",
]

_TWELFTHS = 24
_STEP = 8
"""Origin choices of International Tables A differ by multiples of an eighth."""
_SAME = 1e-4
_TERM = re.compile(r"([+-]?)(\d+/\d+|\d+\.?\d*|[xyz])")

_Key = tuple[tuple[int, ...], tuple[int, ...]]


def space_group(symbol: str) -> dict[str, Any]:
    """Return GSAS-II's space-group dictionary.

    Raises:
        Refused: it does not know the symbol.
    """
    with contextlib.redirect_stdout(io.StringIO()):
        error, data = G2spc.SpcGroup(_spelled(symbol))
    if error or not data:
        raise Refused("input", "space_group_unsupported", f"GSAS-II does not know the space group {symbol}.")
    found: dict[str, Any] = data
    return found


def _spelled(symbol: str) -> str:
    base, _, setting = symbol.partition(":")
    return base + " R" if setting == "R" else base


def origin_shift(symbol: str, triplets: list[str], data: dict[str, Any]) -> tuple[float, float, float]:
    """Return what our coordinates need added to stand on GSAS-II's origin, fractions of the cell.

    Raises:
        Refused: no shift makes the operations equal.
    """
    ours = [parse_triplet(text) for text in triplets]
    theirs = {_key(rotation, shift) for rotation, shift in all_operations(data)}
    if not ours or len(ours) == len(theirs):
        if not ours:
            return (0.0, 0.0, 0.0)
        for numbers in itertools.product(range(_STEP), repeat=3):
            shift = np.array(numbers) / _STEP
            if all(_key(r, t + (np.eye(3) - r) @ shift) in theirs for r, t in ours):
                return (float(shift[0]), float(shift[1]), float(shift[2]))
    raise Refused(
        "input",
        "space_group_unsupported",
        f"GSAS-II's operations of {symbol} are not those of the structure; give it in a standard setting.",
    )


def _key(rotation: np.ndarray, shift: np.ndarray) -> _Key:
    turned = tuple(round(float(value)) for value in np.asarray(rotation).ravel())
    moved = tuple(round(float(value) * _TWELFTHS) % _TWELFTHS for value in shift)
    return turned, moved


def parse_triplet(text: str) -> tuple[np.ndarray, np.ndarray]:
    """Return rotation (3, 3) and translation (3,) of an operation such as ``-x+1/2,y,z``."""
    rotation, shift = np.zeros((3, 3)), np.zeros(3)
    for row, part in enumerate(text.replace(" ", "").split(",")):
        for sign, body in _TERM.findall(part):
            factor = -1.0 if sign == "-" else 1.0
            if body in "xyz":
                rotation[row, "xyz".index(body)] = factor
            else:
                shift[row] = factor * float(Fraction(body))
    return rotation, shift


def all_operations(
    data: dict[str, Any], origin: tuple[float, float, float] = (0.0, 0.0, 0.0)
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return every operation of a group: GSAS-II stores neither centring nor the inverted half.

    Args:
        data: GSAS-II's space group.
        origin: what was added to our coordinates to reach its origin; the operations returned are those on ours.
    """
    found = []
    for rotation, shift in data["SGOps"]:
        for centre in data["SGCen"]:
            found.append((np.array(rotation), np.array(shift) + np.array(centre)))
            if data["SGInv"]:
                found.append((-np.array(rotation), -np.array(shift) + np.array(centre)))
    added = np.array(origin)
    return [(rotation, shift + rotation @ added - added) for rotation, shift in found]


def free_directions(position: np.ndarray, data: dict[str, Any]) -> np.ndarray:
    """Return the directions a site may move along without leaving its symmetry, shape (k, 3), reduced rows.

    The mean of the rotations that keep the site in place projects on them.
    """
    return reduced_rows(np.mean(site_rotations(position, data), axis=0).T)


def site_rotations(position: np.ndarray, data: dict[str, Any]) -> list[np.ndarray]:
    """Return the rotations that keep a site in place, shape (3, 3) each."""
    kept = []
    for rotation, shift in all_operations(data):
        moved = rotation @ position + shift - position
        if np.all(np.abs(moved - np.round(moved)) < _SAME):
            kept.append(rotation)
    return kept


def polar_space(data: dict[str, Any]) -> np.ndarray:
    """Return the directions along which the origin is arbitrary, shape (k, 3), reduced rows."""
    return reduced_rows(np.mean([rotation for rotation, _ in all_operations(data)], axis=0).T)


def reduced_rows(matrix: np.ndarray) -> np.ndarray:
    """Return the row space in reduced echelon form: each row leads with a one that no other row has."""
    work, rows = matrix.astype(float).copy(), 0
    for column in range(work.shape[1]):
        pivot = rows + int(np.argmax(np.abs(work[rows:, column]))) if rows < len(work) else rows
        if rows == len(work) or abs(work[pivot, column]) < 1e-6:
            continue
        work[[rows, pivot]] = work[[pivot, rows]]
        work[rows] /= work[rows, column]
        for other in range(len(work)):
            if other != rows:
                work[other] -= work[other, column] * work[rows]
        rows += 1
    return np.where(np.abs(work[:rows]) < 1e-9, 0.0, work[:rows])
