"""Which skill fits a stage? The text that the model is given beside the observation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from autoxrd.domain.action import Stage

__all__ = ["SkillSource", "SkillText", "no_skill", "skill_record"]


class SkillText(Protocol):
    """A skill as the planner needs it."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def version(self) -> str: ...  # noqa: D102
    @property
    def text(self) -> str: ...  # noqa: D102
    @property
    def sha256(self) -> str: ...  # noqa: D102


SkillSource = Callable[[Stage], SkillText | None]


def no_skill(_: Stage) -> None:
    """Give no skill: the prompt's own words have to do."""


def skill_record(skill: SkillText | None) -> dict[str, str]:
    """Return what the graph keeps of a skill."""
    return {} if skill is None else {"name": skill.name, "version": skill.version, "sha256": skill.sha256}
