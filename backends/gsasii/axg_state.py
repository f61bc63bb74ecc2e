"""A refinement state as bytes: plain numbers under our own names, nothing pickled, nothing of GSAS-II's objects.

Every number that can be refined stands in ``values`` under our parameter name and unit; GSAS-II's own
dictionaries are built from it for each command. Layout of a payload: a magic line, then three
length-prefixed blocks: the canonical JSON of the state (deflated), the canonical JSON of the last fit's
record (deflated, may be empty), and the pattern (float64 little endian x, y, sigma, bytes shuffled by
significance, deflated). Equal states give equal bytes under one version of zlib.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
import zlib
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
from axr_fixed import Estimate
from axr_wire import Refused, canonical_json

__all__ = ["PhaseModel", "State", "decode", "encode"]

_MAGIC = b"AUTOXRD-GSASII-STATE 1\n"
_LEVEL = 6


@dataclass(frozen=True)
class PhaseModel:
    """What a phase is, apart from the numbers that can be refined.

    Args:
        domain: our own description, JSON.
        symbol: space group as GSAS-II reads it.
        shift: added to our coordinates to reach GSAS-II's origin, fractions of the cell.
        types: GSAS-II's scatterer of each atom.
        shared: groups of atom indices on one site.
        axis: hkl normal of the March-Dollase texture, None without texture.
        size_axis, strain_axis: hkl normal of a uniaxial broadening, None where it is isotropic.
        stephens: names of the coefficients where the microstrain is anisotropic after Stephens (1999).
        harmonics: names of the spherical harmonics of the texture, none without.
        anisotropic: indices of the atoms with six displacement parameters.
    """

    domain: dict[str, Any]
    symbol: str
    shift: tuple[float, float, float]
    types: tuple[str, ...]
    shared: tuple[tuple[int, ...], ...] = ()
    axis: tuple[int, int, int] | None = None
    size_axis: tuple[int, int, int] | None = None
    strain_axis: tuple[int, int, int] | None = None
    stephens: tuple[str, ...] = ()
    harmonics: tuple[str, ...] = ()
    anisotropic: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """Its name in selectors."""
        return str(self.domain["name"])


@dataclass(frozen=True)
class State:
    """One state of a refinement.

    Args:
        radiation: ``xray`` or ``neutron``.
        geometry: ``bragg_brentano`` or ``debye_scherrer``.
        radius_mm: goniometer radius.
        second_line: wavelength of the second line over that of the first, None without.
        polarization: K of ``K + (1 - K) cos^2(2theta)``.
        phases: the phases in order.
        values: every refinable number by our name, in our unit.
        background: kind of the background function and number of its terms.
        x, y, sigma: the whole pattern, shape (n,), float64.
        limits, excluded: what is used of it, degrees 2theta.
        background_peaks, background_debye: number of single peaks and Debye terms in the background.
        fixed_background: points (degrees 2theta, intensity) of a curve under everything, or none.
        fixed_estimate: how that curve was estimated from the data, None where it was not.
        restraints: distances to keep: phase, two labels, rotation (9) and translation (3) of the second atom's image,
            distance and esd, angstrom.
        mode: ``rietveld`` or ``lebail``.
        intensities: for each phase rows (h, k, l, F^2) of a profile match.
        equal_uiso: names of the phases whose atoms' displacement parameters keep their proportions.
        known_cells: names of the phases whose cell is certified: it is exact.
        flight: scattering angle (degrees) and flight path (m) of a time-of-flight bank, None for constant wavelength;
            with it x, limits and excluded are microseconds.
        notices: what to repeat with every result: (code, text).
        last: record of the fit that made this state, JSON, or empty.
    """

    radiation: str
    geometry: str
    radius_mm: float
    second_line: float | None
    polarization: float
    phases: tuple[PhaseModel, ...]
    values: dict[str, float]
    background: tuple[str, int]
    x: np.ndarray
    y: np.ndarray
    sigma: np.ndarray
    limits: tuple[float, float] | None = None
    excluded: tuple[tuple[float, float], ...] = ()
    mode: str = "rietveld"
    intensities: tuple[tuple[tuple[float, ...], ...], ...] = ()
    equal_uiso: tuple[str, ...] = ()
    background_peaks: int = 0
    background_debye: int = 0
    fixed_background: tuple[tuple[float, float], ...] = ()
    fixed_estimate: Estimate | None = None
    restraints: tuple[tuple[str | float, ...], ...] = ()
    flight: tuple[float, float] | None = None
    known_cells: tuple[str, ...] = ()
    notices: tuple[tuple[str, str], ...] = ()
    last: dict[str, Any] = field(default_factory=dict)

    @property
    def certified(self) -> tuple[str, ...]:
        """Phases of the state whose cell is certified; one that left the model fixes nothing."""
        there = {phase.name for phase in self.phases}
        return tuple(name for name in self.known_cells if name in there)

    @property
    def wavelength(self) -> float:
        """Wavelength of the first line, angstrom; NaN over the time of flight."""
        return self.values.get("instrument.wavelength", math.nan)

    @property
    def bare(self) -> list[str]:
        """Names of the phases of which the cell alone is known, and no atom."""
        return [phase.name for phase in self.phases if not phase.domain["atoms"]]

    def used(self) -> np.ndarray:
        """Return the mask of the points that are fitted, shape (n,), bool."""
        mask = np.ones(self.x.size, dtype=bool)
        if self.limits is not None:
            mask &= (self.x >= self.limits[0]) & (self.x <= self.limits[1])
        for lower, upper in self.excluded:
            mask &= ~((self.x >= lower) & (self.x <= upper))
        return mask

    def with_values(self, changes: dict[str, float]) -> State:
        """Return the state with some numbers changed."""
        return replace(self, values={**self.values, **changes})


_NUMBERS = ("radiation", "geometry", "radius_mm", "second_line", "polarization", "values", "background")
_BACKGROUND = ("background_peaks", "background_debye", "fixed_background")
_MODEL = ("equal_uiso", *_BACKGROUND, "restraints", "flight")
_JSON = (*_NUMBERS, "limits", "excluded", "mode", "intensities", *_MODEL, "notices")


def encode(state: State) -> bytes:
    """Return the payload of a state."""
    body = {name: getattr(state, name) for name in _JSON}
    body["phases"] = [asdict(phase) for phase in state.phases]
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
    try:
        return _decoded(_split(payload))
    except (zlib.error, ValueError, KeyError, TypeError) as error:
        raise Refused("input", "snapshot_unreadable", "The state of the GSAS-II backend is damaged.") from error


def _decoded(blocks: list[bytes]) -> State:
    body = json.loads(zlib.decompress(blocks[0]))
    x, y, sigma = _unpack_pattern(blocks[2])
    return State(
        **{name: body[name] for name in ("radiation", "geometry", "radius_mm", "polarization", "values", "mode")},
        second_line=body["second_line"],
        phases=tuple(_phase(item) for item in body["phases"]),
        background=(body["background"][0], body["background"][1]),
        x=x,
        y=y,
        sigma=sigma,
        limits=None if body["limits"] is None else (body["limits"][0], body["limits"][1]),
        excluded=tuple((lower, upper) for lower, upper in body["excluded"]),
        intensities=tuple(tuple(tuple(row) for row in rows) for rows in body["intensities"]),
        equal_uiso=tuple(body.get("equal_uiso", ())),
        background_peaks=body.get("background_peaks", 0),
        background_debye=body.get("background_debye", 0),
        fixed_background=tuple((x, y) for x, y in body.get("fixed_background", ())),
        fixed_estimate=None if body.get("fixed_estimate") is None else (*body["fixed_estimate"],),
        restraints=tuple(tuple(row) for row in body.get("restraints", ())),
        flight=None if body.get("flight") is None else (body["flight"][0], body["flight"][1]),
        known_cells=tuple(body.get("known_cells", ())),
        notices=tuple((code, text) for code, text in body["notices"]),
        last=json.loads(zlib.decompress(blocks[1])) if blocks[1] else {},
    )


def _phase(item: dict[str, Any]) -> PhaseModel:
    axes = {key: None if item[key] is None else tuple(item[key]) for key in ("axis", "size_axis", "strain_axis")}
    lists = {key: tuple(item[key]) for key in ("shift", "types")}
    lists |= {key: tuple(item.get(key) or ()) for key in ("stephens", "harmonics", "anisotropic")}
    shared = tuple(tuple(group) for group in item["shared"])
    return PhaseModel(**{**item, **axes, **lists, "shared": shared})


def _split(payload: bytes) -> list[bytes]:
    if not payload.startswith(_MAGIC):
        raise Refused("input", "snapshot_unreadable", "These bytes are not a state of the GSAS-II backend.")
    blocks, at = [], len(_MAGIC)
    for _ in range(3):
        if at + 8 > len(payload):
            raise Refused("input", "snapshot_unreadable", "The state of the GSAS-II backend is cut short.")
        (length,) = struct.unpack_from("<Q", payload, at)
        at += 8
        blocks.append(payload[at : at + length])
        at += length
    if at != len(payload):
        raise Refused("input", "snapshot_unreadable", "The state of the GSAS-II backend has the wrong length.")
    return blocks


def _pack_pattern(x: np.ndarray, y: np.ndarray, sigma: np.ndarray) -> bytes:
    raw = np.ascontiguousarray(np.stack([x, y, sigma]).astype("<f8")).tobytes()
    return _deflate(raw, hashlib.sha256(raw).hexdigest())


@lru_cache(maxsize=4)
def _deflate(raw: bytes, _digest: str) -> bytes:
    # bytes of equal significance side by side deflate several times better; the pattern is the same in all states
    return zlib.compress(np.frombuffer(raw, dtype=np.uint8).reshape(-1, 8).T.tobytes(), _LEVEL)


def _unpack_pattern(block: bytes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    shuffled = np.frombuffer(zlib.decompress(block), dtype=np.uint8)
    stacked = np.ascontiguousarray(shuffled.reshape(8, -1).T).view("<f8").reshape(3, -1).astype(np.float64)
    return stacked[0], stacked[1], stacked[2]
