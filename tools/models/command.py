"""`camgraph model`: look into models."""

from __future__ import annotations

from pathlib import Path
from typing import cast, get_args

import click

from pipeline.errors import UserError
from stages.inference.engine import ProviderName
from stages.inference.model_files import find_model


@click.group()
def model() -> None:
    """Look into a model: what it is, and what runs it."""


@model.command()
@click.argument("file")
@click.option("--size", metavar="WIDTHxHEIGHT", help="Of the picture for which operations are counted.")
@click.option(
    "--providers", default="cpu", show_default=True, help="Who may run it, the best first, with commas: cuda,cpu."
)
def inspect(file: str, size: str | None, providers: str) -> None:
    """Say what the model FILE (or asset:NAME) is: inputs, outputs, operators, work, and what camgraph takes it for."""
    # With them comes ONNX Runtime.
    from tools.models import inspection  # noqa: PLC0415

    path = find_model(file, Path.cwd())
    found = inspection.inspect(path, _sides(size))
    click.echo("\n".join(inspection.lines(found)))
    click.echo()
    click.echo("\n".join(inspection.placement_lines(inspection.open_on(path, _names(providers)))))


def _sides(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    width, _, height = text.partition("x")
    if not (width.isdecimal() and height.isdecimal() and int(width) and int(height)):
        raise UserError(f"--size {text}: expected WIDTHxHEIGHT, such as 640x480")
    return int(width), int(height)


def _names(text: str) -> tuple[ProviderName, ...]:
    names = tuple(name.strip() for name in text.split(","))
    for name in names:
        if name not in get_args(ProviderName):
            raise UserError(f"--providers {text}: there is no `{name}`; expected {', '.join(get_args(ProviderName))}")
    return cast("tuple[ProviderName, ...]", names)
