"""Read PANalytical/Malvern XRDML: 1.x <intensities> and 2.x <counts>."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from autoxrd.domain.pattern import FloatArray, Notice, PatternHints
from autoxrd.io.raw import RawPattern, Reader, to_float
from autoxrd.io.settings import ReadSettings
from autoxrd.io.source import Source, shown

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

__all__ = ["XRDML"]

_POWDER_AXES = ("gonio", "2theta", "2theta-omega", "omega-2theta")


def _understands(source: Source) -> bool:
    """Whether the root element is that of an XRDML file."""
    return b"<xrdMeasurement" in source.data[:4096]


def _parse(source: Source) -> Element:
    """Parse without entities, external references or document type tricks."""
    from xml.etree.ElementTree import ParseError

    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import fromstring

    try:
        root: Element = fromstring(source.data)
    except ParseError as error:
        line = error.position[0] if hasattr(error, "position") else None
        sentence = "the XML is not well formed (a file cut short?); expected a complete XRDML file."
        raise source.error("xrdml_malformed", sentence, line=line) from error
    except (DefusedXmlException, ValueError, LookupError) as error:
        raise source.error("xrdml_malformed", "the XML uses entities or an encoding that are not read.") from error
    return root


def _read(source: Source, bank: int | None, settings: ReadSettings) -> RawPattern:
    """Read one scan: the asked one (counted from 1), else the first."""
    root = _parse(source)
    measurement, scans = _scans(root)
    index = 0 if bank is None else bank - 1
    if not scans:
        raise source.error("xrdml_no_scan", "holds no <scan> element; expected a powder scan.")
    if not 0 <= index < len(scans):
        raise source.error("bank_missing", f"has no scan {bank}; it has {len(scans)}.", bank=bank)
    scan = scans[index]
    axis = (scan.get("scanAxis") or "").lower()
    if axis not in _POWDER_AXES:
        sentence = f"scans the axis '{shown(axis)}'; expected a 2theta or gonio scan."
        raise source.error("xrdml_not_powder", sentence)
    points = scan.find("{*}dataPoints")
    if points is None:
        raise source.error("xrdml_no_data", "the scan holds no data points; expected counts.")
    y, scale, time = _intensities(source, points)
    if y.size > settings.max_points:
        raise source.error("pattern_too_long", f"has more than {settings.max_points} points.")
    notices: list[Notice] = []
    if bank is None and len(scans) > 1:
        notices.append(Notice("other_banks_ignored", f"The file has {len(scans)} scans; the first is read."))
    if (scan.get("status") or "Completed").lower() != "completed":
        notices.append(Notice("scan_incomplete", f"The scan's status is '{shown(scan.get('status') or '')}'."))
    hints, extra = _hints(measurement[index], time)
    seconds = 1.0 if _is_rate(points) else time
    hints = replace(hints, intensity_seconds=seconds if seconds is not None and seconds > 0.0 else None)
    return RawPattern(
        x=_two_theta(source, points, y.size),
        y=y,
        count_scale=scale,
        format="xrdml",
        title=(root.findtext(".//{*}sample/{*}name") or root.findtext(".//{*}sample/{*}id") or "").strip(),
        hints=hints,
        notices=(*notices, *extra),
    )


def _scans(root: Element) -> tuple[list[Element], list[Element]]:
    """All scans of all measurements, each with the measurement that it belongs to."""
    owners: list[Element] = []
    scans: list[Element] = []
    for measurement in root.iterfind("{*}xrdMeasurement"):
        for scan in measurement.iterfind("{*}scan"):
            owners.append(measurement)
            scans.append(scan)
    return owners, scans


def _array(source: Source, element: Element, what: str) -> FloatArray:
    """Numbers of one element."""
    values = [to_float(token) for token in (element.text or "").split()]
    if any(value is None for value in values) or not values:
        raise source.error("xrdml_no_data", f"the element <{what}> is empty or not numeric.")
    return np.asarray(values, dtype=np.float64)


def _intensities(source: Source, points: Element) -> tuple[FloatArray, FloatArray | None, float | None]:
    """Intensities, the factor from counts to them (None means 1), and the counting time in seconds."""
    element = points.find("{*}counts")
    tag = "counts"
    if element is None:
        element, tag = points.find("{*}intensities"), "intensities"
    if element is None:
        raise source.error("xrdml_no_data", "holds neither <counts> nor <intensities>.")
    y = _array(source, element, tag)
    time = to_float(points.findtext("{*}commonCountingTime") or "")
    scale: FloatArray | None = None
    factors = points.find("{*}beamAttenuationFactors")
    if factors is not None:
        attenuation = _array(source, factors, "beamAttenuationFactors")
        if attenuation.size != y.size or np.any(~(attenuation > 0.0)):
            raise source.error("xrdml_no_data", "the beam attenuation factors do not fit the counts.")
        scale = attenuation
        if tag == "counts":
            y = y * attenuation
    if _is_rate(points) and time is not None and time > 0.0:
        scale = (np.ones_like(y) if scale is None else scale) / time
    return y, scale, time


def _is_rate(points: Element) -> bool:
    """Whether the numbers are counts per second."""
    element = points.find("{*}counts")
    element = points.find("{*}intensities") if element is None else element
    return element is not None and (element.get("unit") or "counts").lower() == "cps"


def _two_theta(source: Source, points: Element, n: int) -> FloatArray:
    """Positions in degrees 2theta: listed, or from start to end in equal steps."""
    for positions in points.iterfind("{*}positions"):
        if (positions.get("axis") or "").lower() != "2theta":
            continue
        listed = positions.find("{*}listPositions")
        if listed is not None:
            x = _array(source, listed, "listPositions")
            if x.size != n:
                sentence = f"lists {x.size} positions for {n} intensities."
                raise source.error("pattern_truncated", sentence)
            return x
        start = to_float(positions.findtext("{*}startPosition") or "")
        end = to_float(positions.findtext("{*}endPosition") or "")
        if start is not None and end is not None:
            return np.linspace(start, end, n)
        raise source.error("xrdml_not_powder", "2theta does not move in this scan; expected a start and an end.")
    raise source.error("xrdml_no_data", "holds no 2theta positions.")


def _hints(measurement: Element, time: float | None) -> tuple[PatternHints, tuple[Notice, ...]]:
    """Wavelengths, anode and radius; a monochromator before the specimen removes K-alpha 2."""
    used = measurement.find("{*}usedWavelength")
    alpha1 = alpha2 = ratio = None
    if used is not None:
        alpha1 = to_float(used.findtext("{*}kAlpha1") or "")
        alpha2 = to_float(used.findtext("{*}kAlpha2") or "")
        ratio = to_float(used.findtext("{*}ratioKAlpha2KAlpha1") or "")
    incident = measurement.find("{*}incidentBeamPath")
    diffracted = measurement.find("{*}diffractedBeamPath")
    notices: list[Notice] = []
    if _has_monochromator(incident):
        alpha2 = ratio = None
        notices.append(
            Notice("incident_monochromator", "An incident-beam monochromator is listed: K-alpha 1 alone is assumed.")
        )
    if _has_monochromator(diffracted):
        text = "A diffracted-beam monochromator is listed: give its 2theta so that the polarisation is right."
        notices.append(Notice("diffracted_monochromator", text))
    if (measurement.get("sampleMode") or "").lower() == "transmission":
        text = "The specimen was measured in transmission: the displacement law is that of Debye-Scherrer geometry."
        notices.append(Notice("transmission_geometry", text))
    wavelengths = tuple(value for value in (alpha1, alpha2) if value is not None and value > 0.0)
    anode = None if incident is None else (incident.findtext(".//{*}anodeMaterial") or "").strip() or None
    radius = None if incident is None else to_float(incident.findtext("{*}radius") or "")
    return (
        PatternHints(
            wavelengths_angstrom=wavelengths,
            ka2_ratio=ratio if len(wavelengths) > 1 else None,
            anode=None if anode is None else shown(anode),
            radiation="xray",
            goniometer_radius_mm=radius if radius is not None and radius > 0.0 else None,
            counting_seconds=time,
        ),
        tuple(notices),
    )


def _has_monochromator(path: Element | None) -> bool:
    """Whether a beam path lists a monochromator."""
    return path is not None and any("onochromator" in child.tag for child in path)


XRDML = Reader("xrdml", _understands, _read)
