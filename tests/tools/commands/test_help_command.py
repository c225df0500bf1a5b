"""The pages of the documentation, also where there is no checkout."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from camgraph.tools.cli import main
from camgraph.tools.commands import help_command

ROOT = Path(__file__).parents[3]
_A_PAGE = re.compile(r"docs/\w+\.md")


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(main, ["help", *arguments])
    return result.exit_code, result.stdout, result.stderr


def test_a_page_is_shown_as_it_is_written() -> None:
    assert run("rules") == (0, (ROOT / "docs" / "rules.md").read_text("utf-8"), "")


@pytest.mark.parametrize("page", ["no_events", "no-events", "docs/no_events.md", "NO_EVENTS"])
def test_a_page_may_be_named_as_its_file(page: str) -> None:
    assert run(page)[1].startswith("# No events: why?\n")


def test_all_pages_are_listed_in_the_groups_of_the_index() -> None:
    status, out, _ = run()
    assert status == 0
    listed = [line.split()[0] for line in out.splitlines() if line.startswith("  ")]
    assert sorted(listed) == sorted(path.stem for path in (ROOT / "docs").rglob("*.md") if path.stem != "index")
    assert listed.index("first_five_minutes") < listed.index("rules") < listed.index("commands") < listed.index("proof")
    assert "\n  files " in out.partition("\nReference:\n")[0]


def test_page_missing_from_the_index_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "index.md").write_text("# All\n\n## Start\n\n- [Rules](rules.md): how\n- [Gone](gone.md)\n")
    (tmp_path / "rules.md").write_text("# Rules\n")
    (tmp_path / "new.md").write_text("# A new page\n")
    monkeypatch.setattr(help_command, "config_path", lambda name: tmp_path)
    status, out, _ = run()
    assert (status, out.splitlines()[:5]) == (0, ["Start:", "  rules  Rules", "", "More:", "  new    A new page"])


def test_index_links_to_every_page_and_only_pages() -> None:
    index = (ROOT / "docs" / "index.md").read_text("utf-8")
    links = re.findall(r"^- \[[^]]+\]\(([\w/]+\.md)\)", index, re.MULTILINE)
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")} - {"index.md"}
    assert set(links) == pages
    assert len(links) == len(set(links))


def test_a_reference_page_is_shown_by_its_name() -> None:
    assert run("graph_keys")[1].startswith("# Reference: graph keys\n")


def test_what_is_no_page_says_what_it_is() -> None:
    assert run("rulse") == (2, "", "no page is called rulse; did you mean `rules`?\n")
    assert run("status") == (2, "", "status is a command, explained by: camgraph status --help\n")


@pytest.mark.slow
def test_no_message_cites_a_file_that_an_installation_lacks() -> None:
    """`camgraph help PAGE` shows it everywhere; `docs/PAGE.md` is there in a checkout alone."""
    shipped = [path for package in ("pipeline", "stages") for path in (ROOT / package).rglob("*.py")]
    found = {f"{path}: {text}" for path in shipped for text in _texts(path) if _A_PAGE.search(text)}
    configs = {path.name for path in (ROOT / "configs").glob("*.yaml") if _A_PAGE.search(path.read_text("utf-8"))}
    assert (found, configs) == (set(), set())


def test_every_page_that_a_message_names_is_there() -> None:
    sources = [path for package in ("pipeline", "stages", "tools") for path in (ROOT / package).rglob("*.py")]
    texts = [path.read_text("utf-8") for path in [*sources, *(ROOT / "configs").glob("*.yaml"), ROOT / "README.md"]]
    named = {name for text in texts for name in re.findall(r"camgraph help ([a-z_]+)", text)}
    assert named >= {"rules", "no_events", "graph"}
    assert named <= {path.stem for path in (ROOT / "docs").rglob("*.md")}


def _texts(path: Path) -> Iterator[str]:
    """All texts of a module but its docstrings."""
    tree = ast.parse(path.read_text("utf-8"))
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield node.value
