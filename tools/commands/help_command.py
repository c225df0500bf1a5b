"""`camgraph help`: the pages of the documentation, wherever camgraph is installed."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import click

from pipeline.errors import EnvironmentProblem, UserError
from pipeline.system.spelling import did_you_mean
from tools.commands.configs import config_path

FOR_USERS = (
    "graph",
    "rules",
    "models",
    "gpu",
    "cameras",
    "files",
    "operations",
    "no_events",
    "farm",
    "python",
    "write_a_stage",
    "write_a_sink",
)
"""The pages that explain how to use camgraph, in the order in which one reads them; the others are evidence."""


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
    found = {path.stem: path for path in sorted(config_path("docs").glob("*.md"))}
    if not found:
        raise EnvironmentProblem("the pages of camgraph's documentation are missing; install camgraph again")
    return found


def _list(pages: Mapping[str, Path]) -> list[str]:
    """A line per page: first how to use camgraph, then how it is made, then the measurements."""
    using = [name for name in FOR_USERS if name in pages]
    others = [name for name in pages if name not in using]
    width = max(map(len, pages))
    lines = ["How to use camgraph:", *(f"  {name:<{width}}  {_title(pages[name])}" for name in using), ""]
    lines += ["How it is made, and what was measured:", *(f"  {n:<{width}}  {_title(pages[n])}" for n in others), ""]
    return [*lines, "Show one with `camgraph help PAGE`; `camgraph COMMAND --help` explains a command."]


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
        raise UserError(f"{page} is a command, explained by: camgraph {page} --help")
    raise UserError(f"no page is called {page}{did_you_mean(name, pages)}; `camgraph help` lists them")
