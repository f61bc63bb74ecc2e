"""The JSON schema of report.json; ``python -m autoxrd.report.schema > schemas/report.schema.json`` renews the copy."""

from __future__ import annotations

import json
import sys

from autoxrd.report.details import Report

__all__ = ["schema_text"]


def schema_text() -> str:
    """Return the schema as it is committed, keys sorted."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **Report.model_json_schema(mode="serialization", by_alias=True),
    }
    return json.dumps(schema, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(schema_text())
