"""What the repository promises as a whole: sizes, imports, licence, lock, wheel and documents."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import autoxrd

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("autoxrd", "backends")
MODULE_LINES = 400
FUNCTION_LINES = 40
HELP_SECONDS = 0.5
HEAVY = ("alembic", "gemmi", "jinja2", "litellm", "matplotlib", "plotly", "rietx", "scipy", "sqlalchemy", "spglib")
EXTRAS = {"client", "server", "worker", "llm", "mcp", "beamline", "bench", "dev"}


@cache
def tracked_files() -> tuple[str, ...]:
    """Paths of all files under version control, relative to the root."""
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    return tuple(name for name in listing.stdout.split("\0") if name and (ROOT / name).is_file())


def python_files() -> list[Path]:
    """Every Python file of the program itself."""
    return sorted(path for folder in SOURCES for path in (ROOT / folder).rglob("*.py"))


def text_files() -> Iterator[tuple[str, str]]:
    """Name and text of every tracked file that is text and was written here."""
    for name in tracked_files():
        if name.endswith((".min.js", ".png", ".zip", ".gz")):
            continue
        try:
            yield name, (ROOT / name).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue


def run_python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True, timeout=60
    )


def project() -> dict[str, object]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


# imports and start-up -------------------------------------------------------------------------------------------------

LIST_HEAVY = f"import json, sys; print(json.dumps([m for m in {HEAVY!r} if m in sys.modules]), file=sys.stderr)"
RUN_HELP = "import sys; from autoxrd.cli.main import main\ntry:\n    main()\nexcept SystemExit:\n    pass\n"


def test_import_loads_nothing_heavy() -> None:
    assert json.loads(run_python(f"import autoxrd; {LIST_HEAVY}").stderr) == []


def test_help_loads_nothing_heavy_and_names_the_commands() -> None:
    answer = run_python(RUN_HELP + LIST_HEAVY, "--help")
    assert json.loads(answer.stderr) == []
    for command in ("demo", "refine", "graph", "verify", "replay", "resume", "transcript", "doctor", "policy"):
        assert command in answer.stdout


def test_help_answers_quickly() -> None:
    # Processor time, and the best of several: on a quiet machine that is what a person waits for, and a busy one
    # (refinements run beside this test) would only measure its neighbours.
    used = []
    for _ in range(5):
        before = os.times()
        run_python(RUN_HELP, "--help")
        after = os.times()
        used.append(after.children_user + after.children_system - before.children_user - before.children_system)
    assert min(used) < HELP_SECONDS


# shape of the code ----------------------------------------------------------------------------------------------------


def code_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function from ``def`` to its end, without its docstring."""
    first = node.body[0]
    is_docstring = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    documented = (first.end_lineno or 0) - first.lineno + 1 if is_docstring else 0
    return (node.end_lineno or 0) - node.lineno + 1 - documented


