"""Questions to somebody at a terminal.

`input`, and with it click, shows its question on descriptor 2, where `tools.display.screen` reads whole lines: it would
be seen after the answer.
"""

from __future__ import annotations

import getpass
import sys

import click

from camgraph.pipeline.foreign_text import printable


def ask_line(question: str) -> str:
    """What is typed, without blanks at its ends. Raises EOFError at the end of the input."""
    click.echo(question, nl=False)
    sys.stdout.flush()
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.strip()


def ask_hidden(question: str) -> str:
    """What is typed, as it is, and not shown. Raises EOFError at the end of the input."""
    # It shows the question by itself, when the terminal shows nothing else any more.
    return getpass.getpass(printable(question))


def ask_yes(question: str, *, default: bool) -> bool:
    """Yes or no, `default` for Enter. Raises EOFError at the end of the input."""
    answers = {"y": True, "yes": True, "n": False, "no": False, "": default}
    while (answer := ask_line(f"{question} [{'Y/n' if default else 'y/N'}]: ").lower()) not in answers:
        click.echo("  Type y or n.")
    return answers[answer]
