"""What does the REST interface look like to a program? ``python -m autoxrd.server.openapi > schemas/openapi.json``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from autoxrd.server.app import build_app
from autoxrd.settings import Settings
from autoxrd.store.service.database import Database

__all__ = ["document_text"]


def document_text() -> str:
    """Return the OpenAPI document as it is committed, keys sorted; no database is opened for it."""
    settings = Settings(data_dir=Path("unused"))
    app = build_app(settings, Database("postgresql+psycopg://nobody@nowhere/nothing", Path("unused")), nudge=_nothing)
    return json.dumps(app.openapi(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _nothing() -> None:
    pass


if __name__ == "__main__":
    sys.stdout.write(document_text())
