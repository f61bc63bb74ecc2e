"""Run a series: read and check, order, part into chunks, refine these side by side, write table and page."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path

from autoxrd.agent.inputs import Request, load_job
from autoxrd.engines.launcher import ChildProcess
from autoxrd.engines.registry import get_engine
from autoxrd.errors import StorageError, UserInputError
from autoxrd.io import read_pattern
from autoxrd.planners.registry import planner_info
from autoxrd.primitives import canonical_json, content_hash, sha256_hex
from autoxrd.report.series_files import write_series
from autoxrd.report.series_model import PatternRow, SeriesReport
from autoxrd.series.host import host_launcher, task_of
from autoxrd.series.ordering import Course, Order, Place, chunks_of, ordered
from autoxrd.series.work import refine_place
from autoxrd.store.graph import Graph

__all__ = ["Plan", "RowListener", "SeriesRequest", "plan_series", "run_series"]

PLAN_NAME = "series-plan.json"
_SCHEMA = "autoxrd.series-plan/1"
_POLL_SECONDS = 0.5

RowListener = Callable[[PatternRow, int, int], None]
"""Is told a row, how many are done, and of how many."""


@dataclass(frozen=True, slots=True)
class SeriesRequest:
    """What a user asks for.

    Args:
        patterns: files, as given.
        each: what to do with each of them; its own pattern does not count.
        order: see `ordered`.
        values: file name -> temperature or time, from a table.
        parallel: chunks that run side by side.
    """

    patterns: tuple[Path, ...]
    each: Request
    order: Order = "file"
    values: Mapping[str, float] = field(default_factory=dict)
    parallel: int = 1


@dataclass(frozen=True, slots=True)
class Plan:
    """A series in order and in chunks."""

    course: Course
    chunks: tuple[tuple[Place, ...], ...]


def plan_series(request: SeriesRequest) -> Plan:
    """Check what all patterns have in common, and put them in order.

    Raises:
        UserInputError: ``series_too_short``, ``series_repeats``, ``series_planner``, ``series_value_missing``; or what
            the first pattern that can be read says of structures, wavelength and options.
    """
    if len(request.patterns) < 2:
        raise UserInputError("series_too_short", "A series needs two patterns or more; for one there is refine.")
    resolved = [path.resolve() for path in request.patterns]
    twice = next((p for i, p in enumerate(resolved) if p in resolved[:i]), None)
    if twice is not None:
        raise UserInputError("series_repeats", f"{twice.name} is given twice.")
    if planner_info(request.each.planner).needs_model:
        raise UserInputError(
            "series_planner", "A series is planned by rules: a language model takes one job at a time."
        )
    headers = {path: _header(path) for path in request.patterns}
    readable = next((p for p in request.patterns if headers[p] is not None), None)
    # where none can be read, the first one says why; else the first readable one shows faults that all would have
    load_job(replace(request.each, pattern=readable or request.patterns[0]))
    temperatures = {path: None if found is None else found.get("temperature") for path, found in headers.items()}
    course = ordered(request.patterns, request.order, known=request.values, headers=temperatures)
    return Plan(course, tuple(chunks_of(course.places, request.parallel)))


def _header(path: Path) -> dict[str, float | None] | None:
    """Return what a file says of itself, None where it cannot be read: its row will say why."""
    try:
        return {"temperature": read_pattern(path).hints.temperature_kelvin}
    except UserInputError:
        return None


def run_series(request: SeriesRequest, folder: Path, *, listener: RowListener = lambda *_: None) -> SeriesReport:
    """Run a series, or go on with it where the folder holds the same one unfinished.

    Args:
        request: what to do.
        folder: where jobs, table and page go.
        listener: is told each pattern as it is done, from one thread at a time.

    Raises:
        UserInputError: see `plan_series`; ``series_differs``, the folder holds another series.
        EngineError, StorageError: the machine failed.
    """
    began = time.monotonic()
    plan = plan_series(request)
    _claim(request, plan, folder)
    rows: dict[int, PatternRow] = {}
    lock = threading.Lock()

    def tell(row: PatternRow) -> None:
        with lock:
            rows[row.number] = row
            listener(row, len(rows), len(plan.course.places))

    if len(plan.chunks) == 1:
        _here(request, plan.chunks[0], folder, tell)
    else:
        _side_by_side(request, plan.chunks, folder, tell)
    report = _report(request, plan, [rows[n] for n in sorted(rows)], time.monotonic() - began)
    return write_series(report, folder)


def _here(request: SeriesRequest, chunk: Sequence[Place], folder: Path, tell: Callable[[PatternRow], None]) -> None:
    session = get_engine(request.each.engine).start()
    before: PatternRow | None = None
    try:
        for place in chunk:
            before = refine_place(replace(request.each, pattern=place.path), place, folder, before, session)
            tell(before)
    finally:
        session.close()


def _side_by_side(
    request: SeriesRequest, chunks: Sequence[Sequence[Place]], folder: Path, tell: Callable[[PatternRow], None]
) -> None:
    """Let a host process refine each chunk; the first that fails, or an interruption, ends them all."""
    stop = threading.Event()
    with ThreadPoolExecutor(len(chunks)) as pool:
        running: list[Future[None]] = [pool.submit(_hosted, request, chunk, folder, tell, stop) for chunk in chunks]
        try:
            for future in running:
                while not future.done() and not stop.is_set():
                    wait([future], timeout=_POLL_SECONDS)
        finally:
            stop.set()
    for future in running:
        future.result()


def _hosted(
    request: SeriesRequest,
    chunk: Sequence[Place],
    folder: Path,
    tell: Callable[[PatternRow], None],
    stop: threading.Event,
) -> None:
    child = host_launcher().start()
    numbers = itertools.count(1)
    before: PatternRow | None = None
    try:
        for place in chunk:
            each = replace(_absolute(request.each), pattern=place.path.resolve())
            task = {"id": next(numbers), **task_of(each, place, folder.resolve(), before)}
            answer = _asked(child, task, stop)
            if answer is None:
                return
            if "problem" in answer:
                problem = dict(answer["problem"])  # type: ignore[call-overload]
                raise StorageError(str(problem["code"]), f"{place.path.name}: {problem['detail']}")
            before = PatternRow.model_validate(answer["row"])
            tell(before)
    except BaseException:
        stop.set()
        raise
    finally:
        child.close()


def _asked(child: ChildProcess, task: Mapping[str, object], stop: threading.Event) -> dict[str, object] | None:
    """Return the answer to a task; None where the series is being stopped."""
    child.send(task)
    while not stop.is_set():
        answer = child.receive(task, _POLL_SECONDS)
        if answer is not None:
            return answer
    return None


def _absolute(request: Request) -> Request:
    """Return the request with paths that hold in another working directory."""
    return replace(
        request,
        structures=tuple(path.resolve() for path in request.structures),
        candidates=tuple(path.resolve() for path in request.candidates),
        instrument=None if request.instrument is None else request.instrument.resolve(),
        external=None if request.external is None else replace(request.external, job=request.external.job.resolve()),
        policy=str(Path(request.policy).resolve()) if Path(request.policy).suffix == ".toml" else request.policy,
    )


def _claim(request: SeriesRequest, plan: Plan, folder: Path) -> None:
    """Write the plan, or see that the folder's is the same: a series goes on only with what it began with."""
    each = request.each
    files = [*each.structures, *each.candidates, *(() if each.instrument is None else (each.instrument,))]
    asked = {
        "inputs": [sha256_hex(path.read_bytes()) for path in files],
        "settings": {
            name: getattr(each, name)
            for name in ("anode", "wavelength", "radiation", "geometry", "background_terms", "form_factors", "engine")
        },
        "limits": [each.monochromator_two_theta_deg, each.two_theta_limits, each.excluded_regions],
        "planner": each.planner,
        "policy": Path(each.policy).name,
        "budget": [each.budget.steps, each.budget.wall_seconds],
        **_standards(each),
    } | ({"known_cells": [[k.phase, k.values] for k in each.known_cells]} if each.known_cells else {})
    content = {
        "schema": _SCHEMA,
        "request": content_hash(json.loads(json.dumps(asked))),
        "order": plan.course.order,
        "patterns": [[p.path.name, _digest(p.path), p.value] for p in plan.course.places],
        "chunks": [[place.number for place in chunk] for chunk in plan.chunks],
    }
    path = folder / PLAN_NAME
    text = canonical_json(content) + "\n"
    if path.exists():
        if path.read_text(encoding="utf-8") != text:
            raise UserInputError(
                "series_differs",
                f"{folder} holds a series of other patterns, structures or options: give the same command again to go "
                "on with it, or another --out.",
            )
        return
    if folder.exists() and any(folder.iterdir()):
        raise UserInputError("series_folder_used", f"{folder} is not empty and holds no series: give another --out.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StorageError("series_not_written", f"{folder} cannot be written: {error.strerror or error}.") from error


def _standards(each: Request) -> dict[str, object]:
    """Return what identifies the standard; of an external one its graph and what was said, not where it lies."""
    weighed, external = each.standard, each.external
    found: dict[str, object] = {
        "standard": None if weighed is None else [weighed.phase, weighed.crystalline_fraction],
    }
    if external is None:  # plans of before have no such entry
        return found
    with Graph.open(external.job, read_only=True) as graph:
        root = graph.root_hash()
    said = (external.crystallinity, external.mass_absorption_cm2_g, external.composition, external.intensity_ratio)
    return found | {"external": [root, *said]}


def _digest(path: Path) -> str:
    try:
        return sha256_hex(path.read_bytes())
    except OSError:
        return ""


def _report(request: SeriesRequest, plan: Plan, rows: list[PatternRow], seconds: float) -> SeriesReport:
    counts = {name: sum(row.verdict == name for row in rows) for name in ("abstained", "failed")}
    return SeriesReport(
        order=plan.course.order,
        quantity=plan.course.quantity,
        unit=plan.course.unit,
        chunks=[chunk[0].number for chunk in plan.chunks],
        patterns=rows,
        accepted=sum(row.accepted for row in rows),
        **counts,
        restarted=sum(bool(row.restarted_because) for row in rows),
        wall_seconds=seconds,
        files={},
    )
