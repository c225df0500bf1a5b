"""The values that decided about an incident, for people who do not know its rule."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camgraph.stages.sinks.delivery.measured_words import measured_words, reasons


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        (
            {"text": "score > 0.3", "left": 0.9, "right": 0.3},
            "How sure the model is that it is a person: 90%, and more than 30% is needed",
        ),
        (
            {"text": "lean > 60deg", "left": 74.14, "right": 60, "unit": "deg"},
            "How far the body leans: 74°, and more than 60° is needed",
        ),
        ({"text": "age > 1s", "left": 1.04, "right": 1.0, "unit": "s"},
         "Seen for: 1.04 s, and more than 1 s is needed"),
        ({"text": "dwell(bed) > 1min", "left": 3700.0, "right": 60.0, "unit": "s"},
         "Time in bed: 1 h 1 min, and more than 60 s is needed"),
        ({"text": "age > 5s", "left": 10**400, "right": 5.0, "unit": "s"},
         "Seen for: not known, and more than 5 s is needed"),
        ({"text": "crosses(กำแพง, leftward)", "holds": True}, "Went over กำแพง: yes"),
        ({"text": "step 2: enters(दरवाज़ा) within 2s", "left": 3.12, "unit": "s"}, "Came into दरवाज़ा 3.1 s earlier"),
        ({"text": "step 2: enters(bed) within 2s", "left": 3.12, "unit": "s"}, "Came into bed 3.1 s earlier"),
        ({"text": "age >= 1s", "left": 1.2, "right": 1.0, "unit": "s"}, "Seen for: 1.2 s, and at least 1 s is needed"),
        (
            {"text": "dwell(door_way, 5s) > 1min", "left": 61.4, "right": 60.0, "unit": "s"},
            "Time in door way: 61 s, and more than 60 s is needed",
        ),
        ({"text": "left_wrist.y < nose.y", "left": 101.0, "right": 133.2, "unit": "px"}, ""),
        ({"text": "first up then lying within 0.8s", "holds": True}, ""),
        ({"text": "lost while (was falling within 0.3s)", "holds": False}, ""),
        ({"text": "lying for 3s", "holds": True}, "Lying for 3s: yes"),
        ({"text": "step 1: up", "left": 4.2, "right": None, "unit": "s"}, "Up 4.2 s earlier"),
        ({"text": "step 2: lying and drop(hips.y, 1.3s) > 0.4bl within 0.8s", "left": 3.12, "unit": "s"},
         "Lying 3.1 s earlier"),
        ({"text": "step 2: lying or drop(hips.y, 1.3s) > 0.4bl", "left": 3.12, "unit": "s"}, ""),
        ({"text": "step 3: (lying or lost while lying) within 0.4s for 3s", "left": 0.0, "unit": "s"}, ""),
        ({"text": "step 3: turned_away within 0.4s for 3s", "left": 0.0, "unit": "s"}, "Turned away at that moment"),
        ({"text": "step 3: in wet_room and up", "left": None, "unit": "s"}, ""),
        ({"text": "lean > 60deg", "left": None, "right": 60, "unit": "deg"},
         "How far the body leans: not known, and more than 60° is needed"),
        ({"text": "people > 0", "left": 1, "right": 0}, "People in the picture: 1, and at least 1 is needed"),
        ({"text": "people > 10", "left": 12.0, "right": 10.0}, "People in the picture: 12, and at least 11 are needed"),
        ({"text": "people < 1", "left": 0, "right": 1}, "People in the picture: 0, and there must be none"),
        ({"text": "people == 0", "left": 0, "right": 0}, "People in the picture: 0, and there must be none"),
        ({"text": "people <= 2", "left": 2, "right": 2}, "People in the picture: 2, and at most 2 are needed"),
        ({"text": "people != 1", "left": 2, "right": 1}, "People in the picture: 2, and other than 1 is needed"),
        ({"text": "people > 2.5", "left": 3, "right": 2.5}, "People in the picture: 3, and more than 2.5 is needed"),
        ({"text": "count >= 4", "left": 5, "right": 4}, "People who fit: 5, and at least 4 are needed"),
        ({"text": "count(lying) > 1", "left": 2, "right": 1}, "People who fit lying: 2, and at least 2 are needed"),
        ({"text": "angle(shoulder, elbow, wrist) > 140deg (left)", "left": 154.2, "right": 140.0, "unit": "deg"},
         "Angle at left elbow: 154°, and more than 140° is needed"),
        ({"text": "angle(hips, left_knee, left_ankle) < 90deg", "left": 80.0, "right": 90.0, "unit": "deg"},
         "Angle at left knee: 80°, and less than 90° is needed"),
        ({"text": "in wet_room", "holds": True}, "In wet room: yes"),
        ({"text": "feet in lawn", "holds": True}, "In lawn: yes"),
        ({"text": "left_wrist in bed", "holds": True}, "Left wrist in bed: yes"),
        ({"text": "not in bed", "holds": False}, "Outside of bed: no"),
        ({"text": "crosses(gate, rightward)", "holds": True}, "Went over gate: yes"),
        ({"text": "raised_hand", "holds": None}, "Raised hand: not known"),
        ({"text": "limps(0.6)", "holds": True, "reported": {"left_step": 0.42, "why": "short steps", "sure": True}},
         "Limps(0.6): yes (left step 0.42, why short steps, sure yes)"),
        ({"text": "limps(0.6)", "reported": {"step": 12.0}}, "Limps(0.6) (step 12)"),
    ],
)  # fmt: skip
def test_a_condition_in_words(condition: dict[str, Any], words: str) -> None:
    assert measured_words(condition) == words


def test_what_did_not_hold_is_no_reason_and_none_is_said_twice() -> None:
    leans = {"text": "lean > 60deg", "left": 74.0, "right": 60.0, "unit": "deg"}
    conditions = [
        leans,
        {"text": "age > 9s", "left": 2.0, "right": 9.0, "unit": "s"},
        {"text": "age > 5s", "left": None, "right": 5.0, "unit": "s"},
        {"text": "speed > 1h/s", "left": 300.0, "right": 90.0, "unit": "px/s"},
        {"text": "in bed", "holds": False},
        leans,
    ]
    assert reasons(conditions[:3] + conditions[4:]) == ["How far the body leans: 74°, and more than 60° is needed"]
    assert reasons(conditions) == [], "one that held has no words: the others may only be exclusions"
    steps = [{"text": "first up then lying within 2s", "holds": True}, {"text": "step 1: up", "left": 4.0, "unit": "s"}]
    assert reasons(steps) == ["Up 4 s earlier"]


anything = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda one: st.lists(one) | st.dictionaries(st.text(), one),
)


@given(st.dictionaries(st.sampled_from(["text", "left", "right", "unit", "holds", "reported"]), anything))
def test_stages_of_others_may_say_what_they_like(condition: dict[str, Any]) -> None:
    assert isinstance(measured_words(condition), str)
    assert len(reasons([condition, condition])) <= 1
