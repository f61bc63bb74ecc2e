"""The ``export`` command: files for people and for other programs, from a state and the record of its fit."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gemmi
import rietx as rx
from axr_model import open_refinement
from axr_private import table_of
from axr_report import Evaluation, evaluate
from axr_state import State, encode
from axr_wire import Refused
from rietx.io.cif.blocks import block_name, write_document, write_structure_block
from rietx.io.exporters import refinement_cif_doc, reflection_table, write_reflection_table
from rietx.schemas.results import Provenance, RefinementResult

__all__ = ["KINDS", "export"]

Notices = list[tuple[str, str]]


@dataclass(frozen=True)
class _Job:
    """What every writer needs."""

    state: State
    seen: Evaluation
    folder: Path
    notices: Notices


def export(state: State, kinds: list[str], folder: Path) -> tuple[list[str], Notices]:
    """Write files and return their names.

    Args:
        state: the state to export.
        kinds: which of ``KINDS``.
        folder: where to, existing.

    Raises:
        Refused: a kind is unknown, or rietx cannot write it.
    """
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise Refused("input", "export_unknown", f"Unknown export kinds {unknown}; known are {list(KINDS)}.")
    job = _Job(state, evaluate(state), folder, [])
    for kind in kinds:
        try:
            KINDS[kind](job)
        except (ValueError, KeyError, RuntimeError) as error:
            raise Refused("internal", "export_failed", f"rietx cannot write {kind}: {str(error)[:300]}") from error
    return sorted(path.name for path in folder.iterdir()), job.notices


def _with_esds(state: State) -> tuple[Any, Any]:
    """Return the models with the esds of the last fit in their parameters."""
    structure, instrument = state.structure.model_copy(deep=True), state.instrument.model_copy(deep=True)
    table = table_of(structure, instrument)
    table.apply_to_models(structure, instrument, stderr=state.last.get("esds", {}))
    return structure, instrument


def _result(job: _Job) -> Any:
    """Return rietx's result object: the last fit's record, its curves computed again from the state.

    A state that no fit has made (a root, an edit) has a record without esds.
    """
    model, seen = job.seen.model, job.seen
    curves = {
        "two_theta": model.tt.tolist(),
        "y_obs": model.y_obs.tolist(),
        "y_calc": seen.y_calc.tolist(),
        "y_background": seen.background.tolist(),
        "sigma": model.sigma.tolist(),
    }
    provenance = Provenance(package_version=rx.__version__).model_dump()
    record = job.state.last.get("result")
    if record is None:
        raise Refused("input", "export_unfitted", "Only a fitted state can be written as a refinement CIF.")
    return RefinementResult.model_validate({**record, **curves, "provenance": provenance})


def _cif(job: _Job) -> None:
    """Write each phase's refined structure with esds as a CIF of its own."""
    structure, instrument = _with_esds(job.state)
    probe = "neutron" if instrument.source.kind == "neutron_cw" else "xray"
    for phase in structure.phases:
        document = gemmi.cif.Document()
        block = document.add_new_block(block_name(phase.name, 0, set()))
        write_structure_block(block, phase, kind="refinement", probe=probe)
        write_document(document, job.folder / f"{_safe(phase.name)}.cif")


def _pdcif(job: _Job) -> None:
    """Write one pdCIF: all phases, the pattern with its calculated curves, the reflections, the figures."""
    structure, instrument = _with_esds(job.state)
    rows = reflection_table(job.seen.model, job.seen.values, job.state.structure)
    document = refinement_cif_doc(_result(job), structure, instrument, pattern=job.state.pattern(), reflections=rows)
    write_document(document, job.folder / "refinement.cif")


def _hkl(job: _Job) -> None:
    rows = reflection_table(job.seen.model, job.seen.values, job.state.structure)
    write_reflection_table(rows, job.folder / "reflections.csv")


def _native(job: _Job) -> None:
    """Write rietx's own state (JSON, opens in rietx alone) and our snapshot (goes on in AutoXRD)."""
    ref = open_refinement(job.state)
    (job.folder / "rietx-state.json").write_text(ref.snapshot().model_dump_json(), encoding="utf-8")
    (job.folder / "snapshot.bin").write_bytes(encode(job.state))


def _topas(job: _Job) -> None:
    found: list[Any] = []
    rx.write_topas_inp(
        job.state.structure,
        job.folder / "refinement.inp",
        instrument=job.state.instrument,
        pattern=job.state.pattern(),
        diagnostics=found,
    )
    job.notices.extend((item.code.lower(), item.message[:300]) for item in found)


def _safe(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_+-]", "_", name)[:80]


KINDS: dict[str, Callable[[_Job], None]] = {
    "cif": _cif,
    "pdcif": _pdcif,
    "hkl": _hkl,
    "native": _native,
    "topas": _topas,
}
