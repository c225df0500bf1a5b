"""The reference pages are those that the code describes, and the names on them are those that the code uses."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from pipeline.graph.definition import EdgeEntry, GraphFile, StageEntry
from tools.cli import COMMANDS
from tools.reference.__main__ import main
from tools.reference.counter_page import DROPS, OTHERS, SKIPS
from tools.reference.markdown import sentence, table
from tools.reference.pages import FOLDER, outdated, pages
from tools.reference.schema import setting_rows

ROOT = Path(__file__).parents[3]
_OF_THE_OUTBOX = {"letters_discarded", "events", "late"}
_OF_MERGING = {"merged", "cooldown"}
"""Counters whose names are not written in the call that counts."""
_OF_FILES = {"unreadable", "truncated", "too_much_memory"}
"""Reasons of `BadItem` in sources: they end the camera, and are no counters."""


def test_the_pages_are_up_to_date() -> None:
    assert outdated(ROOT / FOLDER) == [], "run `make reference`"


def test_a_changed_a_missing_and_a_strange_page_are_out_of_date(tmp_path: Path) -> None:
    for name, text in pages().items():
        (tmp_path / name).write_text(text, "utf-8")
    assert outdated(tmp_path) == []
    (tmp_path / "events.md").write_text("# Reference: events\n")
    (tmp_path / "stages.md").unlink()
    (tmp_path / "other.md").write_text("# Other\n")
    assert outdated(tmp_path) == ["events.md", "other.md", "stages.md"]


def test_check_writes_nothing_and_passes() -> None:
    result = CliRunner().invoke(main, ["--check"])
    assert (result.exit_code, result.output) == (0, "")


def test_each_key_of_a_graph_has_a_row_with_a_meaning() -> None:
    page = pages()["graph_keys.md"]
    for model in (GraphFile, StageEntry, EdgeEntry):
        for name, field in model.model_fields.items():
            row = re.search(rf"^\| `{field.alias or name}` \|.*\| (\S.*) \|$", page, re.MULTILINE)
            assert row, name


def test_each_command_has_a_section_also_those_within_groups() -> None:
    page = pages()["commands.md"]
    sections = set(re.findall(r"^## camgraph (.+)$", page, re.MULTILINE))
    assert sections >= {*COMMANDS, "cameras add", "model quantize", "assets pull", "stages new"}
    assert "`--env-file FILE`" in page


def test_each_counter_of_the_code_is_on_the_page_and_no_other() -> None:
    used = set(_counters())
    assert {name.removeprefix("dropped.") for name in used if name.startswith("dropped.")} == set(DROPS)
    assert {name.removeprefix("skipped.") for name in used if name.startswith("skipped.")} == set(SKIPS)
    assert {name for name in used if "." not in name} | _OF_THE_OUTBOX | _OF_MERGING == set(OTHERS)


def _counters() -> Iterator[str]:
    """Names of counters that stand in the code as texts, and the reasons of `BadItem`."""
    for path in (path for top in ("pipeline", "stages") for path in (ROOT / top).rglob("*.py")):
        if path.name == "testing.py":
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                if re.fullmatch(r"(dropped|skipped)\.[a-z_]+", node.value):
                    yield node.value
            elif isinstance(node, ast.Call):
                yield from _counted(node)


def _counted(call: ast.Call) -> Iterator[str]:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    owner = ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    texts = [node.value for arg in call.args[:1] for node in ast.walk(arg) if isinstance(node, ast.Constant)]
    reasons = [text for text in texts if isinstance(text, str) and re.fullmatch("[a-z_]+", text)]
    if name == "BadItem":
        yield from (f"dropped.{reason}" for reason in reasons if reason not in _OF_FILES)
    elif name in ("add", "count") and owner.endswith(("context", "counters")):
        yield from reasons


def test_links_of_the_pages_lead_somewhere() -> None:
    for name, text in pages().items():
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
            assert (ROOT / FOLDER / target).exists(), f"{name}: {target}"


def test_settings_within_settings_are_rows_of_their_own() -> None:
    schema = {
        "properties": {
            "inner": {"$ref": "#/$defs/Inner", "default": None},
            "least": {"type": "number", "minimum": 0, "maximum": 2, "default": 0.5, "description": "A share"},
            "kind": {"anyOf": [{"enum": ["a", "b"]}, {"type": "null"}], "default": None},
        },
        "required": [],
        "$defs": {"Inner": {"properties": {"n": {"type": "integer", "exclusiveMinimum": 1}}, "required": ["n"]}},
    }
    assert list(setting_rows(schema, schema)) == [
        ("`inner`", "settings", "", ""),
        ("`inner.n`", "integer, above 1", "required", ""),
        ("`least`", "number, 0 to 2", "`0.5`", "A share."),
        ("`kind`", "`a`, `b`", "", ""),
    ]


@pytest.mark.parametrize(("text", "expected"), [("", ""), ("a  share", "a share."), ("Why?", "Why?"), ("So.", "So.")])
def test_a_description_becomes_a_sentence(text: str, expected: str) -> None:
    assert sentence(text) == expected


def test_a_cell_holds_no_bar_no_tag_and_no_line_break() -> None:
    assert list(table(["a"], [["x|y\n<b> `<c>`"]])) == ["| a |", "|---|", "| x\\|y &lt;b> `<c>` |"]


def test_no_option_is_without_a_meaning() -> None:
    page = pages()["commands.md"]
    assert [line for line in page.splitlines() if line.startswith("| `-") and line.endswith("|  |")] == []
