"""Calibrations of time-of-flight banks, and patterns in the form that is refined."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from autoxrd.agent.inputs import Request, load_job
from autoxrd.agent.inspection import InstrumentChoice, inspect_files
from autoxrd.domain.instrument import Geometry, Radiation
from autoxrd.domain.pattern import AxisKind
from autoxrd.errors import UserInputError
from autoxrd.io import as_refined, axis_of, read_instrument, read_pattern, resolve_instrument

BANKS = """INS   BANK      2
INS   FPATH1     60.00
INS   HTYPE   PNTR
INS  1 ICONS22591.8600    0.0000    1.2000               0.000    0     0.000
INS  1BNKPAR     3.183    90.000     0.000     0.000     0.200    1    1
INS  1I ITYP    0    5.0000   93.0000     41084
INS  1PRCF1     3   21   0.00200
INS  1PRCF11       0.306885       1.053870       0.051006  0.000000E+000
INS  1PRCF12      10.000000     513.682000  0.000000E+000      10.748600
INS  1PRCF13  0.000000E+000  0.000000E+000  0.000000E+000  0.000000E+000
INS  2 ICONS22581.6300   -1.5000    4.4100               0.000    0     0.000
INS  2BNKPAR     3.183   -88.000     0.000     0.000     0.200    1    1
INS  2I ITYP    0    6.7750  104.1400     41326
INS  2PRCF1     1   12   0.00200
INS  2PRCF11       0.000000       0.257460       0.091563       0.017334
INS  2PRCF12       5.000000      10.000000     203.581000  0.000000E+000
"""


def test_a_bank_of_gsas2(shared_file: Callable[[str], Path]) -> None:
    found = read_instrument(shared_file("tof-nac-powgen/POWGEN_1066.instprm"))
    assert (found.radiation, found.geometry, found.lines) == (Radiation.NEUTRON, Geometry.DEBYE_SCHERRER, ())
    assert found.profile_calibrated
    bank = found.flight
    assert bank is not None
    assert (bank.two_theta_deg, bank.path_m) == (90.0, 63.183)
    assert (bank.dif_c, bank.dif_a, bank.dif_b) == (22600.2479192, -0.900917699636, 2.62346571719)
    assert (bank.zero, bank.alpha, bank.beta_1) == (-8.51764244829, 0.132504624416, 0.00272732086125)
    assert (bank.sig_0, bank.sig_q, bank.x) == (56.0319014702, -3.72970085651, 0.0)


def test_banks_of_gsas(tmp_path: Path) -> None:
    path = tmp_path / "banks.prm"
    path.write_text(BANKS)
    first, second = (read_instrument(path, bank=number).flight for number in (1, 2))
    assert first is not None and second is not None  # noqa: PT018
    assert (first.path_m, first.two_theta_deg, first.dif_c, first.zero) == (63.183, 90.0, 22591.86, 1.2)
    assert (first.alpha, first.beta_0, first.beta_1) == (0.306885, 1.05387, 0.051006)
    assert (first.sig_0, first.sig_1, first.sig_2, first.z, first.x) == (0.0, 10.0, 513.682, 0.0, 10.7486)
    # function 1 has a constant before alpha; an angle below zero is a side of the beam
    assert (second.two_theta_deg, second.dif_a, second.alpha, second.beta_1) == (88.0, -1.5, 0.25746, 0.017334)
    assert (second.sig_0, second.sig_1, second.sig_2) == (5.0, 10.0, 203.581)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (("I ITYP    0", "I ITYP    1"), "instrument_unsupported"),
        (("PRCF1     3", "PRCF1    -3"), "instrument_unsupported"),
        (("ICONS22591.8600", "ICONS    0.0000"), "instrument_invalid"),
    ],
)
def test_what_a_bank_of_gsas_may_not_have(change: tuple[str, str], code: str, tmp_path: Path) -> None:
    path = tmp_path / "bank.prm"
    path.write_text(BANKS.replace(*change))
    with pytest.raises(UserInputError) as caught:
        read_instrument(path)
    assert caught.value.code == code


def test_a_bank_of_gsas2_without_its_constants(tmp_path: Path) -> None:
    path = tmp_path / "bank.instprm"
    path.write_text("#GSAS-II instrument parameter file\nType:PNT\ndifC:22000\n2-theta:90.0\n")
    with pytest.raises(UserInputError) as caught:
        read_instrument(path)
    assert caught.value.code == "instrument_invalid"
    assert "fltPath, alpha" in str(caught.value)


def test_counts_per_channel_become_counts_per_microsecond(shared_file: Callable[[str], Path]) -> None:
    file = shared_file("tof-nac-powgen/POWGEN_1066.instprm")
    raw = read_pattern(shared_file("tof-nac-powgen/PG3_22048.gsa"))
    seen = as_refined(raw, resolve_instrument(raw, file=file))
    assert raw.hints.bank == 2
    assert (seen.axis, seen.n_points) == (AxisKind.TOF, raw.n_points - 1)
    width = np.diff(raw.x)
    np.testing.assert_allclose(seen.x, raw.x[:-1] + 0.5 * width)
    np.testing.assert_allclose(seen.y * width, raw.y[:-1])
    np.testing.assert_allclose(seen.sigma * width, raw.sigma[:-1])
    assert "flight_channels" in {notice.code for notice in seen.notices}


def test_a_pattern_takes_the_bank_of_its_number(shared_file: Callable[[str], Path], tmp_path: Path) -> None:
    path = tmp_path / "banks.prm"
    path.write_text(BANKS)
    raw = read_pattern(shared_file("tof-nac-powgen/PG3_22048.gsa"))
    bank = resolve_instrument(raw, file=path).flight
    assert bank is not None
    assert bank.two_theta_deg == 88.0


def test_columns_are_times_where_the_instrument_says_so(shared_file: Callable[[str], Path], tmp_path: Path) -> None:
    file = shared_file("tof-nac-powgen/POWGEN_1066.instprm")
    x = 10000.0 * 1.0005 ** np.arange(400)
    path = tmp_path / "bank.xye"
    path.write_text("".join(f"{a:.3f} {50.0 + k % 3:.2f} 7.0\n" for k, a in enumerate(x)))
    with pytest.raises(UserInputError) as caught:
        read_pattern(path)
    assert caught.value.code == "pattern_axis_unclear"
    raw = read_pattern(path, axis=axis_of(file))
    seen = as_refined(raw, resolve_instrument(raw, file=file))
    assert raw.axis is AxisKind.TOF
    # these are intensities, not counts per channel
    np.testing.assert_allclose(seen.y, raw.y[:-1])
    look = inspect_files(path, (), InstrumentChoice(file=file))
    assert look.usable
    assert look.instrument is not None
    assert look.instrument.profile_known


def test_pattern_and_instrument_must_belong_together(shared_file: Callable[[str], Path], tmp_path: Path) -> None:
    flight = shared_file("tof-nac-powgen/POWGEN_1066.instprm")
    lab = shared_file("lab-fap-gsas2/INST_XRY.PRM")
    timed = read_pattern(shared_file("tof-nac-powgen/PG3_22048.gsa"))
    angular = read_pattern(shared_file("lab-fap-gsas2/FAP.XRA"))
    for pattern, file in ((timed, None), (timed, lab), (angular, flight)):
        with pytest.raises(UserInputError) as caught:
            resolve_instrument(pattern, file=file)
        assert caught.value.code == "axis_unsupported"


def test_the_embedded_engine_refuses_time_of_flight_by_name(shared_file: Callable[[str], Path]) -> None:
    request = Request(
        pattern=shared_file("tof-nac-powgen/PG3_22048.gsa"),
        structures=(shared_file("sync-nac-11bm/NAC.cif"),),
        instrument=shared_file("tof-nac-powgen/POWGEN_1066.instprm"),
    )
    with pytest.raises(UserInputError) as caught:
        load_job(request)
    assert caught.value.code == "axis_unsupported"
    assert "rietx" in str(caught.value)
    assert "gsasii" in str(caught.value)
