"""Which procedures can a planner, an agent or a person follow? Loads SKILL.md folders, shipped and one's own.

The form is the open one for agent skills: a folder of the skill's name with a ``SKILL.md``, whose head has ``name`` and
``description``, and under ``metadata`` what we ask for beside them: ``version``, ``when-to-use``, ``inputs``,
``outputs``, and ``stages``, the stages of a job in which a planner is given the skill.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, field_validator

from autoxrd.domain.action import Stage
from autoxrd.errors import NotFound, UserInputError
from autoxrd.planners.frontmatter import HeadError, split_head
from autoxrd.primitives import sha256_hex
from autoxrd.resources import resource_path

__all__ = ["ENVIRONMENT", "Skill", "Skills", "load_skills", "own_folders", "read_skill", "skill_for"]

ENVIRONMENT = "AUTOXRD_SKILLS"
"""Environment variable with folders of one's own skills, separated as in PATH."""

FILE = "SKILL.md"
_MOST_BYTES = 65536

Line = Annotated[str, StringConstraints(min_length=1, max_length=1024, pattern=r"^[^\x00-\x1f\x7f]*$")]


class _Metadata(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    version: Annotated[str, StringConstraints(pattern=r"^[0-9]+(\.[0-9]+){0,2}$")]
    when_to_use: Annotated[Line, Field(alias="when-to-use")]
    inputs: Line
    outputs: Line
    stages: tuple[Stage, ...] = ()

    @field_validator("stages", mode="before")
    @classmethod
    def _words(cls, value: object) -> object:
        return tuple(value.split()) if isinstance(value, str) else value


class _Head(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, StringConstraints(max_length=64, pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
    description: Line
    license: Line | None = None
    compatibility: Annotated[Line, Field(max_length=500)] | None = None
    allowed_tools: Annotated[Line | None, Field(alias="allowed-tools")] = None
    metadata: _Metadata


@dataclass(frozen=True, slots=True)
class Skill:
    """One procedure.

    Args:
        name: also the name of its folder.
        version: 1 to 3 numbers with dots.
        text: the procedure, without the head.
        sha256: of the whole file; names exactly what a planner was given.
        stages: stages of a job that it serves.
        description, when_to_use, inputs, outputs: of its head.
        folder: where it lies.
        shipped: it comes with AutoXRD.
    """

    name: str
    version: str
    text: str
    sha256: str
    stages: tuple[Stage, ...]
    description: str
    when_to_use: str
    inputs: str
    outputs: str
    folder: Path
    shipped: bool = False

    def reference(self) -> dict[str, str]:
        """Return what a record keeps of it: no path and no text, but which text it was."""
        return {"name": self.name, "version": self.version, "sha256": self.sha256}


class Skills(Mapping[str, Skill]):
    """Skills by name; those of later folders stand in for those of earlier ones, by name and by stage.

    Args:
        folders: skills folder by folder.
    """

    def __init__(self, folders: Iterable[Iterable[Skill]]) -> None:
        self._skills: dict[str, Skill] = {}
        self._by_stage: dict[Stage, str] = {}
        for skills in folders:
            here = {skill.name: skill for skill in skills}
            # a skill that is replaced no longer answers for its stages
            self._by_stage = {stage: name for stage, name in self._by_stage.items() if name not in here}
            self._skills |= here
            self._by_stage |= _claims(here.values())

    def __getitem__(self, name: str) -> Skill:
        if name not in self._skills:
            known = ", ".join(sorted(self._skills))
            raise NotFound("skill_unknown", f"There is no skill {name[:80]!r}; there are {known}.")
        return self._skills[name]

    def __contains__(self, name: object) -> bool:
        return name in self._skills

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._skills))

    def __len__(self) -> int:
        return len(self._skills)

    def for_stage(self, stage: Stage) -> Skill | None:
        """Return the skill of a stage, None where no skill serves it."""
        name = self._by_stage.get(stage)
        return None if name is None else self._skills[name]


def skill_for(stage: Stage, skills: Skills | None = None) -> Skill | None:
    """Return the skill that a planner is given in a stage.

    Args:
        stage: of the job.
        skills: what is loaded; the shipped ones where None.
    """
    return (load_skills() if skills is None else skills).for_stage(stage)


def load_skills(own: Iterable[Path] = ()) -> Skills:
    """Load the shipped skills and those of one's own folders.

    Args:
        own: folders of skill folders; a later one overrides an earlier one.

    Raises:
        UserInputError: ``skill_invalid``, ``skill_folder_missing``, ``skill_stage_taken``.
    """
    shipped = _read_folder(resource_path("skills"), shipped=True)
    return Skills([shipped, *(_read_folder(folder) for folder in own)])


def own_folders(environment: Mapping[str, str], option: Path | None = None) -> tuple[Path, ...]:
    """Return the user's folders: those of the environment, then the one of the command line."""
    named = [Path(part) for part in environment.get(ENVIRONMENT, "").split(os.pathsep) if part]
    return (*named, *([option] if option is not None else []))


def _read_folder(folder: Path, *, shipped: bool = False) -> list[Skill]:
    if not folder.is_dir():
        raise UserInputError(
            "skill_folder_missing", f"{folder} is no directory: give a folder that holds one folder for each skill."
        )
    return [read_skill(path.parent, shipped=shipped) for path in sorted(folder.glob(f"*/{FILE}"))]


def _claims(skills: Iterable[Skill]) -> dict[Stage, str]:
    claims: dict[Stage, str] = {}
    for skill in skills:
        for stage in skill.stages:
            if stage in claims:
                text = f"{claims[stage]} and {skill.name} both serve the stage {stage.value}: leave it to one of them."
                raise UserInputError("skill_stage_taken", text)
            claims[stage] = skill.name
    return claims


def read_skill(folder: Path, *, shipped: bool = False) -> Skill:
    """Read and check one skill.

    Raises:
        UserInputError: ``skill_invalid``; the sentence names the file and what was expected.
    """
    path = folder / FILE
    data = _read(path)
    try:
        text = data.decode("utf-8").replace("\r\n", "\n")
        raw, body = split_head(text)
        head = _Head.model_validate(raw)
    except UnicodeDecodeError as error:
        raise _invalid(path, f"it is not UTF-8 text (byte {error.start})") from error
    except HeadError as error:
        raise _invalid(path, str(error)) from error
    except ValidationError as error:
        raise _invalid(path, _first_fault(error)) from error
    if head.name != folder.resolve().name:
        raise _invalid(path, f"its name is {head.name!r}, but its folder is {folder.resolve().name!r}")
    if not re.search(r"^# \S", body, flags=re.MULTILINE):
        raise _invalid(path, "its text has no title ('# ...')")
    return Skill(
        name=head.name,
        version=head.metadata.version,
        text=body,
        sha256=sha256_hex(data),
        stages=head.metadata.stages,
        description=head.description,
        when_to_use=head.metadata.when_to_use,
        inputs=head.metadata.inputs,
        outputs=head.metadata.outputs,
        folder=folder,
        shipped=shipped,
    )


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise _invalid(path, f"it cannot be read ({error.strerror})") from error
    if len(data) > _MOST_BYTES:
        raise _invalid(path, f"it is longer than {_MOST_BYTES} bytes")
    return data


def _first_fault(error: ValidationError) -> str:
    fault = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part) for part in fault["loc"])
    return f"{place}: {fault['msg']}"


def _invalid(path: Path, why: str) -> UserInputError:
    return UserInputError("skill_invalid", f"{path}: {why}. See docs/skills.md for the form.")
