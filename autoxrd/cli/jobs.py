"""``autoxrd jobs``: submit to a service, watch, list, cancel, fetch the report."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from autoxrd.client import Client

__all__ = ["app"]

app = typer.Typer(
    name="jobs",
    help="Work with a service over HTTP; AUTOXRD_URL and AUTOXRD_API_KEY say which, and who you are.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

_Url = Annotated[str | None, typer.Option("--url", help="Address; AUTOXRD_URL, else http://127.0.0.1:8417.")]
_Json = Annotated[bool, typer.Option("--json", help="Print JSON instead.")]
_Structures = Annotated[
    list[Path] | None, typer.Argument(help="One CIF for each phase believed to be there.", show_default=False)
]
_Candidates = Annotated[
    list[Path] | None, typer.Option("--candidate", "-c", help="CIF of a phase that may be there; repeat for more.")
]
_Id = Annotated[str, typer.Argument(help="Id of a job.", show_default=False)]
_Timeout = Annotated[float | None, typer.Option("--timeout", help="Wait at most so long, s.", min=0.0)]


@app.command()
def submit(
    pattern: Annotated[Path, typer.Argument(help="Measured pattern.", show_default=False)],
    structures: _Structures = None,
    candidate: _Candidates = None,
    instrument: Annotated[Path | None, typer.Option("--instrument", help="Instrument parameter file.")] = None,
    anode: Annotated[str | None, typer.Option("--anode", help="X-ray tube: Cu, Co, Mo, ...")] = None,
    wavelength: Annotated[str | None, typer.Option("--wavelength", "-w", help="Angstrom, as for `refine`.")] = None,
    engine: Annotated[str | None, typer.Option("--engine", help="rietx or gsasii.")] = None,
    title: Annotated[str | None, typer.Option("--title", help="Title in lists and in the report.")] = None,
    steps: Annotated[int | None, typer.Option("--steps", help="Stop after so many steps.", min=1)] = None,
    profile_match: Annotated[
        bool, typer.Option("--profile-match", help="Lines of the cells only, as for `refine`.")
    ] = False,
    request: Annotated[Path | None, typer.Option("--request", help="JSON file with further fields of it.")] = None,
    key: Annotated[str | None, typer.Option("--idempotency-key", help="Same key, same job.")] = None,
    follow: Annotated[bool, typer.Option("--watch", help="Watch it to its end.")] = False,
    url: _Url = None,
    as_json: _Json = False,
) -> None:
    """Queue a refinement; with --watch, follow it (exit code 3 where it abstains, 1 where it fails)."""
    from autoxrd.cli.jobs_view import followed, print_job

    wanted = _request(request)
    measurement = {"anode": anode, "wavelength": wavelength}
    fit = {"profile_match": profile_match or None}
    for name, given in (("measurement", measurement), ("budgets", {"steps": steps}), ("fit", fit)):
        chosen = {k: v for k, v in given.items() if v is not None}
        if chosen:
            wanted[name] = {**wanted.get(name, {}), **chosen}
    wanted |= {k: v for k, v in {"engine": engine, "title": title}.items() if v is not None}
    with _client(url) as client:
        known, possible = structures or (), candidate or ()
        job = client.submit(
            pattern, known, candidates=possible, instrument=instrument, request=wanted, idempotency_key=key
        )
        if follow:
            followed(client, job.id, as_json=as_json)
        else:
            print_job(job, as_json=as_json)


@app.command()
def watch(job: _Id, url: _Url = None, timeout: _Timeout = None, as_json: _Json = False) -> None:
    """Follow a job to its end, step by step; with --json one event a line."""
    from autoxrd.cli.jobs_view import followed

    with _client(url) as client:
        followed(client, job, as_json=as_json, timeout_seconds=timeout)


@app.command("list")
def list_jobs(
    state: Annotated[list[str] | None, typer.Option("--state", help="queued, running, ...; repeat for more.")] = None,
    text: Annotated[str | None, typer.Option("--text", help="Part of the title.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="So many at most.", min=1)] = 20,
    url: _Url = None,
    as_json: _Json = False,
) -> None:
    """List your jobs, newest first."""
    from autoxrd.cli.jobs_view import print_jobs

    with _client(url) as client:
        print_jobs(client.jobs(limit=limit, state=state or None, q=text), as_json=as_json)


@app.command()
def cancel(
    jobs: Annotated[list[str], typer.Argument(help="Ids of jobs.", show_default=False)],
    url: _Url = None,
    as_json: _Json = False,
) -> None:
    """Cancel jobs; a step in flight is killed with its engine within seconds."""
    from autoxrd.cli.jobs_view import print_job

    with _client(url) as client:
        for job in jobs:
            print_job(client.cancel(job), as_json=as_json)


@app.command()
def review(
    job: _Id,
    decision: Annotated[str | None, typer.Argument(help="accept, reject or add; nothing shows what is asked.")] = None,
    action: Annotated[Path | None, typer.Option("--action", help="JSON file of the action to add.")] = None,
    note: Annotated[str, typer.Option("--note", help="Why.")] = "",
    url: _Url = None,
    as_json: _Json = False,
) -> None:
    """Accept or reject the step that the planner asks about, or add one; it passes the same gates."""
    from autoxrd.cli.jobs_view import print_reviews

    with _client(url) as client:
        if decision is None:
            found = client.reviews(job)
        else:
            found = [client.review(job, decision, action=_request(action) if action else None, note=note)]
    print_reviews(found, as_json=as_json)


@app.command()
def report(
    job: _Id,
    form: Annotated[str, typer.Option("--form", "-f", help="html, json, zip, cif or csv.")] = "html",
    to: Annotated[Path | None, typer.Option("--output", "-o", help="File; else JOB.FORM; - for the screen.")] = None,
    phase: Annotated[str | None, typer.Option("--phase", help="Phase of the CIF.")] = None,
    table: Annotated[str | None, typer.Option("--table", help="profile, reflections or parameters (csv).")] = None,
    url: _Url = None,
    as_json: _Json = False,
) -> None:
    """Fetch the report of a job, whole and checked against its digest."""
    import json

    choice = {k: v for k, v in {"phase": phase, "table": table}.items() if v is not None}
    path = to or Path(f"{job}.{form}")
    with _client(url) as client:
        data = client.report(job, form, to=None if path == Path("-") else path, **choice)
    if path == Path("-"):
        typer.get_binary_stream("stdout").write(data)
    else:
        typer.echo(json.dumps({"file": str(path), "bytes": len(data)}) if as_json else str(path))


def _client(url: str | None) -> Client:
    from importlib.util import find_spec

    from autoxrd.errors import UserInputError

    if find_spec("httpx") is None:
        raise UserInputError("extra_missing", "This command needs httpx: pip install 'autoxrd-agent[client]'.")
    from autoxrd.client import Client

    return Client(url)


def _request(path: Path | None) -> dict[str, Any]:
    """Read the file of --request.

    Raises:
        UserInputError: ``request_unreadable``.
    """
    import json

    from autoxrd.errors import UserInputError

    if path is None:
        return {}
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise UserInputError("request_unreadable", f"{path} cannot be read as JSON: {error}.") from error
    if not isinstance(found, Mapping):
        raise UserInputError("request_unreadable", f"{path} must hold a JSON object: the fields of a job request.")
    return dict(found)
