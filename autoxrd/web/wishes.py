"""What does a filled-in form ask for? The same request that a program would send, checked by the same rules."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from autoxrd.domain.standard import read_known_cell
from autoxrd.errors import UserInputError
from autoxrd.jobs.request import JobRequest, SeriesPlace
from autoxrd.series.ordering import ordered, value_in

__all__ = ["FIELDS", "field_of", "request_from", "series_from"]

FIELDS = (
    "title", "anode", "wavelength", "radiation", "geometry", "monochromator", "lower", "upper", "excluded",
    "background_terms", "engine", "planner", "policy", "steps", "minutes", "sample", "proposal", "review",
    "series", "series_by", "series_values", "profile_match", "known_cells",
    "standard", "standard_percent", "standard_crystallinity",
    "external_job", "external_crystallinity", "mass_absorption", "composition", "intensity_ratio",
)  # fmt: skip
"""Text fields of the form; empty ones leave the request's own default."""

_ALONG = {"temperature": ("temperature", "K"), "time": ("time", "s"), "other": ("value", "")}

_PLAIN = ("title", "engine", "planner", "policy", "review")
_FIELDS_OF_REQUEST = {
    ("standard", "phase"): "standard",
    ("standard", "weight_percent"): "standard_percent",
    ("standard", "crystallinity_percent"): "standard_crystallinity",
    ("known_cells",): "known_cells",
    ("external_standard", "job"): "external_job",
    ("external_standard", "crystallinity_percent"): "external_crystallinity",
    ("external_standard", "mass_absorption_cm2_g"): "mass_absorption",
    ("external_standard", "composition"): "composition",
    ("external_standard", "intensity_ratio"): "intensity_ratio",
    ("fit", "two_theta_limits_deg"): "lower",
    ("fit", "excluded_regions_deg"): "excluded",
    ("measurement", "monochromator_two_theta_deg"): "monochromator",
    ("budgets", "wall_seconds"): "minutes",
    ("series", "name"): "series",
}
_FIELDS_OF_CODE = {
    "profile_match_planner": "planner",
    "profile_match_candidates": "candidates",
    "known_cell_unknown": "known_cells",
    "model_not_set_up": "planner",
    **{f"{what}_unknown": what for what in ("engine", "planner", "policy")},
    "engine_unavailable": "engine",
    "profile_match_alone": "external_job",
    "standard_twice": "external_job",
    "composition_invalid": "composition",
    "mass_absorption_twice": "composition",
    **{f"external_standard_{kind}": "external_job" for kind in ("missing", "unfinished", "abstained", "differs")},
    "external_standard_unusable": "external_job",
}
_JOB = re.compile(r"(?:[^\s?#]*/jobs/)?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:[/?#]\S*)?", re.IGNORECASE)
"""Id of a job, or the address of one of its pages."""
_REGION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(?:-|–|to)\s*(\d+(?:\.\d+)?)\s*")


def request_from(values: Mapping[str, str]) -> JobRequest:
    """Build the request.

    Args:
        values: the form's fields, stripped; an empty one was not filled in.

    Raises:
        UserInputError: a number or a region cannot be read; the context names the field.
        ValidationError: a value is outside what a request may hold.
    """
    given = {name: text for name in FIELDS if (text := values.get(name, ""))}
    request: dict[str, Any] = {name: given[name] for name in _PLAIN if name in given}
    request["measurement"] = _measurement(given)
    request["fit"] = _fit(given)
    request |= _standards(given) | _external(given)
    budgets: dict[str, float] = {}
    if "steps" in given:
        budgets["steps"] = _number(given, "steps", whole=True)
    if "minutes" in given:
        budgets["wall_seconds"] = 60.0 * _number(given, "minutes")
    request["budgets"] = budgets
    request |= {name: {"name": given[name]} for name in ("sample", "proposal") if name in given}
    return JobRequest.model_validate(request)


