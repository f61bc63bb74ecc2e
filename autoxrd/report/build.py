"""Write the whole report of a job: everything is rendered first, then put in place file by file."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from autoxrd.errors import StorageError
from autoxrd.primitives import canonical_json, safe_name, sha256_hex
from autoxrd.report.bundle import MANIFEST, bundle_zip, manifest_json
from autoxrd.report.cif import phase_cif
from autoxrd.report.details import build_report
from autoxrd.report.model import ReportInput
from autoxrd.report.page import render_html
from autoxrd.report.tables import parameters_csv, profile_csv, reflections_csv

__all__ = ["complete_files", "put_file", "render_files", "write_report"]

BUNDLE = "bundle.zip"


def _unique(name: str, taken: set[str]) -> str:
    """Add a counter where two names would meet, letter case ignored."""
    stem, dot, suffix = name.partition(".")
    candidate, i = name, 1
    while candidate.lower() in taken:
        i += 1
        candidate = f"{stem}_{i}{dot}{suffix}"
    taken.add(candidate.lower())
    return candidate


def render_files(inp: ReportInput) -> tuple[dict[str, bytes], dict[str, str]]:
    """Render every file but the bundle.

    Returns:
        ``(files, keys)``: file name -> content, and what it is -> file name (the ``files`` of the ``--json`` object).
    """
    content = {
        **_curves(inp),
        "parameters": ("parameters.csv", parameters_csv(inp)),
        "graph": ("graph.json", (canonical_json(dict(inp.graph)) + "\n").encode()),
    }
    taken: set[str] = set()
    for i, phase in enumerate(inp.state.phases):
        content[f"cif.{phase.name}"] = (_unique(f"{safe_name(phase.name)}.cif", taken), phase_cif(inp, i))
    taken.clear()
    for name, data in sorted(inp.engine_files.items()):
        content[f"engine.{name}"] = (f"engine/{_unique(safe_name(name), taken)}", bytes(data))
    files = dict(content.values())
    keys = {key: name for key, (name, _) in content.items()}
    keys = {"html": "report.html", "json": "report.json", **keys, "manifest": MANIFEST, "bundle": BUNDLE}
    report = build_report(inp, keys, {name: sha256_hex(data) for name, data in files.items()})
    files["report.json"] = (report.model_dump_json(indent=2) + "\n").encode()
    files["report.html"] = render_html(inp, report).encode()
    return files, keys


def _curves(inp: ReportInput) -> dict[str, tuple[str, bytes]]:
    """Render profile and reflections, of each histogram where there are several."""
    found = {"profile": ("profile.csv", profile_csv(inp)), "reflections": ("reflections.csv", reflections_csv(inp))}
    if not inp.histograms:
        return found
    found = {}
    for name, seen in inp.histograms.items():
        found[f"profile.{name}"] = (f"profile_{name}.csv", profile_csv(seen))
        found[f"reflections.{name}"] = (f"reflections_{name}.csv", reflections_csv(seen))
    return found


def put_file(path: Path, data: bytes) -> None:
    """Write a file so that a reader sees the old content or the new, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(data)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def complete_files(inp: ReportInput) -> Mapping[str, bytes]:
    """Return every file of the report by name, manifest and bundle included."""
    return _with_bundle(render_files(inp)[0])


def _with_bundle(files: Mapping[str, bytes]) -> Mapping[str, bytes]:
    return {**files, MANIFEST: manifest_json(files), BUNDLE: bundle_zip(files)}


def write_report(inp: ReportInput, directory: Path) -> dict[str, Path]:
    """Write all files of the report; an earlier report in the directory is replaced.

    Args:
        inp: the report's input.
        directory: created where missing.

    Returns:
        What it is -> path: ``html``, ``json``, ``profile``, ``reflections``, ``parameters``, ``graph``, ``cif.PHASE``,
        ``engine.NAME``, ``manifest``, ``bundle``; of several histograms ``profile.H`` and ``reflections.H`` of each.

    Raises:
        StorageError: ``report_not_written`` when the file system refuses.
    """
    files, keys = render_files(inp)
    try:
        for name, data in _with_bundle(files).items():
            put_file(directory / name, data)
    except OSError as error:
        raise StorageError(
            "report_not_written",
            f"The report cannot be written to {directory}: {error.strerror or error}. Check space and permissions.",
            context={"directory": str(directory)},
        ) from error
    return {key: directory / name for key, name in keys.items()}
