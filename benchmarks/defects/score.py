"""Is the named cause the right one? Confusion tables per count level, and the figures of Q."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from autoxrd.engines.protocol import EngineSession
from autoxrd.science.diagnosis import Cause, rank_causes
from benchmarks.defects.catalogue import DEFECTS, Defect
from benchmarks.defects.run import Record
from benchmarks.defects.simulation import Laboratory
from benchmarks.defects.structures import SAMPLES

__all__ = ["DETECTED", "INSEPARABLE", "Verdict", "confusion", "judge", "settle", "shares"]

DETECTED = 25.0
"""chi2 that a defect must cost: 5 sigma of one parameter."""
INSEPARABLE = 9.0
"""A wrong cause, refined, that comes this near to the true model's chi2 (3 sigma) cannot be told from the right one."""
BY_NAME = {defect.name: defect for defect in DEFECTS}
_SELECTORS = {
    "position.alone.zero": "instrument.zero",
    "position.alone.displacement": "sample.displacement",
    "position.alone.cell": "phase.*.cell",
}


@dataclass(frozen=True)
class Verdict:
    """What was answered to one case.

    Args:
        named: causes, the strongest first; ``("none",)`` where nothing is significant.
        grade: ``exact``; ``set`` (the strongest is another one that the data cannot tell from the right one, which is
            named too); ``none`` (nothing named); ``wrong``.
    """

    record: Record
    causes: tuple[Cause, ...]
    grade: str

    @property
    def named(self) -> tuple[str, ...]:
        return tuple(cause.name for cause in self.causes) or ("none",)

    @property
    def detected(self) -> bool:
        """Return whether the case counts: a defect of 5 sigma, or none at all."""
        return self.record.defect == "none" or self.record.cost >= DETECTED


def judge(record: Record) -> Verdict:
    """Diagnose one record. A rival cause that was not refined yet counts as separable."""
    causes = rank_causes(record.read_features())
    right = BY_NAME[record.defect].causes
    names = [cause.name for cause in causes] or ["none"]
    if names[0] in right:
        return Verdict(record, causes, "exact")
    if names == ["none"]:
        return Verdict(record, causes, "none")
    after = record.refits.get(causes[0].feature)
    alike = after is not None and after < record.chi2_true + INSEPARABLE
    return Verdict(record, causes, "set" if alike and right & set(names) else "wrong")


def settle(session: EngineSession, records: Sequence[Record], laboratories: dict[str, Laboratory]) -> int:
    """Refine the wrong first causes, so that it is known whether the data can tell them; return how many."""
    count = 0
    for record in records:
        verdict = judge(record)
        if verdict.grade != "wrong" or not verdict.detected or record.defect == "none":
            continue
        feature = verdict.causes[0].feature
        selector = _SELECTORS.get(feature, feature.removeprefix("release_gain."))
        texture = "preferred_orientation" in selector
        if feature in record.refits or texture or not (feature in _SELECTORS or feature.startswith("release_gain.")):
            continue
        laboratory = _laboratory(session, record.sample, laboratories)
        case = laboratory.case(BY_NAME[record.defect], record.size, record.level, record.seed)
        record.refits[feature] = laboratory.refined(case, (selector,))
        count += 1
    return count


def _laboratory(session: EngineSession, name: str, laboratories: dict[str, Laboratory]) -> Laboratory:
    if name not in laboratories:
        laboratories[name] = Laboratory(session, next(sample for sample in SAMPLES if sample.name == name))
    return laboratories[name]


def confusion(verdicts: Iterable[Verdict]) -> tuple[list[str], list[tuple[Defect, Counter[str]]]]:
    """Return the columns (causes named first) and one counter per defect; inseparable answers are ``(alike)``."""
    rows = {defect.name: Counter[str]() for defect in DEFECTS}
    for verdict in verdicts:
        if verdict.detected:
            first = "(alike)" if verdict.grade == "set" else verdict.named[0]
            rows[verdict.record.defect][first] += 1
    seen = {name for row in rows.values() for name in row}
    order = [d.name for d in DEFECTS if d.name in seen]
    columns = [*order, *sorted(seen - set(order) - {"(alike)"}), *(["(alike)"] if "(alike)" in seen else [])]
    return columns, [(BY_NAME[name], row) for name, row in rows.items() if row]


@dataclass(frozen=True)
class Share:
    """Counts of grades; ``size`` is the mean number of causes named where any was."""

    exact: int
    alike: int
    wrong: int
    missed: int
    size: float

    @property
    def total(self) -> int:
        return self.exact + self.alike + self.wrong + self.missed

    @property
    def right(self) -> float:
        return (self.exact + self.alike) / max(self.total, 1)


def shares(verdicts: Iterable[Verdict]) -> Share:
    """Return how many of the detected defects were named right (noise-only apart)."""
    told = [v for v in verdicts if v.detected and v.record.defect != "none"]
    grades = Counter(v.grade for v in told)
    sizes = [len(v.causes) for v in told if v.causes]
    mean = sum(sizes) / max(len(sizes), 1)
    return Share(grades["exact"], grades["set"], grades["wrong"], grades["none"], mean)
