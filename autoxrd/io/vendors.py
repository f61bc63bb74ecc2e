"""Name the vendor formats that are not read yet, so that the message says what to export instead."""

from __future__ import annotations

from autoxrd.io.pdcif import holds_profile
from autoxrd.io.source import Source

__all__ = ["refuse_vendor_formats"]

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"RAW1.01", "Bruker/Siemens RAW version 3"),
    (b"RAW4.00", "Bruker RAW version 4"),
    (b"RAW2", "Bruker/Siemens RAW version 2"),
    (b"RAW ", "Bruker/Siemens RAW version 1"),
    (b"FI\x00\x00", "Rigaku binary RAW"),
    (b"HR-XRDScan", "Philips/PANalytical binary scan"),
    (b"V3RD", "Philips RD"),
    (b"V5RD", "Philips RD"),
    (b"\x89HDF", "HDF5 or NeXus"),
    (b"CDF\x01", "netCDF"),
    (b"%PDF", "PDF document"),
    (b"\x89PNG", "PNG image"),
    (b"\x1f\x8b", "gzip archive"),
    (b"\xd0\xcf\x11\xe0", "Microsoft Office document"),
)

_STRUCTURE = "a CIF of a structure"


def refuse_vendor_formats(source: Source) -> None:
    """Raise for a format that is known by its first bytes and not read.

    Raises:
        UserInputError: ``format_unsupported``, naming the format.
    """
    kind = _kind(source.data)
    if kind is None:
        return
    if kind == _STRUCTURE:
        sentence = "looks like a CIF of a structure, not a pattern; give it with --structure."
        raise source.error("format_unsupported", sentence, looks_like=kind)
    sentence = f"looks like {kind}, which is not read yet; export it as two-column text (.xy) or XRDML."
    raise source.error("format_unsupported", sentence, looks_like=kind)


def _kind(data: bytes) -> str | None:
    """Name the format by its first bytes, or None."""
    for magic, kind in _MAGIC:
        if data.startswith(magic):
            return kind
    if b"\ndata_" in b"\n" + data[:65536].replace(b"\r", b"\n") and b"_cell_length_a" in data:
        return None if holds_profile(data) else _STRUCTURE
    if data.startswith(b"PK\x03\x04"):
        head = data[:65536] + data[-65536:]
        if b"RawData" in head or b"Experiment0" in head:
            return "Bruker BRML"
        if b"Data0/" in head or b"Profile0.txt" in head:
            return "Rigaku RASX"
        return "a zip archive or spreadsheet"
    return None
