"""What do all parts of report.json have in common?"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

__all__ = ["Boundary"]


class Boundary(BaseModel):
    """Base of everything that is written to report.json."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        populate_by_name=True,
        serialize_by_alias=True,
        json_schema_serialization_defaults_required=True,
    )
