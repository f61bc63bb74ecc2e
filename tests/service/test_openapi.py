"""The committed OpenAPI document is the one that the application serves, and it is valid."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from openapi_spec_validator import validate

from autoxrd.server.openapi import document_text

ROOT = Path(__file__).resolve().parents[2]


def test_the_committed_document_is_up_to_date() -> None:
    committed = (ROOT / "schemas" / "openapi.json").read_text(encoding="utf-8")
    assert committed == document_text(), "renew it: python -m autoxrd.server.openapi > schemas/openapi.json"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_it_is_valid_and_every_error_is_a_problem() -> None:
    document = json.loads(document_text())
    validate(document)
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            for status, answer in operation["responses"].items():
                if int(status) >= 400:
                    assert list(answer["content"]) == ["application/problem+json"], (path, method, status)


def test_it_is_served(quiet: TestClient) -> None:
    served = quiet.get("/api/v1/openapi.json").json()
    assert served["paths"].keys() == json.loads(document_text())["paths"].keys()