@pytest.mark.parametrize("path", python_files(), ids=lambda p: p.relative_to(ROOT).as_posix())
def test_module_is_small_and_says_what_it_is(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    assert len(text.splitlines()) < MODULE_LINES
    long = {
        node.name: code_lines(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and code_lines(node) >= FUNCTION_LINES
    }
    assert long == {}
    first_line = (ast.get_docstring(tree) or "").partition("\n")[0]
    assert len(first_line.split()) >= 3, "the first line of the module says which question it answers"


def imported_names(tree: ast.AST) -> set[str]:
    """Top-level names of all imports, wherever they stand in the module."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names


def test_backends_do_not_import_the_service() -> None:
    # They run in another interpreter, and a copyleft engine's process must stay at arm's length.
    users = [
        p.as_posix() for p in (ROOT / "backends").rglob("*.py") if "autoxrd" in imported_names(ast.parse(p.read_text()))
    ]
    assert users == []


def test_only_the_launcher_starts_processes() -> None:
    # import-linter sees `import subprocess`; this sees the ways round it.
    starters = {"system", "popen", "fork", "forkpty", "posix_spawn", "posix_spawnp"}
    found = []
    for path in (ROOT / "autoxrd").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os"):
                continue
            if node.attr in starters or node.attr.startswith(("exec", "spawn")):
                found.append(f"{path.relative_to(ROOT)}: os.{node.attr}")
    assert [place for place in found if not place.startswith("autoxrd/engines/launcher.py")] == []


# what may stand in a file ---------------------------------------------------------------------------------------------

# Written in pieces, so that this file does not find itself.
MACHINE_PATHS = [
    rf"(?<![\w.)}}]){re.escape(sep)}(?=[\w.])"
    for sep in ("/wo" + "rk/", "/ro" + "ot/", "/ho" + "me/", "/opt/" + "pypi", "/opt/" + "wheels")
]
REGISTRIES = [
    "py" + r"pi\.org",
    "python" + "hosted",
    r"npm" + r"js\.",
    r"deb\." + "debian",
    "--(extra-)?index" + "-url",
    "--find" + "-links",
    "trusted" + "-host",
]


@pytest.mark.parametrize("patterns", [MACHINE_PATHS, REGISTRIES], ids=["machine paths", "registries"])
def test_no_file_names_a_machine_or_a_registry(patterns: list[str]) -> None:
    wanted = re.compile("|".join(patterns))
    hits = [f"{name}: {match.group(0)}" for name, text in text_files() if (match := wanted.search(text))]
    assert hits == []


def test_the_licence_is_bsd_3_clause() -> None:
    licence = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert licence.startswith("BSD 3-Clause License")
    assert "Copyright 2026 The AutoXRD founders" in licence
    assert project()["license"] == "BSD-3-Clause"


# dependencies ---------------------------------------------------------------------------------------------------------


def locked(name: str) -> dict[str, str]:
    """Requirement blocks of a lock file by distribution name."""
    text = (ROOT / "requirements" / name).read_text(encoding="utf-8")
    blocks = re.split(r"\n(?=\S)", re.sub(r"(?m)^\s*#.*\n", "", text))
    return {block.partition("==")[0].strip().lower(): block for block in blocks if "==" in block}


@pytest.mark.parametrize("name", ["base.txt", "server.txt", "dev.txt"])
def test_every_locked_distribution_has_hashes(name: str) -> None:
    blocks = locked(name)
    assert len(blocks) > 10
    assert [key for key, block in blocks.items() if "--hash=sha256:" not in block] == []
    lines = (ROOT / "requirements" / name).read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line.startswith("-")] == [], "options such as an index do not belong in a lock"
    assert ("litellm" in blocks) == (name != "base.txt"), "large and slow to import: an extra, never a base requirement"


def test_litellm_is_kept_off_the_releases_that_were_compromised() -> None:
    (declared,) = project()["optional-dependencies"]["llm"]
    assert {"!=1.82.7", "!=1.82.8"} <= set(declared.replace("litellm", "").split(","))
    assert re.search(r"^litellm==1\.110\.", (ROOT / "requirements" / "dev.txt").read_text(), flags=re.MULTILINE)
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert ci.index("requirements/dev.txt") < ci.index("'*.pth'"), "such a file runs at every start of the interpreter"


def test_the_locks_cover_what_the_project_declares() -> None:
    declared = project()
    extras = declared["optional-dependencies"]
    assert set(extras) == EXTRAS
    base, server, dev = locked("base.txt"), locked("server.txt"), locked("dev.txt")

    def names(requirements: list[str]) -> set[str]:
        return {re.split(r"[<>=!~\[; ]", requirement, maxsplit=1)[0].lower() for requirement in requirements}

    assert names(declared["dependencies"]) <= set(base)
    assert names(extras["dev"]) <= set(dev)
    served = (*extras["server"], *extras["worker"], *extras["llm"])
    assert {name.partition("[")[0] for name in names(served)} <= set(server)
    for lock in (base, server, locked("build.txt")):
        pinned = {key: block.split()[0] for key, block in lock.items()}
        assert pinned == {key: dev[key].split()[0] for key in lock}, "all locks pin the same releases"


# documents ------------------------------------------------------------------------------------------------------------


def markdown_files() -> list[str]:
    return [name for name in tracked_files() if name.endswith(".md")]


def test_readme_names_the_two_commands() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "pip install . && autoxrd demo" in readme
    assert re.search(r"^pip install -e '\.\[dev\]' && pytest$", readme, flags=re.MULTILINE)
    assert (ROOT / ".ci" / "run").read_text(encoding="utf-8").rstrip().endswith("\npytest")


def test_changelog_knows_this_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert "## [Unreleased]" in changelog
    assert f"## [{autoxrd.__version__}]" in changelog


@pytest.mark.parametrize("name", markdown_files())
def test_links_between_documents_lead_somewhere(name: str) -> None:
    text = re.sub(r"```.*?```", "", (ROOT / name).read_text(encoding="utf-8"), flags=re.DOTALL)
    targets = [target.partition("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in target]
    missing = [t for t in targets if t and not t.startswith("mailto:") and not ((ROOT / name).parent / t).exists()]
    assert missing == []


def test_decision_records_are_numbered_and_listed() -> None:
    folder = ROOT / "docs" / "decisions"
    records = sorted(path.name for path in folder.glob("[0-9]*.md"))
    assert [int(name[:4]) for name in records] == list(range(1, len(records) + 1))
    index = (folder / "README.md").read_text(encoding="utf-8")
    assert [name for name in records if f"]({name})" not in index] == []


# the wheel ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wheel_names(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Names of the files in a wheel built from this checkout."""
    out = tmp_path_factory.mktemp("wheel")
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1767225600"}
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
    subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True, timeout=120)
    (wheel,) = out.glob("*.whl")
    assert wheel.name.startswith("autoxrd_agent-")
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_wheel_carries_all_that_runs(wheel_names: set[str]) -> None:
    def place(name: str) -> str:
        return name if name.startswith("autoxrd/") else f"autoxrd/_data/{name}"

    wanted = {place(n) for n in tracked_files() if n.startswith(("autoxrd/", "backends/", "migrations/", "skills/"))}
    assert any(name.startswith("autoxrd/_data/backends/rietx/") for name in wanted)
    assert any(name.startswith("autoxrd/_data/migrations/versions/") for name in wanted)
    assert "autoxrd/_data/skills/result-acceptance/SKILL.md" in wanted
    assert "autoxrd/py.typed" in wheel_names
    assert sorted(wanted - wheel_names) == []


def test_wheel_carries_nothing_else(wheel_names: set[str]) -> None:
    strays = {n for n in wheel_names if n.endswith((".pyc", ".pyo")) or n.startswith(("tests/", "benchmarks/"))}
    assert strays == set()
    assert any(name.endswith("licenses/LICENSE") for name in wheel_names)