def field_of(place: Sequence[int | str], code: str = "") -> str:
    """Return the field of the form in which a fault is to be put right.

    Args:
        place: of the fault in the request, outermost first; empty where it is in no single place.
        code: of an error.
    """
    for length in range(len(place), 0, -1):
        found = _FIELDS_OF_REQUEST.get(tuple(str(part) for part in place[:length]))
        if found is not None:
            return found
    named = [str(part) for part in place if isinstance(part, str)]
    return named[-1] if named else _FIELDS_OF_CODE.get(code, code or "request")


def series_from(request: JobRequest, values: Mapping[str, str], patterns: Sequence[str]) -> list[JobRequest]:
    """Return a request for each pattern; several make a series.

    Args:
        request: what all have in common.
        values: the form's fields.
        patterns: names of the files, in the order in which they came.

    Raises:
        UserInputError: ``series_values_invalid``; the context names the field.
    """
    if len(patterns) < 2:
        return [request] * len(patterns)
    name = values.get("series") or request.title or f"{patterns[0]} and {len(patterns) - 1} more"
    by, typed = values.get("series_by", ""), _values(values.get("series_values", ""), patterns)
    by, told = _stated(by, patterns) if typed is None else (by, typed)
    quantity, unit = _ALONG.get(by, ("value", "")) if told[0] is not None else ("", "")
    places = [SeriesPlace(name=name[:100], value=value, quantity=quantity, unit=unit) for value in told]
    return [request.model_copy(update={"title": "", "series": place}) for place in places]


def _stated(by: str, patterns: Sequence[str]) -> tuple[str, Sequence[float | None]]:
    """Return what the names state along the series, where all of them do."""
    for quantity in (by,) if by else ("temperature", "time"):
        found = [value_in(name, quantity) for name in patterns]
        if all(value is not None for value in found):
            return quantity, found
    return "", [None] * len(patterns)


def _values(text: str, patterns: Sequence[str]) -> list[float | None] | None:
    """Read the values that were typed, in the order of the names with numbers as numbers."""
    parts = [part for part in re.split(r"[,;\s]+", text) if part]
    if not parts:
        return None
    if len(parts) != len(patterns):
        detail = (
            f"{len(parts)} values are given for {len(patterns)} patterns: give one for each, in the order of the names."
        )
        raise UserInputError("series_values_invalid", detail, context={"field": "series_values"})
    try:
        numbers = [float(part) for part in parts]
    except ValueError:
        detail = "The values along the series must be numbers, with a point for decimals and a comma or blank between."
        raise UserInputError("series_values_invalid", detail, context={"field": "series_values"}) from None
    by_name = ordered([Path(p) for p in patterns], "name", known={}, headers={}).places
    known = {place.path.name: value for place, value in zip(by_name, numbers, strict=True)}
    return [known[Path(p).name] for p in patterns]


