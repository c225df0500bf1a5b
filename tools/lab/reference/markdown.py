"""Tables and texts in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

_CODE = re.compile(r"(`[^`]*`)")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """The lines of a table."""
    yield _line(head)
    yield "|" + "---|" * len(head)
    yield from map(_line, rows)


def code(text: str) -> str:
    return f"`{text}`" if text else ""


def sentence(text: str) -> str:
    """A description, which the code writes with or without a full stop, as a sentence."""
    text = " ".join(text.split())
    return text if not text or text.endswith((".", "!", "?")) else f"{text}."


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(_cell(cell) for cell in cells) + " |"


def _cell(text: str) -> str:
    """On one line, without what ends a cell or begins a tag; code spans keep their angle brackets."""
    flat = " ".join(text.split()).replace("|", "\\|")
    parts = _CODE.split(flat)
    return "".join(part if part.startswith("`") else part.replace("<", "&lt;") for part in parts)
