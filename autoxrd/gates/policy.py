"""What are the rules? One frozen, versioned object of limits, weights and tables, read from TOML.

``strict`` is the design to the letter; ``default`` extends it and gives a reason for every deviation. A user's
file may extend either. The content (not its prose) is hashed, and the hash is stored with every decision.
"""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from autoxrd.errors import PolicyError
from autoxrd.gates.policy_model import Policy
from autoxrd.primitives import content_hash
from autoxrd.science.settings import Limits as PlausibilityLimits

__all__ = ["Policy", "flatten", "load_policy", "plausibility_limits", "policy_hash", "shipped_policies"]

_PROSE = ("sources", "deviations")
_LATER = (("limits", "broadening_moves_fraction", 0.0),)
"""Rules that came when there were records already, and where they are off: a policy without one hashes as before, so
that a decision recorded under it is still the one that its gate gives."""
_LARGEST_FILE_BYTES = 1_000_000
_DEEPEST_EXTENDS = 8


def plausibility_limits(policy: Policy) -> PlausibilityLimits:
    """Return the policy's limits in the form that the physical checks take."""
    known = {field.name: field.type for field in dataclasses.fields(PlausibilityLimits)}
    values: dict[str, Any] = {
        name: int(value) if known[name] in ("int", int) and not isinstance(value, tuple) else value
        for name, value in policy.plausibility.items()
    }
    return PlausibilityLimits(**values)


def policy_hash(policy: Policy) -> str:
    """Return the SHA-256 of all that can change a judgement (sources and reasons are prose and left out)."""
    return _hash_cached(policy.model_dump_json())


@lru_cache(maxsize=64)
def _hash_cached(dumped: str) -> str:
    content = Policy.model_validate_json(dumped).model_dump(mode="json", exclude=set(_PROSE))
    for section, key, off in _LATER:
        if content[section][key] == off:
            del content[section][key]
    return content_hash(content)


