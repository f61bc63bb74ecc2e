"""Several histograms of one sample as one state: members that are ordinary states, with cells and atoms in common.

Each member is the state of one histogram under the bare names, so that whatever computes a pattern knows nothing of
the others. The numbers of the whole stand under full names: ``histogram.H.instrument.zero`` of a member, and
``phase.P.cell.a`` or ``phase.P.atom.O1.x`` of all. Where members do not agree on lengths (wavelengths, temperatures), a
member but the first has a strain: its cell lengths are those of all times 1 + ``strain_hydrostatic.a``, its angles
those of all plus ``strain_hydrostatic.alpha`` (degrees). GSAS-II's D_ij say the same of the reciprocal metric.
"""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import dataclass, field, replace
from typing import Any

from axg_model import CELL
from axg_names import Catalog, Column
from axg_state import State, decode, encode
from axr_wire import Refused, canonical_json

__all__ = ["STRAIN", "JointState", "bare", "decode_any", "encode_any", "full", "joint_catalog", "local", "shared"]

STRAIN = "strain_hydrostatic"
_MAGIC = b"AUTOXRD-GSASII-JOINT 1\n"
_SHARED = ("cell", "atom", "uiso")
"""Parts of a phase that are the sample's and not a histogram's."""
_MOST_STRAIN, _MOST_TURN_DEG = 0.01, 1.0
"""Lengths and angles further apart than this belong to two structures."""


def shared(name: str) -> bool:
    """Return whether a bare name is of the sample: a cell, an atom."""
    parts = name.split(".")
    return parts[0] == "phase" and len(parts) > 2 and parts[2] in _SHARED


def full(histogram: str, name: str) -> str:
    """Return the name in the whole of a member's bare name."""
    return name if shared(name) else f"histogram.{histogram}.{name}"


def bare(name: str) -> tuple[str, str]:
    """Return histogram and bare name of a full name; no histogram for what is shared."""
    if not name.startswith("histogram."):
        return "", name
    histogram, _, rest = name[len("histogram.") :].partition(".")
    return histogram, rest


@dataclass(frozen=True)
class JointState:
    """A state of several histograms.

    Args:
        names: of the histograms, in order.
        members: their states, equal in cells (strain apart) and atoms.
        strains: by full name, for every member but the first.
        notices: what to repeat with every result.
        last: record of the fit that made this state, JSON, or empty.
    """

    names: tuple[str, ...]
    members: tuple[State, ...]
    strains: dict[str, float]
    notices: tuple[tuple[str, str], ...] = ()
    last: dict[str, Any] = field(default_factory=dict)

    @property
    def mode(self) -> str:
        """How intensities are computed: always from structures."""
        return "rietveld"

    @property
    def values(self) -> dict[str, float]:
        """Every number by its full name: the sample's first, then each histogram's."""
        found = {name: value for name, value in self.members[0].values.items() if shared(name)}
        for histogram, member in zip(self.names, self.members, strict=True):
            found |= {full(histogram, name): value for name, value in member.values.items() if not shared(name)}
            found |= {name: value for name, value in self.strains.items() if bare(name)[0] == histogram}
        return found

    def with_values(self, changes: dict[str, float]) -> JointState:
        """Return the state with some numbers changed, given by their full names."""
        values = {**self.values, **changes}
        members = tuple(
            replace(member, values=self.member_values(number, values)) for number, member in enumerate(self.members)
        )
        return replace(self, members=members, strains={name: values[name] for name in self.strains})

    def member_values(self, number: int, values: dict[str, float]) -> dict[str, float]:
        """Return a member's numbers under bare names out of the whole's."""
        histogram = self.names[number]
        found = {name: values[full(histogram, name)] for name in self.members[number].values}
        for name in self.strains:
            if bare(name)[0] == histogram:
                cell, strain = _cell_of(bare(name)[1]), values[name]
                found[cell] = found[cell] * (1.0 + strain) if _is_length(cell) else found[cell] + strain
        return found

    def with_members(self, members: list[State]) -> JointState:
        """Return the state with other members of the same order; strains of phases that went are dropped."""
        kept = {f"phase.{phase.name}." for phase in members[0].phases}
        strains = {n: v for n, v in self.strains.items() if bare(n)[1].startswith(tuple(kept))}
        return replace(self, members=tuple(members), strains=strains)


def _cell_of(strain: str) -> str:
    """Return the bare name of the cell parameter that a strain is about."""
    return strain.replace(f".{STRAIN}.", ".cell.")


def _is_length(name: str) -> bool:
    return name.rsplit(".", 1)[-1] in CELL[:3]


