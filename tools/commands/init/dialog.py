"""Questions on a terminal. Without one, or with `--yes`, each question has its default as the answer."""

from __future__ import annotations

import getpass
import shutil
import sys
from collections.abc import Callable, Sequence
from typing import TypeVar

import click

from pipeline.errors import UserError
from pipeline.foreign_text import printable, shown

T = TypeVar("T")
_LINE = 100


class Dialog:
    """`asks`: whether somebody is there to answer."""

    def __init__(self, *, asks: bool) -> None:
        self.asks = asks

    def say(self, text: str = "", indent: str = "", hanging: str | None = None) -> None:
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
        if hidden:  # it shows the question by itself, when the terminal shows nothing else any more
            return getpass.getpass(printable(text)) or default
        click.echo(text, nl=False)
        sys.stdout.flush()
        return _line().strip() or default

    def ask_for(self, question: str, read: Callable[[str], T], default: str = "") -> T:
        """What `read` makes of the answer; asks again if that raises UserError, as often as it takes."""
        while True:
            try:
                return read(self.ask(question, default))
            except UserError as error:
                if not self.asks:
                    raise
                self.say(str(error), "  ")

    def confirm(self, question: str, *, default: bool) -> bool:
        """Yes or no."""
        answers = {"y": True, "yes": True, "n": False, "no": False, "": default}
        while (answer := self.ask(f"{question} [{'Y/n' if default else 'y/N'}]").lower()) not in answers:
            self.say("Type y or n.", "  ")
        return answers[answer]

    def choose(self, question: str, names: Sequence[str], default: str = "") -> list[str]:
        """Some of the names, which a list before has numbered: by number or name, with commas or blanks between."""
        return self.ask_for(question, lambda text: chosen(text, names), default)


def _line() -> str:
    """What was typed. `input` would show its question on descriptor 2, which has a reader of whole lines here.

    Raises EOFError at the end of the input.
    """
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line


def chosen(text: str, names: Sequence[str]) -> list[str]:
    """The names that are meant. Raises UserError."""
    found = []
    for word in text.replace(",", " ").split():
        if word.isascii() and word.isdigit() and 1 <= int(word) <= len(names):
            found.append(names[int(word) - 1])
        elif word in names:
            found.append(word)
        else:
            raise UserError(f"{shown(word, 40)} is none of them: expected numbers from 1 to {len(names)}, such as 1,3")
    return list(dict.fromkeys(found))
