"""Where the data that comes with the package lies: in a wheel, or in a checkout."""

from __future__ import annotations

from pathlib import Path

from autoxrd.errors import NotFound

__all__ = ["resource_path"]


def resource_path(name: str) -> Path:
    """Return the path of a packaged directory or file.

    Args:
        name: relative path that starts with ``backends``, ``migrations`` or ``skills``.

    Raises:
        NotFound: neither the wheel nor a checkout has it (a broken installation).
    """
    package = Path(__file__).resolve().parent
    for root in (package / "_data", package.parent):
        candidate = root / name
        if candidate.exists():
            return candidate
    detail = f"The installation lacks {name}; install the package again."
    raise NotFound("resource_missing", detail, context={"name": name})
