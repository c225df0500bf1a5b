"""The table of functions: what it says of each is what conditions do."""

from __future__ import annotations

import re

import pytest

from camgraph.stages.rules.language.cells import CELLS
from camgraph.stages.rules.language.condition import Condition, compile_condition
from camgraph.stages.rules.language.expression import ExpressionError
from camgraph.stages.rules.language.functions import FUNCTIONS

EXAMPLES = [(name, call) for name, one in FUNCTIONS.items() for call in re.findall(rf"{name}\([^)]*\)", one.example)]


def compiled(text: str) -> Condition:
    return compile_condition(text, "person", zones=["door"], lines=["gate"])


def test_each_function_has_an_example() -> None:
    assert {name for name, _ in EXAMPLES} == set(FUNCTIONS)


@pytest.mark.parametrize(("name", "call"), EXAMPLES)
def test_an_example_means_something(name: str, call: str) -> None:
    """A truth by itself; a value can be compared with itself."""
    try:
        condition = compiled(call)
    except ExpressionError:
        condition = compiled(f"{call} == {call}")
    cell = FUNCTIONS[name].cell
    assert [one.kind for one in condition.cells] == ([cell] if cell else [])
    assert cell in ("", *CELLS)


@pytest.mark.parametrize("name", [name for name, one in FUNCTIONS.items() if one.arguments])
def test_too_few_and_too_many_values_are_told_with_the_example(name: str) -> None:
    least, most = FUNCTIONS[name].arguments or (0, 0)
    for count in {least - 1, most + 1}:
        with pytest.raises(ExpressionError) as caught:
            compiled(f"{name}({', '.join(['1s'] * count)}) > 0")
        assert str(caught.value) == f"expected {FUNCTIONS[name].example}"


@pytest.mark.parametrize("name", [name for name, one in FUNCTIONS.items() if one.window_at])
def test_a_window_may_stand_behind_the_comparison(name: str) -> None:
    value = {"speed": "left_wrist", "swings": "left_wrist.x, 0.3bl"}.get(name, "hips.y")
    bare, full = f"{name}({value})", f"{name}({value}, 5s)"
    texts = (f"{bare} == {bare}", f"{bare} == {bare} within 5s", f"{full} == {full}")
    windows_ns = [cell.times[0] for text in texts for cell in compiled(text).cells]
    assert windows_ns == [FUNCTIONS[name].usual_ns, 5_000_000_000, 5_000_000_000]
