"""`camgraph explain`: why an error comes about, and what to do."""

from __future__ import annotations

import click

from pipeline.errors import UserError
from pipeline.foreign_text import shown
from pipeline.system.spelling import did_you_mean
from tools.commands.explaining.kinds import Kind, kinds, topics


@click.command("explain")
@click.argument("error_ids", metavar="[ID]...", nargs=-1)
def explain(error_ids: tuple[str, ...]) -> None:
    """Say why an error comes about, and what to do; or list all of them.

    ID is one that an error names at its end, on a terminal and in JSON.
    """
    if not error_ids:
        click.echo("\n".join(_list()))
        return
    wanted = [_found(error_id) for error_id in error_ids]
    click.echo("\n\n".join("\n".join(kind.lines()) for kind in wanted))


def _found(error_id: str) -> Kind:
    kind = kinds().get(error_id)
    if kind is None:
        raise UserError(
            f"no error has the id {shown(error_id)}{did_you_mean(error_id, kinds())}; `camgraph explain` lists them",
            error_id="name-unknown",
        )
    return kind


def _list() -> list[str]:
    width = max(map(len, kinds()))
    lines = []
    for topic, members in topics().items():
        lines += [f"{topic}:", *(f"  {kind.id:<{width}}  {kind.about}" for kind in members), ""]
    return lines[:-1]
