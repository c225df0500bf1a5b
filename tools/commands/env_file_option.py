"""`--env-file`: variables for `${NAME}` from files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from camgraph.tools.commands.local_path import LocalPath

C = TypeVar("C", bound=Callable[..., Any])


def env_file_option(help_text: str) -> Callable[[C], C]:
    """The option; it can be given several times, and later files come first."""
    return click.option(
        "--env-file",
        "env_files",
        multiple=True,
        type=LocalPath(),
        metavar="FILE",
        help=help_text,
    )


def show_remarks(remarks: Sequence[str]) -> None:
    """Print remarks, once each, on the standard error."""
    for remark in dict.fromkeys(remarks):
        click.echo(remark, err=True)
