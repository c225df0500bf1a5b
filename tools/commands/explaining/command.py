"""`camgraph explain`: why an error comes about, and what to do."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator

import click

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.foreign_text import shown
from camgraph.pipeline.system.spelling import nearest
from camgraph.tools.commands.explaining.kinds import Kind, kinds, topics

_LINE = 100


@click.command("explain")
@click.argument("error_ids", metavar="[ID]...", nargs=-1)
def explain(error_ids: tuple[str, ...]) -> None:
    """Say why an error comes about, and what to do; or list all of them.

    ID is one that an error names at its end, on a terminal and in JSON.
    """
    if not error_ids:
        click.echo("\n".join(_list()))
        return
    known = [kind for error_id in dict.fromkeys(error_ids) if (kind := kinds().get(error_id))]
    if known:
        click.echo("\n\n".join("\n".join(_lines(kind)) for kind in known))
    unknown = [error_id for error_id in error_ids if error_id not in kinds()]
    if unknown:
        words = [
            f"no error has the id {shown(error_id)}{_meant(error_id) or '; `camgraph explain` lists them'}"
            for error_id in unknown
        ]
        raise UserError("\n".join(words), error_id="name-unknown")


def _lines(kind: Kind) -> Iterator[str]:
    """Its text; on a terminal in lines that fit, and between words."""
    if not sys.stdout.isatty():
        yield from kind.lines()
        return
    width = min(_LINE, shutil.get_terminal_size().columns)
    for line in kind.lines():
        yield click.wrap_text(line, width, subsequent_indent="  " if line.startswith("- ") else "")


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
