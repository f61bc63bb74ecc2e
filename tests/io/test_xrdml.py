"""XRDML: versions, positions, attenuation, rates, several scans, unsafe XML."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from autoxrd.errors import UserInputError
from autoxrd.io import read_pattern
from tests.io.samples import peaks, write

X, Y = peaks()


def _xrdml(
    y: np.ndarray = Y,
    *,
    version: str = "2.1",
    tag: str = "counts",
    unit: str = "counts",
    positions: str | None = None,
    extra: str = "",
    incident: str = "",
    axis: str = "Gonio",
    scans: int = 1,
) -> str:
    positions = positions or f"<startPosition>{X[0]}</startPosition><endPosition>{X[-1]}</endPosition>"
    scan = f"""<scan scanAxis="{axis}" status="Completed"><dataPoints>
<positions axis="2Theta" unit="deg">{positions}</positions>
<commonCountingTime unit="seconds">4.0</commonCountingTime>{extra}
<{tag} unit="{unit}">{" ".join(f"{v:g}" for v in y)}</{tag}></dataPoints></scan>"""
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<xrdMeasurements xmlns="http://www.xrdml.com/XRDMeasurement/{version}"><sample><id>S1</id><name>quartz</name></sample>
<xrdMeasurement measurementType="Scan"><usedWavelength intended="K-Alpha">
<kAlpha1 unit="Angstrom">1.540598</kAlpha1><kAlpha2 unit="Angstrom">1.544426</kAlpha2>
<ratioKAlpha2KAlpha1>0.5000</ratioKAlpha2KAlpha1></usedWavelength>
<incidentBeamPath><radius unit="mm">240.00</radius><xRayTube><anodeMaterial>Cu</anodeMaterial></xRayTube>
{incident}</incidentBeamPath>{scan * scans}</xrdMeasurement></xrdMeasurements>"""


@pytest.mark.parametrize(("version", "tag"), [("1.0", "intensities"), ("1.7", "intensities"), ("2.3", "counts")])
def test_versions(tmp_path: Path, version: str, tag: str) -> None:
    pattern = read_pattern(write(tmp_path / "a.xrdml", _xrdml(version=version, tag=tag)))
    np.testing.assert_allclose(pattern.x, X)
    np.testing.assert_array_equal(pattern.y, Y)
    assert pattern.title == "quartz"
    assert (pattern.hints.goniometer_radius_mm, pattern.hints.ka2_ratio) == (240.0, 0.5)


def test_listed_positions(tmp_path: Path) -> None:
    listed = X + 0.001 * np.sin(X)
    text = _xrdml(positions=f"<listPositions>{' '.join(map(str, listed))}</listPositions>")
    np.testing.assert_allclose(read_pattern(write(tmp_path / "a.xrdml", text)).x, listed)


def test_attenuation_and_rates_keep_the_counting_error(tmp_path: Path) -> None:
    factor = np.where(Y > 500, 10.0, 1.0)
    factors = f"<beamAttenuationFactors>{' '.join(map(str, factor))}</beamAttenuationFactors>"
    raw = read_pattern(write(tmp_path / "a.xrdml", _xrdml(extra=factors)))
    np.testing.assert_allclose(raw.y, Y * factor)
    np.testing.assert_allclose(raw.sigma, np.sqrt(Y) * factor)
    old = _xrdml(Y * factor, version="1.5", tag="intensities", extra=factors)
    np.testing.assert_allclose(read_pattern(write(tmp_path / "b.xrdml", old)).sigma, np.sqrt(Y) * factor)
    rates = read_pattern(write(tmp_path / "c.xrdml", _xrdml(Y / 4.0, unit="cps", version="1.5", tag="intensities")))
    np.testing.assert_allclose(rates.sigma, np.sqrt(Y) / 4.0)
    assert rates.notices == ()
    assert (raw.hints.intensity_seconds, rates.hints.intensity_seconds) == (4.0, 1.0)


def test_a_monochromator_before_the_specimen_removes_alpha_2(tmp_path: Path) -> None:
    text = _xrdml(incident="<monochromator><crystal/></monochromator>")
    pattern = read_pattern(write(tmp_path / "a.xrdml", text))
    assert pattern.hints.wavelengths_angstrom == (1.540598,)
    assert "incident_monochromator" in {notice.code for notice in pattern.notices}


def test_the_first_of_several_scans_is_read_and_said(tmp_path: Path) -> None:
    path = write(tmp_path / "a.xrdml", _xrdml(scans=2))
    assert "other_banks_ignored" in {notice.code for notice in read_pattern(path).notices}
    assert read_pattern(path, bank=2).notices == ()
    with pytest.raises(UserInputError) as caught:
        read_pattern(path, bank=3)
    assert caught.value.code == "bank_missing"


BOMB = (
    """<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "xxxx"><!ENTITY c "&b;&b;&b;">]>"""
    """<xrdMeasurements>&c;</xrdMeasurements>"""
)
OUTSIDE = (
    """<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/hostname">]>"""
    """<xrdMeasurements>&b;</xrdMeasurements>"""
)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (_xrdml()[:-400], "xrdml_malformed"),
        (BOMB, "xrdml_malformed"),
        (OUTSIDE, "xrdml_malformed"),
        (_xrdml().replace("<scan ", "<other ").replace("</scan>", "</other>"), "xrdml_no_scan"),
        (_xrdml(axis="Omega"), "xrdml_not_powder"),
        (_xrdml(positions="<commonPosition>12</commonPosition>"), "xrdml_not_powder"),
        (_xrdml(positions="<listPositions>1 2 3</listPositions>"), "pattern_truncated"),
        (_xrdml(tag="other"), "xrdml_no_data"),
        (_xrdml(extra="<beamAttenuationFactors>1 2</beamAttenuationFactors>"), "xrdml_no_data"),
        (_xrdml(Y[:20]), "pattern_too_short"),
    ],
)
def test_xrdml_refusals(tmp_path: Path, text: str, code: str) -> None:
    with pytest.raises(UserInputError) as caught:
        read_pattern(write(tmp_path / "a.xrdml", text))
    assert caught.value.code == code
