"""Does what a form says of its phases fit the structure files that came with it? Asked before anything is queued."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from autoxrd.agent.certified import certified_phases, check_cell, find_phase
from autoxrd.errors import UserInputError
from autoxrd.io.naming import unique_names
from autoxrd.jobs.checking import Finding
from autoxrd.jobs.request import JobRequest

__all__ = ["check_phases"]


@dataclass(frozen=True, slots=True)
class _Phase:
    """A phase under the name that it will have in the job."""

    name: str
    source_name: str
    space_group: str
    free_cell: Mapping[str, float]


def check_phases(
    request: JobRequest, findings: Sequence[Finding], candidates: Sequence[Finding] = ()
) -> dict[str, str]:
    """Return what is wrong by field of the form; nothing where a structure file could not be read.

    Args:
        request: what was asked for.
        findings: what the readers said of the structures.
        candidates: what they said of the candidates; one may be a standard, none has a certified cell.
    """
    read = [*findings, *candidates]
    if not read or any(finding.found is None for finding in read):
        return {}
    phases, wrong = _phases(read), {}
    believed = phases[: sum(len((finding.found or {})["phases"]) for finding in findings)]
    try:
        if request.standard is not None:
            find_phase(request.standard.phase, phases, what="The standard", code="standard_unknown")
    except UserInputError as error:
        wrong["standard"] = error.detail
    try:
        _check_known(request, believed)
    except UserInputError as error:
        wrong["known_cells"] = error.detail
    return wrong


def _phases(read: Sequence[Finding]) -> list[_Phase]:
    told = [(finding.name, phase) for finding in read for phase in (finding.found or {})["phases"]]
    names = unique_names(str(phase["name"]) for _, phase in told)
    return [
        _Phase(name, Path(file).name, str(phase["space_group"]), phase["free_cell"])
        for name, (file, phase) in zip(names, told, strict=True)
    ]


def _check_known(request: JobRequest, phases: Sequence[_Phase]) -> None:
    found = certified_phases([known.phase for known in request.known_cells], phases)
    for known, phase in zip(request.known_cells, found, strict=True):
        if known.cell:
            check_cell(known.cell, phase.name, phase.space_group, phase.free_cell)
