"""The line of a file with a caret under a mistake, as compilers show it.

when: left_wrst.y < nose.y
      ^
"""

from __future__ import annotations

import re
import unicodedata
from difflib import get_close_matches

from pipeline.foreign_text import shown
from pipeline.system.redaction import is_called_secret, redact_urls

_WIDTH = 100
_BEFORE = 60
"""Of a long line, so many letters before the mistake are shown."""
_INDENT = "    "
_CUT_OFF = "..."
_LINE_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_ABOUT_SECRETS = re.compile(
    "passw|passphrase|secret|token|credential|api_?key|private_?key|authorization|bearer ", re.IGNORECASE
)
_SECRETS = ("password", "passphrase", "secret", "token", "credentials", "api_key", "private_key")
_ALIKE = 0.75
_NEAR = 300
"""A whole line, of up to a million keys, would take too long."""
_KEY = re.compile(r"([\w-]{2,40})['\"]?\s*:")


def lines_of(text: str) -> list[str]:
    """The lines of a text as YAML counts them."""
    return _LINE_BREAK.split(text)


def excerpt(line: str, column: int) -> str:
    """Two lines: the line of the file, and a caret below its `column` (from 1); "" if the line may hold a secret."""
    near = line[max(0, column - _NEAR) : column + _NEAR]
    if redact_urls(line) != line or _ABOUT_SECRETS.search(line) or _has_key_like_secret(near):
        return ""
    before, behind = line[: column - 1], line[column - 1 :].rstrip()
    before = before.lstrip() if len(before.lstrip()) <= _BEFORE else _CUT_OFF + before[-_BEFORE:]
    if len(behind) > _WIDTH - len(before):
        behind = behind[: _WIDTH - len(before)] + _CUT_OFF
    before, behind = (shown(part.replace("\t", " ")) for part in (before, behind))
    return f"{_INDENT}{before}{behind}\n{_INDENT}{' ' * _columns(before)}^"


def _has_key_like_secret(text: str) -> bool:
    """Whether one of the keys is the name of a secret, or a mistyped one."""
    keys = _KEY.findall(text.lower())
    words = {word for key in keys for word in (key, *re.split("[_-]", key))}
    return any(is_called_secret(key.replace("-", "_")) for key in keys) or any(
        get_close_matches(word, _SECRETS, 1, _ALIKE) for word in words
    )


def _columns(text: str) -> int:
    """How many columns a terminal needs for a text."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
