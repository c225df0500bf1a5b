"""Write the reference pages, or with `--check` say which are out of date: `python -m camgraph.tools.lab.reference`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from camgraph.tools.lab.reference.pages import FOLDER, outdated, pages

ROOT = Path(__file__).resolve().parents[3]


@click.command()
@click.option("--check", is_flag=True, help="Write nothing; exit with status 1 if a page is out of date.")
def main(check: bool) -> None:
    """Write docs/reference from the definitions in the code."""
    folder = ROOT / FOLDER
    stale = outdated(folder)
    for name in stale:
        click.echo(f"{'out of date' if check else 'written'}: {FOLDER}/{name}")
    if check:
        sys.exit(1 if stale else 0)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
