"""Is the command that runs still wanted? Its parent leaves a file in the command's folder when it is not.

Asked between evaluations only, where a fit may end anyway: nothing that a later command needs is left half done.
Standard library only.
"""

from __future__ import annotations

from pathlib import Path

from axr_wire import Refused

__all__ = ["UNWANTED", "began", "is_wanted", "require_wanted"]

UNWANTED = "unwanted"
_folders: list[Path] = []
"""The folder of the command that runs; empty between commands and for commands without one."""


def began(folder: object) -> None:
    """Note where the parent says that a command is not wanted any more; None between commands."""
    _folders[:] = [Path(folder)] if isinstance(folder, str) else []


def is_wanted() -> bool:
    """Return whether somebody still waits for the command that runs."""
    return not any((folder / UNWANTED).exists() for folder in _folders)


def require_wanted() -> None:
    """End a command that nobody waits for.

    Raises:
        Refused: nobody does.
    """
    if not is_wanted():
        raise Refused("unwanted", "engine_command_unwanted", "The command was given up before it ended.")
