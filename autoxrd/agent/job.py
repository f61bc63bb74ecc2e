"""What is a job? Checked inputs and choices, to and from the record that the graph keeps of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import TypeAdapter

from autoxrd.agent.codec import decode_pattern, encode_pattern
from autoxrd.agent.starting import Start, decode_start, encode_start
from autoxrd.domain.histogram import Histogram
from autoxrd.domain.instrument import Instrument
from autoxrd.domain.pattern import Notice, Pattern
from autoxrd.domain.screening import Screened
from autoxrd.domain.standard import ExternalStandard, InternalStandard, KnownCell, Standard
from autoxrd.domain.structure import CrystalStructure
from autoxrd.gates.policy import Policy
from autoxrd.store.artifacts import ArtifactStore
from autoxrd.store.records import HistogramRecord, JobRecord

__all__ = ["FIRST", "Budget", "Job", "SourceFile"]


_INSTRUMENT = TypeAdapter(Instrument)
_STRUCTURE = TypeAdapter(CrystalStructure)
_SCREENING = TypeAdapter(tuple[Screened, ...])
_STANDARD = TypeAdapter(InternalStandard)
_EXTERNAL = TypeAdapter(ExternalStandard)
_KNOWN_CELLS = TypeAdapter(tuple[KnownCell, ...])
FIRST = "1"
"""Name of the first histogram of a job."""
_PATTERN_META = ("axis", "sigma_origin", "format", "title", "source_name", "source_sha256")


@dataclass(frozen=True, slots=True)
class Budget:
    """Where a job stops although something may be left to gain.

    Args:
        steps: attempts, rejected ones counted.
        wall_seconds: time since the run began (a resumed job counts anew).
    """

    steps: int = 60
    wall_seconds: float = 3600.0


@dataclass(frozen=True, slots=True)
class SourceFile:
    """An input file as given: role (``pattern``, ``structure.NAME``, ``instrument``) and bytes."""

    role: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Job:
    """All that a run needs; nothing of it depends on the machine.

    Args:
        pattern, instrument, structures: checked input.
        policy: the rules of the gate.
        engine, engine_version, planner, planner_version: who works.
        engine_settings: settings of ``prepare`` (ranges, background terms, form factors).
        budget: limits.
        notices: what the readers said.
        planner_settings: how a planner that asks a language model asks it; no key, no address.
        candidates: phases that may be there; those that a job starts with stand in ``structures`` too.
        screening: sets of phases by pattern matching, best first, as a record.
        standard: the phase whose amount was weighed, or what was measured apart, where there is one.
        known_cells: the phases whose cell is certified; ``structures`` has the certified cells.
        start: another job's model to begin with; None begins with the structures.
        others: further histograms of the same sample, each with its name and settings; ``pattern``, ``instrument`` and
            ``engine_settings`` are those of the first, `FIRST`.
        profile_match: the lines are fitted with free intensities; the structures are cells without atoms.
    """

    pattern: Pattern
    instrument: Instrument
    structures: tuple[CrystalStructure, ...]
    policy: Policy
    engine: str
    engine_version: str
    planner: str
    planner_version: str
    engine_settings: Mapping[str, Any] = field(default_factory=dict)
    budget: Budget = field(default_factory=Budget)
    notices: tuple[Notice, ...] = ()
    planner_settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def texts(self) -> tuple[tuple[str, str], ...]:
        """What files and the user say in words: untrusted, for a planner that can read."""
        said = {"pattern_title": self.pattern.title, "user_note": str(self.planner_settings.get("note", ""))}
        return tuple((name, text) for name, text in said.items() if text)

    candidates: tuple[CrystalStructure, ...] = ()
    screening: tuple[Screened, ...] = ()
    standard: Standard | None = None
    known_cells: tuple[KnownCell, ...] = ()
    start: Start | None = None
    others: tuple[Histogram, ...] = ()
    profile_match: bool = False

    @property
    def mode(self) -> str:
        """How the engine calculates intensities in all states of the job."""
        return "lebail" if self.profile_match else "rietveld"

    @property
    def histograms(self) -> tuple[Histogram, ...]:
        """All histograms of the job in order; one in most jobs."""
        return (Histogram(FIRST, self.pattern, self.instrument, self.engine_settings), *self.others)

    @property
    def phases(self) -> tuple[CrystalStructure, ...]:
        """All structures of the job by name: those that it starts with, and the other candidates."""
        return tuple({s.name: s for s in (*self.structures, *self.candidates)}.values())

    @property
    def first_structures(self) -> tuple[CrystalStructure, ...]:
        """Return the structures that the engine prepares: those of the start where it has any; certified cells stay."""
        begun = {} if self.start is None else {s.name: s for s in self.start.structures}
        certified = {known.phase for known in self.known_cells}
        found = ((s, begun.get(s.name, s)) for s in self.structures)
        return tuple(replace(b, cell=s.cell) if s.name in certified else b for s, b in found)

    def to_record(self, artifacts: ArtifactStore, sources: tuple[SourceFile, ...] = ()) -> JobRecord:
        """Store the arrays and source files, and return the record that names them."""
        files: dict[str, str] = {"pattern_arrays": artifacts.put(encode_pattern(self.pattern))}
        files |= {f"pattern_arrays.{h.name}": artifacts.put(encode_pattern(h.pattern)) for h in self.others}
        files |= {f"source.{s.role}": artifacts.put(s.data) for s in sources}
        if self.start is not None:
            files["start"] = artifacts.put(encode_start(self.start))
        return JobRecord(
            histograms=tuple(_histogram_record(histogram) for histogram in self.histograms),
            structures=tuple(_STRUCTURE.dump_python(s, mode="json") for s in self.structures),
            settings={
                "engine": dict(self.engine_settings),
                "budget": dataclasses.asdict(self.budget),
                "notices": [[n.code, n.text] for n in self.notices],
            }
            | self._candidate_settings()
            | _standard_record(self.standard)
            | ({"known_cells": _KNOWN_CELLS.dump_python(self.known_cells, mode="json")} if self.known_cells else {})
            | ({} if self.start is None else {"start": {"sha256": files["start"], **self.start.source}})
            | ({"profile_match": True} if self.profile_match else {})
            | ({"histograms": {h.name: dict(h.settings) for h in self.others}} if self.others else {}),
            engine={"name": self.engine, "version": self.engine_version},
            planner={"name": self.planner, "version": self.planner_version, **_settings(self.planner_settings)},
            policy=self.policy.model_dump(mode="json"),
            files=files,
        )

    def _candidate_settings(self) -> dict[str, Any]:
        """Return what candidates add to the record: nothing where there are none."""
        if not self.candidates:
            return {}
        return {
            "candidates": [_STRUCTURE.dump_python(s, mode="json") for s in self.candidates],
            "screening": _SCREENING.dump_python(self.screening, mode="json"),
        }

    @classmethod
    def from_record(cls, record: JobRecord, artifacts: ArtifactStore) -> Job:
        """Rebuild a job from its record.

        Raises:
            StorageError: an artifact is missing or damaged.
        """
        histogram = record.histograms[0]
        others = tuple(
            Histogram(
                item.name,
                decode_pattern(artifacts.get(record.files[f"pattern_arrays.{item.name}"]), item.pattern),
                _INSTRUMENT.validate_python(item.instrument),
                record.settings["histograms"][item.name],
            )
            for item in record.histograms[1:]
        )
        return cls(
            pattern=decode_pattern(artifacts.get(record.files["pattern_arrays"]), histogram.pattern),
            instrument=_INSTRUMENT.validate_python(histogram.instrument),
            structures=tuple(_STRUCTURE.validate_python(s) for s in record.structures),
            policy=Policy.model_validate(record.policy),
            engine=str(record.engine["name"]),
            engine_version=str(record.engine["version"]),
            planner=str(record.planner["name"]),
            planner_version=str(record.planner["version"]),
            engine_settings=record.settings["engine"],
            budget=Budget(**record.settings["budget"]),
            notices=tuple(Notice(code, text) for code, text in record.settings["notices"]),
            planner_settings=record.planner.get("settings", {}),
            candidates=tuple(_STRUCTURE.validate_python(s) for s in record.settings.get("candidates", ())),
            screening=_SCREENING.validate_python(record.settings.get("screening", ())),
            standard=_recorded_standard(record.settings),
            known_cells=_KNOWN_CELLS.validate_python(record.settings.get("known_cells", ())),
            start=decode_start(artifacts.get(record.files["start"])) if "start" in record.files else None,
            others=others,
            profile_match=bool(record.settings.get("profile_match", False)),
        )


def _histogram_record(histogram: Histogram) -> HistogramRecord:
    meta = {name: getattr(histogram.pattern, name) for name in _PATTERN_META}
    meta["n_points"] = histogram.pattern.n_points
    instrument = _INSTRUMENT.dump_python(histogram.instrument, mode="json")
    return HistogramRecord(name=histogram.name, pattern=meta, instrument=instrument)


def _standard_record(standard: Standard | None) -> dict[str, Any]:
    """Return what a standard adds to the record: nothing where there is none."""
    if standard is None:
        return {}
    if isinstance(standard, ExternalStandard):
        return {"external_standard": _EXTERNAL.dump_python(standard, mode="json")}
    return {"standard": _STANDARD.dump_python(standard, mode="json")}


def _recorded_standard(settings: Mapping[str, Any]) -> Standard | None:
    if "external_standard" in settings:
        return _EXTERNAL.validate_python(settings["external_standard"])
    return _STANDARD.validate_python(settings["standard"]) if "standard" in settings else None


def _settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings' place in the record; none where there are none, so that older records keep their hash."""
    return {"settings": dict(given)} if given else {}
