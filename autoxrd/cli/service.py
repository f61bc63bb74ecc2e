"""``autoxrd serve``, ``api``, ``worker``, ``scheduler`` and ``keys``: the commands that run the service."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from autoxrd.settings import Settings

__all__ = ["api", "keys", "scheduler", "serve", "worker"]

_Data = Annotated[
    Path | None, typer.Option("--data-dir", "-d", help="Folder for jobs; AUTOXRD_DATA_DIR, else ./autoxrd-service.")
]
_Host = Annotated[str | None, typer.Option("--host", help="Address to listen on.")]
_Port = Annotated[int | None, typer.Option("--port", "-p", help="Port to listen on.", min=1, max=65535)]
_Slots = Annotated[int | None, typer.Option("--slots", help="Steps done at once.", min=1, max=256)]
_Queues = Annotated[str, typer.Option("--queues", "-q", help="Queues to serve: engine, model, light.")]
_Concurrency = Annotated[int, typer.Option("--concurrency", "-c", help="Steps done at once.", min=1, max=256)]

_SERVER = ("fastapi", "uvicorn", "pydantic_settings", "structlog", "prometheus_client")
_WORKER = (*_SERVER, "celery", "redis")


def serve(data_dir: _Data = None, host: _Host = None, port: _Port = None, slots: _Slots = None) -> None:
    """Run the service on this machine: REST, SQLite and local workers, with a key that is printed at the start."""
    _require("server", _SERVER)
    from autoxrd.server.serve import serve as run

    run(_settings(data_dir=data_dir, host=host, port=port, slots=slots), tell=typer.echo)


def api(host: _Host = None, port: _Port = None) -> None:
    """Run one API process of a service with PostgreSQL and Redis (AUTOXRD_DATABASE_URL, AUTOXRD_BROKER_URL)."""
    _require("server,worker", _WORKER)
    from autoxrd.server.production import api as run

    run(_settings(host=host, port=port))


def worker(queues: _Queues = "engine,model,light", concurrency: _Concurrency = 1) -> None:
    """Run a worker of such a service."""
    _require("server,worker", _WORKER)
    from autoxrd.server.production import worker as run

    run(_settings(), tuple(dict.fromkeys(q.strip() for q in queues.split(",") if q.strip())), concurrency)


def scheduler() -> None:
    """Run the scheduler of such a service: it takes jobs from dead workers and calls living ones to work."""
    _require("server,worker", _WORKER)
    from autoxrd.server.production import scheduler as run

    run(_settings())


keys = typer.Typer(help="First API keys and limits of owners; later keys are made over REST.", no_args_is_help=True)


@keys.command("create")
def create_key(
    owner: Annotated[str, typer.Argument(help="Name of the owner; made where there is none.", show_default=False)],
    name: Annotated[str, typer.Option("--name", help="What the key is for.")] = "first",
    scope: Annotated[list[str], typer.Option("--scope", help="Repeat for more.")] = [  # noqa: B006  # typer copies it
        "jobs:read",
        "jobs:write",
        "keys:manage",
        "webhooks:manage",
    ],
    days: Annotated[float, typer.Option("--days", help="Days that it is valid.", min=0.01)] = 90.0,
    data_dir: _Data = None,
) -> None:
    """Make an API key and print it, once."""
    _require("server", _SERVER)
    from autoxrd.server.first_key import create

    typer.echo(create(_settings(data_dir=data_dir), owner=owner, name=name, scopes=scope, days=days))


@keys.command("limit")
def limit_owner(
    owner: Annotated[str, typer.Argument(help="Name of the owner; made where there is none.", show_default=False)],
    open_jobs: Annotated[int | None, typer.Option("--open-jobs", help="Jobs open at once.", min=0)] = None,
    steps: Annotated[int | None, typer.Option("--steps", help="Steps, all jobs together.", min=0)] = None,
    engine_seconds: Annotated[
        float | None, typer.Option("--engine-seconds", help="Engine time, all jobs together, s.", min=0.0)
    ] = None,
    model_tokens: Annotated[
        int | None, typer.Option("--model-tokens", help="Tokens of language models, all jobs together.", min=0)
    ] = None,
    money_usd: Annotated[
        float | None, typer.Option("--money-usd", help="USD for language models, all jobs together.", min=0.0)
    ] = None,
    stored_bytes: Annotated[int | None, typer.Option("--stored-bytes", help="Bytes, files and jobs.", min=0)] = None,
    data_dir: _Data = None,
) -> None:
    """Limit what an owner may use, and print all limits that hold."""
    _require("server", _SERVER)
    import json

    from autoxrd.server.first_key import limit

    given = {"open_jobs": open_jobs, "steps": steps, "engine_seconds": engine_seconds}
    given |= {"model_tokens": model_tokens, "money_usd": money_usd, "stored_bytes": stored_bytes}
    limits = {name: float(value) for name, value in given.items() if value is not None}
    typer.echo(json.dumps(limit(_settings(data_dir=data_dir), owner=owner, limits=limits)))


def _settings(**given: Any) -> Settings:
    from autoxrd.settings import Settings

    return Settings(**{name: value for name, value in given.items() if value is not None})


def _require(extra: str, names: tuple[str, ...]) -> None:
    """Say how to install what is needed, rather than which import failed."""
    from importlib.util import find_spec

    from autoxrd.errors import UserInputError

    missing = [name for name in names if find_spec(name) is None]
    if missing:
        raise UserInputError(
            "extra_missing", f"This command needs {', '.join(missing)}: pip install 'autoxrd-agent[{extra}]'."
        )
