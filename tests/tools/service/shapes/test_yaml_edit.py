"""One value of a YAML file is changed, and everything else stays, letter for letter."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from camgraph.pipeline.errors import UserError
from camgraph.tools.service.shapes.yaml_edit import with_value, without_value

BLOCK = """\
# The night shift's rules.
version: 1
zones:      # drawn on the page
  bed: [[0, 0], [0.5, 0.5], [0, 1]]   # by the window
  # the door of room 3
  door:
    - [0.1, 0.2]
    - [0.3, 0.2]   # the hinge
    - [0.3, 0.9]

rules:
  - {id: fall, when: "in bed"}  # all night
"""
CORNERS = [[0.25, 0.5], [1, 0.5], [1, 1]]


@pytest.mark.parametrize(
    ("text", "path", "changed"),
    [
        (BLOCK, ["zones", "bed"], ("[[0, 0], [0.5, 0.5], [0, 1]]", "[[0.25, 0.5], [1, 0.5], [1, 1]]")),
        (
            BLOCK,
            ["zones", "door"],
            ("- [0.1, 0.2]\n    - [0.3, 0.2]   # the hinge\n    - [0.3, 0.9]", "[[0.25, 0.5], [1, 0.5], [1, 1]]"),
        ),
        (BLOCK, ["zones", "new"], ("    - [0.3, 0.9]\n", "    - [0.3, 0.9]\n  new: [[0.25, 0.5], [1, 0.5], [1, 1]]\n")),
        ("a: {b: 1}", ["a", "c"], ("{b: 1}", "{b: 1, c: [[0.25, 0.5], [1, 0.5], [1, 1]]}")),
        ("a: {b: 1, }", ["a", "c"], ("{b: 1, }", "{b: 1, c: [[0.25, 0.5], [1, 0.5], [1, 1]]}")),
        ("a: {}\nb: 1\n", ["a", "c"], ("{}", "{c: [[0.25, 0.5], [1, 0.5], [1, 1]]}")),
        ("a:  # nothing\nb: 1\n", ["a", "c"], ("a:", "a: {c: [[0.25, 0.5], [1, 0.5], [1, 1]]}")),
        ("a: 1", ["z", "Süd", "front"], ("a: 1", "a: 1\nz: {Süd: {front: [[0.25, 0.5], [1, 0.5], [1, 1]]}}\n")),
        ("a: 1\n# end\n", ["z", "*"], ("a: 1\n", 'a: 1\nz: {"*": [[0.25, 0.5], [1, 0.5], [1, 1]]}\n')),
        ("a: 1\r\nb: 1\r\n", ["c"], ("b: 1\r\n", "b: 1\r\nc: [[0.25, 0.5], [1, 0.5], [1, 1]]\r\n")),
        ("a: {\n  b: 1,\n  c: 2 }\n", ["a", "b"], ("b: 1", "b: [[0.25, 0.5], [1, 0.5], [1, 1]]")),
    ],
)
def test_one_value_is_set(text: str, path: list[str], changed: tuple[str, str]) -> None:
    assert text.count(changed[0]) == 1
    assert with_value(text, path, CORNERS) == text.replace(*changed)


@pytest.mark.parametrize(
    ("text", "path", "left"),
    [
        (BLOCK, ["zones", "bed"], BLOCK.replace("  bed: [[0, 0], [0.5, 0.5], [0, 1]]   # by the window\n", "")),
        ("a: {b: 1, c: 2, d: 3}", ["a", "c"], "a: {b: 1, d: 3}"),
        ("a: {b: 1, c: 2, d: 3}", ["a", "b"], "a: {c: 2, d: 3}"),
        ("a: {b: 1, c: 2, d: 3}", ["a", "d"], "a: {b: 1, c: 2}"),
        ("a: {b: 1}\nc: 2\n", ["a", "b"], "a: {}\nc: 2\n"),
        ("a:\n  b: 1\nc: 2\n", ["a", "b"], "a:\n  {}\nc: 2\n"),
    ],
)
def test_one_value_is_removed(text: str, path: list[str], left: str) -> None:
    assert without_value(text, path) == left


@pytest.mark.parametrize(
    "text",
    [
        "a: &x {b: 1}\nc: *x\n",
        "a: 5\n",
        "[1, 2]",
        "a: {b: 1",
        "a: &x\n  b: 1\nd: {<<: *x, e: 1}\n",
        "a: {}\n2026-01-01: a date as a key\n",
        "a: {}\nc: &x [*x]\n",
    ],
)
def test_what_cannot_be_changed_alone_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="with an editor"):
        with_value(text, ["a", "b"], CORNERS)


NAMES = st.sampled_from(["a", "b", "on", "1", "x y", "Süd", "a:b", "#", "~", "null", "-"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


@given(data=st.dictionaries(NAMES, VALUES, min_size=1, max_size=4), path=st.lists(NAMES, min_size=1, max_size=3),
       style=st.sampled_from([None, True, False]))  # fmt: skip
def test_whatever_is_written_only_that_value_differs(data: dict[str, Any], path: list[str], style: bool | None) -> None:
    text = yaml.safe_dump(data, default_flow_style=style, allow_unicode=True)
    try:
        changed = with_value(text, path, CORNERS)
    except UserError:
        return
    wanted: Any = yaml.safe_load(text)
    place = wanted
    for name in path[:-1]:
        if place.get(name) is None:
            place[name] = {}
        place = place[name]
    place[path[-1]] = CORNERS
    assert yaml.safe_load(changed) == wanted
    if path[0] not in data:
        assert set(text.splitlines()) - {"}"} <= set(changed.splitlines()) or style is not False
