"""The ``autoxrd`` command: options to requests, errors to one sentence and an exit code.

Exit codes: 0 done (accepted, with or without warnings); 1 the engine or the machine failed; 2 the input cannot be
used; 3 the job abstained, or a verification or replay found differences; 130 interrupted.

Heavy modules load inside the commands, so that ``--help`` answers at once.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from autoxrd import __version__
from autoxrd.cli import (
    asking,
    comparing,
    identifying,
    inputs,
    inspecting,
    jobs,
    mcp_server,
    pcr,
    policy,
    refining,
    series,
    service,
    skills,
    stepping,
    transcript,
)
from autoxrd.errors import AutoxrdError, EngineError, NotFound, PolicyError, StorageError, UserInputError

__all__ = ["app", "main"]

app = typer.Typer(
    name="autoxrd",
    help="Autonomous Rietveld refinement that can show why it did each thing.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("inspect")(inputs.inspect)
app.command("refine")(refining.refine)
app.command("series")(series.series)
app.command("identify")(identifying.identify)
app.command("demo")(refining.demo)
app.command("resume")(refining.resume)
app.command("graph")(inspecting.graph)
app.command("features")(asking.features)
app.command("diagnose")(asking.diagnose)
app.command("audit")(asking.audit)
app.command("propose")(stepping.propose)
app.command("draft")(stepping.draft)
app.command("gate")(stepping.gate)
app.command("step")(stepping.step)
app.command("finish")(stepping.finish)
app.command("verify")(inspecting.verify)
app.command("replay")(refining.replay)
app.command("transcript")(transcript.transcript)
app.command("serve")(service.serve)
app.command("compare-engines")(comparing.compare_engines)
app.command("doctor")(inspecting.doctor)
app.add_typer(policy.app, name="policy")
app.add_typer(pcr.app, name="pcr")
app.command("mcp")(mcp_server.mcp)
app.command("api")(service.api)
app.command("worker")(service.worker)
app.command("scheduler")(service.scheduler)
app.add_typer(service.keys, name="keys")
app.add_typer(jobs.app, name="jobs")
app.add_typer(skills.app, name="skills")


def _version(show: bool) -> None:
    if show:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Autonomous Rietveld refinement that can show why it did each thing."""


def exit_code(error: AutoxrdError) -> int:
    """Return the exit code of an error."""
    return 2 if isinstance(error, UserInputError | NotFound | PolicyError) else 1


def main() -> None:
    """Run the command; an error of ours ends in one sentence, never in a traceback."""
    try:
        app()
    except AutoxrdError as error:
        typer.echo(f"Error: {error.detail}", err=True)
        if isinstance(error, EngineError | StorageError):
            typer.echo(f"({error.code})", err=True)
        sys.exit(exit_code(error))
    except KeyboardInterrupt:
        sys.exit(130)
