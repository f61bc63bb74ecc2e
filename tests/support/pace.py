"""How much slower is this machine just now than a quiet one?

A neighbour on the same processor takes caches and memory bandwidth: the same work then costs up to twice the processor
time. A test of speed interleaves its measurements with a fixed piece of work, a mixture of Python, JSON, hashing and
arrays, and multiplies its limit by what that work costs now over what it costs on a quiet machine.
"""

from __future__ import annotations

import hashlib
import json
import statistics
import time

import numpy as np

__all__ = ["Pace"]

QUIET_MS = 4.5
"""Processor time of the reference work on a quiet core of the two-core machines this was written on, Python 3.11."""

_RECORD = {f"name_{i}": {"value": i / 7.0, "esd": i * 1e-5, "words": ["alpha", "beta", i]} for i in range(150)}
_VALUES = np.linspace(0.1, 9.9, 40_000)


def _reference_work() -> int:
    text = json.dumps(_RECORD, sort_keys=True)
    total = sum(len(str(key)) for key in json.loads(text))
    for i in range(20):
        total += hashlib.sha256(f"{i}{text}".encode()).digest()[0]
    order = np.argsort(np.sin(_VALUES) * np.exp(-_VALUES))
    return total + int(order[0])


class Pace:
    """Samples of the reference work; take one beside each measurement."""

    def __init__(self) -> None:
        """Start without a sample; the first call warms caches up and does not count."""
        self._ms: list[float] = []
        _reference_work()

    def sample(self) -> None:
        """Do the reference work once."""
        began = time.process_time()
        _reference_work()
        self._ms.append(1e3 * (time.process_time() - began))

    @property
    def factor(self) -> float:
        """How many times longer work takes than on a quiet machine, at least 1; by the median sample."""
        return max(1.0, statistics.median(self._ms) / QUIET_MS)
