"""Read the powder profile of a CIF (pdCIF): ``_pd_meas_*`` and ``_pd_proc_*`` of one data block.

Names by the powder dictionary of the IUCr (Toby 2005, International Tables for Crystallography G, chapter 3.3,
doi:10.1107/97809553602060000734). Calculated curves and weights of an earlier refinement are not used where counts are
given: counts have their own uncertainty.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from autoxrd.domain.pattern import FloatArray, Notice, PatternHints
from autoxrd.io.cif import first_text, parse_cif
from autoxrd.io.raw import RawPattern, Reader
from autoxrd.io.settings import ReadSettings
from autoxrd.io.source import Source

if TYPE_CHECKING:
    import gemmi

__all__ = ["PDCIF", "holds_profile"]

_COUNTS = ("_pd_meas_counts_total",)
_INTENSITIES = ("_pd_meas_intensity_total", "_pd_proc_intensity_total")
_ANGLES = ("_pd_proc_2theta_corrected", "_pd_meas_2theta_scan")
_RANGES = ("_pd_proc_2theta_range", "_pd_meas_2theta_range")
_TIMES = ("_pd_meas_time_of_flight", "_pd_proc_energy_incident")
_WEIGHT = "_pd_proc_ls_weight"
_SECONDS = "_pd_meas_step_count_time"
_NUMBER = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)(?:\((\d+)\))?")
_HEAD = 65536


def holds_profile(data: bytes) -> bool:
    """Return whether bytes look like a CIF with measured intensities of a powder."""
    named = any(name.encode() in data for name in (*_COUNTS, *_INTENSITIES))
    return named and b"\ndata_" in b"\n" + data[:_HEAD].replace(b"\r", b"\n").lower()


def _understands(source: Source) -> bool:
    return holds_profile(source.data)


def _read(source: Source, bank: int | None, settings: ReadSettings) -> RawPattern:
    """Read one block with a profile: the asked one (counted from 1), else the first."""
    blocks = [block for block in parse_cif(source, "pdcif_malformed") if _intensities(block)]
    index = 0 if bank is None else bank - 1
    if not blocks:
        raise source.error("pdcif_no_data", "names powder intensities but holds none; expected a loop of them.")
    if not 0 <= index < len(blocks):
        raise source.error("bank_missing", f"has no profile {bank}; it has {len(blocks)}.", bank=bank)
    block, name = blocks[index], _intensities(blocks[index])
    y, esd = _values(block.find_values(name))
    if y.size > settings.max_points:
        raise source.error("pattern_too_long", f"has more than {settings.max_points} points.")
    x = _angles(source, block, y.size)
    known = np.isfinite(x) & np.isfinite(y)
    sigma = None if name in _COUNTS else _sigma(block, esd)
    if sigma is not None:
        known &= np.isfinite(sigma) & (sigma > 0.0)
    notices = []
    if bank is None and len(blocks) > 1:
        notices.append(Notice("other_banks_ignored", f"The file has {len(blocks)} profiles; the first is read."))
    if not known.all():
        notices.append(Notice("points_without_value", f"{int(np.sum(~known))} points have no value and are left out."))
    return RawPattern(
        x=x[known],
        y=y[known],
        sigma=None if sigma is None else sigma[known],
        format="pdcif",
        title=first_text(block, ("_pd_phase_name",)) or block.name,
        hints=_hints(block),
        notices=tuple(notices),
    )


def _intensities(block: gemmi.cif.Block) -> str:
    """Return the name of the intensities that a block holds, the most direct ones first."""
    return next((name for name in (*_COUNTS, *_INTENSITIES) if len(block.find_values(name)) > 1), "")


def _values(column: Iterable[str]) -> tuple[FloatArray, FloatArray]:
    """Return numbers and their esds (in brackets), NaN where there is none, shape (n,) each."""
    numbers, esds = [], []
    for text in column:
        found = _NUMBER.fullmatch(text.strip())
        numbers.append(float(found[1]) if found else np.nan)
        esds.append(_esd(found[1], found[2]) if found and found[2] else np.nan)
    return np.array(numbers), np.array(esds)


def _esd(number: str, digits: str) -> float:
    """Return the esd that stands in brackets: in units of the last digit."""
    mantissa, _, exponent = number.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    return float(digits) * 10.0 ** (int(exponent or 0) - decimals)


def _angles(source: Source, block: gemmi.cif.Block, n: int) -> FloatArray:
    """Return two theta of each point, degrees, shape (n,)."""
    for name in _ANGLES:
        values = block.find_values(name)
        if len(values) == n:
            return _values(values)[0]
    for prefix in _RANGES:
        ends = [_number(block, f"{prefix}_{part}") for part in ("min", "max", "inc")]
        if np.isfinite(ends).all() and abs(ends[0] + (n - 1) * ends[2] - ends[1]) <= 0.5 * abs(ends[2]):
            return np.asarray(ends[0] + ends[2] * np.arange(n))
    if any(len(block.find_values(name)) for name in _TIMES):
        raise source.error("format_unsupported", "is a pdCIF of time of flight or energies, which is not read.")
    sentence = "gives no angle for its intensities; expected _pd_meas_2theta_scan or a range that fits their number."
    raise source.error("pdcif_no_axis", sentence)


def _sigma(block: gemmi.cif.Block, esd: FloatArray) -> FloatArray | None:
    """Return standard uncertainties: those in brackets, else of the weights, else None for counting statistics."""
    if np.isfinite(esd).any():
        return esd
    weight = _values(block.find_values(_WEIGHT))[0]
    if weight.size != esd.size or not np.any(weight > 0.0):
        return None
    return np.where(weight > 0.0, 1.0 / np.sqrt(np.where(weight > 0.0, weight, 1.0)), np.nan)


def _number(block: gemmi.cif.Block, name: str) -> float:
    text = block.find_value(name)
    found = _NUMBER.fullmatch(text.strip()) if text else None
    return float(found[1]) if found else np.nan


def _hints(block: gemmi.cif.Block) -> PatternHints:
    """Return what the block says of the radiation."""
    waves = [w for w in _values(block.find_values("_diffrn_radiation_wavelength"))[0] if np.isfinite(w) and w > 0.0]
    weights = _values(block.find_values("_diffrn_radiation_wavelength_wt"))[0]
    two = len(waves) == 2 and weights.size == 2 and bool(np.all(weights > 0.0))
    probe = first_text(block, ("_diffrn_radiation_probe",)).lower()
    seconds = _number(block, _SECONDS)
    return PatternHints(
        wavelengths_angstrom=tuple(float(w) for w in waves[:2]),
        ka2_ratio=float(weights[1] / weights[0]) if two else None,
        radiation="xray" if probe.startswith("x-ray") else "neutron" if probe.startswith("neutron") else None,
        counting_seconds=seconds if seconds > 0.0 else None,
    )


PDCIF = Reader("pdcif", _understands, _read)
