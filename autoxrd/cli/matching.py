"""The option that makes a job a profile match."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["Match"]

Match = Annotated[
    bool,
    typer.Option(
        "--profile-match",
        help="Fit the lines of the cells without a structural model (Le Bail, Pawley); a CIF needs no atoms then.",
    ),
]
