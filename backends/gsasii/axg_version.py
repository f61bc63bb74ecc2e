"""Which GSAS-II is this? Its stated version, and a hash of the source that computes.

The version that GSAS-II states is only rewritten at a release; a hash of the modules that make numbers is what
tells two installations apart. Run as a program it prints one JSON line, for ``autoxrd doctor``.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
import sys
from functools import lru_cache
from pathlib import Path

__all__ = ["version"]

_COMPUTING = (
    *("GSASIIstrMath", "GSASIIstrIO", "GSASIIpwd", "GSASIIlattice", "GSASIIspc", "GSASIIElem", "GSASIImath"),
    *("GSASIIobj", "atmdata", "ElementTable", "FormFactors"),
)


@lru_cache(maxsize=1)
def version() -> str:
    """Return version and source hash, e.g. ``5.7.9+src.0123456789ab``, without loading GSAS-II.

    Raises:
        ModuleNotFoundError: this interpreter has no GSAS-II.
    """
    spec = importlib.util.find_spec("GSASII")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("no module named GSASII")
    folder = Path(spec.origin).parent
    digest = hashlib.sha256()
    for name in _COMPUTING:
        digest.update((folder / f"{name}.py").read_bytes())
    return f"{_stated(folder)}+src.{digest.hexdigest()[:12]}"


def _stated(folder: Path) -> str:
    """Return the version tag of its git_verinfo module, read as text."""
    path = folder / "git_verinfo.py"
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    found = re.search(r"""git_versiontag\s*=\s*['"]v?([\w.]+)['"]""", text)
    return found[1] if found else "0"


if __name__ == "__main__":
    sys.stdout.write(json.dumps({"version": version(), "python": sys.version.split()[0]}) + "\n")
