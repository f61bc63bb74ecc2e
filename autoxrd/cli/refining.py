"""``autoxrd refine``, ``demo``, ``resume`` and ``replay``: the commands that compute."""

from __future__ import annotations

import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from autoxrd.cli import matching, modelling, standards
from autoxrd.cli.grouping import takes
from autoxrd.cli.reading import limits_pair
from autoxrd.cli.several import further_of

if TYPE_CHECKING:
    from autoxrd.agent.inputs import Request
    from autoxrd.agent.run import Finished

__all__ = [
    "Common",
    "command_line",
    "conclude",
    "demo",
    "free_directory",
    "interruptible",
    "refine",
    "replay",
    "request_of",
    "resume",
]

_Pattern = Annotated[
    Path | None, typer.Argument(help="Measured pattern: xy, xye, csv, dat, GSAS, xrdml, ras.", show_default=False)
]
_Structures = Annotated[
    list[Path],
    typer.Option("--structure", "-s", help="CIF of a phase believed to be there; repeat for more.", show_default=False),
]
_Candidates = Annotated[
    list[Path],
    typer.Option("--candidate", "-c", help="CIF of a phase that may be there; repeat for more.", show_default=False),
]
_With = Annotated[
    list[str],
    typer.Option(
        "--with",
        help="A further pattern of the same sample, refined together: FILE,instrument=FILE,range=19:153 and so on; "
        "repeat for more.",
        show_default=False,
    ),
]
_Instrument = Annotated[Path | None, typer.Option("--instrument", "-i", help="GSAS .prm or GSAS-II .instprm file.")]
_Anode = Annotated[str | None, typer.Option("--anode", help="X-ray tube: Cu, Co, Mo, Cr, Fe, Ag.")]
_Wavelength = Annotated[
    str | None, typer.Option("--wavelength", "-w", help="Angstrom: 1.5406 or 1.5406,1.5444:0.5 (second line:ratio).")
]
_Radiation = Annotated[str | None, typer.Option("--radiation", help="xray or neutron.")]
_Geometry = Annotated[str | None, typer.Option("--geometry", help="bragg_brentano or debye_scherrer.")]
_Mono = Annotated[
    float | None,
    typer.Option("--monochromator", help="2theta of a diffracted-beam monochromator, deg (graphite, Cu: 26.6)."),
]
_Range = Annotated[str | None, typer.Option("--range", help="2theta range to fit, deg: 20,150.")]
_Exclude = Annotated[list[str], typer.Option("--exclude", help="Region to leave out, deg: 37.5,38.2; repeat for more.")]
_Terms = Annotated[
    int | None, typer.Option("--background-terms", help="Number of background coefficients.", min=1, max=36)
]
_Factors = Annotated[str, typer.Option("--form-factors", help="neutral, or as_given (ions where the CIF names them).")]
_KnownCell = Annotated[
    list[str],
    typer.Option(
        "--known-cell",
        help="Phase whose cell is certified: NAME (the cell of its file) or NAME=10.25122, NAME=4.7591,12.9917 (free "
        "parameters in the order a b c alpha beta gamma). It is held; zero, displacement, wavelength or DIFC "
        "are fitted to it. Repeat for more.",
        show_default=False,
    ),
]
_Out = Annotated[
    Path | None, typer.Option("--out", "-o", help="Directory for graph and report.", show_default="autoxrd-NAME")
]
_Engine = Annotated[str, typer.Option("--engine", help="Engine that computes.")]
_Planner = Annotated[
    str,
    typer.Option(
        "--planner",
        help="Who proposes the steps: rules; llm (a language model); hybrid (rules, and a model where they are stuck); "
        "replay (a job again from its record, --from).",
    ),
]
_From = Annotated[Path | None, typer.Option("--from", help="With --planner replay: directory of the job to run again.")]
_Policy = Annotated[str, typer.Option("--policy", help="Rules of the gate: default, strict or a TOML file.")]
_Steps = Annotated[int, typer.Option("--max-steps", help="Budget of attempts.", min=1)]
_Seconds = Annotated[float, typer.Option("--time-limit", help="Budget of wall time, s.", min=1.0)]
_Runners = Annotated[
    int,
    typer.Option(
        "--runners",
        help="Engine processes, 1 to 4: the second computes what follows should a step be refused. Same result.",
    ),
]
_Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON on standard output, nothing else.")]
_Prepare = Annotated[
    bool, typer.Option("--prepare", help="Make the starting state only: go on with propose, step, finish, or resume.")
]
_Directory = Annotated[Path, typer.Argument(help="Directory of a job.", show_default=False)]


