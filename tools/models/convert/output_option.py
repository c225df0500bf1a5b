"""The file that a command writes a model to, the same for all of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def writes_a_model(command: Command) -> Command:
    """OUT, and whether a model that is there already may be lost; the command calls `model_output.check_out`."""
    command = click.option("--overwrite", is_flag=True, help="Replace OUT, where that is a model.")(command)
    return click.argument("out", type=click.Path(path_type=Path, dir_okay=False))(command)
