"""Whatever is sent to the REST interface: no 5xx, and no answer that the OpenAPI document does not tell of."""

from __future__ import annotations

import json
import warnings
from typing import Any
from urllib.parse import quote

import httpx
import pytest
import schemathesis
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from autoxrd.server.app import build_app
from autoxrd.settings import Settings
from autoxrd.store.service.database import Database
from autoxrd.store.service.keys import Scope

from .access import bearer, token
from .factory import queued
from .test_webhooks import registered

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
MODES = [GenerationMode.POSITIVE, GenerationMode.NEGATIVE]


def fuzzed(client: TestClient, examples: int, known: dict[str, str]) -> dict[str, int]:
    """Send generated requests to every operation; return how many, by operation."""
    schema = schemathesis.openapi.from_dict(client.get("/api/v1/openapi.json").json())
    sent, wrong = {}, {}
    for found in schema.get_all_operations():
        operation = found.ok()
        name = f"{operation.method.upper()} {operation.path}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the generator, about its own strategies
            try:
                sent[name] = fuzzed_operation(client, operation, examples, known)
            except (FailureGroup, Failure) as failure:
                wrong[name] = str(getattr(failure, "exceptions", failure))
    assert wrong == {}
    return sent


def fuzzed_operation(client: TestClient, operation: Any, examples: int, known: dict[str, str]) -> int:
    """Send generated requests, sound ones and broken ones, to one operation; return how many."""
    strategy = st.one_of(*(operation.as_strategy(generation_mode=mode) for mode in MODES))
    sent = []

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=strategy, existing=st.booleans())
    def one(case: Any, existing: bool) -> None:
        if existing:  # what is there is looked at too, not only ids that nobody has
            case.path_parameters.update({k: v for k, v in known.items() if k in case.path_parameters})
        answered(client, case)
        sent.append(case)

    one()
    return len(sent)


def answered(client: TestClient, case: Any) -> None:
    """Make one request and check its answer against the document."""
    given_ = case.as_transport_kwargs(base_url="http://testserver")
    given_["headers"] = {
        k: v for k, v in given_["headers"].items() if k.lower() not in {"authorization", "accept", "accept-encoding"}
    } | {"X-Request-ID": "fuzz"}
    for unknown in ("verify", "timeout", "stream", "cert", "proxies", "allow_redirects"):
        given_.pop(unknown, None)
    if given_.get("files"):
        parts = given_["files"].items() if isinstance(given_["files"], dict) else given_["files"]
        given_["files"] = [(name, part_of(value)) for name, value in parts]
    try:
        request = client.build_request(**given_)
        request.read()
    except (httpx.InvalidURL, UnicodeError, TypeError, ValueError, AttributeError):
        return  # no client can send it
    response = client.send(request)
    case.validate_response(response, checks=CHECKS, headers=dict(request.headers))


def part_of(value: Any) -> Any:
    """Return a part of a multipart body as httpx takes it: whatever was generated, as a file or as text."""
    if isinstance(value, tuple):
        return (value[0], *(part_of(v) if i == 0 else v for i, v in enumerate(value[1:])))
    return value if isinstance(value, bytes | str) else json.dumps(value, default=str)


@pytest.fixture
def fuzzing(settings: Settings, database: Database) -> Any:
    """A client with every scope, and ids of what is there."""
    app = build_app(settings.model_copy(update={"requests_per_second": 1e6}), database, nudge=lambda: None)
    hook = registered(database, "https://example.org/").webhook.id
    known = {"job_id": quote(queued(database)), "webhook_id": hook}
    with TestClient(app, headers=bearer(token(database, "ada", *Scope)), raise_server_exceptions=False) as client:
        yield client, known


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_a_few_requests_to_each_operation(fuzzing: tuple[TestClient, dict[str, str]]) -> None:
    sent = fuzzed(fuzzing[0], 4, fuzzing[1])
    assert len(sent) >= 35
    assert min(sent.values()) >= 1


@pytest.mark.slow
def test_many_requests_to_each_operation(fuzzing: tuple[TestClient, dict[str, str]]) -> None:
    assert sum(fuzzed(fuzzing[0], 150, fuzzing[1]).values()) > 3000
