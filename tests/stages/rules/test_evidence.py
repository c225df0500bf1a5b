"""The values that made a rule fire: each kind of value has a unit that events may have."""

from __future__ import annotations

import json
from typing import get_args

import numpy as np
import pytest

from camgraph.pipeline.testing import feed, opened, stamp
from camgraph.stages.events import Comparison
from camgraph.stages.messages import Tracks
from camgraph.stages.rules.evidence import UNITS, in_words
from camgraph.stages.rules.language.judge import Evidence
from camgraph.stages.rules.language.kinds import Kind
from camgraph.stages.rules.rules import Rules

WITHOUT_UNIT = {Kind.NUMBER, Kind.POINT, Kind.TRUTH, Kind.REPORTED}


def test_every_kind_has_a_unit_that_events_may_have() -> None:
    assert set(UNITS) == {kind.name.lower() for kind in Kind if kind not in WITHOUT_UNIT}
    [allowed, _] = get_args(Comparison.model_fields["unit"].annotation)
    assert set(UNITS.values()) == set(get_args(allowed))


@pytest.mark.parametrize(
    "when",
    [
        "swings(left_wrist.x, 0.01h) >= 0/s",
        "velocity(lean, 0.3s) > -1000deg/s",
        "velocity(nose.y) > -1000h/s",
        "since(age > 0s) >= 0s",
        "first age >= 0s then age > 0.1s within 1s",
        "change(lean) >= 0deg within 1s",
        "box.height / box.width > 0",
    ],
)
def test_events_of_every_kind_of_value_are_made(when: str, tmp_path: object) -> None:
    rng = np.random.default_rng(0)
    people = []
    for seq in range(40):
        keypoints = np.ones((1, 17, 3), np.float32)
        keypoints[0, :, :2] = rng.uniform(0, 100, (17, 2))
        boxes = np.array([[0, 0, 100, 100]], np.float32)
        people.append(
            Tracks(
                stamp(seq), boxes, np.ones(1, np.float32), keypoints, (200, 200), np.zeros(1, np.int64),
                ids=np.array([1], np.int64),
            )
        )  # fmt: skip
    with opened(Rules, {"rules": [{"id": "a", "when": when}]}, folder=tmp_path) as stage:
        events = feed(stage, people, end=True)
    assert events, "the rule fires, and its event is valid"


@pytest.mark.parametrize(
    ("part", "told"),
    [
        (Evidence("in door", "truth", True), "in door"),
        (Evidence("in door", "truth", False), "not: in door"),
        (Evidence("waves", "truth", None), "unknown: waves"),
        (Evidence("limps()", "reported", {"ratio": 0.41666}), "limps(): ratio 0.417"),
        (Evidence("limps()", "reported", {"foot": "left", "sure": True}), "limps(): foot left, sure true"),
    ],
)  # fmt: skip
def test_truths_and_reports_in_words(part: Evidence, told: str) -> None:
    assert in_words([part]) == told


def test_an_event_of_a_rule_with_an_unknown_part_is_made(tmp_path: object) -> None:
    """`standing` is a word that needs joints, and no joint is known."""
    keypoints = np.zeros((1, 17, 3), np.float32)
    boxes = np.array([[0, 0, 100, 100]], np.float32)
    person = Tracks(
        stamp(),
        boxes,
        np.ones(1, np.float32),
        keypoints,
        (200, 200),
        np.zeros(1, np.int64),
        ids=np.array([1], np.int64),
    )
    rule = {"id": "a", "when": "standing or score > 0.5"}
    with opened(Rules, {"rules": [rule]}, folder=tmp_path) as stage:
        [event] = feed(stage, [person])
    unknown, known = json.loads(event.body)["data"]["evidence"]["conditions"]
    assert unknown == {"text": "standing"}
    assert known == {"text": "score > 0.5", "left": 1.0, "right": 0.5}
