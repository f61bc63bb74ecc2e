"""Get the bytes of one user file, safely: the only place of this package that opens a path."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from autoxrd.errors import UserInputError
from autoxrd.primitives import sha256_hex

__all__ = ["Source", "input_error", "load_source"]

_BOMS = (
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
_TEXT_CONTROLS = frozenset(b"\t\n\x0b\x0c\r\x1a")
_LINE_END = re.compile("\r\n|\r|\n")
_SHOWN = 60


def input_error(code: str, name: str, sentence: str, *, line: int | None = None, **context: object) -> UserInputError:
    """Build the one sentence that names the file, the line where there is one, and what was expected."""
    where = f"{name}, line {line}" if line is not None else name
    full: dict[str, object] = {"file": name, **context}
    if line is not None:
        full["line"] = line
    return UserInputError(code, f"{where}: {sentence}", context=full)


@dataclass(frozen=True)
class Source:
    """The bytes of one file and what they look like.

    Args:
        name: base name of the file, for messages.
        stem: base name without its last suffix.
        data: the bytes.
        sha256: their SHA-256.
    """

    name: str
    stem: str
    data: bytes
    sha256: str

    @cached_property
    def looks_binary(self) -> bool:
        """Whether the head of the file is mostly not text (byte-order marks are honoured)."""
        head = self.data[:4096]
        if any(head.startswith(bom) for bom, _ in _BOMS) or _utf16_without_bom(head):
            return False
        controls = sum(1 for byte in head if byte < 32 and byte not in _TEXT_CONTROLS)
        return controls > 0.1 * len(head)

    @cached_property
    def text(self) -> str:
        """Decoded text: by byte-order mark, else UTF-8, else Latin-1."""
        for bom, encoding in _BOMS:
            if self.data.startswith(bom):
                return self.data[len(bom) :].decode(encoding, errors="replace")
        if _utf16_without_bom(self.data[:4096]):
            return self.data.decode("utf-16-le", errors="replace")
        try:
            return self.data.decode("utf-8")
        except UnicodeDecodeError:
            return self.data.decode("latin-1")

    @cached_property
    def lines(self) -> list[str]:
        """Lines without their ends; CR LF, LF and lone CR all end a line."""
        return _LINE_END.split(self.text)

    def error(self, code: str, sentence: str, *, line: int | None = None, **context: object) -> UserInputError:
        """Build an error about this file; ``line`` counts from 1."""
        return input_error(code, self.name, sentence, line=line, **context)


def _utf16_without_bom(head: bytes) -> bool:
    """Whether every second byte is zero, as in ASCII text written as UTF-16 without a mark."""
    return len(head) >= 64 and head[1::2].count(0) > 0.9 * len(head[1::2]) and 0 not in head[0:64:2]


def shown(text: str) -> str:
    """Cut untrusted text to what fits in a message, printable characters only."""
    clean = "".join(char if char.isprintable() else "?" for char in text.strip())
    return clean if len(clean) <= _SHOWN else clean[: _SHOWN - 3] + "..."


def load_source(path: Path, *, max_bytes: int) -> Source:
    """Read a file whole, or say why not.

    Raises:
        UserInputError: ``file_missing``, ``file_is_directory``, ``file_not_regular``, ``file_unreadable``,
            ``file_empty``, ``file_too_large``, ``file_is_html``, ``file_is_lfs_pointer``.
    """
    name = shown(path.name) or str(path)
    try:
        if path.is_dir():
            raise input_error("file_is_directory", name, "is a directory; give the path of one file in it.")
        if not path.exists():
            raise input_error("file_missing", name, "there is no such file; check the path.")
        if not path.is_file():
            raise input_error("file_not_regular", name, "is a device or pipe; give the path of a regular file.")
        size = path.stat().st_size
        if size > max_bytes:
            raise input_error("file_too_large", name, f"has {size} bytes; at most {max_bytes} are read.", size=size)
        data = path.read_bytes()[: max_bytes + 1]
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "the path is not valid"
        raise input_error("file_unreadable", name, f"cannot be read: {reason}.") from error
    _refuse_what_is_no_data(name, data)
    return Source(name=name, stem=path.stem, data=data, sha256=sha256_hex(data))


def _refuse_what_is_no_data(name: str, data: bytes) -> None:
    """Name the usual results of a broken download."""
    if not data.strip(b" \t\r\n\x00\x1a"):
        raise input_error("file_empty", name, f"is empty ({len(data)} bytes); expected a data file.")
    head = data[:2048].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if head.startswith((b"<!doctype html", b"<html")) or b"<html" in head[:1024]:
        sentence = "is an HTML page (a web error saved as data), not a data file; download it again."
        raise input_error("file_is_html", name, sentence)
    if head.startswith(b"version https://git-lfs.github.com/spec"):
        sentence = "is a Git LFS pointer, not the data; fetch the file itself with `git lfs pull`."
        raise input_error("file_is_lfs_pointer", name, sentence)
