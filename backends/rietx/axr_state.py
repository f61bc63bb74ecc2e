"""A refinement state as bytes: everything that rietx needs to go on, and nothing that depends on how we got there.

Layout of a payload: a magic line, then three length-prefixed blocks: the canonical JSON of the state
(deflated), the canonical JSON of the last fit's record (deflated, may be empty), and the pattern
(float64 little endian x, y, sigma, bytes shuffled by significance, deflated).
Equal states give equal bytes (under one version of zlib: another may deflate the same content differently).
The record of the last fit belongs to the state: an evaluation keeps it, an edit clears it.
"""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
import rietx as rx
from axr_fixed import Estimate
from axr_wire import Refused, canonical_json

__all__ = ["State", "decode", "encode"]

_MAGIC = b"AUTOXRD-RIETX-STATE 1\n"
_LEVEL = 6


@dataclass(frozen=True)
class State:
    """One state of a refinement.

    Args:
        structure, instrument: rietx models; no parameter is marked free, none carries an esd.
        x, y, sigma: the whole pattern, shape (n,), float64, degrees 2theta and intensity units.
        limits: range that is used, degrees 2theta, or None for all.
        excluded: regions left out, degrees 2theta.
        mode: ``rietveld`` or ``lebail``.
        reflections: Le Bail intensities as rietx stores them, JSON.
        domain: our own description of each phase, JSON, in phase order.
        shared: for each phase, groups of atom indices that sit on one site.
        equal_uiso: names of the phases whose atoms' displacement parameters keep their proportions.
        fixed_estimate: how the fixed part of the background was estimated from the data, None where it was not.
        known_cells: names of the phases whose cell is certified: it is exact.
        radius_assumed: True where the goniometer radius is a default.
        notices: what to repeat with every result: (code, text).
        last: record of the fit that made this state (esds, figures), JSON, or empty.
    """

    structure: Any
    instrument: Any
    x: np.ndarray
    y: np.ndarray
    sigma: np.ndarray
    limits: tuple[float, float] | None = None
    excluded: tuple[tuple[float, float], ...] = ()
    mode: str = "rietveld"
    reflections: list[dict[str, Any]] = field(default_factory=list)
    domain: tuple[dict[str, Any], ...] = ()
    shared: tuple[tuple[tuple[int, ...], ...], ...] = ()
    equal_uiso: tuple[str, ...] = ()
    fixed_estimate: Estimate | None = None
    known_cells: tuple[str, ...] = ()
    radius_assumed: bool = False
    notices: tuple[tuple[str, str], ...] = ()
    last: dict[str, Any] = field(default_factory=dict)

    def pattern(self) -> Any:
        """Return the pattern as rietx takes it, with the excluded regions."""
        return rx.PatternData(
            two_theta=self.x.tolist(),
            intensity=self.y.tolist(),
            sigma=self.sigma.tolist(),
            excluded_regions=[list(region) for region in self.excluded],
        )

    @property
    def bare(self) -> list[str]:
        """Names of the phases of which the cell alone is known, and no atom."""
        return [str(phase["name"]) for phase in self.domain if not phase["atoms"]]

    def used(self) -> np.ndarray:
        """Return the mask of the points that are fitted, shape (n,), bool."""
        mask = np.ones(self.x.size, dtype=bool)
        if self.limits is not None:
            mask &= (self.x >= self.limits[0]) & (self.x <= self.limits[1])
        for lower, upper in self.excluded:
            mask &= ~((self.x >= lower) & (self.x <= upper))
        return mask

    def with_models(self, structure: Any, instrument: Any) -> State:
        """Return the state with other models, their flags and esds cleared."""
        return replace(self, structure=_cleared(structure), instrument=_cleared(instrument))


def _cleared(model: Any) -> Any:
    """Return a copy of a rietx model in which no parameter is free or carries an esd."""
    data = model.model_dump(mode="python")
    _clear(data)
    return type(model).model_validate(data)


def _clear(node: Any) -> None:
    if isinstance(node, dict):
        if "vary" in node and "value" in node:
            node["vary"] = False
            node["stderr"] = None
        for value in node.values():
            _clear(value)
    elif isinstance(node, list):
        for value in node:
            _clear(value)


