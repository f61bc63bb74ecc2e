"""How much slower is this machine just now than a quiet one?

A neighbour on the same processor takes caches and memory bandwidth: the same work then costs up to twice the processor
time. A test of speed interleaves its measurements with a fixed piece of work and multiplies its limit by what that work
costs now over what it costs on a quiet machine. The work is of the same kind as what is measured, since a neighbour
costs arrays more than it costs hashes: ``RECORDS`` is a mixture of Python, JSON, hashing and one long array, ``ARRAYS``
many operations on arrays of some thousand numbers and on short ones.
"""

from __future__ import annotations

import hashlib
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

__all__ = ["ARRAYS", "RECORDS", "Pace", "Work"]


@dataclass(frozen=True)
class Work:
    """A fixed piece of work.

    Args:
        run: does it.
        quiet_ms: its processor time on a quiet core of the two-core machines this was written on, Python 3.11.
    """

    run: Callable[[], object]
    quiet_ms: float


_RECORD = {f"name_{i}": {"value": i / 7.0, "esd": i * 1e-5, "words": ["alpha", "beta", i]} for i in range(150)}
_VALUES = np.linspace(0.1, 9.9, 40_000)


def _records() -> int:
    text = json.dumps(_RECORD, sort_keys=True)
    total = sum(len(str(key)) for key in json.loads(text))
    for i in range(20):
        total += hashlib.sha256(f"{i}{text}".encode()).digest()[0]
    order = np.argsort(np.sin(_VALUES) * np.exp(-_VALUES))
    return total + int(order[0])


def _arrays() -> float:
    x, short, total = np.linspace(-1.0, 1.0, 6000), np.linspace(0.0, 1.0, 40), 0.0
    for k in range(20):
        y = np.exp(-np.square(x * (k + 1.0)))
        total += float(np.bincount((y * 100.0).astype(np.int64), y).sum()) + float(np.partition(y, 3000)[3000])
        for _ in range(20):
            total += float(np.sum(np.square(short))) + float(np.dot(short, short))
    return total


RECORDS = Work(_records, 4.5)
ARRAYS = Work(_arrays, 3.5)


class Pace:
    """Samples of the reference work; take one beside each measurement."""

    def __init__(self, work: Work = RECORDS) -> None:
        """Start without a sample; the first call warms caches up and does not count."""
        self._ms: list[float] = []
        self._work = work
        work.run()

    def sample(self) -> float:
        """Do the reference work once, and return how many times longer it took than on a quiet machine."""
        began = time.process_time()
        self._work.run()
        self._ms.append(1e3 * (time.process_time() - began))
        return self._ms[-1] / self._work.quiet_ms

    @property
    def factor(self) -> float:
        """How many times longer work takes than on a quiet machine, at least 1; by the median sample."""
        return max(1.0, statistics.median(self._ms) / self._work.quiet_ms)