@dataclass(frozen=True, slots=True)
class Common:
    """How was measured and what may be in the specimen: options that one pattern and a series share."""

    structure: _Structures = field(default_factory=list)
    candidate: _Candidates = field(default_factory=list)
    instrument: _Instrument = None
    anode: _Anode = None
    wavelength: _Wavelength = None
    radiation: _Radiation = None
    geometry: _Geometry = None
    monochromator: _Mono = None
    fit_range: _Range = None
    exclude: _Exclude = field(default_factory=list)
    background_terms: _Terms = None
    form_factors: _Factors = "neutral"
    standard: standards.Internal = None
    standard_crystallinity: standards.Crystallinity = 100.0
    external_standard: standards.External = None
    mass_absorption: standards.Absorption = None
    composition: standards.Composition = None
    intensity_ratio: standards.Ratio = None
    known_cell: _KnownCell = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Measured(Common):
    """What was measured, and how: the options that say what is refined."""

    pattern: _Pattern = None
    others: _With = field(default_factory=list)
    profile_match: matching.Match = False


@takes(measured=Measured, asked=modelling.Asked)
def refine(
    *,
    measured: Measured,
    asked: modelling.Asked,
    out: _Out = None,
    engine: _Engine = "rietx",
    planner: _Planner = "rules",
    repeated: _From = None,
    policy: _Policy = "default",
    max_steps: _Steps = 60,
    time_limit: _Seconds = 3600.0,
    runners: _Runners = 1,
    prepare: _Prepare = False,
    as_json: _Json = False,
) -> None:
    """Refine a pattern with its phases, or find these among candidates, and write a report."""
    if planner == "replay" or repeated is not None:
        _repeat(repeated if planner == "replay" else None, measured.pattern, out, as_json)
        return
    settings = modelling.settings_of(asked, planner)
    request = _request(measured, engine=engine, planner=planner, planner_settings=settings, policy=policy)
    endpoint, request = modelling.endpoint_of(asked, planner), _within(request, max_steps, time_limit)
    target = out or free_directory(request.pattern.stem)
    _run(request, target, as_json, runners=runners, prepare_only=prepare, endpoint=endpoint)


def _request(measured: Measured, **choices: Any) -> Request:
    from autoxrd.errors import UserInputError

    if measured.pattern is None:
        raise UserInputError("pattern_missing", "No pattern was given; name the file with the measured data.")
    others = tuple(further_of(text) for text in measured.others)
    choices |= {"others": others, "profile_match": measured.profile_match}
    return request_of(measured, measured.pattern, **choices)


def request_of(measured: Common, pattern: Path, **choices: Any) -> Request:
    """Return what the options ask for of a pattern."""
    from autoxrd.agent.inputs import Request

    return Request(
        pattern=pattern,
        structures=tuple(measured.structure),
        candidates=tuple(measured.candidate),
        instrument=measured.instrument,
        anode=measured.anode,
        wavelength=measured.wavelength,
        radiation=measured.radiation,
        geometry=measured.geometry,
        monochromator_two_theta_deg=measured.monochromator,
        two_theta_limits=limits_pair(measured.fit_range, "--range") if measured.fit_range else None,
        excluded_regions=tuple(limits_pair(text, "--exclude") for text in measured.exclude),
        background_terms=measured.background_terms,
        form_factors=measured.form_factors,
        standard=standards.standard_of(
            measured.standard, measured.standard_crystallinity, external=measured.external_standard
        ),
        external=standards.external_of(
            measured.external_standard,
            crystallinity_percent=measured.standard_crystallinity,
            mass_absorption_cm2_g=measured.mass_absorption,
            composition=measured.composition,
            intensity_ratio=measured.intensity_ratio,
        ),
        known_cells=standards.known_cells_of(measured.known_cell),
        **choices,
    )


def _repeat(source: Path | None, pattern: Path | None, out: Path | None, as_json: bool) -> None:
    """Run a job again from its record; input and rules come from there too."""
    from autoxrd.agent.run import repeat_job
    from autoxrd.cli.live import Progress
    from autoxrd.errors import UserInputError

    if source is None:
        raise UserInputError("replay_source_missing", "A replay needs both: --planner replay and --from JOB.")
    if pattern is not None:
        raise UserInputError("replay_has_input", "A replay takes pattern and structures from the record; name none.")
    target = out or free_directory(f"{source.resolve().name}-replay")
    with Progress(quiet=as_json) as progress, _interruptible(target):
        finished = repeat_job(source, target, listener=progress.tell, command=command_line())
    conclude(finished, target, as_json)


def _within(request: Request, steps: int, seconds: float) -> Request:
    from autoxrd.agent.job import Budget

    return replace(request, budget=Budget(steps=steps, wall_seconds=seconds))


def demo(out: _Out = None, runners: _Runners = 1, as_json: _Json = False) -> None:
    """Refine a real laboratory pattern (fluorapatite, Cu tube) that the embedded engine ships."""
    from importlib.util import find_spec

    from autoxrd.agent.inputs import Request
    from autoxrd.errors import EngineUnavailable

    found = find_spec("rietx")  # where it lies, without loading it
    if found is None or found.origin is None:
        raise EngineUnavailable("engine_unavailable", "The demo needs rietx, which ships its pattern; install it.")
    examples = Path(found.origin).parent / "data" / "examples"
    request = Request(
        pattern=examples / "FAP.XRA", structures=(examples / "fluorapatite.cif",), wavelength="1.5405,1.5443:0.5"
    )
    _run(request, out or free_directory("demo"), as_json, runners=runners)


