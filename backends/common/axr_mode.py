"""From which state does a command start: in the mode that it asks for, and after the profile match that comes first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from axr_wire import Refused

__all__ = ["in_mode"]

Execute = Callable[[Any, dict[str, Any]], tuple[Any, dict[str, Any], Any]]
"""An engine's own: the state and the command to the new state, its description and its arrays."""


def in_mode(state: Any, command: dict[str, Any], execute: Execute, without: Mapping[str, Any]) -> Any:
    """Return the state in the mode of a command, edits made; what belongs to the other mode is left behind.

    Args:
        state: an engine's, with ``mode``, ``bare`` and ``last``.
        command: ``mode``, and ``match_first`` where a profile match comes first.
        execute: carries out a command.
        without: the fields of a state without the intensities of a profile match.

    Raises:
        Refused: there is no such mode, it needs atoms that are not there, or the match did not converge.
    """
    if command.get("match_first"):
        state = replace(_matched(state, command, execute), mode=state.mode, last={}, **without)
    if command["mode"] not in ("rietveld", "lebail"):
        raise Refused("input", "mode_unknown", f"Unknown mode {command['mode']!r}.")
    if state.bare and command["mode"] == "rietveld":
        text = f"Phase {state.bare[0]} has no atoms: only a profile match can be made of it."
        raise Refused("input", "no_atoms", text)
    if command["mode"] != state.mode:
        state = replace(state, mode=command["mode"], last={}, **without)
    return state


def _matched(state: Any, command: dict[str, Any], execute: Execute) -> Any:
    """Return the state with what a profile match finds of positions and shapes."""
    first = command | {"released": command["match_first"], "match_first": [], "mode": "lebail"}
    matched, found, _ = execute(state, first | {"edits": [], "gains": False})
    ending = found["convergence"]
    if not ending["converged"]:
        text = f"The profile match did not converge ({ending['status']}), so that nothing can start from it."
        raise Refused("diverged", "match_not_converged", text)
    return matched
