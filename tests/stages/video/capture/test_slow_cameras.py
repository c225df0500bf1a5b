"""Somebody who stands before a live camera of few frames a second is one incident, not one for every second frame."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from camgraph.pipeline.testing import feed, opened
from camgraph.stages.messages import Tracks
from camgraph.stages.rules.rules import Rules
from camgraph.tools.scenes.simulator import CameraSettings, ClipSettings, RtspSimulator

RULES = {
    "rules": [
        {"id": "somebody", "when": "age >= 0.5s", "once": True},
        {"id": "stays", "when": "age >= 0.5s", "for": "2s"},
    ]
}
FRAMES = 9


@pytest.fixture
def url() -> Iterator[str]:
    clip = ClipSettings(codec="h264", width=320, fps=5, seconds=2, gop=5)
    with RtspSimulator([CameraSettings(name="five", clip=clip)]) as simulator:
        yield simulator.camera("five").url


def somebody(stamp: Any) -> Tracks:
    box, one = np.array([[10, 10, 60, 150]], np.float32), np.ones(1, np.int64)
    keypoints = np.full((1, 17, 3), 0.9, np.float32)
    return Tracks(stamp, box, np.full(1, 0.9, np.float32), keypoints, (320, 180), 0 * one, "coco-17", one)


def test_each_alarm_is_told_once(url: str, watch: Callable[..., Any], tmp_path: Path) -> None:
    cameras = [watch(url, max_fps=max_fps) for max_fps in (2, 1.5, 1)]
    for camera in cameras:
        camera.until(lambda camera=camera: len(camera.stamps) >= FRAMES, within_s=90)
    for camera in cameras:
        with opened(Rules, RULES, folder=tmp_path) as stage:
            events = feed(stage, [somebody(stamp) for stamp in camera.stamps])
        assert sorted(event.phase for event in events) == ["single", "start"], [s.time_ns for s in camera.stamps]
