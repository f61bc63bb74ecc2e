"""The package's public names, and what importing it loads."""

from __future__ import annotations

import subprocess
import sys

import pytest

import autoxrd.io as io


def test_public_names_load() -> None:
    for name in io.__all__:
        assert callable(getattr(io, name))
    with pytest.raises(AttributeError):
        io.nothing  # noqa: B018


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = (
        "import sys, autoxrd.io; "
        "print([m for m in ('numpy', 'gemmi', 'scipy', 'defusedxml') if m in sys.modules]); "
        "from autoxrd.io import read_pattern; "
        "print([m for m in ('gemmi', 'scipy', 'defusedxml') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert out.split() == ["[]", "[]"]
