"""Simulate and measure the cases, and keep their features: diagnosing them again costs nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from autoxrd.domain.state import Feature
from autoxrd.engines.protocol import EngineSession
from autoxrd.science.observe import measure
from benchmarks.defects.catalogue import DEFECTS, LEVELS, Defect
from benchmarks.defects.simulation import Laboratory
from benchmarks.defects.structures import SAMPLES, Sample

__all__ = ["Plan", "Record", "load", "run", "run_one"]

SEED = 7


@dataclass(frozen=True)
class Plan:
    """Which cases are run: every so-manieth of each table (the seed shifts which), noise-only in full."""

    every: int = 1
    samples: tuple[str, ...] = ()
    defects: tuple[str, ...] = ()
    levels: tuple[int, ...] = LEVELS
    seed: int = SEED

    def cases(self, sample: Sample, laboratory: Laboratory) -> Iterator[tuple[Defect, int, int]]:
        """Yield defect, index of the size, level; the levels outermost, so that prepared data serve many defects."""
        start = SAMPLES.index(sample)
        for row, level in enumerate(LEVELS):
            for column, defect in enumerate(DEFECTS):
                if level not in self.levels or (self.defects and defect.name not in self.defects):
                    continue
                for index in range(len(defect.sizes)):
                    chosen = (
                        defect.name == "none" or (start + row + column + index + self.seed - SEED) % self.every == 0
                    )
                    if chosen and laboratory.applies(defect):
                        yield defect, index, level


@dataclass
class Record:
    """One case as measured.

    Args:
        cost: chi2 of the model above that of the true one.
        refits: chi2 after refining what a feature asks for, where it was tried.
        missing_share: area share of the phase that the model does not know, true value.
        missing_esd: its relative esd if both phases' curves were known, infinite without such a phase.
    """

    sample: str
    defect: str
    size: float
    index: int
    level: int
    seed: int
    cost: float
    chi2: float
    chi2_true: float
    missing_share: float
    missing_esd: float = float("inf")
    features: dict[str, dict[str, object]] = field(default_factory=dict)
    refits: dict[str, float] = field(default_factory=dict)

    def read_features(self) -> dict[str, Feature]:
        return {name: Feature.model_validate(value) for name, value in self.features.items()}


def run_one(laboratory: Laboratory, defect: Defect, index: int, level: int, seed: int) -> Record:
    """Simulate and measure one case."""
    size = defect.sizes[index]
    case = laboratory.case(defect, size, level, seed)
    measures = measure(case.result, case.context)
    truth = laboratory.truth(defect, size)
    return Record(
        sample=laboratory.sample.name,
        defect=defect.name,
        size=size,
        index=index,
        level=level,
        seed=seed,
        cost=case.cost,
        chi2=case.chi2,
        chi2_true=case.chi2_true,
        missing_share=float(truth.missing.sum() / truth.bragg.sum()),
        missing_esd=truth.missing_esd(level),
        features={
            name: value.model_dump(mode="json", exclude_defaults=True) for name, value in measures.features.items()
        },
    )


def run(session: EngineSession, plan: Plan, path: Path | None = None) -> list[Record]:
    """Run a plan; each record is appended to ``path`` as it comes."""
    found: list[Record] = []
    for sample in _samples(plan.samples):
        laboratory = Laboratory(session, sample)
        for defect, index, level in plan.cases(sample, laboratory):
            record = run_one(laboratory, defect, index, level, plan.seed)
            found.append(record)
            if path is not None:
                with path.open("a", encoding="utf-8") as stream:
                    stream.write(json.dumps(asdict(record)) + "\n")
    return found


def load(path: Path) -> list[Record]:
    """Return the records of a file."""
    return [Record(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def _samples(names: Sequence[str]) -> tuple[Sample, ...]:
    return tuple(sample for sample in SAMPLES if not names or sample.name in names)
