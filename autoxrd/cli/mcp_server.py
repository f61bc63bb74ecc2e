"""``autoxrd mcp``: the tools for agents that speak the Model Context Protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["mcp"]


def mcp(
    root: Annotated[Path, typer.Option("--root", help="The one folder in which files may be read and jobs made.")],
    read_only: Annotated[bool, typer.Option("--read-only", help="Only look at jobs; make and step none.")] = False,
    skills: Annotated[Path | None, typer.Option("--skills", help="Folder of your own skills.")] = None,
) -> None:
    """Offer inspect, diagnose, propose, check, step and report to an agent, over standard input and output (MCP)."""
    import os
    from importlib.util import find_spec

    from autoxrd.errors import UserInputError
    from autoxrd.planners.skills import load_skills, own_folders

    if find_spec("mcp") is None:
        raise UserInputError("extra_missing", "The MCP server needs the extra: pip install 'autoxrd-agent[mcp]'.")
    if not root.is_dir():
        raise UserInputError("root_missing", f"{root} is no directory: give the folder that agents may work in.")
    from autoxrd.mcp.server import serve

    serve(root, load_skills(own_folders(os.environ, skills)), writable=not read_only)
