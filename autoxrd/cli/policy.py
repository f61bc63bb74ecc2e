"""``autoxrd policy``: show the rules of judgement, compare two sets of rules, check one's own file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from autoxrd.gates.policy import Policy
    from autoxrd.gates.policy_model import CoupledSet

app = typer.Typer(
    name="policy",
    help="Show, compare and check the rules that accept or reject a step.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

_NAME = Annotated[str, typer.Argument(help="Name of a shipped policy, or path of a TOML file.")]
_JSON = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
_HIDDEN = ("sources", "deviations")


def _load(name: str) -> Policy:
    """Load a policy; a fault in it ends the command with exit code 2 and one sentence."""
    from autoxrd.errors import PolicyError
    from autoxrd.gates.policy import load_policy

    try:
        return load_policy(name)
    except PolicyError as error:
        typer.echo(f"Error: {error.detail}", err=True)
        raise typer.Exit(2) from None


def _leaves(policy: Policy) -> dict[str, Any]:
    """Return dotted key -> value for every rule; coupled sets by their id."""
    from autoxrd.gates.policy import flatten

    data = policy.model_dump(mode="json", exclude=set(_HIDDEN))
    data["coupled"] = {rule["id"]: rule for rule in data["coupled"]}
    return flatten(data)


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_text(part)}" for key, part in value.items() if part)
    if isinstance(value, list) and value:
        return ", ".join(f"({_text(part)})" if isinstance(part, dict) else str(part) for part in value)
    if value in ([], None, ""):
        return "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _nearest(table: dict[str, str], key: str) -> str:
    """Return the entry of the key, or of the table that it stands in."""
    while key:
        if key in table:
            return table[key]
        key = key.rpartition(".")[0]
    return ""


def _print_rules(rows: list[tuple[str, str]]) -> None:
    """Print each rule on a line of its own, and why below it, as wide as the terminal."""
    import shutil
    import textwrap

    width = max(60, min(shutil.get_terminal_size().columns, 120))
    for rule, why in rows:
        typer.echo(textwrap.fill(rule, width, subsequent_indent="        ", break_on_hyphens=False))
        if why:
            reason = typer.style(textwrap.fill(why, width - 4, break_on_hyphens=False), dim=True)
            typer.echo(textwrap.indent(reason, "    "))


def _coupled_text(rule: CoupledSet) -> str:
    sides = " with ".join(
        f"any {' or '.join(group.any)}" if group.any else f"every {' and '.join(group.all)}" for group in rule.groups
    )
    when = {
        "always": "refused",
        "inseparable": "refused where the data cannot tell them apart",
        "narrow_range": "refused at a narrow range",
    }[rule.when]
    within = "" if rule.scope == "job" else f" of one {rule.scope}"
    return f"coupled.{rule.id}: {sides}{within}: {when if rule.enabled else 'switched off'}"


@app.command()
def show(name: _NAME = "default", as_json: _JSON = False) -> None:
    """Show every rule of a policy with its source."""
    from autoxrd.gates.policy import policy_hash, shipped_policies

    policy = _load(name)
    if as_json:
        import json

        typer.echo(json.dumps({"hash": policy_hash(policy), **policy.model_dump(mode="json")}, indent=2))
        return
    typer.echo(f"policy {policy.name}, version {policy.version}, hash {policy_hash(policy)}")
    typer.echo(f"shipped: {', '.join(shipped_policies())}\n")
    _print_rules(
        [
            (f"{key} = {_text(value)}", _nearest(policy.deviations, key) or _nearest(policy.sources, key))
            for key, value in _leaves(policy).items()
            if key not in ("name", "version") and not key.startswith("coupled.")
        ]
        + [(_coupled_text(rule), rule.why) for rule in policy.coupled]
    )


@app.command()
def diff(first: _NAME, second: _NAME, as_json: _JSON = False) -> None:
    """Show where two policies differ, and why. Exit code 1 where they do, as diff does."""
    one, two = _load(first), _load(second)
    left, right = _leaves(one), _leaves(two)
    changed = {
        key: (left.get(key), right.get(key))
        for key in dict.fromkeys([*left, *right])
        if key not in ("name", "version") and left.get(key) != right.get(key)
    }
    reasons = {key: _nearest(two.deviations, key) or _nearest(one.deviations, key) for key in changed}
    if as_json:
        import json

        content = {key: {"first": a, "second": b, "reason": reasons[key]} for key, (a, b) in changed.items()}
        typer.echo(json.dumps(content, indent=2))
    elif not changed:
        typer.echo(f"{one.name} and {two.name} judge alike.")
    else:
        typer.echo(f"{one.name} -> {two.name}\n")
        _print_rules([(f"{key}: {_text(a)} -> {_text(b)}", reasons[key]) for key, (a, b) in changed.items()])
    raise typer.Exit(1 if changed else 0)


@app.command()
def check(name: _NAME) -> None:
    """Check a policy file; prints its hash. Exit code 2 with one sentence where it is not valid."""
    from autoxrd.gates.policy import policy_hash

    policy = _load(name)
    typer.echo(f"{policy.name} (version {policy.version}) is valid; hash {policy_hash(policy)}")
    bare = [key for key, source in policy.sources.items() if source.endswith("no reason given")]
    if bare:
        typer.echo(f"Changed without a reason (add them under [deviations]): {', '.join(sorted(bare))}")
