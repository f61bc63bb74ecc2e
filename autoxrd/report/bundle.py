"""bundle.zip: every file of a report with a manifest of sizes and SHA-256; equal content gives equal bytes."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping

from autoxrd.primitives import sha256_hex

__all__ = ["MANIFEST", "bundle_zip", "manifest_json"]

MANIFEST = "manifest.json"
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""Earliest time a zip can hold; the same for every member, so that the archive depends on content alone."""


def manifest_json(files: Mapping[str, bytes]) -> bytes:
    """List each file's SHA-256 and size in bytes, sorted by name."""
    entries = {name: {"sha256": sha256_hex(files[name]), "size": len(files[name])} for name in sorted(files)}
    return (json.dumps({"schema": "autoxrd.bundle/1", "files": entries}, indent=2) + "\n").encode()


def bundle_zip(files: Mapping[str, bytes]) -> bytes:
    """Pack the files and their manifest, sorted, with fixed times and permissions."""
    members = {**files, MANIFEST: manifest_json(files)}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name in sorted(members):
            info = zipfile.ZipInfo(name, _EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 3
            info.external_attr = 0o644 << 16
            archive.writestr(info, members[name])
    return out.getvalue()
