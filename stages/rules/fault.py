"""A mistake in rules, by the path of its key: its place in a file is found later."""

from __future__ import annotations

from dataclasses import dataclass

KeyPath = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Fault:
    """A mistake: the path of its key, the text, its offset in the text of a condition, and a second place to name."""

    path: KeyPath
    text: str
    offset: int | None = None
    also: KeyPath | None = None
    section: str = ""
    """The key of the file under which a name is missing: if that has a mistake itself, this is none."""
