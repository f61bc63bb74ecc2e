"""How does an action's ``settings`` change the form of a model: its background, widths, texture, atoms?

Each form is a fixed set of keys: what is missing or has the wrong type is refused before an engine sees it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from autoxrd.domain.action import Action, ActionKind

__all__ = ["LISTS", "SHAPES", "Shape", "needs_histogram", "shape_faults", "shape_of"]

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
    """

    kind: ActionKind
    edit: str
    mark: str
    needed: _Types
    optional: _Types = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)


_ATOMS = {"phase": (str,), "atoms": (str,)}
_BONDS = {"phase": (str,), "from": (str,), "to": (str,), "distance_angstrom": _NUMBER, "esd_angstrom": _NUMBER}
SHAPES = (
    Shape(ActionKind.PREFERRED_ORIENTATION, "texture", "axis", {"phase": (str,), "axis": (tuple,)}),
    Shape(ActionKind.PREFERRED_ORIENTATION, "harmonics", "order", {"phase": (str,), "order": (int,)}),
    Shape(ActionKind.DISPLACEMENT_PARAMETERS, "equal_uiso", "equal", {"equal": (str,)}, names={"equal": "phases"}),
    Shape(ActionKind.DISPLACEMENT_PARAMETERS, "apart_uiso", "apart", {"apart": (str,)}, names={"apart": "phases"}),
    Shape(ActionKind.DISPLACEMENT_PARAMETERS, "anisotropic", "atoms", _ATOMS, {"model": (str,)}),
    Shape(
        ActionKind.BACKGROUND_MODEL,
        "background_peak",
        "position_deg",
        {"position_deg": _NUMBER, "width_deg": _NUMBER},
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
    return faults
