"""What is told of a series: one row a pattern, the same figures for the table, the JSON and the page."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from autoxrd.domain.state import MeasuredValue
from autoxrd.report.boundary import Boundary

__all__ = ["PatternRow", "PhaseRow", "SeriesReport", "StartedFrom"]

StartedFrom = Literal["structures", "neighbour"]


class PhaseRow(Boundary):
    """A phase of a pattern's final model."""

    name: str
    seen: bool
    """Whether its scale factor was refined and stands clear of its esd: what is not seen has no meaningful share."""
    cell: dict[str, MeasuredValue]
    """a b c alpha beta gamma volume; angstrom, degrees, cubic angstrom."""
    weight_fraction: MeasuredValue | None
    """0 to 1 among the crystalline phases."""
    absolute_weight_fraction: MeasuredValue | None
    """0 to 1 of the specimen, by the standard."""
    widths: dict[str, MeasuredValue]
    """``size`` and ``strain`` in degrees, ``crystallite_size_nm``, ``microstrain_percent``: as far as there are any."""
    r_bragg_percent: float | None


class PatternRow(Boundary):
    """What came of one pattern."""

    number: int
    """Place in the series, from 1."""
    name: str
    sha256: str
    value: float | None
    """Temperature or time, as far as it is known."""
    verdict: Literal["accepted", "accepted_with_warnings", "abstained", "failed"]
    started_from: StartedFrom
    restarted_because: list[str]
    """Why the structures were taken instead of the neighbour's model, where that was tried first."""
    codes: list[str]
    """Reasons and warnings of the verdict; of a failure its code."""
    error: str
    """What went wrong, in a sentence, where the job failed."""
    rwp_percent: float | None = None
    gof: float | None = None
    misfit: float | None = None
    """Share of the diffraction signal that noise does not explain."""
    unexplained_peak_ratio: float | None = None
    n_parameters: int | None = None
    phases: list[PhaseRow] = Field(default_factory=list)
    displacement_mm: MeasuredValue | None = None
    zero_deg: MeasuredValue | None = None
    profile: dict[str, MeasuredValue] = Field(default_factory=dict)
    """Instrumental width parameters that were refined, by their names."""
    amorphous: MeasuredValue | None = None
    steps: int = 0
    job: str
    """Folder of the job beside this file."""
    other_job: str
    """Folder of the attempt that was not taken, where the pattern was refined twice; else empty."""

    @property
    def accepted(self) -> bool:
        """Whether the job vouches for the model."""
        return self.verdict in ("accepted", "accepted_with_warnings")


class SeriesReport(Boundary):
    """series.json: R factors in percent, lengths in angstrom, fractions 0 to 1."""

    schema_: Literal["autoxrd.series/1"] = Field(default="autoxrd.series/1", alias="schema")
    order: str
    quantity: str
    """What `PatternRow.value` is: temperature, time, or empty."""
    unit: str
    chunks: list[int]
    """Numbers of the patterns that began a chunk: each of these starts from the structures."""
    patterns: list[PatternRow]
    accepted: int
    abstained: int
    failed: int
    restarted: int
    wall_seconds: float
    files: dict[str, str]
