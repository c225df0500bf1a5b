"""Which picture of an incident shows its people best: the largest, the most certain and the sharpest.

    value = certainty (of size, score and joints; known from the event)  x  sharpness (0 to 1; the picture is decoded)

No picture is worth more than its certainty, so one whose certainty is below the best value found need not be decoded.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import cv2
import numpy as np

from camgraph.stages.sinks.footage.still import Picture
from camgraph.stages.video.packets import shown_frame

MOST_DECODED = 5
"""Pictures of one incident, its first included."""
_BETTER = 1.1
"""A picture must be better by so much to take the place of another."""
_HEIGHT = 128
"""People are compared at this height, so that sharpness does not depend on their size."""
_HALF_SHARP = 150.0
"""The variance of the Laplacian at which a picture counts as half sharp."""
_CROP_MARGIN = 0.15
MOST_CROPS = 16


class Box(NamedTuple):
    """Somebody's place in a picture, in its pixels, within its borders."""

    track_id: int
    left: int
    top: int
    right: int
    bottom: int


@dataclass(slots=True)
class Best:
    """The best picture of one incident so far. `jpeg` is None while that is its first."""

    value: float = 0.0
    decoded: int = 0
    jpeg: bytes | None = None
    width: int = 0
    height: int = 0
    crops: Mapping[int, bytes] | None = None

    def is_worth_decoding(self, data: Mapping[str, Any]) -> bool:
        """Whether the picture of this event may be better."""
        return self.decoded < MOST_DECODED and certainty(data) > _BETTER * self.value

    def beats(self, value: float) -> bool:
        """Whether a picture of this value takes the place of the best; it counts as decoded."""
        self.decoded += 1
        if value <= _BETTER * self.value:
            return False
        self.value = value
        return True


def certainty(data: Mapping[str, Any]) -> float:
    """How large and how certain the people of an event are: the sum over them of side length, score and joints."""
    frame = shown_frame(data)
    area = float((frame.get("width") or 1) * (frame.get("height") or 1))
    return sum(_certainty_of(one, area) for one in data.get("people") or [])


def _certainty_of(person: Mapping[str, Any], frame_area: float) -> float:
    x1, y1, x2, y2 = person["bbox"]
    side = math.sqrt(max(0.0, x2 - x1) * max(0.0, y2 - y1) / frame_area)
    joints = person["keypoints"][2::3]
    seen = sum(joints) / len(joints) if joints else 1.0
    return side * float(person["score"]) * seen


def sharpness(picture: Picture, data: Mapping[str, Any]) -> float:
    """Between 0 (blurred) and 1, of the people of an event in its picture (H, W, 3) as the camera sent it."""
    return max(
        (_sharp(picture[top:bottom, left:right]) for _, left, top, right, bottom in boxes(picture, data)), default=0.0
    )


def _sharp(part: Picture) -> float:
    width = max(8, round(part.shape[1] * _HEIGHT / part.shape[0]))
    grey = cv2.cvtColor(cv2.resize(part, (width, _HEIGHT), interpolation=cv2.INTER_AREA), cv2.COLOR_BGR2GRAY)
    variance = float(cv2.Laplacian(grey, cv2.CV_64F).var())
    return variance / (variance + _HALF_SHARP)


def boxes(picture: Picture, data: Mapping[str, Any], *, margin: float = 0.0) -> Iterator[Box]:
    """The people of an event in its picture, which may be larger than the judged frame; none outside of it."""
    frame = shown_frame(data)
    height, width = picture.shape[:2]
    across, down = width / (frame.get("width") or width), height / (frame.get("height") or height)
    for one in (data.get("people") or [])[:MOST_CROPS]:
        x1, y1, x2, y2 = one["bbox"]
        wide, high = margin * (x2 - x1), margin * (y2 - y1)
        left, right = (int(np.clip(x * across, 0, width)) for x in (x1 - wide, x2 + wide))
        top, bottom = (int(np.clip(y * down, 0, height)) for y in (y1 - high, y2 + high))
        if right - left >= 2 and bottom - top >= 2:
            yield Box(int(one["track_id"]), left, top, right, bottom)


def crops(picture: Picture, data: Mapping[str, Any]) -> Iterator[tuple[int, Picture]]:
    """Each person of an event, with a margin around them, by track id."""
    for track_id, left, top, right, bottom in boxes(picture, data, margin=_CROP_MARGIN):
        yield track_id, picture[top:bottom, left:right]
