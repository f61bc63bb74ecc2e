"""One finished small job that the tests of this package look at, and the command that runs jobs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agent.small import write_inputs

Run = Callable[..., "subprocess.CompletedProcess[str]"]
COMMAND = [sys.executable, "-P", "-c", "from autoxrd.cli.main import main; main()"]


@pytest.fixture(scope="session")
def autoxrd() -> Run:
    """Run the command as a user does, in a process of its own."""

    def run(*words: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        texts = [str(word) for word in words]
        return subprocess.run([*COMMAND, *texts], capture_output=True, text=True, timeout=850, cwd=cwd, check=False)

    return run


@pytest.fixture(scope="session")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Pattern and CIF of the small job."""
    return write_inputs(tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="session")
def finished(inputs: tuple[Path, Path], autoxrd: Run, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Directory and standard output (JSON) of the finished small job."""
    out = tmp_path_factory.mktemp("job") / "out"
    pattern, cif = inputs
    done = autoxrd("refine", pattern, "-s", cif, "--anode", "Cu", "--out", out, "--json")
    assert done.returncode == 0, done.stderr
    return out, done.stdout
