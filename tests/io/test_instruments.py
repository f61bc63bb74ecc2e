"""Instruments from files, options and headers; units of the profile coefficients."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from autoxrd.domain.instrument import Geometry, Radiation
from autoxrd.domain.pattern import AxisKind, Notice, Pattern, PatternHints
from autoxrd.errors import UserInputError
from autoxrd.io import (
    as_two_theta,
    instrument_from_anode,
    instrument_from_wavelengths,
    read_instrument,
    read_pattern,
    resolve_instrument,
)
from tests.io.samples import peaks, write

K = 8.0 * math.log(2.0) / 1.0e4
X, Y = peaks()


def _pattern(hints: PatternHints | None = None, axis: AxisKind = AxisKind.TWO_THETA, x: np.ndarray = X) -> Pattern:
    return Pattern(x=x, y=Y, sigma=np.sqrt(Y), axis=axis, hints=hints or PatternHints(), source_name="p.xy")


def _codes(thing: object) -> set[str]:
    return {notice.code for notice in thing.notices}


def test_laboratory_prm_is_a_template(shared_file: Callable[[str], Path]) -> None:
    found = read_instrument(shared_file("lab-fap-gsas2/INST_XRY.PRM"))
    assert (found.radiation, found.geometry) == (Radiation.XRAY, Geometry.BRAGG_BRENTANO)
    assert found.wavelengths_angstrom == (1.5405, 1.5443)
    assert found.lines[1].relative_intensity == 0.5
    assert (found.polarization, found.zero_deg, found.profile_calibrated) == (0.7, 0.0, False)
    assert found.profile is not None
    # GP 0.1 over cos^2 adds to U and W alike.
    assert found.profile.u == pytest.approx(2.1 * K)
    assert found.profile.v == pytest.approx(-2.0 * K)
    assert found.profile.w == pytest.approx(5.1 * K)
    assert (found.profile.s_l, found.profile.h_l) == (0.01, 0.01)
    assert _codes(found) == {"geometry_assumed", "profile_dummy"}


def test_synchrotron_prm_is_a_calibration(shared_file: Callable[[str], Path]) -> None:
    found = read_instrument(shared_file("sync-nac-11bm/11bm_gsas.prm"))
    assert (found.geometry, found.polarization, found.profile_calibrated) == (Geometry.DEBYE_SCHERRER, 0.99, True)
    assert found.wavelengths_angstrom == (0.413909,)
    assert found.profile is not None
    assert found.profile.u == pytest.approx(1.163 * K)
    assert found.profile.x == pytest.approx(0.00173)
    assert (found.profile.y, found.profile.s_l, found.profile.h_l) == (0.0, 0.0011, 0.0011)


def test_neutron_prm_gives_the_widths_that_the_data_have(shared_file: Callable[[str], Path]) -> None:
    found = read_instrument(shared_file("neut-garnet-d1a/inst_d1a.prm"))
    assert (found.radiation, found.geometry) == (Radiation.NEUTRON, Geometry.DEBYE_SCHERRER)
    assert found.profile is not None
    pattern = read_pattern(shared_file("neut-garnet-d1a/garnet.raw"))
    # Line 800 of the garnet: width at half height against sqrt(U tan^2 + V tan + W).
    near = (pattern.x > 76.8) & (pattern.x < 78.5)
    x, y = pattern.x[near], pattern.y[near] - np.quantile(pattern.y[near], 0.1)
    above = x[y > y.max() / 2.0]
    tan = math.tan(math.radians(77.6 / 2.0))
    width = math.sqrt(found.profile.u * tan**2 + found.profile.v * tan + found.profile.w)
    assert width == pytest.approx(0.386, abs=0.002)
    assert above[-1] - above[0] + 0.05 == pytest.approx(width, abs=0.06)


def test_the_zero_of_a_prm_is_in_centidegrees(shared_file: Callable[[str], Path]) -> None:
    assert read_instrument(shared_file("neut-lamno3-50k-magnetic/BT1_Cu311.inst")).zero_deg == pytest.approx(0.0004)
    assert read_instrument(shared_file("neut-pbso4-d1a-lambda/inst_d1a.prm")).zero_deg == pytest.approx(-0.001)


def test_instprm(shared_file: Callable[[str], Path]) -> None:
    found = read_instrument(shared_file("id-hob2-xerus-ras/RigakuSi.instprm"))
    assert found.wavelengths_angstrom == (1.5405, 1.5443)
    assert (found.polarization, found.profile_calibrated) == (0.7, True)
    assert found.profile is not None
    assert found.profile.w == pytest.approx(20.31326183721195 * K)
    assert (found.profile.s_l, found.profile.h_l) == (0.001, 0.001)
    assert found.profile.x >= 0.0
    assert "profile_lorentz_reexpressed" in _codes(found)


INSTPRM = """#GSAS-II instrument parameter file; do not add/delete items!
Type:PNC
Bank:1
Lam:1.54
Zero:0.02
Polariz.:0.9
U:2;V:-2;W:5
X:1.0
Y:2.0
Z:0.0
SH/L:0.03
Diff-type:Bragg-Brentano
Gonio.radius:180.0
CorrectionCode:\"\"\"
raise SystemExit('executed')
Lam:9.0
\"\"\"
"""


def test_instprm_is_text_and_never_code(tmp_path: Path) -> None:
    found = read_instrument(write(tmp_path / "a.instprm", INSTPRM))
    assert found.wavelengths_angstrom == (1.54,)
    assert (found.radiation, found.geometry) == (Radiation.NEUTRON, Geometry.BRAGG_BRENTANO)
    assert (found.zero_deg, found.goniometer_radius_mm, found.polarization) == (0.02, 180.0, 0.5)
    assert found.profile is not None
    assert (found.profile.x, found.profile.y, found.profile.s_l) == (0.01, 0.02, 0.015)
    assert not found.profile_calibrated
    assert "profile_dummy" in _codes(found)


PRM = """            123456789012345678901234567890123456789012345678901234567890
INS   BANK      2
INS   HTYPE   PXCR
INS  1 ICONS  1.540600  0.000000      -1.5         0       0.8    1       0.5
INS  1PRCF1     {function}   12      0.01
INS  1PRCF11   {a}
INS  1PRCF12   {b}
INS  1PRCF13   {c}
INS  2 ICONS  0.700000  0.000000       0.0         0       0.9    0       0.5
"""


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (1, {"x": 0.0, "y": 0.0, "s_l": 0.0}),
        (2, {"x": 0.04, "y": 0.05, "s_l": 0.0}),
        (3, {"x": 0.05, "y": 0.06, "s_l": 0.07}),
        (4, {"x": 0.05, "y": 0.0, "s_l": 0.10}),
    ],
)
def test_profile_functions_of_gsas(tmp_path: Path, function: int, expected: dict[str, float]) -> None:
    rows = ["  10.0  -5.0  20.0   4.0", "   5.0   6.0   0.07  0.08", "   0.0   0.10  0.11  0.0"]
    text = PRM.format(function=function, a=rows[0], b=rows[1], c=rows[2])
    found = read_instrument(write(tmp_path / "a.prm", text))
    assert found.profile is not None
    for name, value in expected.items():
        assert getattr(found.profile, name) == pytest.approx(value), name
    assert found.zero_deg == -0.015
    assert found.polarization == pytest.approx(1.0 / 1.8)  # IPOLA 1: cos^2 of the monochromator's angle
    assert "other_banks_ignored" in _codes(found)
    assert read_instrument(tmp_path / "a.prm", bank=2).wavelengths_angstrom == (0.7,)
    with pytest.raises(UserInputError) as caught:
        read_instrument(tmp_path / "a.prm", bank=7)
    assert caught.value.code == "bank_missing"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("some words\n", "instrument_format_unknown"),
        ("INS   BANK      1\nINS   HTYPE   PNTR\n", "instrument_invalid"),
        ("INS   HTYPE   PXCR\nINS  1 IRAD     3\n", "instrument_invalid"),
        ("INS   HTYPE   PXCR\nINS  1 ICONS  99.0\n", "instrument_invalid"),
        ("#GSAS-II instrument parameter file\nType:PXC\nU:1\n", "instrument_invalid"),
        ("#GSAS-II instrument parameter file\nType:PXB\nLam:1\n", "instrument_unsupported"),
    ],
)
def test_instrument_refusals(tmp_path: Path, text: str, code: str) -> None:
    with pytest.raises(UserInputError) as caught:
        read_instrument(write(tmp_path / "a.prm", text))
    assert caught.value.code == code
    assert str(caught.value).startswith("a.prm")


def test_imaginary_widths_are_left_out(tmp_path: Path) -> None:
    text = INSTPRM.replace("U:2;V:-2;W:5", "U:2;V:-9;W:5")
    found = read_instrument(write(tmp_path / "a.instprm", text))
    assert found.profile is None
    assert "profile_unphysical" in _codes(found)


def test_anodes() -> None:
    copper = instrument_from_anode("Cu")
    assert copper.wavelengths_angstrom == (1.5405929, 1.5444274)
    assert (copper.geometry, copper.polarization) == (Geometry.BRAGG_BRENTANO, 0.5)
    assert instrument_from_anode("cu ka1").wavelengths_angstrom == (1.5405929,)
    assert instrument_from_anode("CoKα", geometry="debye-scherrer").geometry is Geometry.DEBYE_SCHERRER
    with pytest.raises(UserInputError) as caught:
        instrument_from_anode("Unobtainium")
    assert caught.value.code == "anode_unknown"


def test_wavelengths() -> None:
    pair = instrument_from_wavelengths("1.5406,1.5444:0.497")
    assert [line.relative_intensity for line in pair.lines] == [1.0, 0.497]
    assert pair.geometry is Geometry.BRAGG_BRENTANO
    beamline = instrument_from_wavelengths("0.4139")
    assert (beamline.geometry, beamline.polarization) == (Geometry.DEBYE_SCHERRER, 0.95)
    assert _codes(beamline) == {"geometry_assumed", "polarization_assumed"}
    neutrons = instrument_from_wavelengths("1.5406", radiation="neutron")
    assert (neutrons.geometry, neutrons.polarization) == (Geometry.DEBYE_SCHERRER, 0.5)
    for bad in ("", "x", "0", "-1", "1.5:2", "1.5,", "nan", "1.5406;1.5444", "1e9"):
        with pytest.raises(UserInputError) as caught:
            instrument_from_wavelengths(bad)
        assert caught.value.code == "wavelength_invalid"


def test_a_missing_wavelength_says_how_to_give_it() -> None:
    with pytest.raises(UserInputError) as caught:
        resolve_instrument(_pattern())
    assert caught.value.code == "wavelength_missing"
    for word in ("p.xy", "--anode", "--wavelength", "--instrument"):
        assert word in str(caught.value)


def test_options_come_before_the_file_and_the_file_before_hints(shared_file: Callable[[str], Path]) -> None:
    file = shared_file("lab-fap-gsas2/INST_XRY.PRM")
    hinted = _pattern(PatternHints(wavelengths_angstrom=(1.540598, 1.544426), goniometer_radius_mm=240.0))
    by_hints = resolve_instrument(hinted)
    assert (by_hints.wavelengths_angstrom, by_hints.goniometer_radius_mm) == ((1.540598, 1.544426), 240.0)
    by_file = resolve_instrument(hinted, file=file)
    assert by_file.wavelengths_angstrom == (1.5405, 1.5443)
    by_option = resolve_instrument(hinted, file=file, anode="Co", geometry="ds")
    assert by_option.wavelengths_angstrom[0] == pytest.approx(1.788996)
    assert by_option.geometry is Geometry.DEBYE_SCHERRER
    assert "wavelength_conflict" in _codes(by_option)
    assert "geometry_assumed" not in _codes(by_option)
    with pytest.raises(UserInputError) as caught:
        resolve_instrument(hinted, anode="Cu", wavelength="1.5406")
    assert caught.value.code == "wavelength_ambiguous"


def test_hints_of_a_header() -> None:
    anode = resolve_instrument(_pattern(PatternHints(anode="Cu")))
    assert len(anode.lines) == 2
    alone = resolve_instrument(_pattern(PatternHints(wavelengths_angstrom=(1.540598,))))
    assert len(alone.lines) == 2
    assert "ka2_assumed" in _codes(alone)
    assert len(resolve_instrument(_pattern(), wavelength="1.540598").lines) == 1
    neutron = resolve_instrument(_pattern(PatternHints(wavelengths_angstrom=(1.9,), radiation="neutron")))
    assert neutron.radiation is Radiation.NEUTRON
    with pytest.raises(UserInputError):
        resolve_instrument(_pattern(PatternHints(anode="W")))


def test_a_monochromator_sets_the_polarisation() -> None:
    found = resolve_instrument(_pattern(), anode="Cu", monochromator_two_theta_deg=26.57)
    assert found.polarization == pytest.approx(0.5556, abs=1e-4)
    with pytest.raises(UserInputError) as caught:
        resolve_instrument(_pattern(), anode="Cu", monochromator_two_theta_deg=200.0)
    assert caught.value.code == "monochromator_angle_invalid"


@pytest.mark.parametrize(
    ("key", "value", "code"), [("geometry", "flat", "geometry_unknown"), ("radiation", "ray", "radiation_unknown")]
)
def test_unknown_words(key: str, value: str, code: str) -> None:
    with pytest.raises(UserInputError) as caught:
        resolve_instrument(_pattern(), anode=None, wavelength="1.5406", **{key: value})
    assert caught.value.code == code


def test_q_and_d_become_two_theta() -> None:
    instrument = instrument_from_wavelengths("1.5")
    q = 4.0 * math.pi * np.sin(np.radians(X / 2.0)) / 1.5
    from_q = as_two_theta(_pattern(axis=AxisKind.Q, x=q), instrument)
    np.testing.assert_allclose(from_q.x, X)
    assert from_q.axis is AxisKind.TWO_THETA
    d = (2.0 * math.pi / q)[::-1]
    from_d = as_two_theta(_pattern(axis=AxisKind.D_SPACING, x=d), instrument)
    np.testing.assert_allclose(from_d.x, X)
    np.testing.assert_array_equal(from_d.y, Y[::-1])
    same = _pattern()
    assert as_two_theta(same, instrument) is same
    with pytest.raises(UserInputError) as caught:
        resolve_instrument(_pattern(axis=AxisKind.TOF, x=X * 1000))
    assert caught.value.code == "axis_unsupported"
    with pytest.raises(UserInputError) as caught:
        as_two_theta(_pattern(axis=AxisKind.TOF, x=X * 1000), instrument)
    assert caught.value.code == "axis_unsupported"
    with pytest.raises(UserInputError) as caught:
        as_two_theta(_pattern(axis=AxisKind.Q, x=q * 1000), instrument)
    assert caught.value.code == "pattern_too_short"


def test_neutrons_are_told_from_a_synchrotron_by_the_line_width(shared_file: Callable[[str], Path]) -> None:
    for name, wavelength, radiation in (
        ("neut-lbco-hrpt/lbco_hrpt.xye", "1.494", Radiation.NEUTRON),
        ("neut-herbertsmithite-hrpt/hs_hrpt.xye", "1.89", Radiation.NEUTRON),
        ("neut-al2o3-bt1/Al2O3.dat", "1.5403", Radiation.NEUTRON),
        ("neut-garnet-d1a/garnet.raw", "1.909", Radiation.NEUTRON),
        ("sync-hct-dash/hct_dash.xye", "1.1294", Radiation.XRAY),
        ("sync-nac-11bm/11BM_NAC.fxye", "0.413909", Radiation.XRAY),
        ("lab-nacoo2-texture/KD1-2_5-90_30min.xy", "1.540596,1.544493:0.5", Radiation.XRAY),
    ):
        found = resolve_instrument(read_pattern(shared_file(name)), wavelength=wavelength)
        assert found.radiation is radiation, name
        said = resolve_instrument(read_pattern(shared_file(name)), wavelength=wavelength, radiation="xray")
        assert said.radiation is Radiation.XRAY
        assert "radiation_assumed" not in _codes(said)


def test_a_transmission_scan_is_not_bragg_brentano() -> None:
    notice = Notice("transmission_geometry", "text")
    pattern = replace(_pattern(PatternHints(anode="Cu")), notices=(notice,))
    assert resolve_instrument(pattern).geometry is Geometry.DEBYE_SCHERRER
    assert resolve_instrument(pattern, geometry="bb").geometry is Geometry.BRAGG_BRENTANO
