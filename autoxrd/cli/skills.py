"""``autoxrd skills``: list the procedures, show one, check one's own, copy the example they work on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from autoxrd.planners.skills import Skill, Skills

app = typer.Typer(
    name="skills",
    help="List, show and check the procedures that planners, agents and people follow.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

_Own = Annotated[Path | None, typer.Option("--skills", help="Folder of your own skills; AUTOXRD_SKILLS names more.")]
_Json = Annotated[bool, typer.Option("--json", help="Print JSON instead.")]


def _load(own: Path | None) -> Skills:
    import os

    from autoxrd.planners.skills import load_skills, own_folders

    return load_skills(own_folders(os.environ, own))


def _as_dict(skill: Skill) -> dict[str, object]:
    return {
        **skill.reference(),
        "stages": [stage.value for stage in skill.stages],
        "description": skill.description,
        "when_to_use": skill.when_to_use,
        "inputs": skill.inputs,
        "outputs": skill.outputs,
        "origin": "autoxrd" if skill.shipped else "own",
    }


@app.command("list")
def list_skills(own: _Own = None, as_json: _Json = False) -> None:
    """List the skills: name, version, stages of a job they serve, and what for."""
    skills = _load(own)
    if as_json:
        import json

        typer.echo(json.dumps([_as_dict(skill) for skill in skills.values()]))
        return
    for skill in skills.values():
        stages = f"  [{', '.join(stage.value for stage in skill.stages)}]" if skill.stages else ""
        own_mark = "" if skill.shipped else "  (own)"
        typer.echo(f"{skill.name} {skill.version}{stages}{own_mark}")
        typer.echo(f"    {skill.description}")


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="Name of a skill.")],
    own: _Own = None,
    as_json: _Json = False,
    example: Annotated[bool, typer.Option("--example", help="Show its worked example instead.")] = False,
) -> None:
    """Print a skill as a planner is given it, with the SHA-256 that a record names it by."""
    from autoxrd.errors import NotFound

    skill = _load(own)[name]
    text = skill.text
    if example:
        path = skill.folder / "references" / "example.md"
        if not path.is_file():
            raise NotFound("skill_example_missing", f"The skill {name} has no worked example (references/example.md).")
        text = path.read_text(encoding="utf-8")
    if as_json:
        import json

        typer.echo(json.dumps({**_as_dict(skill), "text": text}))
        return
    typer.echo(f"{skill.name} {skill.version}, sha256 {skill.sha256}\n")
    typer.echo(text.rstrip())


@app.command()
def check(folder: Annotated[Path, typer.Argument(help="Folder of your own skills.")], as_json: _Json = False) -> None:
    """Check a folder of skills: form, names, stages, and what it would override. Exit code 2 with one sentence."""
    from autoxrd.planners.skills import load_skills

    shipped, both = load_skills(), load_skills([folder])
    found = [skill for skill in both.values() if not skill.shipped]
    overridden = sorted(skill.name for skill in found if skill.name in shipped)
    if as_json:
        import json

        typer.echo(json.dumps({"skills": [_as_dict(skill) for skill in found], "override": overridden}))
        return
    if not found:
        typer.echo(f"{folder} holds no skill: each lies in a folder of its own name, as SKILL.md.")
    for skill in found:
        note = ", overrides the shipped one" if skill.name in overridden else ""
        typer.echo(f"{skill.name} {skill.version} is valid{note}; sha256 {skill.sha256}")


@app.command()
def example(folder: Annotated[Path, typer.Argument(help="Directory to copy to; made where missing.")]) -> None:
    """Copy the pattern and the structures of the worked examples."""
    from autoxrd.errors import UserInputError
    from autoxrd.resources import resource_path

    folder.mkdir(parents=True, exist_ok=True)
    sources = sorted(resource_path("skills/example").glob("[a-z]*.*"))
    taken = [path.name for path in sources if (folder / path.name).exists()]
    if taken:
        raise UserInputError("example_exists", f"{folder / taken[0]} is there already: give an empty directory.")
    for path in sources:
        (folder / path.name).write_bytes(path.read_bytes())
        typer.echo(str(folder / path.name))
