"""`camgraph help`: the pages of the documentation, wherever camgraph is installed."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

import click

from camgraph.pipeline.errors import EnvironmentProblem, UserError
from camgraph.pipeline.system.spelling import did_you_mean
from camgraph.tools.commands.configs import config_path

INDEX = "index"
"""The index page, from which the list of pages is read."""
_HEADING = re.compile(r"## (.+)")
_ENTRY = re.compile(r"- \[([^]]+)\]\((?:[\w/]+/)?(\w+)\.md\)(?:: (.+))?")


@click.command("help")
@click.argument("page", required=False)
def help_command(page: str | None) -> None:
    """Show a PAGE of the documentation, such as `rules` or `no_events`, or the list of all pages.

    `camgraph COMMAND --help` explains a command.
    """
    pages = _pages()
    if page is None:
        click.echo("\n".join(_list(pages)))
        return
    text = _found(page, pages).read_text("utf-8")
    if sys.stdout.isatty():
        click.echo_via_pager(text)
    else:
        click.echo(text, nl=False)


def _pages() -> dict[str, Path]:
    """Name -> file. Raises EnvironmentProblem if the installation lacks them."""
    folder = config_path("docs")
    found = {path.stem: path for path in sorted([*folder.glob("*.md"), *folder.glob("*/*.md")])}
    if INDEX not in found:
        raise EnvironmentProblem(
            "the pages of camgraph's documentation are missing; install camgraph again", error_id="installation-damaged"
        )
    return found


def _list(pages: Mapping[str, Path]) -> list[str]:
    """A line a page, in the groups of the index; pages that it does not name come last."""
    width = max(map(len, pages))
    lines, listed = [], {INDEX}
    for line in pages[INDEX].read_text("utf-8").splitlines():
        if heading := _HEADING.fullmatch(line):
            lines += ["", f"{heading[1]}:"]
        elif (entry := _ENTRY.fullmatch(line)) and entry[2] in pages:
            lines.append(f"  {entry[2]:<{width}}  {entry[1]}")
            listed.add(entry[2])
    if others := [name for name in pages if name not in listed]:
        lines += ["", "More:", *(f"  {name:<{width}}  {_title(pages[name])}" for name in others)]
    return [*lines[1:], "", "Show one with `camgraph help PAGE`; `camgraph COMMAND --help` explains a command."]


def _title(path: Path) -> str:
    with path.open(encoding="utf-8") as file:
        return file.readline().strip("# \n")


def _found(page: str, pages: Mapping[str, Path]) -> Path:
    """The page of this name, also by the name of its file: `docs/rules.md`, `no-events`."""
    name = Path(page).name.removesuffix(".md").lower().replace("-", "_")
    if name in pages:
        return pages[name]
    root = click.get_current_context().find_root()
    if isinstance(root.command, click.Group) and page in root.command.list_commands(root):
        raise UserError(f"{page} is a command, explained by: camgraph {page} --help", error_id="name-unknown")
    raise UserError(
        f"no page is called {page}{did_you_mean(name, pages) or '; `camgraph help` lists them'}",
        error_id="name-unknown",
    )
