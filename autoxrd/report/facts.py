"""Labelled values as the page shows them; those of a standard in full."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from autoxrd.report.format import fixed, number
from autoxrd.report.histview import measured
from autoxrd.report.standards import AmorphousReport, ExternalAmorphousReport

__all__ = ["Fact", "standard_facts"]

_ABSORPTION = {
    "given": "as stated",
    "phases": "that of the refined phases: what is amorphous is taken to absorb alike",
}
_INTENSITY = {
    "given": "as stated",
    "files": "by the counting times of both files, at the same tube current",
    "assumed": "neither stated nor told by both files: taken as equal",
}


@dataclass(frozen=True, slots=True)
class Fact:
    """A labelled value with an optional remark."""

    label: str | Markup
    value: str | Markup
    note: str | Markup = ""


def standard_facts(found: AmorphousReport | ExternalAmorphousReport | None) -> list[Fact]:
    """Return what a standard tells; nothing where there is none."""
    if found is None:
        return []
    limit = "" if found.detection_limit is None else f"detection limit {fixed(found.detection_limit, 1, scale=100)} %"
    crystalline = f"crystalline to {number(100 * found.standard_crystallinity)} %, as declared"
    first = Fact("Amorphous or not identified", f"{measured(found.weight_fraction, scale=100, digits=4)} %", limit)
    if isinstance(found, ExternalAmorphousReport):
        return [first, *_external(found, crystalline)]
    return [
        first,
        Fact(
            "The same before the standard was added",
            f"{measured(found.weight_fraction_without_standard, scale=100, digits=4)} %",
        ),
        Fact(
            "Standard",
            f"{found.standard}, {number(100 * found.standard_weight_fraction)} % of the specimen",
            crystalline,
        ),
        Fact(
            "Leverage",
            f"{fixed(found.change_for_one_percent, 1, scale=100)} %",
            "change of the amorphous content for each percent that the standard's refined share is wrong",
        ),
    ]


def _external(found: ExternalAmorphousReport, crystalline: str) -> list[Fact]:
    """Return what belongs to a standard that was measured apart."""
    of_composition = f"of {found.composition}, percent by weight"
    return [
        Fact("Standard, measured apart", f"{found.standard} ({found.standard_pattern})", crystalline),
        Fact(
            "Constant of the diffractometer",
            measured(found.constant, digits=4),
            f"in the engine's unit of scale factors; by the job {found.standard_graph_root[:12]}, mass absorption "
            f"{number(found.standard_mass_absorption_cm2_g, digits=4)} cm²/g",
        ),
        Fact(
            "Mass absorption of the specimen",
            f"{number(found.mass_absorption_cm2_g, digits=4)} cm²/g",
            _ABSORPTION.get(found.mass_absorption_origin, of_composition),
        ),
        Fact(
            "Time and intensity over the standard's",
            number(found.intensity_ratio, digits=5),
            _INTENSITY[found.intensity_origin],
        ),
        Fact(
            "Leverage",
            f"{fixed(found.change_for_one_percent, 1, scale=100)} %",
            "change of the amorphous content for each percent of itself that constant, mass absorption or intensity is "
            "wrong; microabsorption, roughness and displacement parameters that were held are not in the uncertainty",
        ),
    ]
