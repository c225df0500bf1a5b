"""`camgraph explain`: why an error comes about, and what to do."""

from __future__ import annotations

import click

from pipeline.errors import UserError
from pipeline.foreign_text import shown
from pipeline.system.spelling import nearest
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
            f"no error has the id {shown(error_id)}{_meant(error_id)}; `camgraph explain` lists them",
            error_id="name-unknown",
        )
    return kind


def _meant(error_id: str) -> str:
    """Which id may be meant; if only its first word says something, all that begin like it."""
    known = {word: kind.id for kind in kinds().values() for word in (kind.id, *kind.also)}
    begin = error_id.partition("-")[0] + "-"
    alike = {word.removeprefix(begin): word for word in known if word.startswith(begin)}
    for near in nearest(error_id.removeprefix(begin), alike):
        return f"; did you mean `{known[alike[near]]}`?"
    if alike:
        return f"; there are {', '.join(dict.fromkeys(known[word] for word in alike.values()))}"
    return "".join(f"; did you mean `{known[near]}`?" for near in nearest(error_id, known))


def _list() -> list[str]:
    width = max(map(len, kinds()))
    lines = []
    for topic, members in topics().items():
        lines += [f"{topic}:", *(f"  {kind.id:<{width}}  {kind.about}" for kind in members), ""]
    return lines[:-1]
