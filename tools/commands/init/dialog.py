"""Questions on a terminal. Without one, or with `--yes`, each question has its default as the answer."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from typing import TypeVar

import click

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.foreign_text import shown
from camgraph.tools.display.questions import ask_hidden, ask_line, ask_yes

T = TypeVar("T")
_LINE = 100


class Dialog:
    """`asks`: whether somebody is there to answer."""

    def __init__(self, *, asks: bool) -> None:
        self.asks = asks

    def show(self, text: str = "", indent: str = "", hanging: str | None = None) -> None:
        """Print a text for people, in lines that are not too long; `hanging` indents all but the first one."""
        width = min(_LINE, shutil.get_terminal_size().columns)
        below = indent if hanging is None else hanging
        click.echo("\n".join(click.wrap_text(line, width, indent, below) for line in text.split("\n")))

    def ask(self, question: str, default: str = "", *, hidden: bool = False) -> str:
        """The answer, without blanks at its ends unless it is hidden; `default` if it is empty."""
        if not self.asks:
            return default
        behind = f" [{shown(default)}]" if default and not hidden else ""
        text = f"{question}{behind}: "
        return (ask_hidden(text) if hidden else ask_line(text)) or default

    def ask_for(self, question: str, read: Callable[[str], T], default: str = "", *, hidden: bool = False) -> T:
        """What `read` makes of the answer; asks again if that raises UserError, as often as it takes."""
        while True:
            try:
                return read(self.ask(question, default, hidden=hidden))
            except UserError as error:
                if not self.asks:
                    raise
                self.show(str(error), "  ")

    def confirm(self, question: str, *, default: bool) -> bool:
        """Yes or no."""
        return ask_yes(question, default=default) if self.asks else default

    def choose(self, question: str, names: Sequence[str], default: str = "") -> list[str]:
        """Some of the names, which a list before has numbered: by number or name, with commas or blanks between."""
        return self.ask_for(question, lambda text: chosen(text, names), default)


def chosen(text: str, names: Sequence[str]) -> list[str]:
    """The names that are meant. Raises UserError."""
    found = []
    for word in text.replace(",", " ").split():
        if word.isascii() and word.isdigit() and 1 <= int(word) <= len(names):
            found.append(names[int(word) - 1])
        elif word in names:
            found.append(word)
        else:
            raise UserError(
                f"{shown(word, 40)} is none of them: expected numbers from 1 to {len(names)}, such as 1,3",
                error_id="option-value",
            )
    return list(dict.fromkeys(found))
