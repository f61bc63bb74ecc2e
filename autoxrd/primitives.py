"""Small values that every layer uses: measured numbers, hashes, identifiers."""

from __future__ import annotations

import hashlib
import json
import math
import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import NewType

from pydantic import BaseModel

__all__ = [
    "ArtifactId",
    "Measured",
    "StateId",
    "canonical_json",
    "canonical_model",
    "content_hash",
    "safe_name",
    "sha256_hex",
]

StateId = NewType("StateId", str)
"""Identifies a state: the first 16 hex digits of its content hash."""

ArtifactId = NewType("ArtifactId", str)
"""SHA-256 (64 hex digits) of an artifact's bytes."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A number with its standard uncertainty.

    Args:
        value: the value, in the unit that the owner's field name states.
        esd: one standard uncertainty in the same unit; None where the value was
            not refined or its uncertainty could not be determined.
    """

    value: float
    esd: float | None = None

    def as_dict(self) -> dict[str, float | None]:
        """Return ``{"value":, "esd":}``, the form used in every JSON we write."""
        return {"value": self.value, "esd": self.esd}


_AS_IS = frozenset({str, int, bool, type(None)})
_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode


def _finite(obj: object) -> object:
    """Map non-finite floats to None, recursively: JSON has no NaN."""
    kind = type(obj)  # exact types first: a state has thousands of values
    if kind in _AS_IS:
        return obj
    if kind is dict:
        assert isinstance(obj, dict)
        return {k if type(k) is str else str(k): v if type(v) in _AS_IS else _finite(v) for k, v in obj.items()}
    if isinstance(obj, float):
        return obj if math.isfinite(obj) else None
    if isinstance(obj, dict):
        return {str(k): _finite(v) for k, v in obj.items()}
    if isinstance(obj, list | tuple):
        return [_finite(v) for v in obj]
    return obj


def canonical_json(obj: object) -> str:
    """Serialise to the one JSON text that equal content always gives.

    Keys sorted, no spaces, shortest round-trip floats, non-finite numbers as null.
    """
    return _encode(_finite(obj))


def canonical_model(model: BaseModel) -> str:
    """Return `canonical_json` of a model's JSON form; its keys are texts already, so only a NaN needs the long way."""
    data = model.model_dump(mode="json")
    try:
        return _encode(data)
    except ValueError:
        return canonical_json(data)


def sha256_hex(data: bytes) -> str:
    """Return the SHA-256 of ``data`` as 64 hex digits."""
    return hashlib.sha256(data).hexdigest()


def content_hash(obj: object) -> str:
    """Return the SHA-256 of an object's canonical JSON."""
    return sha256_hex(canonical_json(obj).encode())


def safe_name(text: str) -> str:
    """Return a base name that is safe on every file system: no folders, no leading dot, at most 100 characters.

    The one way from a name that somebody else gave to a name of a file.
    """
    name = re.sub(r"[^A-Za-z0-9_.+-]", "_", PurePosixPath(text.replace("\\", "/")).name).lstrip(".")
    return name[:100] or "file"
