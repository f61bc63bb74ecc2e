"""What does the head of a SKILL.md say? The small part of YAML that the open skill form needs, and nothing else.

A head is the lines between two ``---``: ``key: value``, where a value is text on the same line, plain or in double
quotes as in JSON, or a block of ``  key: value`` lines below a bare ``key:``. What full YAML would read differently
(anchors, tags, lists, block text, dates and numbers that turn into other things) is refused, so that a head means the
same here and for any agent that reads it with a YAML library.
"""

from __future__ import annotations

import json
import re

__all__ = ["HeadError", "split_head"]

_LINE = re.compile(r"(?P<indent> *)(?P<key>[A-Za-z][A-Za-z0-9_-]*):(?P<rest>| .*)")
_INDICATORS = "!&*?|>@`%-,[]{}#'\""
_NOT_TEXT = re.compile(
    r"(?i:null|~|true|false|yes|no|on|off)|[-+.]?[0-9][0-9_.:eE+-]*|[-+]?\.(?i:inf|nan)|=|<<"
    r"|[-+]?0(x[0-9a-fA-F_]+|b[01_]+)|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt]|[ \t]+)[0-9].*"
)
"""Plain words that YAML reads as something else than text."""

Head = dict[str, str | dict[str, str]]


class HeadError(ValueError):
    """A line of the head is not in the form; the message names it."""


def split_head(text: str) -> tuple[Head, str]:
    """Split a SKILL.md into its head and its body.

    Args:
        text: the whole file, with newlines alone as line ends.

    Returns:
        ``(head, body)``: values are text, or one level of key -> text; the body without leading blank lines.

    Raises:
        HeadError: there is no head, or a line of it is not in the form.
    """
    lines = text.split("\n")
    if lines[0] != "---" or "---" not in lines[1:]:
        raise HeadError("it does not begin with a head between two lines '---'")
    end = lines.index("---", 1)
    head: Head = {}
    inside: dict[str, str] | None = None
    for number, line in enumerate(lines[1:end], 2):
        found = _LINE.fullmatch(line)
        if found is None:
            raise HeadError(f"line {number} is not 'key: value' or '  key: value' below a key")
        indent, key, rest = len(found["indent"]), found["key"], found["rest"].strip()
        if indent not in (0, 2) or (indent == 2 and inside is None):
            raise HeadError(f"line {number} is indented by {indent} spaces; keys of a block are indented by two")
        into = head if indent == 0 else inside
        assert into is not None
        if key in into:
            raise HeadError(f"line {number} gives {key!r} a second time")
        if indent == 0 and not rest:
            inside = {}
            head[key] = inside
            continue
        if indent == 0:
            inside = None
        into[key] = _value(rest, number)
    return head, "\n".join(lines[end + 1 :]).lstrip("\n")


def _value(text: str, number: int) -> str:
    if text.startswith('"'):
        try:
            value = json.loads(text)
        except json.JSONDecodeError as error:
            raise HeadError(f"line {number}: a quoted value ends with its quote and escapes as JSON does") from error
        return str(value)
    if not text or text[0] in _INDICATORS or ": " in text or " #" in text or text.endswith(":"):
        raise HeadError(f"line {number}: put the value in double quotes; as it stands YAML does not read it as text")
    if _NOT_TEXT.fullmatch(text):
        raise HeadError(f'line {number}: write "{text}"; without quotes YAML does not read it as text')
    return text
