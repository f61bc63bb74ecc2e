"""How does an action's ``settings`` change the form of a model: its background, widths, texture, atoms?

Each form is a fixed set of keys: what is missing or has the wrong type is refused before an engine sees it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from autoxrd.domain.action import Action, ActionKind

__all__ = ["ESTIMATE", "LISTS", "SHAPES", "Shape", "needs_histogram", "shape_faults", "shape_of"]

_Types = Mapping[str, tuple[type, ...]]
_NUMBER = (int, float)


@dataclass(frozen=True, slots=True)
class Shape:
    """A form that a model can be given.

    Args:
        kind: of the action.
        edit: kind of the engine's edit.
        mark: setting that tells it from the kind's other forms.
        needed, optional: type of each setting.
        names: setting -> the edit's name of it, where they differ.
        words: setting -> what it may say, where that is one of a few words.
        least: setting -> the number that it is no smaller than.
    """

    kind: ActionKind
    edit: str
    mark: str
    needed: _Types
    optional: _Types = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    least: Mapping[str, float] = field(default_factory=dict)


_ATOMS = {"phase": (str,), "atoms": (str,)}
ESTIMATE = "estimate"
"""Setting that asks for a background estimated from the pattern; it says by which method."""
_BONDS = {"phase": (str,), "from": (str,), "to": (str,), "distance_angstrom": _NUMBER, "esd_angstrom": _NUMBER}
SHAPES = (
    Shape(ActionKind.PREFERRED_ORIENTATION, "texture", "axis", {"phase": (str,), "axis": (tuple,)}),
    Shape(ActionKind.PREFERRED_ORIENTATION, "harmonics", "order", {"phase": (str,), "order": (int,)}),
    Shape(ActionKind.DISPLACEMENT_PARAMETERS, "equal_uiso", "equal", {"equal": (str,)}, names={"equal": "phases"}),
    Shape(ActionKind.DISPLACEMENT_PARAMETERS, "apart_uiso", "apart", {"apart": (str,)}, names={"apart": "phases"}),
    Shape(ActionKind.DISPLACEMENT_PARAMETERS, "anisotropic", "atoms", _ATOMS, {"model": (str,)}),
    Shape(
        ActionKind.BACKGROUND_MODEL,
        "background_fixed",
        ESTIMATE,
        {ESTIMATE: (str,)},
        {"wave_deg": _NUMBER, "terms": (int,)},
        words={ESTIMATE: ("arpls",)},
        least={"wave_deg": 0.0, "terms": 1.0},
    ),
    Shape(
        ActionKind.BACKGROUND_MODEL,
        "background_peak",
        "position_deg",
        {"position_deg": _NUMBER, "width_deg": _NUMBER},
        {"shape": (str,)},
        words={"shape": ("gauss", "pseudo-voigt")},
    ),
    Shape(ActionKind.BACKGROUND_MODEL, "background_debye", "distance_angstrom", {"distance_angstrom": _NUMBER}),
    Shape(ActionKind.BACKGROUND_MODEL, "background", "terms", {"terms": (int,)}, {"function": (str,)}),
    Shape(
        ActionKind.SIZE_STRAIN,
        "broadening",
        "model",
        {"phase": (str,), "effect": (str,), "model": (str,)},
        {"axis": (tuple,)},
    ),
    Shape(ActionKind.POSITIONS, "restrain_distances", "distance_angstrom", {**_BONDS, "within": _NUMBER}),
)
"""In the order in which an action's settings are looked at."""
LISTS = {"phases", "atoms"}
"""Settings that hold several names, parted by blanks."""


def shape_of(action: Action) -> Shape | None:
    """Return the form that an action's settings ask for; None where they ask for none."""
    return next((s for s in SHAPES if s.kind is action.kind and s.mark in action.settings), None)


_OF_SAMPLE = ("equal_uiso", "apart_uiso", "anisotropic", "restrain_distances")


def needs_histogram(action: Action) -> bool:
    """Return whether an action of a job of several histograms says by a setting which one it changes."""
    shape = shape_of(action)
    if shape is not None:
        return shape.edit not in _OF_SAMPLE
    return action.kind is ActionKind.EXCLUDE_REGION


def shape_faults(action: Action) -> list[str]:
    """Return what is wrong with the settings of an action that gives its model another form."""
    shape = shape_of(action)
    if shape is None:
        return []
    given, known = action.settings, {**shape.needed, **shape.optional}
    faults = [f"{shape.edit} needs {key!r}" for key in shape.needed if key not in given]
    for key, value in given.items():
        if key in known and (not isinstance(value, known[key]) or isinstance(value, bool)):
            faults.append(f"{key!r} of {shape.edit} has the wrong type")
        elif key in shape.words and value not in shape.words[key]:
            faults.append(f"{key!r} of {shape.edit} is one of {', '.join(shape.words[key])}, not {str(value)[:40]!r}")
        elif key in shape.least and isinstance(value, int | float) and not shape.least[key] <= value < math.inf:
            faults.append(f"{key!r} of {shape.edit} is finite and no smaller than {shape.least[key]:g}")
    return faults
