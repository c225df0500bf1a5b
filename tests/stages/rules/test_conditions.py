"""The declaration of conditions in Python."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest

from camgraph.stages.rules.conditions import (
    DECLARED,
    Declared,
    Degrees,
    Joint,
    Parameter,
    Past,
    Pixels,
    Seconds,
    condition,
)


def test_parameters_are_read_from_the_signature() -> None:
    @condition(past_s=2, gives="number", every_s=0.5)
    def example(past: Past, joint: Joint, side: Literal["a", "b"], by: Pixels = 1, t: Seconds = 2, n: int = 1) -> float:
        return 0.0

    assert getattr(example, DECLARED) == Declared(
        2,
        "number",
        0.5,
        (
            Parameter("joint", "joint", True),
            Parameter("side", "word", True, ("a", "b")),
            Parameter("by", "length", False),
            Parameter("t", "time", False),
            Parameter("n", "number", False),
        ),
    )


IMPOSSIBLE = [{"past_s": 0}, {"past_s": 601}, {"past_s": 1, "every_s": -1}, {"past_s": 1, "gives": "x"}]


@pytest.mark.parametrize("given", IMPOSSIBLE)
def test_impossible_times_are_refused(given: Any) -> None:
    with pytest.raises(ValueError, match="expected"):
        condition(**given)


def no_past() -> None: ...
def only_keywords(past: Past, *, by: float) -> None: ...
def any_number(past: Past, *by: float) -> None: ...
def a_list(past: Past, by: list[float]) -> None: ...
def two_words(past: Past, by: Literal["a b"]) -> None: ...
def nine(past: Past, a: Degrees, b: int, c: int, d: int, e: int, f: int, g: int, h: int, i: int) -> None: ...


@pytest.mark.parametrize("function", [no_past, only_keywords, any_number, a_list, two_words, nine])
def test_functions_that_no_rule_could_call_are_refused(function: Any) -> None:
    with pytest.raises(TypeError, match=f"{function.__name__}: "):
        condition(past_s=1)(function)


def test_a_past_knows_its_length_and_its_joints() -> None:
    keypoints = np.arange(2 * 17 * 3, dtype=np.float32).reshape(2, 17, 3)
    boxes = np.array([[0, 0, 10, 40], [0, 0, 10, 50]], np.float32)
    past = Past(np.array([-0.5, 0.0]), boxes, np.ones(2, np.float32), keypoints, (640, 480))
    assert (len(past), past.seconds, past.height) == (2, 0.5, 50.0)
    assert np.array_equal(past.joint("left_wrist"), keypoints[:, 9])
