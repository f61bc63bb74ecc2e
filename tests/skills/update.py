"""Write real output into the worked examples: ``python -m tests.skills.update [--all] [NAME ...]``.

Commands that state nothing are filled; with ``--all`` also those that state their output whole (no line ``...``). Read
what was written: that the text around it still says what the output says, only a reader can tell.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from autoxrd.engines.registry import get_engine
from autoxrd.planners.skills import load_skills
from tests.skills.documents import console_commands
from tests.skills.sandbox import Kitchen, Sandbox

ROOT = Path(__file__).resolve().parents[2]


def update(path: Path, kitchen: Kitchen, *, anew: bool) -> None:
    text = path.read_text(encoding="utf-8")
    position = 0
    with tempfile.TemporaryDirectory() as folder:
        sandbox = Sandbox(Path(folder), kitchen)
        for command in console_commands(text):
            answer = sandbox.run(command.line)
            shown = command.stated
            if not shown.strip() or (anew and "..." not in shown.split("\n")):
                shown = re.sub(r"[ \t]+$", "", answer.out or answer.err, flags=re.MULTILINE)
            begin = text.index(f"$ {command.line}\n{command.stated}", position)
            after = begin + len(f"$ {command.line}\n{command.stated}")
            text = f"{text[:begin]}$ {command.line}\n{shown}{text[after:]}"
            position = begin + len(f"$ {command.line}\n{shown}")
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as kept:
        shared = Kitchen(Path(kept))
        names = [word for word in sys.argv[1:] if word != "--all"]
        for given in names or list(load_skills()):
            for example in sorted((ROOT / "skills" / given / "references").glob("*.md")):
                if example.stem != "gsasii" or get_engine("gsasii").available()[0]:
                    update(example, shared, anew="--all" in sys.argv)
