"""Can the service do what a request names? Engines, planners and policies by name, before anything is queued."""

from __future__ import annotations

from collections.abc import Collection

from autoxrd.engines.registry import engine_names, get_engine
from autoxrd.errors import UserInputError
from autoxrd.gates.policy import shipped_policies
from autoxrd.jobs.modelling import check_model
from autoxrd.jobs.request import JobRequest
from autoxrd.planners.registry import planner_info, planner_names
from autoxrd.settings import Settings

__all__ = ["check_choices"]


def check_choices(request: JobRequest, settings: Settings, roles: Collection[str]) -> None:
    """Refuse what nobody here can do. A policy is one that the service ships: its name never becomes a path.

    Args:
        request: what was asked for.
        settings: of the service.
        roles: of its files: ``pattern``, ``structure.1``, ``candidate.1``, ...

    Raises:
        UserInputError: ``engine_unknown``, ``planner_unknown``, ``policy_unknown``, ``engine_unavailable``,
            ``profile_match_planner``, ``profile_match_candidates``, ``model_not_set_up``, ``llm_option_unused``,
            ``llm_budget_invalid``, ``known_cell_unknown``.
    """
    for what, name, known in (
        ("engine", request.engine, engine_names()),
        ("planner", request.planner, planner_names()),
        ("policy", request.policy, shipped_policies()),
    ):
        if name not in known:
            raise UserInputError(
                f"{what}_unknown", f"There is no {what} {name!r:.60} here; known are {', '.join(known)}."
            )
    if request.fit.profile_match and planner_info(request.planner).needs_model:
        text = f"The planner {request.planner!r} knows structures only: a profile match is made by 'rules'."
        raise UserInputError("profile_match_planner", text)
    _check_candidates(request, roles)
    check_model(request, settings)
    usable, reason = get_engine(request.engine).available()
    if not usable:
        raise UserInputError("engine_unavailable", f"The engine {request.engine} cannot be used here: {reason}.")


def _check_candidates(request: JobRequest, roles: Collection[str]) -> None:
    if not any(role.startswith("candidate.") for role in roles):
        return
    if request.fit.profile_match:
        text = "Candidates do not go with a profile match: phases are told from one another by their structures."
        raise UserInputError("profile_match_candidates", text)
    if request.known_cells and not any(role.startswith("structure.") for role in roles):
        text = "A certified cell is that of a structure: only candidates are given, of which none is known to be there."
        raise UserInputError("known_cell_unknown", text)
