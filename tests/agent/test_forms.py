"""An action's settings become the engine's edit of the same form, and nothing that does not belong to it."""

from __future__ import annotations

from typing import Any

import pytest

from autoxrd.agent.fitting import command_for
from tests.gates.factory import action, state
from tests.support.stub_engine import stub_job, unseen

PLAIN = stub_job()


@pytest.mark.parametrize(
    ("kind", "settings", "edit", "values"),
    [
        ("background_model", {"terms": 9}, "background", {"terms": 9}),
        (
            "background_model",
            {"terms": 9, "function": "log interpolate"},
            "background",
            {"terms": 9, "function": "log interpolate"},
        ),
        (
            "background_model",
            {"position_deg": 22.0, "width_deg": 8.0, "colour": "red"},
            "background_peak",
            {"position_deg": 22.0, "width_deg": 8.0},
        ),
        ("background_model", {"distance_angstrom": 3.1}, "background_debye", {"distance_angstrom": 3.1}),
        (
            "size_strain",
            {"phase": "fap", "effect": "strain", "model": "generalised"},
            "broadening",
            {"phase": "fap", "effect": "strain", "model": "generalised"},
        ),
        ("preferred_orientation", {"phase": "fap", "order": 6}, "harmonics", {"phase": "fap", "order": 6}),
        (
            "preferred_orientation",
            {"phase": "fap", "axis": (0.0, 0.0, 1.0)},
            "texture",
            {"phase": "fap", "axis": (0.0, 0.0, 1.0)},
        ),
        ("displacement_parameters", {"equal": "fap nac"}, "equal_uiso", {"phases": ["fap", "nac"]}),
        ("displacement_parameters", {"apart": "fap"}, "apart_uiso", {"phases": ["fap"]}),
        (
            "displacement_parameters",
            {"phase": "fap", "atoms": "O1 O2"},
            "anisotropic",
            {"phase": "fap", "atoms": ["O1", "O2"]},
        ),
    ],
)
def test_settings_become_an_edit(kind: str, settings: dict[str, Any], edit: str, values: dict[str, Any]) -> None:
    command = command_for(action(kind, [], settings=settings), state(), PLAIN, unseen)
    assert [(item.kind, dict(item.values)) for item in command.edits] == [(edit, values)]


def test_an_action_without_settings_edits_nothing() -> None:
    assert command_for(action("size_strain", ["phase.fap.size"]), state(), PLAIN, unseen).edits == ()
