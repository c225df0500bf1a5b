"""Makes foreign text, such as a key in a graph file or a name in a model's file, fit to be shown.

A terminal obeys some characters instead of showing them: ESC and the rest of C0, C1 and DEL move its cursor, colour it
or set its title; bidirectional controls turn the order of letters around; U+2028 and U+2029 break lines. Each of them
is written as an escape, ESC as ``\\x1b``; so is a lone surrogate, which no encoding has.
"""

from __future__ import annotations

import json

_KEPT = frozenset("\n\t\xa0\u3000")
"""Not printable to Python, and harmless: line breaks, tabs, and the spaces that people type."""


def shown(text: str, most: int | None = None) -> str:
    r"""One line of `text`: a line break stands as ``\n``. `most`: of a longer text, only so many letters."""
    cut = text if most is None or len(text) <= most else f"{text[:most]}..."
    return "".join(letter if letter.isprintable() else _escaped(letter) for letter in cut)


def printable(text: str) -> str:
    """`text` with its line breaks and tabs, for text that is laid out in lines already."""
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() or letter in _KEPT else _escaped(letter) for letter in text.replace("\r\n", "\n")
    )


def printable_json(text: str) -> str:
    """JSON on one line; unprintable characters get JSON's own escapes, which mean the same."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else json.dumps(letter)[1:-1] for letter in text)


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")
