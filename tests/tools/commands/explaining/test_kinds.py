"""The ids of errors: each error that is raised has one, and each id has a text."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from camgraph_test_stages.terminals import on_a_terminal
from click.testing import CliRunner

from camgraph.pipeline import errors
from camgraph.tools.cli import main
from camgraph.tools.commands.explaining.kinds import Kind, kinds, topics
from camgraph.tools.display.screen import show_problem

ROOT = Path(__file__).resolve().parents[4]
PRODUCT = ("src/camgraph", "pipeline", "stages", "tools")
ASIDE = {"animator", "lab", "measuring"}
RAISED = {"UserError", "EnvironmentProblem", "Shortage", "Problem", "ProblemText"}
SERVICE = Path("tools/service")
OF_SERVICE = {"Unavailable", "NotThere", "failure", "_Refusal"}
"""Answers of the service: each has an id of its own, also where the class has one that fits other places."""


@pytest.fixture(scope="module")
def sources() -> list[tuple[Path, ast.Module]]:
    paths = [path for folder in PRODUCT for path in sorted((ROOT / folder).rglob("*.py"))]
    return [
        (path.relative_to(ROOT), ast.parse(path.read_text("utf-8"))) for path in paths if not ASIDE & set(path.parts)
    ]


def raised(path: Path, tree: ast.Module) -> Iterator[ast.Call]:
    """Calls of these classes, also where one of two is chosen; and of whatever is called `kind` and raised."""
    names = RAISED | OF_SERVICE if SERVICE in path.parents else RAISED
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            is_chosen = isinstance(node.func, ast.IfExp) and any(name in called for name in names)
            if called in names or is_chosen:
                yield node
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and ast.unparse(node.exc.func) == "kind":
            yield node.exc


def ids_in(tree: ast.Module) -> Iterator[str]:
    """Those that calls give and classes have."""
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "error_id" and isinstance(node.value, ast.Constant):
            yield str(node.value.value)
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "error_id":
            yield str(ast.literal_eval(node.value))
        elif isinstance(node, ast.AnnAssign) and node.value and ast.unparse(node.target) == "ERROR_IDS":
            yield from ast.literal_eval(node.value).values()


def test_every_error_that_is_raised_has_an_id(sources: list[tuple[Path, ast.Module]]) -> None:
    without = [
        f"{path}:{call.lineno}"
        for path, tree in sources
        for call in raised(path, tree)
        if not any(keyword.arg == "error_id" for keyword in call.keywords)
    ]
    assert without == []


def test_the_ids_of_errors_are_those_that_have_a_text(sources: list[tuple[Path, ast.Module]]) -> None:
    used = {one for _, tree in sources for one in ids_in(tree)}
    assert used == set(kinds())


@pytest.mark.parametrize("one", kinds().values(), ids=list(kinds()))
def test_a_text_says_why_and_what_to_do(one: Kind) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", one.id)
    assert one.do
    for text in (one.about, one.why):
        assert text[0].isupper()
        assert text.endswith(".")


def test_explain_says_what_an_id_means() -> None:
    told = CliRunner().invoke(main, ["explain", "shared-memory"])
    assert told.exit_code == 0
    assert told.output.startswith("shared-memory: Shared memory (/dev/shm) is too small.\n\nWhy: ")
    assert "- Docker: `--shm-size 2g`" in told.output


def test_explain_says_what_several_ids_mean() -> None:
    told = CliRunner().invoke(main, ["explain", "key-unknown", "graph-loop"]).output
    assert told.startswith("key-unknown: ")
    assert "\n\ngraph-loop: " in told


def test_what_is_known_is_explained_beside_what_is_not() -> None:
    done = CliRunner().invoke(main, ["explain", "key-unknown", "graph-lop", "quux", "key-unknown"])
    assert done.exit_code == errors.EXIT_USER
    assert done.stdout.count("key-unknown: ") == 1
    assert done.stderr.splitlines() == [
        "no error has the id graph-lop; did you mean `graph-loop`?",
        "no error has the id quux; `camgraph explain` lists them",
    ]


def test_explain_does_not_lead_back_to_itself() -> None:
    _, shown = on_a_terminal("explain", "quux")
    assert shown == "no error has the id quux; `camgraph explain` lists them\n"


@pytest.mark.parametrize("columns", [40, 200])
def test_a_text_fits_the_terminal(columns: int) -> None:
    _, shown = on_a_terminal("explain", "shared-memory", columns=columns)
    lines = shown.splitlines()
    assert max(map(len, lines)) <= min(columns, 100)
    assert " ".join(shown.split()) == " ".join(CliRunner().invoke(main, ["explain", "shared-memory"]).output.split())


def test_a_text_in_a_pipe_has_whole_lines() -> None:
    assert CliRunner().invoke(main, ["explain", "shared-memory"]).output.splitlines() == [
        *kinds()["shared-memory"].lines()
    ]


def test_explain_lists_all() -> None:
    told = CliRunner().invoke(main, ["explain"]).output
    assert [line.rstrip(":") for line in told.splitlines() if line and line[0] != " "] == list(topics())
    assert all(f"  {name} " in told for name in kinds())


@pytest.mark.parametrize(
    ("wrong", "advice"),
    [
        ("shard-memory", "did you mean `shared-memory`?"),
        ("unknown-key", "did you mean `key-unknown`?"),
        ("camera-unreachable", "did you mean `camera-lost`?"),
        ("camera-unreachabel", "did you mean `camera-lost`?"),
        ("camera-broken", "there are camera-address, camera-lost, "),
        ("camera", "there are camera-address, camera-lost, "),
        ("quux", "the id quux; `camgraph explain`"),
    ],
)
def test_an_id_that_there_is_not(wrong: str, advice: str) -> None:
    told = CliRunner().invoke(main, ["explain", wrong])
    assert told.exit_code == errors.EXIT_USER
    assert advice in told.output


def test_another_word_for_an_id_is_no_id_and_means_one_alone() -> None:
    words = [word for kind in kinds().values() for word in kind.also]
    assert words
    assert len(words) == len(set(words))
    assert not set(words) & set(kinds())


@pytest.mark.parametrize(("terminal", "is_log"), [(True, False), (False, True), (False, False)])
def test_an_error_names_its_id_on_a_terminal_and_in_a_log(
    terminal: bool, is_log: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    show_problem("it is full", errors.EXIT_ENVIRONMENT, "cannot-write", is_log=is_log)
    more = "more: camgraph explain cannot-write\n" if terminal or is_log else ""
    assert capsys.readouterr().err == f"it is full\n{more}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, {"error_id": "file-missing"}),
        (
            "version: 3\nkeys: 1",
            {"error_id": "graph-mistake", "error_ids": "setting-missing setting-value key-unknown"},
        ),
    ],
)
def test_an_error_names_its_ids_in_json(text: str | None, expected: dict[str, str], tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "g.yaml").write_text(text)
    words = [sys.executable, "-m", "camgraph", "run", "g.yaml", "--json-logs"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    [line] = done.stderr.splitlines()
    assert {key: value for key, value in json.loads(line).items() if key.startswith("error")} == expected
