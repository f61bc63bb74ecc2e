"""The options that name a standard, weighed in or measured apart: types for the command line, and how they are read."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from autoxrd.agent.external import ExternalRequest
    from autoxrd.domain.standard import InternalStandard, KnownCell

__all__ = [
    "Absorption",
    "Composition",
    "Crystallinity",
    "External",
    "Internal",
    "Ratio",
    "external_of",
    "known_cells_of",
    "standard_of",
]

Internal = Annotated[
    str | None,
    typer.Option(
        "--standard", help="Internal standard, PHASE=WT%: weighed share of the specimen; gives the amorphous content."
    ),
]
Crystallinity = Annotated[
    float, typer.Option("--standard-crystallinity", help="Share of the standard that is crystalline, percent.")
]
External = Annotated[
    Path | None,
    typer.Option(
        "--external-standard",
        help="External standard: directory of the job that refined it, measured alike; gives the amorphous content.",
        show_default=False,
    ),
]
Absorption = Annotated[
    float | None,
    typer.Option("--mass-absorption", help="Of the specimen, cm2/g, for --external-standard.", show_default=False),
]
Composition = Annotated[
    str | None,
    typer.Option(
        "--composition",
        help="Or what the specimen consists of, formulas with percent by weight: Al2O3:50,SiO2:50.",
        show_default=False,
    ),
]
Ratio = Annotated[
    float | None,
    typer.Option(
        "--intensity-ratio",
        help="Counting time times tube current of the specimen over those of the external standard.",
        show_default="by the files, else 1",
    ),
]


def standard_of(
    text: str | None, crystallinity_percent: float, external: Path | None = None
) -> InternalStandard | None:
    """Read ``PHASE=WT%`` and the crystallinity in percent, which is the external standard's where there is one."""
    from autoxrd.domain.standard import InternalStandard
    from autoxrd.errors import UserInputError

    if text is None:
        if crystallinity_percent != 100.0 and external is None:
            told = "--standard-crystallinity goes with --standard PHASE=WT% or --external-standard JOB."
            raise UserInputError("standard_missing", told)
        return None
    name, _, amount = text.rpartition("=")
    try:
        percent = float(amount.strip().removesuffix("%"))
    except ValueError:
        name, percent = "", 0.0
    if not name.strip():
        raise UserInputError(
            "standard_invalid",
            f"--standard needs a phase and its share in % by weight, as in corundum=20; got {text!r}.",
        )
    return InternalStandard(name.strip(), percent / 100.0, crystallinity_percent / 100.0)


def external_of(
    job: Path | None,
    *,
    crystallinity_percent: float,
    mass_absorption_cm2_g: float | None,
    composition: str | None,
    intensity_ratio: float | None,
) -> ExternalRequest | None:
    """Return what the options say of an external standard.

    Raises:
        UserInputError: ``standard_missing``, options without it; or a value out of its range.
    """
    from autoxrd.agent.external import ExternalRequest
    from autoxrd.errors import UserInputError

    given = {
        "--mass-absorption": mass_absorption_cm2_g,
        "--composition": composition,
        "--intensity-ratio": intensity_ratio,
    }
    if job is None:
        told = [name for name, value in given.items() if value is not None]
        if told:
            raise UserInputError("standard_missing", f"{told[0]} goes with --external-standard JOB.")
        return None
    return ExternalRequest(
        job=job,
        crystallinity=crystallinity_percent / 100.0,
        mass_absorption_cm2_g=mass_absorption_cm2_g,
        composition=composition,
        intensity_ratio=intensity_ratio,
    )


def known_cells_of(texts: Iterable[str]) -> tuple[KnownCell, ...]:
    """Read each ``PHASE`` or ``PHASE=VALUE,...`` of --known-cell."""
    from autoxrd.domain.standard import read_known_cell

    return tuple(read_known_cell(text, called="--known-cell") for text in texts)
