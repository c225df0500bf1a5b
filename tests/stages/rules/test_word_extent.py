"""Words that use words: how much work a file makes is known before any of it is done."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camgraph.stages.rules.language.expression import ExpressionError
from camgraph.stages.rules.rule_set import examined_rules
from camgraph.stages.rules.word_extent import MOST_DEEP, Budget, Extent, extent_of, extents

NAMES = [f"w{n}" for n in range(8)]


def slow_extent(text: str, words: dict[str, str], above: tuple[str, ...] = ()) -> Extent:
    used = [slow_extent(words[name], words, (*above, name)) for name in text.split() if name in words]
    return Extent(len(text) + sum(one.chars for one in used), 1 + max((one.depth for one in used), default=0))


@given(st.lists(st.lists(st.integers(0, 9), max_size=3), min_size=8, max_size=8))
def test_extents_are_those_of_an_expansion(uses: list[list[int]]) -> None:
    # A word uses later ones only: no circles.
    words = {name: " ".join(f"w{n + 1 + use}" for use in uses[n]) for n, name in enumerate(NAMES)}
    assert extents(words) == {name: slow_extent(text, words) for name, text in words.items()}
    assert extent_of("w0 w1", extents(words)) == slow_extent("w0 w1", words)


def test_circles_end() -> None:
    assert set(extents({"a": "b and a", "b": "c", "c": "a"})) == {"a", "b", "c"}


def file_of(words: dict[str, str], when: str = "w0") -> str:
    lines = "".join(f"  {name}: {text}\n" for name, text in words.items())
    return f"define:\n{lines}rules: [{{id: r, when: {when}}}]\n"


@pytest.mark.parametrize(
    ("words", "line", "why"),
    [
        ({f"w{n}": f"w{n + 1}" for n in range(2000)} | {"w2000": "score > 0"}, 1972, f"more than {MOST_DEEP} words"),
        (
            {f"w{n}": f"w{n + 1} and w{n + 1}" for n in range(25)} | {"w25": "score > 0"},
            17,
            "longer than 20,000 characters",
        ),
    ],
    ids=["a chain", "doubling"],
)
def test_too_much_is_one_mistake_and_no_work(words: dict[str, str], line: int, why: str) -> None:
    _, problems = examined_rules(file_of(words), "rules.yaml")
    assert [(problem.line, why in str(problem)) for problem in problems] == [(line, True)]


def test_a_file_has_a_budget() -> None:
    budget = Budget(extents({"w": "x" * 400_000}))
    budget.take("w > 1", "person")
    budget.take("w > 1", "person")
    budget.take("w > 2", "person")
    with pytest.raises(ExpressionError, match="longer than 1,000,000 characters"):
        budget.take("w > 3", "person")
