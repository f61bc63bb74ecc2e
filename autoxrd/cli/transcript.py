"""``autoxrd transcript``: the conversation with the language model, for a person."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from autoxrd.planners.llm.ports import Exchange

__all__ = ["transcript"]

_SHOWN = 1_200
"""Characters of a message that are shown unless all is asked for."""


def transcript(
    directory: Annotated[Path, typer.Argument(help="Directory of a job.", show_default=False)],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Show every message in full, the prompts too.")] = False,
) -> None:
    """Show what the language model was asked and answered, and what it cost."""
    from autoxrd.agent.exchanges import read_exchanges
    from autoxrd.store.graph import Graph

    with Graph.open(directory, read_only=True) as graph:
        exchanges = read_exchanges(graph)
    if as_json:
        typer.echo(json.dumps({"exchanges": [_content(e) for e in exchanges], "spent": _spent(exchanges)}))
        return
    if not exchanges:
        typer.echo("No language model was asked in this job.")
        return
    for number, exchange in enumerate(exchanges, start=1):
        _show(number, exchange, full)
    _show_sum(_spent(exchanges))


def _content(exchange: Exchange) -> dict[str, Any]:
    return {
        "after_attempts": exchange.place.attempts,
        "after_forfeits": exchange.place.forfeits,
        "state": exchange.state,
        "outcome": exchange.outcome,
        "tries": list(exchange.tries),
        "prompt_hash": exchange.prompt_hash,
        "skill": dict(exchange.skill),
        "seconds": exchange.seconds,
        "artifact": exchange.artifact,
        "request": exchange.request.as_dict(),
        "reply": exchange.reply.as_dict() if exchange.reply else None,
    }


def _spent(exchanges: Sequence[Exchange]) -> dict[str, Any]:
    from autoxrd.planners.llm.budget import spent_on

    spent = spent_on(exchanges)
    return {
        "calls": spent.calls,
        "tokens": spent.tokens,
        "usd_known": spent.usd,
        "calls_of_unknown_cost": spent.calls_of_unknown_cost,
        "seconds": spent.seconds,
    }


def _show(number: int, exchange: Exchange, full: bool) -> None:
    from rich.console import Console
    from rich.markup import escape

    console = Console(highlight=False)
    request, reply = exchange.request, exchange.reply
    console.print(
        f"[bold]{number}[/] {request.purpose} after {exchange.place.attempts} attempts, at state {exchange.state[:8]}: "
        f"[{'green' if reply else 'red'}]{exchange.outcome}[/]  [dim]{escape(request.model)}, prompt "
        f"{exchange.prompt_hash[:12]}, {_figures(exchange)}[/]"
    )
    asked = request.messages if full else request.messages[2:]  # without the rules and the first observation
    for message in (*asked, *_answers(exchange)):
        text = _text(message["content"])
        shown = text if full or len(text) <= _SHOWN else text[:_SHOWN] + f" ... ({len(text)} characters)"
        console.print(f"  [dim]{escape(str(message['role']))}:[/] {escape(shown)}", soft_wrap=True)


def _answers(exchange: Exchange) -> list[dict[str, str]]:
    reply = exchange.reply
    if reply is None:
        return []
    said = [{"role": f"answer ({name})", "content": text} for name, text in reply.calls]
    if reply.content:
        said.append({"role": "answer", "content": reply.content})
    return said + ([{"role": "refusal", "content": reply.refusal}] if reply.refusal else [])


def _figures(exchange: Exchange) -> str:
    reply = exchange.reply
    if reply is None:
        return f"{len(exchange.tries)} requests, {exchange.seconds:.1f} s"
    counted = reply.prompt_tokens is not None and reply.answer_tokens is not None
    tokens = f"{reply.prompt_tokens} + {reply.answer_tokens} tokens" if counted else "tokens not counted"
    cost = "cost unknown" if reply.usd is None else f"{reply.usd:.4f} USD"
    return f"{tokens}, {cost}, {exchange.seconds:.1f} s"


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part.get("text", "(image)")) for part in parts if isinstance(part, dict))


def _show_sum(spent: dict[str, Any]) -> None:
    cost = f"{spent['usd_known']:.4f} USD"
    if spent["calls_of_unknown_cost"]:
        cost += f" and {spent['calls_of_unknown_cost']} requests of unknown cost"
    typer.echo(f"{spent['calls']} requests, {spent['tokens']} tokens, {cost}, {spent['seconds']:.1f} s")