def first_strains(names: tuple[str, ...], members: list[State]) -> dict[str, float]:
    """Return the strains of a new state: none yet."""
    return {
        f"histogram.{histogram}.phase.{phase.name}.{STRAIN}.{key}": 0.0
        for histogram in names[1:]
        for phase in members[0].phases
        for key in CELL
    }


def joint_catalog(state: JointState, catalogs: list[Catalog]) -> Catalog:
    """Return what can be released in the whole: what is shared once, the rest of each histogram.

    Args:
        state: the whole.
        catalogs: of its members, in order.
    """
    whole = Catalog({}, {})
    for number, (histogram, catalog) in enumerate(zip(state.names, catalogs, strict=True)):
        for name, column in catalog.columns.items():
            if number == 0 or not shared(name):
                moves = tuple((full(histogram, key), weight) for key, weight in column.moves)
                whole.columns[full(histogram, name)] = replace(column, name=full(histogram, name), moves=moves)
        for selector, columns in catalog.selectors.items():
            if number == 0 or not shared(selector):
                whole.selectors[full(histogram, selector)] = tuple(full(histogram, name) for name in columns)
        if number:
            _add_strains(whole, histogram, catalogs[0])
    return whole


def _add_strains(whole: Catalog, histogram: str, first: Catalog) -> None:
    """Let each free cell parameter of a phase have a strain in one histogram."""
    for name, column in first.columns.items():
        phase, _, key = name.partition(".cell.")
        if not key:
            continue
        head = f"histogram.{histogram}.{phase}.{STRAIN}"
        most, step = (_MOST_STRAIN, 1e-6) if _is_length(name) else (_MOST_TURN_DEG, 1e-4)
        moves = tuple((f"{head}.{moved.rsplit('.', 1)[-1]}", weight) for moved, weight in column.moves)
        own = f"{head}.{key}"
        whole.columns[own] = Column(own, moves, -most, most, step)
        whole.selectors[head] = (*whole.selectors.get(head, ()), own)
        whole.selectors[own] = (own,)


def local(column: Column, number: int, state: JointState, values: dict[str, float]) -> Column | None:
    """Return what a column of the whole moves in one member, under bare names; None where nothing.

    Args:
        column: of the whole.
        number: of the member.
        state: the whole.
        values: every number of the whole, where the derivative is wanted.
    """
    histogram, name = bare(column.name)
    mine = state.names[number]
    if histogram not in ("", mine):
        return None
    moves = [(bare(key)[1], weight) for key, weight in column.moves]
    if f".{STRAIN}." in name:
        cells = [(_cell_of(key), weight) for key, weight in moves]
        moves = [(key, weight * values[key] if _is_length(key) else weight) for key, weight in cells]
        return Column(_cell_of(name), tuple(moves), 0.0, column.upper, 1e-6)
    if ".cell." in name and number:
        moves = [(key, weight * _stretch(key, mine, values)) for key, weight in moves]
    return replace(column, name=name, moves=tuple(moves))


def _stretch(cell: str, histogram: str, values: dict[str, float]) -> float:
    """Return by how much a member's cell parameter grows with that of all."""
    strain = values.get(f"histogram.{histogram}.{cell.replace('.cell.', f'.{STRAIN}.')}", 0.0)
    return 1.0 + strain if _is_length(cell) else 1.0


def encode_any(state: State | JointState) -> bytes:
    """Return the payload of a state of one or of several histograms."""
    if isinstance(state, State):
        return encode(state)
    head = {name: getattr(state, name) for name in ("names", "strains", "notices", "last")}
    blocks = [zlib.compress(canonical_json(head), 6), *(encode(member) for member in state.members)]
    return _MAGIC + b"".join(struct.pack("<Q", len(block)) + block for block in blocks)


def decode_any(payload: bytes) -> State | JointState:
    """Return the state of a payload.

    Raises:
        Refused: the bytes are not a state of this backend.
    """
    if not payload.startswith(_MAGIC):
        return decode(payload)
    blocks, at = [], len(_MAGIC)
    while at + 8 <= len(payload):
        (length,) = struct.unpack_from("<Q", payload, at)
        blocks.append(payload[at + 8 : at + 8 + length])
        at += 8 + length
    try:
        head = json.loads(zlib.decompress(blocks[0]))
        members = tuple(decode(block) for block in blocks[1:])
        if at != len(payload) or len(members) != len(head["names"]) or len(members) < 2:
            raise ValueError("wrong length")
    except (IndexError, zlib.error, ValueError, KeyError, TypeError) as error:
        raise Refused("input", "snapshot_unreadable", "The state of several histograms is damaged.") from error
    notices = tuple((code, text) for code, text in head["notices"])
    return JointState(tuple(head["names"]), members, head["strains"], notices, head["last"])