def resume(
    directory: _Directory, base_url: modelling.BaseUrl = None, runners: _Runners = 1, as_json: _Json = False
) -> None:
    """Go on with an interrupted job from its last recorded step."""
    from autoxrd.agent.run import resume_job
    from autoxrd.cli.live import Progress

    endpoint = modelling.checked_endpoint(base_url)
    with Progress(quiet=as_json) as progress, _interruptible(directory):
        finished = resume_job(
            directory, listener=progress.tell, command=command_line(), base_url=endpoint, runners=runners
        )
    conclude(finished, directory, as_json)


def replay(directory: _Directory, as_json: _Json = False) -> None:
    """Carry the accepted path out again without a planner, and compare every figure."""
    import json

    from autoxrd.agent.replay import replay_job
    from autoxrd.cli.live import Progress, print_replay

    with Progress(quiet=as_json) as progress:
        outcome = replay_job(directory, listener=progress.tell)
    if as_json:
        typer.echo(json.dumps(outcome.as_dict()))
    else:
        print_replay(outcome)
    if not outcome.equal:
        raise typer.Exit(3)


def _run(
    request: Request,
    out: Path,
    as_json: bool,
    *,
    runners: int = 1,
    prepare_only: bool = False,
    endpoint: str | None = None,
) -> None:
    """Read everything, then run; the engine loads its libraries meanwhile."""
    from autoxrd.agent.inputs import load_job
    from autoxrd.agent.planning import Connection
    from autoxrd.agent.run import prepare_job, start_job
    from autoxrd.cli.live import Progress
    from autoxrd.engines.registry import start_engine

    _require_new(out)
    session = start_engine(request.engine, runners)
    try:
        job, sources = load_job(request)
        with Progress(quiet=as_json, job=job) as progress, _interruptible(out):
            if prepare_only:
                prepare_job(job, out, sources=sources, session=session, listener=progress.tell)
                typer.echo(_prepared(out, as_json))
                return
            finished = start_job(
                job,
                out,
                sources=sources,
                session=session,
                listener=progress.tell,
                command=command_line(),
                connection=Connection(endpoint),
            )
    finally:
        session.close()
    conclude(finished, out, as_json)


def _require_new(out: Path) -> None:
    from autoxrd.errors import UserInputError
    from autoxrd.store.graph import DATABASE_NAME

    if (out / DATABASE_NAME).exists():
        raise UserInputError(
            "job_exists", f"{out} already holds a job: go on with 'autoxrd resume {out}', or give another --out."
        )


def conclude(finished: Finished, directory: Path, as_json: bool) -> None:
    """Print how a job ended; exit code 3 when it abstained."""
    from autoxrd.cli.live import print_finished
    from autoxrd.report.model import Verdict
    from autoxrd.report.summary import build_summary

    if as_json:
        files = {kind: path.relative_to(directory).as_posix() for kind, path in finished.files.items()}
        typer.echo(build_summary(finished.report, files).model_dump_json())
    else:
        print_finished(finished, directory)
    if finished.report.verdict is Verdict.ABSTAINED:
        raise typer.Exit(3)


def _prepared(directory: Path, as_json: bool) -> str:
    from autoxrd.agent.asking import find_state, head_of
    from autoxrd.store.graph import Graph

    with Graph.open(directory, read_only=True) as graph:
        head = head_of(graph, find_state(graph, "root"))
    if as_json:
        return head.model_dump_json()
    return f"{directory} stands at its starting state {head.id}, Rwp {100 * head.quality.rwp:.2f} %."


def _interruptible(directory: Path) -> AbstractContextManager[None]:
    return interruptible(f"Interrupted. Go on with: autoxrd resume {shlex.quote(str(directory))}")


@contextmanager
def interruptible(text: str) -> Iterator[None]:
    """Let SIGTERM end a job as Ctrl-C does: recorded, and ready to be resumed; say how."""

    def stop(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"\n{text}", err=True)
        raise typer.Exit(130) from None
    finally:
        signal.signal(signal.SIGTERM, before)


def free_directory(stem: str) -> Path:
    """Return autoxrd-STEM in the working directory, counted up where it exists."""
    safe = "".join(c if c.isalnum() or c in "-_+." else "_" for c in stem) or "job"
    path, count = Path(f"autoxrd-{safe}"), 1
    while path.exists():
        count += 1
        path = Path(f"autoxrd-{safe}-{count}")
    return path


def command_line() -> str:
    """Return the command line with file names only: a report travels, directories of this machine need not."""
    words = ["autoxrd", *sys.argv[1:]]
    return shlex.join(Path(word).name if "/" in word else word for word in words)
