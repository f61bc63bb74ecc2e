"""The page says what the code does: every finding's code stands on it."""

from __future__ import annotations

import re
from pathlib import Path

import autoxrd.store

PAGE = Path(__file__).resolve().parents[2] / "docs" / "graph.md"
CALL = re.compile(r"\b(?:error|note|mismatch)\(\s*\"([a-z_]+)\"")


def test_every_code_of_a_finding_is_documented() -> None:
    sources = Path(autoxrd.store.__file__).parent.glob("*.py")
    codes = {code for source in sources for code in CALL.findall(source.read_text())}
    page = PAGE.read_text()
    assert len(codes) > 40
    assert sorted(code for code in codes if f"`{code}`" not in page) == []
