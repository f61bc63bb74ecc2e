"""What do the files of a skill state? Console blocks of the worked example, cases of tests.yaml."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field

__all__ = ["Case", "Command", "console_commands", "prose", "read_cases"]

_BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)


@dataclass(frozen=True)
class Command:
    """A command of an example and the output that the example states for it."""

    line: str
    stated: str


def console_commands(text: str) -> Iterator[Command]:
    """Yield the commands of all console blocks, in order."""
    for block in _BLOCK.findall(text):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, _, stated = part.partition("\n")
            yield Command(line.strip(), stated)


def prose(text: str) -> str:
    """Return an example's text without its blocks."""
    return re.sub(r"```.*?```", "", text, flags=re.DOTALL)


class Made(BaseModel):
    """A file that a case needs: text as it stands, or made from one of the example's files."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    text: str | None = None
    source: Annotated[str | None, Field(alias="from")] = None
    rows: tuple[int, int] | None = None
    every: int = 1
    divide: float | None = None
    keep_fractions: bool = False
    replace: dict[str, str] = {}

    def make(self, example: Path) -> str:
        """Return the file's content."""
        if self.source is None:
            assert self.text is not None
            return self.text
        text = (example / self.source).read_text(encoding="utf-8")
        for old, new in self.replace.items():
            assert old in text, f"{self.source} has no {old!r}"
            text = text.replace(old, new)
        lines = text.splitlines()
        lines = lines[slice(*self.rows)] if self.rows else lines
        lines = lines[:: self.every]
        if self.divide:
            digits = 3 if self.keep_fractions else None
            lines = [f"{x} {round(float(y) / self.divide, digits)}" for x, y in (line.split() for line in lines)]
        return "\n".join(lines) + "\n"


class Case(BaseModel):
    """One claim of a skill and the command that shows it.

    ``claim`` stands word for word in SKILL.md. ``says`` and ``silent`` look at standard output and error together;
    ``absent``: files that must not be there afterwards.
    ``json``: dotted path -> value; ``*`` gathers over a list, a number counts; a list asks that all are among them, an
    empty one that there is nothing.
    """

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    claim: str
    setup: list[str] = []
    files: dict[str, Made] = {}
    run: str
    exit: int = 0
    says: list[str] = []
    silent: list[str] = []
    absent: list[str] = []
    json_: Annotated[dict[str, Any], Field(alias="json")] = {}


class _Cases(BaseModel):
    model_config = ConfigDict(extra="forbid")

    cases: list[Case]


def read_cases(path: Path) -> list[Case]:
    """Read a tests.yaml."""
    return _Cases.model_validate(yaml.safe_load(path.read_text(encoding="utf-8"))).cases


def look_up(data: Any, path: str) -> Any:
    """Return what stands at a dotted path; keys that hold dots go in quotes."""
    for raw, quoted in re.findall(r"([^.\"]+)|\"([^\"]+)\"", path):
        part = quoted or raw
        if part == "*":
            rest = path.partition("*.")[2]
            items = list(data.values()) if isinstance(data, dict) else data
            return [look_up(item, rest) for item in items] if rest else list(items)
        data = data[int(part)] if isinstance(data, list) else data[part]
    return data
