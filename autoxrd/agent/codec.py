"""How are fits kept as artifacts? Result arrays as one deterministic npz, never pickled."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from autoxrd.domain.naming import HISTOGRAM
from autoxrd.domain.pattern import AxisKind, Pattern, SigmaOrigin
from autoxrd.domain.structure import CrystalStructure
from autoxrd.engines.protocol import EngineResult, ReflectionTable
from autoxrd.errors import NotFound, StorageError
from autoxrd.primitives import canonical_json

__all__ = [
    "arrays_of",
    "decode_pattern",
    "decode_reflections",
    "decode_structures",
    "encode_pattern",
    "encode_result",
    "encode_structures",
    "load_arrays",
]

_STRUCTURES = TypeAdapter(tuple[CrystalStructure, ...])

_EPOCH = (1980, 1, 1, 0, 0, 0)
_REFLECTION_FIELDS = tuple(ReflectionTable.__dataclass_fields__)
_CURVES = ("x", "y_obs", "sigma", "y_calc", "background", "phase_patterns", "covariance")


def _pack(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Write an npz whose bytes depend on nothing but the arrays."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name in sorted(arrays):
            member = io.BytesIO()
            np.lib.format.write_array(member, np.ascontiguousarray(arrays[name]), allow_pickle=False)
            info = zipfile.ZipInfo(f"{name}.npy", date_time=_EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, member.getvalue(), compresslevel=1)
    return buffer.getvalue()


def load_arrays(data: bytes) -> dict[str, NDArray[Any]]:
    """Read an npz written by this module.

    Raises:
        StorageError: ``artifact_damaged``.
    """
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (ValueError, OSError, KeyError, zipfile.BadZipFile) as error:
        raise StorageError("artifact_damaged", f"An array file of the job cannot be read: {error}.") from error


def encode_result(result: EngineResult) -> bytes:
    """Return curves, covariance and reflections of a result as npz bytes, of each histogram where there are several."""
    if not result.histograms:
        return _pack(_result_arrays(result))
    arrays: dict[str, NDArray[Any]] = {
        "covariance": result.covariance,
        "covariance_names": np.array(result.covariance_names or ("",), dtype=np.str_),
    }
    for histogram, part in result.histograms.items():
        arrays |= {f"{HISTOGRAM}{histogram}.{name}": array for name, array in _result_arrays(part).items()}
    return _pack(arrays)


def _result_arrays(result: EngineResult) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {name: getattr(result, name) for name in _CURVES}
    arrays["covariance_names"] = np.array(result.covariance_names or ("",), dtype=np.str_)
    for name in _REFLECTION_FIELDS:
        column = getattr(result.reflections, name)
        if column is not None:
            arrays[f"reflection_{name}"] = column
    return arrays


def arrays_of(arrays: Mapping[str, NDArray[Any]], histogram: str) -> dict[str, NDArray[Any]]:
    """Return the arrays of one of several histograms under their plain names; all of them where there is only one.

    Raises:
        NotFound: ``histogram_unknown``.
    """
    if "x" in arrays:
        return dict(arrays)
    head = f"{HISTOGRAM}{histogram}."
    found = {name[len(head) :]: array for name, array in arrays.items() if name.startswith(head)}
    if not found:
        raise NotFound("histogram_unknown", f"The fit has no histogram {histogram[:40]!r}.")
    return found


def decode_reflections(arrays: Mapping[str, NDArray[Any]]) -> ReflectionTable:
    """Return the reflection table kept in a result's arrays."""
    known = [name for name in _REFLECTION_FIELDS if f"reflection_{name}" in arrays]
    return ReflectionTable(**{name: arrays[f"reflection_{name}"] for name in known})


def encode_pattern(pattern: Pattern) -> bytes:
    """Return x, y and sigma as npz bytes."""
    return _pack({"x": pattern.x, "y": pattern.y, "sigma": pattern.sigma})


def decode_pattern(data: bytes, meta: Mapping[str, Any]) -> Pattern:
    """Rebuild a pattern from its arrays and the description kept in the job record."""
    arrays = load_arrays(data)
    return Pattern(
        x=arrays["x"],
        y=arrays["y"],
        sigma=arrays["sigma"],
        axis=AxisKind(meta["axis"]),
        sigma_origin=SigmaOrigin(meta["sigma_origin"]),
        format=str(meta["format"]),
        title=str(meta["title"]),
        source_name=str(meta["source_name"]),
        source_sha256=str(meta["source_sha256"]),
    )


def encode_structures(structures: Sequence[CrystalStructure]) -> bytes:
    """Return structures as canonical JSON bytes."""
    return canonical_json(_STRUCTURES.dump_python(tuple(structures), mode="json")).encode()


def decode_structures(data: bytes) -> tuple[CrystalStructure, ...]:
    """Read what :func:`encode_structures` wrote."""
    return _STRUCTURES.validate_json(data)
