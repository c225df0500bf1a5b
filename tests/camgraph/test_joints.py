"""What programs get of people: joints by name, the times of their frames, and the tracks that they continue."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import numpy as np
import pytest

from camgraph.events import event_of
from camgraph.joints import Joint, joint
from camgraph.pictures import frame_of
from camgraph.pipeline.testing import stamp
from camgraph.stages.messages import Tracks
from camgraph.stages.sinks.handover.parcel import Parcel, tracks_parcel

JOINTS = np.arange(51, dtype=np.float32).reshape(17, 3)


def test_a_joint_has_a_name() -> None:
    assert joint(JOINTS, "coco-17", "nose") == Joint(0, 1, 2)
    assert joint(JOINTS, "coco-17", "right_ankle") == Joint(48, 49, 50)


@pytest.mark.parametrize(
    ("skeleton", "name", "told"),
    [
        ("coco-17", "left_wirst", "did you mean `left_wrist`?"),
        ("hand-21", "thumb", "the joints of hand-21 have no names"),
    ],
)
def test_a_name_that_no_joint_has_is_a_mistake(skeleton: str, name: str, told: str) -> None:
    with pytest.raises(ValueError, match="no joint is called") as mistake:
        joint(JOINTS, skeleton, name)
    assert told in str(mistake.value)


def test_a_frame_has_its_people_and_times() -> None:
    boxes, scores = np.array([[8, 8, 40, 56]], np.float32), np.array([0.5], np.float32)
    ids, before, kinds = np.array([9]), np.array([7]), np.array([2])
    at = stamp(3, fps=25)._replace(clock="ntp", wall_ns=1_500_000_000)
    one = Tracks(at, boxes, scores, JOINTS[None], (96, 64), kinds, "coco-17", ids, before)
    frame = frame_of(tracks_parcel(one, 0))
    assert (frame.seq, frame.pts, frame.time_base, frame.time_s) == (3, 3, (1, 25), 0.12)
    assert frame.wall_time is not None
    assert frame.wall_time.timestamp() == 1.5
    assert frame.classes.tolist() == [2]
    (person,) = frame.people
    assert (person.id, person.continues, person.box, person.score) == (9, 7, (8, 8, 40, 56), 0.5)
    assert person.joint("left_wrist") == Joint(27, 28, 29)


def test_people_of_events_continue_tracks_too() -> None:
    person = {"track_id": 9, "continues": 7, "bbox": [1, 2, 3, 4], "score": 0.5, "keypoints": JOINTS.ravel().tolist()}
    other = {"track_id": 8, "bbox": [1, 2, 3, 4], "score": 0.5, "keypoints": []}
    body = {"id": "e", "type": "camgraph.incident.start", "data": {"people": [person, other]}}
    body["data"]["keypoints_format"] = "coco-17"
    event = event_of(Parcel({"id": "e", "camera": "cam", "body": json.dumps(body).encode()}))
    assert [(one.id, one.continues) for one in event.people] == [(9, 7), (8, 0)]
    assert event.people[0].joint("nose") == Joint(0, 1, 2)


@pytest.mark.parametrize("time", [None, "", "nan", "10000-01-01T00:00:00Z", 5])
def test_event_without_a_time_is_of_1970(time: object) -> None:
    event = event_of(Parcel({"id": "e", "camera": "cam", "body": json.dumps({"time": time}).encode()}))
    assert event.time == datetime(1970, 1, 1, tzinfo=UTC)
