"""Events of somebody else's stage: the first part that is wrong is named, with the form that it should have."""

from __future__ import annotations

from typing import Any

import pytest

from camgraph.stages.sinks.footage.incident_event import why_unusable

FRAME = {"epoch": 0, "pts": 3, "time_base": [1, 1000], "width": 320, "height": 240}
PERSON = {"track_id": 3, "bbox": [1, 2, 3.5, 4], "score": 0.9, "keypoints": [1.0, 2.0, 0.5] * 17}
INCIDENT = {
    "incident": "0f" * 16,
    "phase": "start",
    "camera": "front",
    "action": "fall",
    "start_time": "2026-11-23T21:03:11.000Z",
    "frame": FRAME,
}
RATIO = "data.frame.time_base: expected [numerator, denominator], such as [1, 90000], got "


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"people": [PERSON, PERSON], "heads": [[1, 2, 3, 4]], "duration_s": 2.5, "last_seen": FRAME},
        {"people": None, "last_seen": None, "heads": None},
        {"frame": {}},
        {"frame": {"epoch": "x", "pts": None}},
        {"rule": "anything"},
    ],
)
def test_events_with_all_that_is_needed_are_usable(more: dict[str, Any]) -> None:
    assert why_unusable({"data": INCIDENT | more}) == ""


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"frame": FRAME | {"time_base": "1/1000"}}, RATIO + '"1/1000"'),
        ({"frame": FRAME | {"time_base": [0, 1]}}, RATIO + "[0, 1]"),
        ({"last_seen": FRAME | {"pts": 1.5}}, "data.last_seen.pts: expected a whole number, got 1.5"),
        ({"frame": FRAME | {"epoch": True}}, "data.frame.epoch: expected a whole number, got true"),
        ({"frame": FRAME | {"width": "320"}}, 'data.frame.width and height: expected numbers, got ["320", 240]'),
        ({"frame": None}, "data.frame: expected an object with epoch, pts and time_base, got nothing"),
        ({"incident": "../../x"}, 'data.incident: expected 8 to 64 digits of 0-9 and a-f, got "../../x"'),
        ({"incident": 7}, "data.incident: expected 8 to 64 digits of 0-9 and a-f, got 7"),
        ({"phase": ["end"]}, 'data.phase: expected one of start, update, end, single, got ["end"]'),
        ({"camera": ""}, 'data.camera: expected a text, got ""'),
        ({"start_time": 12}, "data.start_time: expected a time such as 2026-11-23T21:03:11.000Z, got 12"),
        ({"heads": [[1, 2, 3]]}, "data.heads: expected a list of [x1, y1, x2, y2], got [[1, 2, 3]]"),
        ({"duration_s": "2 s"}, 'data.duration_s: expected a number, got "2 s"'),
    ],
)  # fmt: skip
def test_the_first_wrong_part_is_named_with_its_form(wrong: dict[str, Any], why: str) -> None:
    assert why_unusable({"data": INCIDENT | wrong}) == why


@pytest.mark.parametrize(
    "people",
    [
        {"track_id": 1},
        [3],
        [{**PERSON, "bbox": [1, 2, 3]}],
        [{**PERSON, "score": None}],
        [{**PERSON, "keypoints": [1, 2]}],
        [PERSON, {**PERSON, "keypoints": [1, 2, 3]}],
        [{**PERSON, "track_id": "3"}],
    ],
)
def test_people_in_another_form_are_refused(people: Any) -> None:
    assert why_unusable({"data": INCIDENT | {"people": people}}).startswith(
        "data.people: expected a list of objects, each with track_id, bbox ([x1, y1, x2, y2]), score and keypoints"
    )


@pytest.mark.parametrize("body", [{}, {"data": None}, {"data": [1]}])
def test_a_body_without_data_is_refused(body: dict[str, Any]) -> None:
    assert why_unusable(body).startswith("data: expected an object, got ")
