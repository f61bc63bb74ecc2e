"""``autoxrd serve``: the commands that run the service."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["serve"]

_Data = Annotated[
    Path | None, typer.Option("--data-dir", "-d", help="Folder for jobs; AUTOXRD_DATA_DIR, else ./autoxrd-service.")
]
_Host = Annotated[str | None, typer.Option("--host", help="Address of this machine to listen on.")]
_Port = Annotated[int | None, typer.Option("--port", "-p", help="Port to listen on.", min=1, max=65535)]
_Slots = Annotated[int | None, typer.Option("--slots", help="Steps done at once.", min=1, max=256)]


def serve(data_dir: _Data = None, host: _Host = None, port: _Port = None, slots: _Slots = None) -> None:
    """Run the service on this machine: REST, SQLite and local workers, with a key that is printed at the start."""
    _require_extra()
    from autoxrd.server.serve import serve as run
    from autoxrd.settings import Settings

    given = {"data_dir": data_dir, "host": host, "port": port, "slots": slots}
    run(Settings(**{name: value for name, value in given.items() if value is not None}), tell=typer.echo)  # type: ignore[arg-type]


def _require_extra() -> None:
    """Say how to install what the service needs, rather than which import failed."""
    from importlib.util import find_spec

    from autoxrd.errors import UserInputError

    missing = [name for name in ("fastapi", "uvicorn", "pydantic_settings", "structlog") if find_spec(name) is None]
    if missing:
        raise UserInputError(
            "extra_missing", f"The service needs {', '.join(missing)}: pip install 'autoxrd-agent[server]'."
        )
