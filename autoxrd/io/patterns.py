"""Read one powder pattern: find the reader that understands the content, read, check."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from autoxrd.domain.pattern import AxisKind, Pattern
from autoxrd.io.checks import finish
from autoxrd.io.columns import COLUMNS
from autoxrd.io.grid import GRID
from autoxrd.io.gsas import GSAS
from autoxrd.io.institutes import D1A, ITAL, MAUD
from autoxrd.io.pdcif import PDCIF
from autoxrd.io.ras import RAS
from autoxrd.io.raw import RawPattern, Reader
from autoxrd.io.settings import DEFAULT_READ_SETTINGS, ReadSettings
from autoxrd.io.source import Source, load_source
from autoxrd.io.vendors import refuse_vendor_formats
from autoxrd.io.xrdml import XRDML

__all__ = ["READERS", "read_pattern"]

READERS: tuple[Reader, ...] = (XRDML, RAS, PDCIF, GSAS, ITAL, D1A, MAUD, GRID, COLUMNS)
"""Asked in this order; the content decides, never the extension. The most particular come first."""


def read_pattern(
    path: Path,
    *,
    bank: int | None = None,
    axis: AxisKind | None = None,
    settings: ReadSettings = DEFAULT_READ_SETTINGS,
) -> Pattern:
    """Read a powder pattern from a file.

    Args:
        path: the file.
        bank: number of the bank (GSAS) or scan (XRDML, RAS, from 1) to read; the first by default.
        axis: what the abscissa is where the file does not say and 2theta is impossible (values above 180).
        settings: limits and thresholds.

    Returns:
        A checked pattern: finite, strictly increasing axis, all sigma > 0, read-only arrays. Its ``axis``
        may be TOF, Q or d: the caller decides whether it can use those.

    Raises:
        UserInputError: the file cannot be used as it is; the sentence names the file, the line where
            there is one, and what was expected. Codes: ``file_*``, ``format_unknown``,
            ``format_unsupported``, ``pattern_*``, ``gsas_*``, ``xrdml_*``, ``ras_*``, ``pdcif_*``, ``bank_missing``.
    """
    source = load_source(Path(path), max_bytes=settings.max_bytes)
    refuse_vendor_formats(source)
    for reader in READERS:
        if reader.understands(source):
            return finish(_stated(reader.read(source, bank, settings), axis), source, settings)
    raise _unknown(source)


def _stated(raw: RawPattern, axis: AxisKind | None) -> RawPattern:
    impossible = raw.axis is AxisKind.TWO_THETA and raw.x.size > 0 and float(np.nanmax(raw.x)) > 180.0
    return replace(raw, axis=axis) if axis is not None and impossible else raw


def _unknown(source: Source) -> Exception:
    """Say what is read where nothing was recognised."""
    what = "binary data of an unknown kind" if source.looks_binary else "text of an unknown kind"
    sentence = (
        f"holds {what}; expected columns of 2theta and intensity (.xy .xye .csv .dat .prn), "
        "GSAS powder text (BANK records), FullProf, Maud, PANalytical XRDML, Rigaku RAS or pdCIF."
    )
    return source.error("format_unknown", sentence)
