"""Text that somebody else wrote."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camgraph.pipeline.errors import Problem
from camgraph.pipeline.foreign_text import printable_json
from camgraph.stages.vision.foreign_text import shown


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("person (größer, 人)", "person (größer, 人)"),
        ("per\x1b[31mson\x07", r"per\x1b[31mson\x07"),
        ("a\nb\tc\x00", r"a\nb\tc\x00"),
        ("\x9b2J\u202egnp.exe\u2028", r"\x9b2J\u202egnp.exe\u2028"),
        ("\ud800", r"\ud800"),
    ],
)
def test_what_does_not_print_is_escaped(text: str, expected: str) -> None:
    assert shown(text) == expected


@given(st.text())
def test_what_is_shown_prints(text: str) -> None:
    assert shown(text).isprintable()
    assert shown(shown(text)) == shown(text)


@given(st.text())
def test_json_of_foreign_text_prints_and_means_the_same(text: str) -> None:
    line = printable_json(json.dumps({text: text}, ensure_ascii=False))
    assert line.isprintable()
    assert json.loads(line) == {text: text}


def test_a_problem_is_one_line_whatever_a_key_holds() -> None:
    problem = Problem("g.yaml", 1, 2, "unknown key `a\ng.yaml:1:1: no mistakes`")
    assert str(problem) == r"g.yaml:1:2: unknown key `a\ng.yaml:1:1: no mistakes`"
