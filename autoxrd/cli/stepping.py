"""``autoxrd propose``, ``draft``, ``gate``, ``step``, ``finish``: people and agents take the steps, the gates stay."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from autoxrd.agent.answers import Proposed
    from autoxrd.domain.action import Action
    from autoxrd.domain.decision import PredictionOutcome
    from autoxrd.planners.dictated import Author

__all__ = ["draft", "finish", "gate", "propose", "step"]

_Directory = Annotated[Path, typer.Argument(help="Directory of a job.", show_default=False)]
_Action = Annotated[Path, typer.Argument(help="JSON file of an action; - reads standard input.", show_default=False)]
_Json = Annotated[bool, typer.Option("--json", help="Print JSON instead.")]
_Write = Annotated[Path | None, typer.Option("--write", help="Also write the action to this file, for gate and step.")]
_By = Annotated[str, typer.Option("--by", help="Who takes it, for the record: person or agent.")]


def propose(
    directory: _Directory,
    as_json: _Json = False,
    planner: Annotated[str, typer.Option("--planner", help="Who is asked.")] = "rules",
    write: _Write = None,
) -> None:
    """Show what a planner would do next; nothing is run or recorded. With --json: what gate and step take."""
    from autoxrd.agent import stepping

    answer = stepping.propose(directory, planner)
    _write(answer, write)
    if as_json:
        typer.echo(answer.model_dump_json(exclude_none=True))
    elif answer.action is None:
        typer.echo(f"{planner} would end the job at state {answer.state}: {answer.finish}")
        for note in answer.notes:
            typer.echo(f"note: {note.text} ({note.code})")
    else:
        _show(answer.action, f"{planner} would try")


def draft(
    directory: _Directory,
    kind: Annotated[str, typer.Argument(help="Kind of the action, e.g. size_strain; joint takes no selectors.")],
    selectors: Annotated[list[str], typer.Argument(help="What it frees, e.g. phase.P.strain.")] = [],  # noqa: B006
    why: Annotated[str, typer.Option("--why", help="Your reason, for the record.")] = "Chosen by hand",
    state: Annotated[str, typer.Option("--state", help="Where it starts: current, root, or an id.")] = "current",
    write: _Write = None,
    as_json: _Json = False,
) -> None:
    """Write an action for an idea of yours: evidence and predictions come from the record. Nothing is run."""
    from autoxrd.agent.drafting import draft as make

    answer = make(directory, kind, selectors, why=why, state=state)
    _write(answer, write)
    if as_json:
        typer.echo(answer.model_dump_json(exclude_none=True))
        return
    assert answer.action is not None
    _show(answer.action, "drafted")


def _write(answer: Proposed, path: Path | None) -> None:
    from autoxrd.errors import UserInputError

    if path is None or answer.action is None:
        return
    try:
        path.write_text(answer.action.model_dump_json(indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise UserInputError("action_not_written", f"{path} cannot be written: {error.strerror}.") from error


def _show(action: Action, verb: str) -> None:
    typer.echo(f"{verb} {action.kind.value} ({action.stage.value}) from state {action.parent}")
    typer.echo(f"frees: {', '.join(action.parameters) or _settings(action.settings)}")
    typer.echo(f"why: {action.rationale}")
    for claim in action.evidence:
        typer.echo(f"evidence: {claim.feature} = {claim.value:.4g} {claim.comparison} {claim.threshold:.4g}")
    for told in action.predictions:
        typer.echo(f"prediction: {told.metric} {told.direction} by {told.minimum_effect:.3g}")


def _settings(settings: Mapping[str, object]) -> str:
    return ", ".join(f"{key} = {value}" for key, value in settings.items()) or "nothing new"


def gate(
    directory: _Directory,
    action: Annotated[
        Path | None, typer.Argument(help="JSON file of an action; - reads standard input.", show_default=False)
    ] = None,
    attempt: Annotated[
        int | None, typer.Option("--attempt", help="Judge this recorded attempt again instead.", min=1)
    ] = None,
    as_json: _Json = False,
) -> None:
    """Say whether an action may be tried, and why not; nothing is run or recorded. Exit code 3 when it may not.

    With --attempt, every rule of the gate on a recorded attempt, judged anew from the recorded figures.
    """
    from autoxrd.agent import stepping
    from autoxrd.errors import UserInputError

    if (action is None) == (attempt is None):
        raise UserInputError("gate_what", "Give the JSON file of an action, or --attempt with a number.")
    if attempt is not None:
        answer = stepping.gate_attempt(directory, attempt)
    else:
        assert action is not None
        answer = stepping.gate_action(directory, _text(action))
    verdict = answer.legal if answer.accepted is None else answer.accepted
    if as_json:
        typer.echo(answer.model_dump_json())
    else:
        words = {None: "legal: it may be tried" if answer.legal else "not legal", True: "accepted", False: "rejected"}
        typer.echo(f"{words[answer.accepted]} (policy {answer.policy})")
        _outcomes(answer.predictions)
        _reasons(answer.reasons)
    if not verdict:
        raise typer.Exit(3)


def step(
    directory: _Directory,
    action: _Action,
    by: _By = "person",
    reopen: Annotated[bool, typer.Option("--reopen", help="Go on with a finished job.")] = False,
    as_json: _Json = False,
) -> None:
    """Take one step through the gates: computed, judged and recorded, accepted or not. Exit code 3 when rejected."""
    from autoxrd.agent import stepping

    answer = stepping.take_step(directory, _text(action), by=_author(by), reopen=reopen)
    if as_json:
        typer.echo(answer.model_dump_json())
    else:
        after = "-" if answer.rwp_after is None else f"{100 * answer.rwp_after:.2f}"
        word = "accepted" if answer.accepted else "rejected"
        typer.echo(f"attempt {answer.attempt} by {answer.by}: {word}, Rwp {100 * answer.rwp_before:.2f} -> {after} %")
        _outcomes(answer.predictions)
        _reasons(answer.reasons)
        typer.echo(f"the job stands at state {answer.current}")
    if not answer.accepted:
        raise typer.Exit(3)


def finish(
    directory: _Directory,
    state: Annotated[
        str, typer.Option("--state", help="State that is the result: current, root, or an id (4 digits do).")
    ] = "current",
    by: _By = "person",
    as_json: _Json = False,
) -> None:
    """End a job with the state it stands at: final audit, report and all files. Exit code 3 when it abstains."""
    from autoxrd.agent.asking import find_state
    from autoxrd.agent.run import finish_job
    from autoxrd.cli.refining import command_line, conclude
    from autoxrd.store.graph import Graph

    author = _author(by)
    with Graph.open(directory, read_only=True) as graph:
        state_id = find_state(graph, state)
    conclude(finish_job(directory, state_id, by=author, command=command_line()), directory, as_json)


def _outcomes(outcomes: Sequence[PredictionOutcome]) -> None:
    for outcome in outcomes:
        told = outcome.prediction
        effect = "not measured" if outcome.effect is None else f"measured {outcome.effect:.3g}"
        met = "met" if outcome.met else "not met"
        typer.echo(f"prediction: {told.metric} {told.direction} by {told.minimum_effect:.3g}; {effect}: {met}")


def _reasons(reasons: Mapping[str, str]) -> None:
    for code, text in reasons.items():
        typer.echo(f"{code}: {text}")


def _author(by: str) -> Author:
    from autoxrd.errors import UserInputError

    if by == "person":
        return "person"
    if by == "agent":
        return "agent"
    raise UserInputError("author_unknown", f"--by is person or agent, not {by[:40]!r}.")


def _text(path: Path) -> bytes:
    from autoxrd.agent.stepping import MOST_ACTION_BYTES
    from autoxrd.errors import UserInputError

    if str(path) == "-":
        return sys.stdin.buffer.read(MOST_ACTION_BYTES + 1)
    try:
        with path.open("rb") as file:
            return file.read(MOST_ACTION_BYTES + 1)
    except OSError as error:
        raise UserInputError("action_unreadable", f"{path} cannot be read: {error.strerror}.") from error
