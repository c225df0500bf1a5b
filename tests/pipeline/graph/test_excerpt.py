"""The line of a mistake, with a caret: below the right letter, short, and never with a secret."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camgraph.pipeline.errors import GraphError
from camgraph.pipeline.graph.yaml_source import excerpt, lines_of, load


@pytest.mark.parametrize(
    ("line", "column", "shown"),
    [
        ("  fps: ten", 8, ["    fps: ten", "         ^"]),
        ("\tfps: ten", 7, ["    fps: ten", "         ^"]),
        ("入口: ten", 5, ["    入口: ten", "          ^"]),
        ("e\u0301: ten", 5, ["    e\u0301: ten", "       ^"]),
        ("a\x1b[2J: 1", 7, ["    a\\x1b[2J: 1", "             ^"]),
        ("fps:", 5, ["    fps:", "        ^"]),
    ],
    ids=["indented", "tab", "wide letters", "a mark", "an escape", "at the end"],
)
def test_the_caret_stands_below_the_mistake(line: str, column: int, shown: list[str]) -> None:
    assert excerpt(line, column).split("\n") == shown


@pytest.mark.parametrize("at", [0, 30, 300, 900])
def test_of_a_long_line_the_part_around_the_mistake_is_shown(at: int) -> None:
    line = "x" * at + "!" + "y" * (900 - at)
    above, below = excerpt(line, at + 1).split("\n")
    assert above[below.index("^")] == "!"
    assert len(above) < 120


@pytest.mark.parametrize(
    "line",
    [
        "url: rtsp://admin:hunter2@10.0.0.1/x",
        "url: http://10.0.0.1/x?token=hunter2",
        "password: hunter2",
        "with: {api_key: hunter2, size: 3}",
    ],
)
def test_a_line_with_a_secret_is_not_shown(line: str) -> None:
    assert excerpt(line, 3) == ""


def test_a_line_with_the_value_of_a_variable_is_not_shown() -> None:
    source = load("url: rtsp://a:${PW}@h/x\nname: hunter2\nfps: ten\n", "f", {"PW": "hunter2"})
    assert source.problem(("name",), "wrong").excerpt == ""
    assert source.problem(("fps",), "wrong").excerpt == "    fps: ten\n         ^"


def test_text_that_is_no_yaml_has_an_excerpt_too() -> None:
    with pytest.raises(GraphError) as caught:
        load("a: 1\nb: {c\n", "f")
    assert caught.value.with_excerpts.count("\n") == 2


@given(st.text(max_size=200), st.integers(1, 300))
def test_an_excerpt_of_any_line_is_two_lines(line: str, column: int) -> None:
    for row in lines_of(line):
        assert excerpt(row, column).count("\n") in (0, 1)