def encode(state: State) -> bytes:
    """Return the payload of a state."""
    body = {
        "structure": json.loads(state.structure.model_dump_json()),
        "instrument": json.loads(state.instrument.model_dump_json()),
        "limits": state.limits,
        "excluded": state.excluded,
        "mode": state.mode,
        "reflections": state.reflections,
        "domain": state.domain,
        "shared": state.shared,
        "equal_uiso": state.equal_uiso,
        "radius_assumed": state.radius_assumed,
        "notices": state.notices,
        "rietx": rx.__version__,
    }
    if state.fixed_estimate is not None:
        body["fixed_estimate"] = state.fixed_estimate
    if state.known_cells:
        body["known_cells"] = state.known_cells
    blocks = [
        zlib.compress(canonical_json(body), _LEVEL),
        zlib.compress(canonical_json(state.last), _LEVEL) if state.last else b"",
        _pack_pattern(state.x, state.y, state.sigma),
    ]
    return _MAGIC + b"".join(struct.pack("<Q", len(block)) + block for block in blocks)


def decode(payload: bytes) -> State:
    """Return the state of a payload.

    Raises:
        Refused: the bytes are not a state of this format.
    """
    blocks = _split(payload)
    body = json.loads(zlib.decompress(blocks[0]))
    x, y, sigma = _unpack_pattern(blocks[2])
    return State(
        structure=rx.Structure.model_validate(body["structure"]),
        instrument=rx.Instrument.model_validate(body["instrument"]),
        x=x,
        y=y,
        sigma=sigma,
        limits=None if body["limits"] is None else (body["limits"][0], body["limits"][1]),
        excluded=tuple((lower, upper) for lower, upper in body["excluded"]),
        mode=body["mode"],
        reflections=body["reflections"],
        domain=tuple(body["domain"]),
        shared=tuple(tuple(tuple(group) for group in phase) for phase in body["shared"]),
        equal_uiso=tuple(body.get("equal_uiso", ())),
        fixed_estimate=None if body.get("fixed_estimate") is None else (*body["fixed_estimate"],),
        known_cells=tuple(body.get("known_cells", ())),
        radius_assumed=body["radius_assumed"],
        notices=tuple((code, text) for code, text in body["notices"]),
        last=json.loads(zlib.decompress(blocks[1])) if blocks[1] else {},
    )


def _split(payload: bytes) -> list[bytes]:
    if not payload.startswith(_MAGIC):
        raise Refused("input", "snapshot_unreadable", "These bytes are not a state of the rietx backend.")
    blocks, at = [], len(_MAGIC)
    for _ in range(3):
        if at + 8 > len(payload):
            raise Refused("input", "snapshot_unreadable", "The state of the rietx backend is cut short.")
        (length,) = struct.unpack_from("<Q", payload, at)
        at += 8
        blocks.append(payload[at : at + length])
        at += length
    if at != len(payload):
        raise Refused("input", "snapshot_unreadable", "The state of the rietx backend has the wrong length.")
    return blocks


def _pack_pattern(x: np.ndarray, y: np.ndarray, sigma: np.ndarray) -> bytes:
    stacked = np.ascontiguousarray(np.stack([x, y, sigma]).astype("<f8"))
    return _deflate_pattern(stacked.tobytes(), hashlib.sha256(stacked.tobytes()).hexdigest())


@lru_cache(maxsize=4)
def _deflate_pattern(raw: bytes, _digest: str) -> bytes:
    # Bytes of equal significance side by side deflate several times better; the pattern is the
    # same in all states of a job, so the work is done once per process.
    shuffled = np.frombuffer(raw, dtype=np.uint8).reshape(-1, 8).T.tobytes()
    return zlib.compress(shuffled, _LEVEL)


def _unpack_pattern(block: bytes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    shuffled = np.frombuffer(zlib.decompress(block), dtype=np.uint8)
    stacked = np.ascontiguousarray(shuffled.reshape(8, -1).T).view("<f8").reshape(3, -1).astype(np.float64)
    return stacked[0], stacked[1], stacked[2]