def shipped_policies() -> tuple[str, ...]:
    """Return the names of the policies that come with the package."""
    folder = resources.files("autoxrd.gates") / "policies"
    return tuple(sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml")))


def load_policy(name_or_path: str | Path) -> Policy:
    """Read a shipped policy by name, or a user's TOML file by path (it may say ``extends = "default"``).

    Raises:
        PolicyError: ``policy_not_found``, ``policy_unreadable``, ``policy_unknown_key`` or ``policy_invalid``.
    """
    data = _read(str(name_or_path), 0)
    _complete_plausibility(data, str(name_or_path))
    return _validated(data, str(name_or_path))


def _complete_plausibility(data: dict[str, object], name: str) -> None:
    """Spell out the limits of the physical checks, so that a policy's hash covers them."""
    own = data.get("plausibility", {})
    defaults = dataclasses.asdict(PlausibilityLimits())
    if not isinstance(own, dict):
        return
    for key, value in own.items():
        shape = tuple if isinstance(defaults.get(key), tuple) else float
        if key not in defaults:
            raise PolicyError(
                "policy_unknown_key",
                f"Policy '{name}' has an unknown key 'plausibility.{key}'; known are: {', '.join(sorted(defaults))}.",
                context={"key": f"plausibility.{key}"},
            )
        if isinstance(value, list) != (shape is tuple) or (shape is tuple and len(value) != len(defaults[key])):
            raise PolicyError(
                "policy_invalid",
                f"Policy '{name}': 'plausibility.{key}' must look like {defaults[key]!r}, not {value!r}.",
                context={"key": f"plausibility.{key}"},
            )
    data["plausibility"] = {**defaults, **own}


def _read(name: str, depth: int) -> dict[str, object]:
    if depth > _DEEPEST_EXTENDS:
        raise PolicyError(
            "policy_invalid", f"Policy '{name}' extends itself, directly or through another; break the loop."
        )
    shipped = name in shipped_policies()
    data = _parse(_text(name, shipped=shipped), name)
    base_name = data.pop("extends", None)
    if base_name is None:
        return data
    if not isinstance(base_name, str) or base_name not in shipped_policies():
        known = ", ".join(shipped_policies())
        raise PolicyError("policy_invalid", f"Policy '{name}' extends {base_name!r}; it can extend one of: {known}.")
    base = _read(base_name, depth + 1)
    if not shipped:
        data.setdefault("name", "".join(c if c.isalnum() or c in "_.-" else "-" for c in Path(name).stem)[:60])
        if data["name"] in shipped_policies():
            raise PolicyError(
                "policy_invalid",
                f"Policy file '{name}' is named {data['name']!r} like a shipped one; give it a 'name' of its own.",
            )
    return _merge(base, data, name)


def _text(name: str, *, shipped: bool) -> str:
    if shipped:
        return (resources.files("autoxrd.gates") / "policies" / f"{name}.toml").read_text("utf-8")
    path = Path(name)
    if not path.is_file():
        known = ", ".join(shipped_policies())
        raise PolicyError("policy_not_found", f"No policy '{name}': give one of {known}, or the path of a TOML file.")
    try:
        if path.stat().st_size > _LARGEST_FILE_BYTES:
            raise PolicyError("policy_unreadable", f"'{name}' is larger than a policy can be; give a TOML policy file.")
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PolicyError("policy_unreadable", f"Policy file '{name}' cannot be read as text: {error}.") from error


def _parse(text: str, name: str) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PolicyError("policy_unreadable", f"Policy file '{name}' is not valid TOML: {error}.") from error


def _merge(base: dict[str, object], own: dict[str, object], name: str) -> dict[str, object]:
    """Lay a file over what it extends: tables key by key, coupled sets by id, everything else replaced."""
    merged = dict(base)
    for key, value in own.items():
        below = merged.get(key)
        if key == "coupled" and isinstance(value, list) and isinstance(below, list):
            merged[key] = _merge_coupled(below, value)
        elif isinstance(value, dict) and isinstance(below, dict):
            merged[key] = {**below, **value}
        else:
            merged[key] = value
    merged["sources"] = _sources(base, own, merged, name)
    return merged


def _merge_coupled(base: list[object], own: list[object]) -> list[object]:
    merged = list(base)
    places = {entry.get("id"): place for place, entry in enumerate(base) if isinstance(entry, dict)}
    for entry in own:
        place = places.get(entry.get("id")) if isinstance(entry, dict) else None
        below = merged[place] if place is not None else None
        if place is not None and isinstance(below, dict) and isinstance(entry, dict):
            merged[place] = {**below, **entry}
        else:
            merged.append(entry)
    return merged


def _sources(
    base: dict[str, object], own: dict[str, object], merged: Mapping[str, object], name: str
) -> dict[str, object]:
    """A changed value no longer has the source of the one it replaced."""
    sources = merged.get("sources")
    result: dict[str, object] = dict(sources) if isinstance(sources, dict) else {}
    given = own.get("sources")
    stated = given if isinstance(given, dict) else {}
    reasons = own.get("deviations")
    why = reasons if isinstance(reasons, dict) else {}
    for key in flatten(own):
        if key.split(".")[0] in ("name", "version", *_PROSE) or key in stated:
            continue
        if flatten(base).get(key) != flatten(own)[key]:
            result[key] = f"policy '{name}': {why[key]}" if key in why else f"policy '{name}', no reason given"
    return result


def flatten(data: Mapping[str, object]) -> dict[str, object]:
    """Return ``{"limits.rwp_factor": 1.02, ...}``: dotted keys for nested tables; lists stay whole."""
    flat: dict[str, object] = {}
    for key, value in data.items():
        if isinstance(value, Mapping):
            flat.update({f"{key}.{below}": leaf for below, leaf in flatten(value).items()})
        else:
            flat[str(key)] = value
    return flat


def _validated(data: dict[str, object], name: str) -> Policy:
    try:
        return Policy.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "(the file)"
        if first["type"] == "extra_forbidden":
            raise PolicyError(
                "policy_unknown_key",
                f"Policy '{name}' has an unknown key '{where}'; `autoxrd policy show strict` lists all keys.",
                context={"key": where},
            ) from error
        more = f" ({error.error_count() - 1} more problems)" if error.error_count() > 1 else ""
        message = f"Policy '{name}': '{where}': {first['msg']}{more}."
        raise PolicyError("policy_invalid", message, context={"key": where}) from error
