"""The library on real clips, from the file to the events, at 5 frames a second. What happens was judged by eye."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import takewhile
from pathlib import Path

import pytest

from camgraph.pipeline.messages import Event
from camgraph.pipeline.stage import Settings
from camgraph.pipeline.testing import HandContext, feed, opened
from camgraph.stages.people.decode_yolo_pose import DecodeYoloPose
from camgraph.stages.people.infer import Infer
from camgraph.stages.people.preprocess import Preprocess
from camgraph.stages.people.track import Track
from camgraph.stages.rules.library import library
from camgraph.stages.rules.rules import Rules
from camgraph.stages.video.capture import Camera, Capture

MODEL = "models/yolo11n-pose_640.onnx"
FPS = 5.0
ACTIONS = [
    {"use": name}
    for name, action in library().templates.items()
    if all(one.default is not None for one in action.parameters.values()) and name != "somebody"  # who is seen in each
]


def told(data: Path, clip: str, until_s: float = 60.0) -> list[tuple[str, float]]:
    """The actions that begin, and when they are told, in seconds of the clip."""
    camera = Camera(url=f"videos/{clip}", max_fps=FPS)
    frames = Capture(Settings(), "cam", camera, HandContext(data, data)).frames(threading.Event(), None)
    items = list(takewhile(lambda frame: frame.stamp.time_ns < until_s * 1e9, frames))
    with (
        opened(Preprocess, {}, folder=data) as preprocess,
        opened(Infer, {"model": MODEL}, folder=data) as infer,
        opened(DecodeYoloPose, {"min_score": 0.1}, folder=data) as decode,
        opened(Track, {}, folder=data) as track,
        opened(Rules, {"rules": ACTIONS}, folder=data) as rules,
    ):
        events = feed(rules, feed(track, feed(decode, feed(infer, feed(preprocess, items)))))
    bodies = [json.loads(event.body) for event in events if isinstance(event, Event)]
    begun = [one["data"] for one in bodies if not one["type"].endswith(".end")]
    return [(one["action"], one["frame"]["pts"] * Fraction(*one["frame"]["time_base"])) for one in begun]


@dataclass(frozen=True)
class Judged:
    """A clip up to a second. `right`: who does so, and when it is told. `wrong`: told, although nobody does so."""

    clip: str
    until_s: float
    right: tuple[tuple[str, float], ...] = ()
    wrong: tuple[tuple[str, float], ...] = ()


CLIPS = (
    # A game, filmed by a camera that turns: players walk, one throws with her back to the camera. Nobody jumps.
    Judged(
        "mmaction2_test_video_structuralize.mp4",
        60.0,
        (("walking", 1.4), ("turned_away", 2.0), ("walking", 3.0), ("walking", 5.8), ("walking", 8.0)),
        (("jumping", 4.2), ("jumping", 7.4)),
    ),
    # A billboard at night, with people on it.
    Judged("roboflow_example_video.mp4", 6.0),
    # Somebody signs before a webcam, with the hands below the shoulders.
    Judged("intel_asl_walk.mkv", 60.0),
)
TOLERANCE_S = 0.7


def near(one: tuple[str, float], others: Iterable[tuple[str, float]]) -> bool:
    return any(name == one[0] and abs(at_s - one[1]) <= TOLERANCE_S for name, at_s in others)


@pytest.mark.slow
@pytest.mark.parametrize("judged", CLIPS, ids=lambda judged: judged.clip)
def test_what_happens_is_told_and_nothing_else(test_data: Path, judged: Judged) -> None:
    found = told(test_data, judged.clip, judged.until_s)
    assert [one for one in judged.right if not near(one, found)] == [], found
    assert [one for one in found if not near(one, (*judged.right, *judged.wrong))] == []