def _measurement(given: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {n: given[n] for n in ("anode", "wavelength", "radiation", "geometry") if n in given}
    if "anode" in found and "wavelength" in found:
        detail = "A tube is chosen and a wavelength typed: give one of them."
        raise UserInputError("wavelength_ambiguous", detail, context={"field": "wavelength"})
    if "monochromator" in given:
        found["monochromator_two_theta_deg"] = _number(given, "monochromator")
    return found


def _fit(given: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {"profile_match": True} if "profile_match" in given else {}
    if "lower" in given or "upper" in given:
        if not ("lower" in given and "upper" in given):
            detail = "Give both ends of the range to fit, or none."
            raise UserInputError("range_invalid", detail, context={"field": "lower"})
        limits = found["two_theta_limits_deg"] = [_number(given, "lower"), _number(given, "upper")]
        if not limits[0] < limits[1]:
            detail = f"The range to fit ends before it begins: {limits[0]:g} to {limits[1]:g}."
            raise UserInputError("range_invalid", detail, context={"field": "lower"})
    if "excluded" in given:
        found["excluded_regions_deg"] = [_region(part) for part in given["excluded"].split(",") if part.strip()]
    if "background_terms" in given:
        found["background_terms"] = _number(given, "background_terms", whole=True)
    return found


def _standards(given: Mapping[str, str]) -> dict[str, Any]:
    """Read what is said of phases that were weighed or are certified."""
    found: dict[str, Any] = {}
    if "known_cells" in given:
        texts = [text for text in given["known_cells"].split(";") if text.strip()]
        try:
            cells = [read_known_cell(text, called="A certified cell") for text in texts]
        except UserInputError as error:
            raise UserInputError(error.code, error.detail, context={"field": "known_cells"}) from error
        found["known_cells"] = [{"phase": cell.phase, "cell": cell.values} for cell in cells]
    amounts = {"weight_percent": "standard_percent", "crystallinity_percent": "standard_crystallinity"}
    told = {key: _percent(given, name) for key, name in amounts.items() if name in given}
    if told and "standard" not in given:
        detail = "An amount is given and no standard: name the phase that was weighed in, as its CIF is called."
        raise UserInputError("standard_missing", detail, context={"field": "standard"})
    if "standard" in given and "weight_percent" not in told:
        detail = "Give the share of the standard that was weighed in, percent of the whole specimen."
        raise UserInputError("standard_invalid", detail, context={"field": "standard_percent"})
    if told and "profile_match" in given:
        detail = "A profile match knows no amounts: leave the weighed standard out, or untick the profile match."
        raise UserInputError("profile_match_alone", detail, context={"field": "standard"})
    return found | ({"standard": {"phase": given["standard"], **told}} if told else {})


def _external(given: Mapping[str, str]) -> dict[str, Any]:
    """Read what is said of a standard that was measured apart."""
    names = {
        "crystallinity_percent": "external_crystallinity",
        "mass_absorption_cm2_g": "mass_absorption",
        "intensity_ratio": "intensity_ratio",
    }
    read = {key: _percent if key == "crystallinity_percent" else _number for key in names}
    found: dict[str, Any] = {key: read[key](given, name) for key, name in names.items() if name in given}
    if "composition" in given:
        found["composition"] = given["composition"]
    if "external_job" not in given:
        if found:
            detail = "Figures for an external standard are given and no job: give its id or the address of its page."
            raise UserInputError("standard_missing", detail, context={"field": "external_job"})
        return {}
    match = _JOB.fullmatch(given["external_job"])
    if match is None:
        detail = f"{given['external_job']!r:.60} is no job: give its id, or the address of its page."
        raise UserInputError("external_standard_missing", detail, context={"field": "external_job"})
    return {"external_standard": {"job": match[1].lower(), **found}}


def _percent(given: Mapping[str, str], name: str) -> float:
    """Read a share, above 0 and at most 100 percent; less than all of it where it is of the specimen."""
    text = given[name].removesuffix("%").strip()
    value = _number({name: text}, name)
    whole = name == "standard_percent"
    if not 0.0 < value <= 100.0 or (whole and value == 100.0):
        limit = "below" if whole else "at most"
        detail = f"The share must be above 0 and {limit} 100 % by weight, not {text:.40}."
        raise UserInputError("standard_invalid", detail, context={"field": name})
    return value


def _region(text: str) -> list[float]:
    match = _REGION.fullmatch(text)
    if match is None:
        detail = f"{text.strip()!r:.40} is no region: write them as 37.5-38.2, 44-45."
        raise UserInputError("region_invalid", detail, context={"field": "excluded"})
    return sorted((float(match[1]), float(match[2])))


def _number(given: Mapping[str, str], name: str, *, whole: bool = False) -> float:
    try:
        value = float(given[name].replace(",", "."))
    except ValueError:
        detail = f"{given[name]!r:.40} is no number."
        raise UserInputError("number_invalid", detail, context={"field": name}) from None
    return int(value) if whole and value == int(value) else value
