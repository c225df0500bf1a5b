"""Options of several commands of `camgraph model`, but for declarations about a model (`declaration_options`)."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_args

import click

from camgraph.pipeline.errors import UserError

if TYPE_CHECKING:
    from camgraph.stages.people.inference.engines.engine import ProviderName

Command = TypeVar("Command", bound=Callable[..., Any])


class FiniteRange(click.FloatRange):
    """A finite number within bounds: `nan` lies within all bounds, for no comparison with it is true."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = float(super().convert(value, param, ctx))
        if not isfinite(number):
            self.fail(f"{value} is no finite number.", param, ctx)
        return number


def provider_names(text: str) -> tuple[ProviderName, ...]:
    """The providers in `text`, with commas between them. Raises UserError if there is no such provider."""
    from camgraph.stages.people.inference.engines.engine import ProviderName  # noqa: PLC0415 - with it comes numpy

    names = tuple(name.strip() for name in text.split(","))
    for name in names:
        if name not in get_args(ProviderName):
            raise UserError(
                f"--providers {text}: there is no `{name}`; expected {', '.join(get_args(ProviderName))}",
                error_id="name-unknown",
            )
    return cast("tuple[ProviderName, ...]", names)


def writes_a_model(command: Command) -> Command:
    """OUT, and whether a model that is there already may be lost; the command calls `model_output.check_out`."""
    command = click.option("--overwrite", is_flag=True, help="Replace OUT, where that is a model.")(command)
    return click.argument("out", type=click.Path(path_type=Path, dir_okay=False))(command)
