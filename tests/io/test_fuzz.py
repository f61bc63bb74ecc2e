"""Whatever the bytes are: a checked value, or a UserInputError; nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autoxrd.domain.pattern import AxisKind
from autoxrd.errors import UserInputError
from autoxrd.io import (
    as_two_theta,
    assess_pattern,
    instrument_from_anode,
    read_instrument,
    read_pattern,
    read_structures,
)
from tests.io.samples import cif, peaks, table
from tests.io.test_instruments import INSTPRM, PRM
from tests.io.test_ras import ras
from tests.io.test_xrdml import _xrdml

T = TypeVar("T")
QUICK = settings(
    max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
X, Y = peaks(n=120)
ROWS = "\n".join(" ".join(f"{v:g}" for v in Y[i : i + 10]) for i in range(0, Y.size, 10))
D1A = "\n".join("".join(f" 1{int(v):6d}" for v in Y[i : i + 10]) for i in range(0, Y.size, 10))
STD = "\n".join("".join(f"{int(v):8d}" for v in Y[i : i + 10]) for i in range(0, Y.size, 10))
PATTERNS = [
    table(X, Y),
    "# 2theta I esd\n" + table(X, Y, np.sqrt(Y), form="%.3f %g %.3f"),
    table(X, Y, form="%.3f;%g").replace(".", ","),
    f"t\nBANK 1 120 12 CONST 1000 5 0 0 STD\n{STD}\n",
    f"10.0 0.05 15.95\n{ROWS}\n",
    "title\n120 0.05 10 1.5406 1\n" + "\n".join(f"{v:g}" for v in Y),
    " t\n 100 0 0.050 10 0 0\n 10.000\n 10000. 0. 0. 0.\n" + D1A + "\n   -1000\n",
    ".RAW\ra\rb\rtitle\rCU\r**\r1.54\r1.54\r1.544\r1.5\r10.0\r0.05\r120 1\r1.0\r" + "\r".join(f"{v:g}" for v in Y),
    _xrdml(Y),
    ras(X, Y),
]
SALT = cif("Na1 Na1+ 0 0 0 1 0.01\nCl1 Cl1- 0.5 0.5 0.5 1 0.02")
JUNK = st.one_of(
    st.binary(max_size=12),
    st.sampled_from(
        [b"nan", b"inf", b"-1", b"0", b"1e308", b"1e-308", b"9" * 30, b"\x00", b"\r", b"\n", b",", b";", b"?"]
    ),
)


def _mutate(data: bytes, edits: list[tuple[float, int, bytes]]) -> bytes:
    out = bytearray(data)
    for where, length, junk in edits:
        at = int(where * len(out))
        out[at : at + length] = junk
    return bytes(out)


EDITS = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 60), JUNK), min_size=1, max_size=4)


def _value_or_refusal(read: Callable[[Path], T], path: Path) -> T | None:
    """Read, or None where one clear sentence refuses; anything else fails the test."""
    refusal = ""
    try:
        return read(path)
    except UserInputError as error:
        refusal = error.detail
    assert refusal
    assert "\n" not in refusal
    return None


def _read_pattern(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    pattern = _value_or_refusal(read_pattern, path)
    if pattern is None:
        return
    assert pattern.n_points >= 50
    for values in (pattern.x, pattern.y, pattern.sigma):
        assert values.shape == (pattern.n_points,)
        assert np.all(np.isfinite(values))
    assert np.all(np.diff(pattern.x) > 0)
    assert np.all(pattern.sigma > 0)
    assert pattern.y.max() > 0
    assess_pattern(pattern)
    if pattern.axis is AxisKind.TWO_THETA:
        assert as_two_theta(pattern, instrument_from_anode("Cu")) is pattern


@QUICK
@given(data=st.binary(max_size=400))
def test_random_bytes(tmp_path: Path, data: bytes) -> None:
    _read_pattern(tmp_path / "a.xy", data)
    for read in (read_structures, read_instrument):
        (tmp_path / "a.any").write_bytes(data)
        with pytest.raises(UserInputError):
            read(tmp_path / "a.any")


@QUICK
@given(text=st.text(alphabet="0123456789.,;-+eEnaif \t\n\r#!/*'\"BANKCOSTD", max_size=600))
def test_random_text(tmp_path: Path, text: str) -> None:
    _read_pattern(tmp_path / "a.xy", text.encode())


@pytest.mark.parametrize("index", range(len(PATTERNS)))
def test_samples_are_read(tmp_path: Path, index: int) -> None:
    path = tmp_path / "a.dat"
    path.write_bytes(PATTERNS[index].encode())
    np.testing.assert_array_equal(read_pattern(path).y, Y)


@QUICK
@given(index=st.integers(0, len(PATTERNS) - 1), edits=EDITS)
def test_mutated_patterns(tmp_path: Path, index: int, edits: list[tuple[float, int, bytes]]) -> None:
    _read_pattern(tmp_path / "a.dat", _mutate(PATTERNS[index].encode(), edits))


@QUICK
@given(edits=EDITS, start=st.sampled_from([SALT, SALT.replace("5.0", "5.0(1)")]))
def test_mutated_cif(tmp_path: Path, edits: list[tuple[float, int, bytes]], start: str) -> None:
    path = tmp_path / "a.cif"
    path.write_bytes(_mutate(start.encode(), edits))
    for structure in _value_or_refusal(read_structures, path) or ():
        assert structure.atoms
        assert all(np.isfinite([atom.x, atom.y, atom.z, atom.occupancy]).all() for atom in structure.atoms)


@QUICK
@given(edits=EDITS, start=st.sampled_from([INSTPRM, PRM.format(function=3, a="1 1 1 1", b="1 1 1 1", c="0 0 0 0")]))
def test_mutated_instrument(tmp_path: Path, edits: list[tuple[float, int, bytes]], start: str) -> None:
    path = tmp_path / "a.prm"
    path.write_bytes(_mutate(start.encode(), edits))
    found = _value_or_refusal(read_instrument, path)
    if found is None:
        return
    assert 0.05 < found.lines[0].wavelength_angstrom < 10.0
    assert 0.0 < found.polarization <= 1.0


def test_cut_real_files(tmp_path: Path, shared_file: Callable[[str], Path]) -> None:
    for name in ("lab-fap-gsas2/FAP.XRA", "vendor-open/PSI_DMC.dat", "id-geo2-zno-dara/GeO2-ZnO_700C_60min.xrdml"):
        data = shared_file(name).read_bytes()
        for share in (0.01, 0.3, 0.7, 0.999):
            _read_pattern(tmp_path / "cut.dat", data[: int(len(data) * share)])
