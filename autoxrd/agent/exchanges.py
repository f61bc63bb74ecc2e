"""How are exchanges with a language model kept? Content as an artifact, the figures as an event of the graph."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from autoxrd.errors import StorageError
from autoxrd.planners.llm.ports import Exchange, ModelReply, ModelRequest, Place
from autoxrd.primitives import canonical_json
from autoxrd.store.artifacts import ArtifactStore
from autoxrd.store.reading import GraphReader
from autoxrd.store.records import Event, EventKind
from autoxrd.store.writing import GraphWriter

__all__ = ["EXCHANGE_SCHEMA", "GraphExchangeLog", "read_exchanges"]

EXCHANGE_SCHEMA = "autoxrd.exchange/1"


def read_exchanges(graph: GraphReader) -> list[Exchange]:
    """Return all exchanges of a job in order.

    Raises:
        StorageError: ``artifact_missing``, ``artifact_damaged``.
    """
    events = [event for event in graph.events() if event.kind is EventKind.EXCHANGE]
    return [_decode(event, graph.artifacts) for event in events]


class GraphExchangeLog:
    """The log of one job that is open for writing."""

    def __init__(self, graph: GraphWriter) -> None:
        self._graph = graph
        self._past = read_exchanges(graph)

    def past(self) -> Sequence[Exchange]:
        """Return all exchanges of the job, in order."""
        return self._past

    def add(self, exchange: Exchange) -> Exchange:
        """Record one; the artifact is on the disk before the event names it."""
        artifact = self._graph.artifacts.put(canonical_json(_content(exchange)).encode())
        kept = replace(exchange, artifact=artifact)
        self._graph.add_event(
            EventKind.EXCHANGE, _figures(kept), {"seconds": kept.seconds}, files={"exchange": artifact}
        )
        self._past = [*self._past, kept]
        return kept


def _content(exchange: Exchange) -> dict[str, Any]:
    """Return what is stored: all of it but clocks, so that a replay stores the same bytes."""
    return {
        "schema": EXCHANGE_SCHEMA,
        "place": {"attempts": exchange.place.attempts, "forfeits": exchange.place.forfeits},
        "state": exchange.state,
        "request": exchange.request.as_dict(),
        "prompt_hash": exchange.prompt_hash,
        "outcome": exchange.outcome,
        "reply": exchange.reply.as_dict() if exchange.reply else None,
        "tries": list(exchange.tries),
        "skill": dict(exchange.skill),
        "token_bound": exchange.token_bound,
    }


def _figures(exchange: Exchange) -> dict[str, Any]:
    """Return what the event says: what a person asks first, without opening the artifact."""
    request, reply = exchange.request, exchange.reply
    return {
        "purpose": request.purpose,
        "state": exchange.state,
        "attempts": exchange.place.attempts,
        "forfeits": exchange.place.forfeits,
        "outcome": exchange.outcome,
        "tries": list(exchange.tries),
        "model": request.model,
        "answered_by": reply.model if reply else None,
        "mode": request.mode,
        "temperature": request.temperature,
        "seed": request.seed,
        "prompt_hash": exchange.prompt_hash,
        "prompt_tokens": reply.prompt_tokens if reply else None,
        "answer_tokens": reply.answer_tokens if reply else None,
        "usd": reply.usd if reply else None,
        "skill": dict(exchange.skill),
    }


def _decode(event: Event, artifacts: ArtifactStore) -> Exchange:
    artifact = str(event.data["files"]["exchange"])
    content = json.loads(artifacts.get(artifact))
    if content.get("schema") != EXCHANGE_SCHEMA:
        raise StorageError(
            "exchange_unknown",
            f"Exchange {artifact[:12]} has another form than {EXCHANGE_SCHEMA}: use a newer AutoXRD.",
        )
    request = dict(content["request"])
    request["messages"] = tuple(request["messages"])
    return Exchange(
        place=Place(**content["place"]),
        state=content["state"],
        request=ModelRequest(**request),
        prompt_hash=content["prompt_hash"],
        outcome=content["outcome"],
        reply=None if content["reply"] is None else ModelReply.from_dict(content["reply"]),
        tries=tuple(content["tries"]),
        skill=content["skill"],
        token_bound=content["token_bound"],
        artifact=artifact,
        seconds=float(event.telemetry.get("seconds") or 0.0),
    )
