"""Text that somebody else wrote, such as a name in a model's file, made fit to be shown."""

from __future__ import annotations


def shown(text: str, most: int | None = None) -> str:
    r"""One line in which what does not print stands as an escape: ESC as ``\x1b``, a line break as ``\n``.

    So nothing in it moves a terminal's cursor, colours it, sets its title, or turns the order of letters around.
    ``most``: of a longer text, only so many letters.
    """
    cut = text if most is None or len(text) <= most else f"{text[:most]}..."
    return "".join(letter if letter.isprintable() else _escaped(letter) for letter in cut)


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")
