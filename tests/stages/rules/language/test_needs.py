"""What is learnt from terms before Python is made of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

from camgraph.pipeline.errors import GraphError
from camgraph.stages.messages import Tracks
from camgraph.stages.rules.language.condition import compile_condition
from camgraph.stages.rules.language.needs import at_most_ns, costly, of_whom, without_joints
from camgraph.stages.rules.language.terms import Truth
from camgraph.stages.rules.onlooker import Onlooker
from camgraph.stages.rules.rule_set import examined_rules
from camgraph.stages.testing import tracks
from camgraph.tools.lab.benchmarks.false_alarms import asked
from camgraph.tools.lab.proofs import fuzz_rules

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


@pytest.mark.parametrize(
    ("text", "true", "false"),
    [
        ("box.width > box.height", True, True),
        ("nose.y < hips.y", False, False),
        ("score > 0.5 and nose.y < hips.y", False, True),
        ("score > 0.5 or nose.y < hips.y", True, False),
        ("not (score > 0.5 and nose.y < hips.y)", True, False),
        ("nose.c > 0.3", False, False),
        ("looks_like(fall) > 0.5", False, False),
        ("above(left_wrist, nose) > 0.1h", False, False),
        ("body_height > 100px", True, True),
        ("total(nose.y < hips.y, 1s) > 0.2s", False, True),
        ("total(nose.y < hips.y, 1s) < 0.2s", True, False),
        ("total(score > 0.5, 1s) > 0.2s", True, True),
        ("was nose.y < hips.y within 1s", False, False),
        ("drop(nose.y, 1s) > 0.1h", False, False),
        ("drop(box.top, 1s) > 0.1h", True, True),
        ("first score > 0.5 then nose.y < hips.y within 2s", False, True),
        ("in door", True, True),
        ("lost while nose.y < hips.y", False, True),
        ("lost", True, True),
        ("left_wrist in door", False, False),
    ],
)
def test_what_boxes_alone_can_show(text: str, true: bool, false: bool) -> None:
    assert without_joints(truth(text)) == (true, false)


def boxes_alone() -> Iterator[Tracks]:
    """One runs, one falls wide and stays down, one crouches and gets up, some stand together, one goes."""
    for seq in range(120):
        is_down, is_low = seq > 40, 30 < seq < 60
        people = {
            1: (40 + 20 * seq, 100, 90 + 20 * seq, 300),
            2: (300, 260, 480, 320) if is_down else (300, 120, 360, 320),
        }
        people[3] = (600, 230 if is_low else 120, 670, 320)
        people |= {4 + n: (760 + 50 * n, 110, 810 + 50 * n, 310) for n in range(5)}
        if seq < 70:
            people[9] = (200 + 5 * seq, 150, 240 + 5 * seq, 290)
        nothing = np.zeros((len(people), 0, 3), np.float32)
        yield replace(tracks(people, seq, frame_size=(3000, 400)), keypoints=nothing, skeleton="kpts-0")


def test_rules_that_need_joints_never_fire_of_boxes() -> None:
    """Of the library, and of files of rules made at random; the others do."""
    texts = ["version: 1\nrules:\n" + "".join(f"  - {{use: {name}}}\n" for name in asked())]
    texts += [fuzz_rules.case_of(5, number) for number in range(40)]
    fired: set[str] = set()
    for text in texts:
        with suppress(GraphError):
            rules, _ = examined_rules(text, "rules.yaml")
            if rules is None:
                continue
            onlooker = Onlooker(rules)
            for item in boxes_alone():
                for one in onlooker.judge(item).firing:
                    same = [ready.rule for ready in rules.rules.values() if ready.action == one.action]
                    assert not all(rule.needs_joints for rule in same), (text, one)
                    fired.add(one.action)
    assert len(fired) > 5
