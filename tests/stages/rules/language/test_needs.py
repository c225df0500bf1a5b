"""What is learnt from terms before Python is made of them."""

from __future__ import annotations

import math

import pytest

from camgraph.stages.rules.language.condition import compile_condition
from camgraph.stages.rules.language.needs import at_most_ns, costly, of_whom
from camgraph.stages.rules.language.terms import Truth

SECOND = 1_000_000_000


def truth(text: str) -> Truth:
    return compile_condition(text, "person", zones=["door"], lines=["gate"], words={"tall": "1bh"}).truth


@pytest.mark.parametrize(
    ("text", "most_ns"),
    [
        ("in door", math.inf),
        ("lost", 9 * SECOND),
        ("not lost", math.inf),
        ("lost for 2s", 7 * SECOND),
        ("lost while in door", 9 * SECOND),
        ("lost or in door", math.inf),
        ("lost and in door", 9 * SECOND),
        ("enters(door)", 1),
        ("crosses(gate) or lost", 9 * SECOND),
        ("was enters(door) within 3s", 3 * SECOND + 1),
        ("first in door then lost", 9 * SECOND),
        ("first in door then lost within 20s for 2s", 7 * SECOND),
        ("since(enters(door)) < 3s", math.inf),
    ],
)
def test_how_long_a_truth_can_hold(text: str, most_ns: float) -> None:
    assert at_most_ns(truth(text)) == most_ns


@pytest.mark.parametrize(
    ("text", "whom"),
    [
        *(("lost", "lost"), ("lost or gone", "lost"), ("lost while in door", "lost"), ("lost and 1 < 2", "lost")),
        *(("in door", "seen"), ("lean > 9deg for 2s", "seen"), ("score > 0.5 or not in door", "seen")),
        *(("beyond(nose)", "seen"), ("1 < 2 and enters(door)", "seen"), ("either(wrist.y < nose.y)", "seen")),
        *(("lost or in door", ""), ("not lost", ""), ("was in door within 2s", ""), ("running(other)", "")),
        *(("usual(lean, 9s) > lean", ""), ("first in door then lost", ""), ("1 < 2", "")),
    ],
)
def test_of_whom_a_truth_can_be(text: str, whom: str) -> None:
    assert of_whom(truth(text)) == whom


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("lean > 9deg and speed > 1h/s", 0),
        ("in door and not in door", 1),
        ("distance(nose, left_hip) > tall", 2),
        ("angle(nose, left_hip, left_knee) > 9deg or angle(nose, left_hip, left_knee) < 5deg", 1),
        ("distance(nose, left_hip) > 1px for 2s", 0),
        ("max(usual(hips.y, 9s), nose.y) > 9px", 0),
        ("abs(above(nose, hips) - 0.1bh) > 9px", 2),
    ],
)
def test_costly_values_that_a_program_computes_once(text: str, values: int) -> None:
    """Each different one; not those of cells, which may not have the present frame yet."""
    assert len(costly(truth(text))) == values
