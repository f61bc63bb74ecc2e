"""Which planner does a job get, and what is it connected to? Model, log and bench are joined here."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from autoxrd.agent.bench import GraphBench
from autoxrd.agent.exchanges import GraphExchangeLog
from autoxrd.agent.job import Job
from autoxrd.errors import UserInputError
from autoxrd.planners.continuing import Continuing
from autoxrd.planners.llm import LlmSettings, ModelDesk
from autoxrd.planners.llm.client import LiteLlmClient, litellm_available
from autoxrd.planners.llm.desk import Desk
from autoxrd.planners.llm.ports import Exchange
from autoxrd.planners.llm.settings import settings_from
from autoxrd.planners.protocol import Planner
from autoxrd.planners.registry import get_planner, planner_info
from autoxrd.planners.skills import load_skills, own_folders
from autoxrd.store.reading import GraphReader
from autoxrd.store.records import EventKind
from autoxrd.store.writing import GraphWriter

__all__ = ["ENDPOINT_VARIABLE", "Connection", "check_endpoint", "onward", "planner_for", "recorded_endpoint"]

ENDPOINT_VARIABLE = "AUTOXRD_LLM_BASE_URL"
"""Address of an OpenAI-compatible endpoint, where no option gives one."""


@dataclass(frozen=True, slots=True)
class Connection:
    """Where the answers come from.

    Args:
        base_url: an OpenAI-compatible endpoint; None asks the model's own provider.
        recorded: the exchanges of a job that is replayed; then nothing is sent.
    """

    base_url: str | None = None
    recorded: Sequence[Exchange] | None = None


def planner_for(job: Job, graph: GraphWriter, connection: Connection) -> Planner:
    """Return the job's planner, connected.

    Raises:
        UserInputError: ``llm_extra_missing``, ``llm_settings_invalid``.
    """
    return onward(_planner_for(job, graph, connection), job)


def onward(planner: Planner, job: Job) -> Planner:
    """Return the planner as a job needs it: one that starts from another job's model opens with a joint cycle."""
    return planner if job.start is None else Continuing(planner)


def _planner_for(job: Job, graph: GraphWriter, connection: Connection) -> Planner:
    if not planner_info(job.planner).needs_model:
        return get_planner(job.planner)
    settings = settings_from(dict(job.planner_settings))
    client = None if connection.recorded is not None else _client(settings, connection.base_url)
    desk = Desk(GraphExchangeLog(graph), settings, client, source=connection.recorded)
    skills = load_skills(own_folders(os.environ))
    return get_planner(job.planner, ModelDesk(desk, GraphBench(graph, job), settings, skills.for_stage))


def _client(settings: LlmSettings, base_url: str | None) -> LiteLlmClient:
    usable, text = litellm_available()
    if not usable:
        raise UserInputError("llm_extra_missing", f"This planner needs a language model: {text}.")
    client = LiteLlmClient(settings, base_url)
    if settings.budget.usd is not None and client.price() is None:
        raise UserInputError(
            "llm_price_unknown",
            f"The price of {settings.model!r} is not known, so a limit in usd cannot be kept: limit calls and tokens.",
        )
    return client


def check_endpoint(base_url: str | None) -> str | None:
    """Return the endpoint, from the option or the environment, if it may be used and written into a log.

    Raises:
        UserInputError: ``base_url_invalid``, no web address, or one that carries a name, a password or a key.
    """
    url = base_url or os.environ.get(ENDPOINT_VARIABLE) or None
    if url is None:
        return None
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if not sound or parts.username or parts.password or parts.query or parts.fragment:
        raise UserInputError(
            "base_url_invalid",
            "The endpoint of the language model must be http(s)://host[:port]/path without user, password or query; "
            "a key belongs in the environment.",
        )
    return url.rstrip("/")


def recorded_endpoint(graph: GraphReader) -> str | None:
    """Return the endpoint that the job's log names last."""
    named = [
        event.data["endpoint"]
        for event in graph.events()
        if event.kind in (EventKind.STARTED, EventKind.RESUMED) and event.data.get("endpoint")
    ]
    return str(named[-1]) if named else None
