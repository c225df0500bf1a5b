"""All reference pages: the name of each file, and who writes it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tools.reference.command_page import command_page
from tools.reference.counter_page import counter_page
from tools.reference.error_page import error_page
from tools.reference.event_page import event_page
from tools.reference.exit_status_page import exit_status_page
from tools.reference.graph_page import graph_page
from tools.reference.stage_page import stage_page

FOLDER = "docs/reference"
_HEAD = "<!-- Written by `make reference` from the definitions in the code: edit those, not this page. -->\n"


def pages() -> Mapping[str, str]:
    """File name -> text of every reference page."""
    writers = {
        "graph_keys.md": graph_page,
        "stages.md": stage_page,
        "commands.md": command_page,
        "events.md": event_page,
        "counters.md": counter_page,
        "exit_status.md": exit_status_page,
        "errors.md": error_page,
    }
    return {name: _with_head("\n".join(write()) + "\n") for name, write in writers.items()}


def outdated(folder: Path) -> list[str]:
    """The pages of `folder` that differ from the definitions or are missing, and files that no definition writes."""
    expected = pages()
    there = {path.name: path.read_text("utf-8") for path in folder.glob("*.md")}
    return sorted(name for name in expected.keys() | there.keys() if expected.get(name) != there.get(name))


def _with_head(text: str) -> str:
    """The title stays the first line, since `camgraph help` lists pages by it."""
    title, _, rest = text.partition("\n")
    return f"{title}\n\n{_HEAD}{rest}"
