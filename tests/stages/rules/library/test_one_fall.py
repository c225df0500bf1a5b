"""One fall is one incident of `fall`, however long somebody lies and however well the joints are seen meanwhile."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

from camgraph.pipeline.testing import feed, opened
from camgraph.stages.events import CloudEvent
from camgraph.stages.messages import Tracks
from camgraph.stages.rules.rules import Rules
from camgraph.tools.lab.action_trials import LEAST_SCORE, View
from camgraph.tools.scenes.animator import Actor, Scene
from camgraph.tools.scenes.animator.library import fall, get_up, slump, standing
from camgraph.tools.scenes.animator.messages import tracks
from camgraph.tools.scenes.animator.motion import Motion

pytestmark = pytest.mark.slow

FALLEN_S = 2.5
"""When the body is on the ground."""
FALLS: dict[str, Callable[[], Motion]] = {
    "forward": lambda: fall("forward", lie_s=20.0),
    "sideways": lambda: fall("left", lie_s=20.0),
    "slumping": lambda: slump(lie_s=20.0),
}
Edit = Callable[[Sequence[Tracks]], list[Tracks]]


@functools.cache
def falls(way: str, fps: float = 12.5) -> list[Tracks]:
    """Somebody falls and lies for twenty seconds."""
    return seen([standing(1.5), FALLS[way]()], fps)


def seen(motions: Sequence[Motion], fps: float = 12.5) -> list[Tracks]:
    scene = Scene("a fall", [Actor(motions)])
    return list(tracks(scene.frames(fps, 1, View(2.6, 5.0, 60.0).camera), min_score=LEAST_SCORE))


def at_s(frame: Tracks) -> float:
    return frame.stamp.time_ns / 1e9


def told(frames: Sequence[Tracks], folder: Path) -> list[tuple[str, float]]:
    """Phase and time of each event of `fall`; a camera ends with the last frame."""
    with opened(Rules, {"rules": [{"use": "fall"}]}, folder=folder) as stage:
        events = [CloudEvent.model_validate_json(one.body) for one in feed(stage, frames, end=True)]
    first = frames[0].stamp.wall_ns / 1e9
    assert all(event.data.action == "fall" for event in events)
    return [(event.type.rpartition(".")[2], datetime.fromisoformat(event.time).timestamp() - first) for event in events]


def phases(frames: Sequence[Tracks], folder: Path) -> list[str]:
    return [phase for phase, _ in told(frames, folder)]


def unknown(begin_s: float, end_s: float) -> Edit:
    """The model is unsure of all joints for a while."""

    def edit(frames: Sequence[Tracks]) -> list[Tracks]:
        return [
            replace(one, keypoints=one.keypoints * np.float32([1, 1, 0])) if begin_s <= at_s(one) < end_s else one
            for one in frames
        ]

    return edit


def upright(begin_s: float, end_s: float) -> Edit:
    """The model takes somebody who stands there for the person, as a helper who bends over them."""

    def edit(frames: Sequence[Tracks]) -> list[Tracks]:
        stands = next(one for one in frames if at_s(one) >= 0.5)
        wrong = {"boxes": stands.boxes, "keypoints": stands.keypoints}
        return [replace(one, **wrong) if begin_s <= at_s(one) < end_s else one for one in frames]

    return edit


def unseen(begin_s: float, end_s: float) -> Edit:
    """The person is not found for a while, and has the same id behind it."""

    def edit(frames: Sequence[Tracks]) -> list[Tracks]:
        def without(one: Tracks) -> Tracks:
            return Tracks(
                one.stamp,
                one.boxes[:0],
                one.scores[:0],
                one.keypoints[:0],
                one.frame_size,
                one.classes[:0],
                ids=one.ids[:0],
            )

        return [without(one) if begin_s <= at_s(one) < end_s else one for one in frames]

    return edit


@pytest.mark.parametrize("way", FALLS)
@pytest.mark.parametrize(
    "edits",
    [
        (),
        (upright(10.0, 10.3),),
        (upright(10.0, 10.2), upright(14.0, 14.3)),
        (unknown(9.0, 15.0),),
        (unknown(9.0, 15.0), upright(15.0, 15.3)),
        (unseen(9.0, 11.5), upright(11.5, 11.8)),
    ],
    ids=[
        "seen throughout",
        "once wrong",
        "twice wrong",
        "unknown",
        "unknown, then wrong",
        "unseen, then wrong",
    ],
)
def test_who_still_lies_fell_once(way: str, edits: Sequence[Edit], tmp_path: Path) -> None:
    frames = falls(way, 12.5 if way == "forward" else 5.0)
    for edit in edits:
        frames = edit(frames)
    found = told(frames, tmp_path)
    assert [phase for phase, _ in found] == ["start", "end"], found


def test_who_is_lost_on_the_way_down_fell_at_most_once(tmp_path: Path) -> None:
    found = phases(upright(8.0, 8.3)(unseen(1.9, 3.4)(falls("forward"))), tmp_path)
    assert found in ([], ["start", "end"])


def test_who_got_up_and_falls_again_fell_twice(tmp_path: Path) -> None:
    one = [fall("left", lie_s=6.0), get_up(), standing(3.0)]
    found = phases(seen([standing(1.5), *one, fall("forward", lie_s=6.0)]), tmp_path)
    assert found == ["start", "end", "start", "end"]
