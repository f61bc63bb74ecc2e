"""Are the files beside the database what the graph and their own lists say? Artifacts, reports, manifest, bundle."""

from __future__ import annotations

import hashlib
import json
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import IO, Any

from autoxrd.errors import StorageError
from autoxrd.primitives import canonical_json
from autoxrd.store.artifacts import ArtifactStore
from autoxrd.store.document import verify_export
from autoxrd.store.findings import Finding, error, mismatch, note

__all__ = ["check_artifacts", "check_bundle", "check_graph_json", "check_manifest", "check_report_json"]

_CHUNK = 1 << 20


def check_artifacts(store: ArtifactStore, named: Iterable[str]) -> Iterator[Finding]:
    """Check that every named artifact is there, and the content of every artifact, named or not."""
    there = set(store.ids())
    named = set(named)
    for artifact in sorted(named - there):
        yield error("artifact_missing", f"artifact {artifact}", "A row names it, but the file is not there.")
    for artifact in sorted(there):
        try:
            store.verify(artifact)
        except StorageError as failure:
            yield error(failure.code, f"artifact {artifact}", failure.detail)
    for artifact in sorted(there - named):
        yield note("artifact_unnamed", f"artifact {artifact}", "No row names it: a step was cut off after writing it.")
    for path in store.strangers():
        yield note("artifact_stranger", path.name, "This is no artifact; nothing refers to it.")


def check_graph_json(path: Path, expected: Mapping[str, Any] | None) -> Iterator[Finding]:
    """Check an exported graph against itself and against the database (None: it could not be exported)."""
    document, findings = _load(path)
    yield from findings
    if document is None:
        return
    yield from verify_export(document)
    if expected is not None and canonical_json(document) != canonical_json(expected):
        yield error("export_differs", path.name, "It does not say what the database says: export the graph again.")


def check_report_json(path: Path, root: str, final_state: str | None, *, finished: bool) -> Iterator[Finding]:
    """Check that a report is about this graph, as it is now."""
    report, findings = _load(path)
    yield from findings
    if report is None:
        return
    yield from mismatch("report_differs", path.name, "graph_root", report.get("graph_root"), root)
    if finished:
        yield from mismatch("report_differs", path.name, "final_state", report.get("final_state"), final_state)


def check_manifest(path: Path) -> Iterator[Finding]:
    """Check every file that a manifest lists, relative to the manifest's folder."""
    manifest, findings = _load(path)
    yield from findings
    for name, digest in _listed(manifest or {}, path.name):
        if isinstance(digest, Finding):
            yield digest
            continue
        try:
            with (path.parent / name).open("rb") as stream:
                found = _digest(stream)
        except OSError:
            yield error("file_missing", name, f"{path.name} lists it, but it cannot be read.")
            continue
        yield from mismatch("file_differs", name, "its SHA-256", found, digest)


def check_bundle(path: Path, manifest_name: str = "manifest.json") -> Iterator[Finding]:
    """Check that a bundle holds exactly what its own manifest lists, with that content."""
    try:
        with zipfile.ZipFile(path) as bundle:
            manifest = json.loads(bundle.read(manifest_name))
            listed = list(_listed(manifest, f"{path.name}:{manifest_name}"))
            yield from _check_members(bundle, path, dict(listed), manifest_name)
    except (
        OSError,
        KeyError,
        ValueError,
        zipfile.BadZipFile,
        zlib.error,
        NotImplementedError,
        RuntimeError,
    ) as failure:
        yield error("bundle_damaged", path.name, f"It cannot be read: {failure}.")


def _check_members(
    bundle: zipfile.ZipFile, path: Path, listed: Mapping[str, str | Finding], manifest_name: str
) -> Iterator[Finding]:
    names = bundle.namelist()
    if sorted(names) != sorted({*listed, manifest_name}):
        yield error("bundle_differs", path.name, "It does not hold exactly the files that its manifest lists.")
    for name, digest in listed.items():
        if isinstance(digest, Finding):
            yield digest
        elif name in names:
            with bundle.open(name) as stream:
                yield from mismatch("file_differs", f"{path.name}:{name}", "its SHA-256", _digest(stream), digest)


def _listed(manifest: object, label: str) -> Iterator[tuple[str, str | Finding]]:
    """Yield names and digests of ``{"files": {name: sha256 or {"sha256": ...}}}``; a name leading out is an error."""
    files = manifest.get("files") if isinstance(manifest, dict) else None
    if not isinstance(files, dict):
        yield label, error("manifest_form", label, "It has no list of files.")
        return
    for name, entry in files.items():
        digest = entry.get("sha256") if isinstance(entry, dict) else entry
        relative = PurePosixPath(name)
        if relative.is_absolute() or ".." in relative.parts or not isinstance(digest, str):
            yield name, error("manifest_form", label, f"{name!r:.80} is no file of this folder with a SHA-256.")
        else:
            yield name, digest


def _load(path: Path) -> tuple[dict[str, Any] | None, list[Finding]]:
    try:
        document = json.loads(path.read_bytes())
        canonical_json(document)  # nested too deeply to be handled, it is refused here
    except (OSError, ValueError, RecursionError) as failure:
        return None, [error("document_form", path.name, f"It cannot be read as JSON: {failure}.")]
    if not isinstance(document, dict):
        return None, [error("document_form", path.name, "It is no JSON object.")]
    return document, []


def _digest(stream: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while chunk := stream.read(_CHUNK):
        digest.update(chunk)
    return digest.hexdigest()
