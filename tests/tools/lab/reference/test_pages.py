"""The reference pages are those that the code describes, and the names on them are those that the code uses."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from camgraph.pipeline.graph.definition import EdgeEntry, GraphFile, StageEntry
from camgraph.pipeline.registry import find_stage, stage_names
from camgraph.tools.cli import COMMANDS
from camgraph.tools.lab.reference.__main__ import main
from camgraph.tools.lab.reference.counter_page import OF_THE_RUNTIME, meanings
from camgraph.tools.lab.reference.markdown import sentence, table
from camgraph.tools.lab.reference.pages import FOLDER, outdated, pages
from camgraph.tools.lab.reference.schema import setting_rows

ROOT = Path(__file__).parents[4]
_UNSEEN = {"events", "late", "merged", "cooldown", "snapshots.STATE", "bests.STATE", "clips.STATE"}
"""Counters whose names are not written in the call that counts."""
_OF_FILES = {"unreadable", "truncated", "too_much_memory"}
"""Reasons of `BadItem` in sources: they end the camera, and are no counters."""
_COUNTED = re.compile(r"(dropped|skipped|refused|unsent)\.[a-z_]+")
"""Texts that are counters wherever they stand."""


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


@pytest.mark.slow
def test_each_counter_of_the_code_is_declared_and_no_other() -> None:
    declared = set(meanings())
    counted = _counted_names("pipeline", "stages", "tools/service")
    assert {name for name in counted if not any(_fits(name, one) for one in declared)} == set()
    assert {name for name in declared if not any(_fits(name, one) for one in counted | _UNSEEN)} == set()


@pytest.mark.slow
def test_the_page_names_counters_of_stages_by_their_declarations() -> None:
    """Only the runtime's own stand in the writer of the page."""
    page = pages()["counters.md"]
    for name in stage_names("camgraph"):
        for counter, meaning in find_stage(name).counts.items():
            reason = re.sub(r"^(dropped|skipped)\.", "", counter)
            assert re.search(rf"^\| `{re.escape(reason)}` \|.*{re.escape(meaning)}", page, re.MULTILINE), counter
    used_by_runtime = _counted_names("pipeline")
    assert {name for name in OF_THE_RUNTIME if not any(_fits(name, one) for one in used_by_runtime)} == set()


def _fits(name: str, other: str) -> bool:
    """Whether they may be the same counter: capitals at the end of either stand for any text."""
    (beginning, _, last), (other_beginning, _, other_last) = name.rpartition("."), other.rpartition(".")
    return name == other or (beginning == other_beginning != "" and (last.isupper() or other_last.isupper()))


def _counted_names(*folders: str) -> set[str]:
    """The counters of the code in these folders, and the reasons of `BadItem`. `NAME` stands for a part that only a run
    knows.
    """
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*.py") if path.name != "testing.py"]
    trees = [ast.parse(path.read_text("utf-8")) for path in paths]
    everywhere = {name: text for tree in trees for name, text in _constants(tree)}
    found = {text for tree in trees for text in _counted_in(tree, {**everywhere, **dict(_constants(tree))})}
    return found - {"dropped.NAME"}  # the reasons of `BadItem` themselves


def _constants(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield from ((ast.unparse(target), node.value.value) for target in node.targets)


def _counted_in(tree: ast.Module, constants: Mapping[str, str]) -> Iterator[str]:
    for node in _outside_of_declarations(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _COUNTED.fullmatch(node.value):
            yield node.value
        elif isinstance(node, ast.Call):
            yield from _counted_by(node, constants)


def _outside_of_declarations(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.AnnAssign) and "Counts" in ast.unparse(child.annotation)):
            yield from _outside_of_declarations(child)


def _counted_by(call: ast.Call, constants: Mapping[str, str]) -> Iterator[str]:
    owner, _, name = ast.unparse(call.func).rpartition(".")
    if name == "BadItem":
        reasons = [reason for argument in call.args[:1] for reason in _texts(argument, constants)]
        yield from (f"dropped.{reason}" for reason in reasons if reason not in _OF_FILES)
    elif name == "_finished":  # of `EventSink`
        yield from (text for argument in call.args[1:] for text in _texts(argument, constants))
    elif (name == "count" and owner.endswith(("context", "counters", "self"))) or (
        name == "add" and owner.endswith("counters")
    ):
        yield from (text for argument in call.args[:1] for text in _texts(argument, constants))


def _texts(node: ast.AST, constants: Mapping[str, str]) -> Iterator[str]:
    """The values that an expression may have; none if its beginning is known to the run alone."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.Name(id=name) if name in constants:
            yield constants[name]
        case ast.IfExp(body=one, orelse=other):
            yield from (*_texts(one, constants), *_texts(other, constants))
        case ast.BoolOp(values=values):
            yield from (text for value in values for text in _texts(value, constants))
        case ast.BinOp(left=left):
            yield from (f"{text}NAME" for text in _texts(left, constants))
        case ast.FormattedValue(value=value):
            yield from _texts(value, constants)
        case ast.JoinedStr(values=[first, *rest]):
            ends = ["".join(_texts(part, constants)) or "NAME" for part in rest]
            yield from ("".join([text, *ends]) for text in _texts(first, constants))


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
