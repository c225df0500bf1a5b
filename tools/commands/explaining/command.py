"""`camgraph explain`: why an error comes about, and what to do."""

from __future__ import annotations

import click

from pipeline.errors import UserError
from pipeline.foreign_text import shown
from pipeline.system.spelling import did_you_mean
from tools.commands.explaining.kinds import kinds, topics


@click.command("explain")
@click.argument("error_id", metavar="ID", required=False)
def explain(error_id: str | None) -> None:
    """Say why an error comes about, and what to do; or list all of them.

    ID is the one that an error names at its end, on a terminal and in JSON.
    """
    if error_id is None:
        click.echo("\n".join(_list()))
        return
    kind = kinds().get(error_id)
    if kind is None:
        raise UserError(
            f"no error has the id {shown(error_id)}{did_you_mean(error_id, kinds())}; `camgraph explain` lists them",
            error_id="name-unknown",
        )
    click.echo("\n".join(kind.lines()))


def _list() -> list[str]:
    width = max(map(len, kinds()))
    lines = []
    for topic, members in topics().items():
        lines += [f"{topic}:", *(f"  {kind.id:<{width}}  {kind.about}" for kind in members), ""]
    return lines[:-1]
