"""The colours of people, which travel with them."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from camgraph.pipeline.testing import feed, opened, stamp
from camgraph.stages import testing
from camgraph.stages.messages import Frame, People
from camgraph.stages.people.add_colours import AddColours
from camgraph.stages.vision.planes import U8

SIZE = (320, 240)
BOXES = ((20, 20, 60, 200), (120, 20, 160, 200), (220, 20, 260, 200))


def people(*boxes: tuple[float, ...]) -> People:
    return testing.people(boxes, frame_size=SIZE, keypoints=np.zeros((0, 3)))


def picture() -> U8:
    """The first and the last person in red, the other one in green."""
    shown = np.full((240, 320, 3), 120, np.uint8)
    for (left, top, right, bottom), colour in zip(BOXES, [(30, 30, 200), (30, 180, 30), (30, 30, 200)], strict=True):
        shown[top:bottom, left:right] = colour
    return shown


@pytest.mark.parametrize("planar", [False, True])
def test_colours_travel_with_the_people(tmp_path: Path, planar: bool) -> None:
    frame = Frame.of_bgr(stamp(), picture())
    if planar:
        frame = Frame(stamp(), cv2.cvtColor(picture(), cv2.COLOR_BGR2YUV_I420), *SIZE, "yuv420p")
    with opened(AddColours, {}, folder=tmp_path) as stage:
        [made] = feed(stage, [{"frames": frame, "people": people(*BOXES)}])
    assert isinstance(made, People)
    read = People.build(made.stamp, made.fields(), made.arrays())
    likeness = read.appearance @ read.appearance.T
    assert likeness[0, 2] > 0.99
    assert likeness[0, 1] < 0.7
