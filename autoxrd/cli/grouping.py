"""How does a command take many options without many parameters? Groups of them, each a frozen dataclass."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from functools import wraps
from typing import Any, get_type_hints

__all__ = ["takes"]


def takes(**groups: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options that stand as fields in dataclasses, collected into its arguments of those names.

    Typer wants one parameter for each option; a command that only passes them on need not list them.

    Args:
        groups: argument of the command -> dataclass whose fields are annotated as options.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        options = {name: _parameters(group) for name, group in groups.items()}
        signature = inspect.signature(command, eval_str=True)
        own = [p.replace(kind=p.KEYWORD_ONLY) for p in signature.parameters.values() if p.name not in groups]

        @wraps(command)
        def taking(**given: Any) -> None:
            collected = {
                name: group(**{p.name: given.pop(p.name) for p in options[name]}) for name, group in groups.items()
            }
            command(**given, **collected)

        del taking.__wrapped__  # typer would look through to the command's own parameters
        parameters = [*(p for group in options.values() for p in group), *own]
        taking.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        taking.__annotations__ = {p.name: p.annotation for p in parameters}
        return taking

    return decorate


def _parameters(group: type) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    kind = inspect.Parameter.KEYWORD_ONLY
    return [inspect.Parameter(f.name, kind, default=_default(f), annotation=hints[f.name]) for f in fields(group)]


def _default(field: Field[Any]) -> object:
    if field.default_factory is not MISSING:
        return field.default_factory()
    return field.default
