"""How does a download reach the disk? Whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from autoxrd.errors import UserInputError

__all__ = ["FORMS", "report_path", "save"]

FORMS = ("html", "json", "zip", "cif", "csv")


def report_path(form: str) -> str:
    """Return the path of a report.

    Raises:
        UserInputError: ``report_form``.
    """
    if form not in FORMS:
        raise UserInputError("report_form", f"There is no report as {form!r:.20}: forms are {', '.join(FORMS)}.")
    return f"report.{form}"


def save(data: bytes, to: Path | str | None) -> bytes:
    """Write bytes to a file by temporary file and rename, where one is named; return them.

    Raises:
        UserInputError: ``file_not_written``.
    """
    if to is None:
        return data
    path = Path(to)
    try:
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "wb") as handle:
                handle.write(data)
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise UserInputError("file_not_written", f"{path} cannot be written: {error.strerror}.") from error
    return data
