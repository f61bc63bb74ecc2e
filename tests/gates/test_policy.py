"""Policies are data with sources; a user's file extends one, and a fault in it is one clear sentence."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from autoxrd.cli.policy import app
from autoxrd.domain.action import ActionKind, Stage
from autoxrd.errors import PolicyError
from autoxrd.gates.policy import (
    Policy,
    flatten,
    load_policy,
    plausibility_limits,
    policy_hash,
    shipped_policies,
)
from autoxrd.science.settings import Limits

STRICT, DEFAULT = load_policy("strict"), load_policy("default")
PROSE = {"sources", "deviations"}


def leaves(policy: Policy) -> dict[str, object]:
    content = policy.model_dump(mode="json", exclude=PROSE)
    content["coupled"] = {rule["id"]: rule for rule in content["coupled"]}
    return flatten(content)


def has(table: dict[str, str], key: str) -> bool:
    parts = key.split(".")
    return any(table.get(".".join(parts[:n])) for n in range(len(parts), 0, -1))


def test_strict_is_the_letter() -> None:
    assert (STRICT.limits.rwp_factor, STRICT.limits.unexplained_rise, STRICT.limits.max_correlation) == (
        1.02,
        0.02,
        0.98,
    )
    assert STRICT.evidence.agreement == 0.01
    assert STRICT.predictions.tolerance == 1e-9
    u = STRICT.utility
    weights = (u.gof, u.abs_residual, u.unexplained, u.parameter, u.correlation, u.correlation_knee, u.hard_violation)
    assert weights == (1.0, 2.0, 3.0, 0.002, 10.0, 0.90, 10.0)


@pytest.mark.parametrize("name", shipped_policies())
def test_every_rule_has_a_source_and_every_deviation_a_reason(name: str) -> None:
    policy = load_policy(name)
    assert [key for key in leaves(policy) if key not in ("name", "version") and not has(policy.sources, key)] == []
    changed = {key for key, value in leaves(policy).items() if leaves(STRICT).get(key) != value} - {"name", "version"}
    assert {key for key in changed if not has(policy.deviations, key)} == set()
    told = {key for key in policy.deviations if not any(c == key or c.startswith(f"{key}.") for c in changed)}
    assert told == set(), "a reason for what does not deviate"
    known = {"plausibility", "stages", "releases", "mechanisms", "coupled", *leaves(policy)}
    assert set(policy.sources) <= known


@pytest.mark.parametrize("name", shipped_policies())
def test_tables_are_complete(name: str) -> None:
    policy = load_policy(name)
    assert set(policy.stages) == set(Stage)
    assert set(policy.releases) == set(ActionKind)
    assert set(policy.mechanisms) == set(ActionKind)
    assert all(policy.mechanisms.values())
    placed = {kind for kinds in policy.stages.values() for kind in kinds}
    assert placed == set(ActionKind)


def test_the_hash_is_of_what_judges() -> None:
    assert policy_hash(load_policy("default")) == policy_hash(DEFAULT)
    assert policy_hash(STRICT) != policy_hash(DEFAULT)
    reworded = DEFAULT.model_copy(update={"sources": {}, "deviations": {}})
    assert policy_hash(reworded) == policy_hash(DEFAULT)
    looser = DEFAULT.model_copy(update={"limits": DEFAULT.limits.model_copy(update={"rwp_factor": 1.03})})
    assert policy_hash(looser) != policy_hash(DEFAULT)
    stored = Policy.model_validate_json(json.dumps(DEFAULT.model_dump(mode="json")))
    assert policy_hash(stored) == policy_hash(DEFAULT)


def test_a_policy_recorded_before_a_rule_came_hashes_as_it_did() -> None:
    """The hash of `default` as it was shipped before a model of widths had to leave amounts alone."""
    stored = DEFAULT.model_dump(mode="json")
    del stored["limits"]["broadening_moves_fraction"]
    of_before = "5b0eeb584f6ea37c6d866430f6aa3245152b0878e37a9d125b30f9c39cce1185"
    assert policy_hash(Policy.model_validate(stored)) == of_before
    assert policy_hash(DEFAULT) != of_before


def test_policies_are_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        DEFAULT.limits.rwp_factor = 2.0  # type: ignore[misc]


def write(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_users_file_extends_a_shipped_one(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        """
        extends = "default"
        version = "7"
        [limits]
        rwp_factor = 1.01
        [mechanisms]
        zero = ["position.zero"]
        [plausibility]
        uiso_max = 0.08
        texture_hard = [0.2, 4.0]
        [[coupled]]
        id = "zero_cell"
        enabled = false
        [[coupled]]
        id = "width_size"
        scope = "job"
        when = "always"
        groups = [{ any = ["profile.X"] }, { any = ["phase.size"] }]
        why = "both go as 1/cos(theta)"
        [deviations]
        "limits.rwp_factor" = "our beamline is stable"
        """,
    )
    mine = load_policy(path)
    assert (mine.name, mine.version) == ("mine", "7")
    assert mine.limits.rwp_factor == 1.01
    assert mine.limits.max_correlation == DEFAULT.limits.max_correlation
    assert mine.mechanisms[ActionKind.ZERO] == ("position.zero",)
    assert mine.mechanisms[ActionKind.LATTICE] == DEFAULT.mechanisms[ActionKind.LATTICE]
    assert {rule.id: rule.enabled for rule in mine.coupled}["zero_cell"] is False
    assert [rule.id for rule in mine.coupled][-1] == "width_size"
    assert len(mine.coupled) == len(DEFAULT.coupled) + 1
    assert mine.sources["limits.rwp_factor"].endswith("our beamline is stable")
    assert mine.sources["limits.max_correlation"] == STRICT.sources["limits.max_correlation"]
    assert mine.sources["mechanisms.zero"].endswith("no reason given")
    limits = plausibility_limits(mine)
    assert (limits.uiso_max, limits.texture_hard) == (0.08, (0.2, 4.0))
    assert policy_hash(mine) != policy_hash(DEFAULT)


def test_limits_of_the_physical_checks_are_spelled_out() -> None:
    assert plausibility_limits(STRICT) == Limits()
    assert set(STRICT.plausibility) == set(Limits.__dataclass_fields__)


@pytest.mark.parametrize(
    ("text", "code", "word"),
    [
        ("[limits", "policy_unreadable", "TOML"),
        ('extends = "default"\n[limits]\nrwp_faktor = 1.0', "policy_unknown_key", "limits.rwp_faktor"),
        ('extends = "default"\n[plausibility]\nuiso = 1.0', "policy_unknown_key", "plausibility.uiso"),
        ('extends = "default"\n[plausibility]\nuiso_max = [1.0]', "policy_invalid", "plausibility.uiso_max"),
        ('extends = "default"\n[plausibility]\ntexture_hard = [1.0]', "policy_invalid", "plausibility.texture_hard"),
        ('extends = "default"\n[plausibility]\nuiso_max = "big"', "policy_invalid", "plausibility.uiso_max"),
        ('extends = "default"\n[limits]\nrwp_factor = 0.9', "policy_invalid", "limits.rwp_factor"),
        ('extends = "default"\n[limits]\nrwp_factor = "much"', "policy_invalid", "limits.rwp_factor"),
        ('extends = "default"\n[limits]\nrwp_factor = nan', "policy_invalid", "limits.rwp_factor"),
        ('extends = "default"\n[stages]\nqc = ["zeros"]', "policy_invalid", "stages.qc.0"),
        ('extends = "default"\n[[coupled]]\nid = "new"', "policy_invalid", "coupled"),
        ('extends = "default"\ncoupled = 3', "policy_invalid", "coupled"),
        ('extends = "default"\nlimits = 3', "policy_invalid", "limits"),
        ('extends = "default"\nplausibility = 3', "policy_invalid", "plausibility"),
        ('extends = "lenient"', "policy_invalid", "lenient"),
        ("extends = 3", "policy_invalid", "3"),
        ('extends = "default"\nname = "strict"', "policy_invalid", "strict"),
        ('name = "x"', "policy_invalid", "version"),
    ],
)
def test_a_faulty_file_is_one_sentence(tmp_path: Path, text: str, code: str, word: str) -> None:
    with pytest.raises(PolicyError) as caught:
        load_policy(write(tmp_path, text))
    assert caught.value.code == code
    assert word in caught.value.detail
    assert "\n" not in caught.value.detail


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="No policy"):
        load_policy("lenient")
    with pytest.raises(PolicyError, match="No policy"):
        load_policy(tmp_path)
    binary = tmp_path / "b.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(PolicyError, match="cannot be read as text"):
        load_policy(binary)
    huge = tmp_path / "h.toml"
    huge.write_text("# " + "x" * 1_000_001, encoding="utf-8")
    with pytest.raises(PolicyError, match="larger"):
        load_policy(huge)


# --- the command --------------------------------------------------------------------------------------------------

RUN = CliRunner()


def test_show() -> None:
    told = RUN.invoke(app, ["show"])
    assert told.exit_code == 0
    assert policy_hash(DEFAULT) in told.output
    assert "limits.rwp_factor = 1.02" in told.output
    assert "coupled.zero_displacement" in told.output
    content = json.loads(RUN.invoke(app, ["show", "strict", "--json"]).output)
    assert content.pop("hash") == policy_hash(STRICT)
    assert Policy.model_validate(content) == STRICT


def test_diff(tmp_path: Path) -> None:
    same = RUN.invoke(app, ["diff", "strict", "strict"])
    assert (same.exit_code, same.output) == (0, "strict and strict judge alike.\n")
    told = RUN.invoke(app, ["diff", "strict", "default"])
    assert told.exit_code == 1
    assert "limits.violation_worsening: 0 -> 0.25" in told.output
    path = write(tmp_path, 'extends = "default"\n[[coupled]]\nid = "zero_cell"\nenabled = false')
    found = json.loads(RUN.invoke(app, ["diff", "default", str(path), "--json"]).output)
    assert found == {"coupled.zero_cell.enabled": {"first": True, "second": False, "reason": ""}}


def test_check(tmp_path: Path) -> None:
    path = write(tmp_path, 'extends = "default"\n[limits]\nrwp_factor = 1.01')
    told = RUN.invoke(app, ["check", str(path)])
    assert told.exit_code == 0
    assert "limits.rwp_factor" in told.output
    bad = RUN.invoke(app, ["check", str(write(tmp_path, "[limits"))])
    assert bad.exit_code == 2
    assert bad.output.startswith("Error: ")
    assert bad.output.count("\n") == 1


def test_the_command_loads_nothing_heavy() -> None:
    code = (
        "import sys, autoxrd.cli.policy, autoxrd.gates.acceptance, autoxrd.gates.audit\n"
        "heavy = {'scipy', 'sqlalchemy', 'plotly', 'litellm', 'rietx', 'numpy'} & set(sys.modules)\n"
        "print(sorted(heavy))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
