"""Windows of somebody's last two seconds, in units of their own body, as a small network reads them. Pure.

    rows of a KeypointRecord        19 points: 17 joints of COCO, and two corners of the box
    -> steps at equal times         (T, 19, 3) x, y, 1 if the point is known
    -> normalised by the body       around where they were, their size at most about 1

The window tells where somebody was before as well as where they are now, so it is centred and scaled once, as a whole.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from camgraph.stages.vision.keypoint_record import KeypointRecord
from camgraph.stages.vision.keypoint_windows import resampled
from camgraph.stages.vision.skeleton import COCO_17

F32 = NDArray[np.float32]

CLASSES = (
    *("fall", "lying", "sitting", "crouching", "bending", "kneeling", "standing", "walking", "running"),
    *("hands_up", "one_hand_up", "waving", "calling_for_help", "hand_to_face", "arms_crossed", "reaching", "pointing"),
    *("kicking", "punching", "jumping"),
)
"""What the network tells apart. Several may be true at once, and none is if somebody does anything else."""
STEPS = 20
"""Moments of a window, at equal times."""
WINDOW_NS = 2_000_000_000
POINTS = len(COCO_17) + 2
"""The joints, then the upper left and the lower right corner of the box."""
GAP_NS = 500_000_000
"""Between frames that are farther apart, nothing is known."""
MIN_CONFIDENCE = 0.15
"""Joints below this confidence are not known to the network, whatever `min_confidence` a rule has."""
EVERY_NS = 200_000_000
"""The network runs at most once per person in this time."""
FORGET_NS = WINDOW_NS + GAP_NS

_CORNERS = slice(len(COCO_17), POINTS)
_UPPER, _LOWER = (
    np.array([COCO_17.index(f"{side}_{joint}") for joint in ends for side in ("left", "right")])
    for ends in (("shoulder", "hip", "knee"), ("hip", "knee", "ankle"))
)
"""The ends of torso, thighs and shins."""
_LIMBS_A_BODY = 3.4
"""The height of a body, in lengths of its longest limb."""
_BOX_SHARE = 0.8
"""The height of a body is at least this part of the diagonal of its box, if limbs are known; all of it otherwise."""
_USUAL = 0.8
"""The quantile over the steps that stands for the size of a body: a limb is short if it points to the lens."""
_FARTHEST = 4.0
"""Places farther away, in heights of the body, are drawn nearer: they are mistakes of the model."""
_PARTS = 100
"""Rows of a record: 25 ms for each. That must divide `EVERY_NS`, because a record keeps the first row of each part."""
_LEAST_STEPS = 5
"""Known steps from which on somebody is judged: 0.4 s, the least from which the network learns."""
_KNOWN = 0.5
_COLUMN = {name: column for column, name in enumerate(CLASSES)}
_UNKNOWN = [math.nan] * len(CLASSES)


class Detected(Protocol):
    """The people of a frame: `ids` (N,), `boxes` (N, 4) xyxy and `keypoints` (N, 17, 3), in pixels."""

    @property
    def ids(self) -> NDArray[np.int64]: ...
    @property
    def boxes(self) -> F32: ...
    @property
    def keypoints(self) -> F32: ...
    @property
    def continues(self) -> Mapping[int, int]:
        """Id -> that of an earlier track, which is likely the same person's."""


class Network(Protocol):
    """Tells what people look like."""

    def __call__(self, windows: F32) -> F32:
        """Normalised windows (N, T, 19, 3) -> (N, C): how much each looks like each of `CLASSES`, from 0 to 1."""


@np.errstate(all="ignore")
def window_of(record: KeypointRecord, until_ns: int | None = None) -> F32:
    """(T, 19, 3) the steps until the row of a time, by default the newest, in pixels; a third number of 1 is known."""
    times = record.times_ns
    end = len(times) if until_ns is None else max(1, int(np.searchsorted(times, until_ns, "right")))
    begin = max(0, int(np.searchsorted(times, times[end - 1] - WINDOW_NS)) - 1)
    rows = slice(begin, end)
    points = _points(record.joints[rows], record.boxes[rows])
    return resampled(times[rows], points, WINDOW_NS, steps=STEPS, gap_ns=GAP_NS, min_confidence=_KNOWN)[0]


def _points(joints: F32, boxes: F32) -> F32:
    """(n, 17, 3) and (n, 4) -> (n, 19, 3): joints below `MIN_CONFIDENCE`, and those that are no numbers, are zeros."""
    points = np.ones((len(boxes), POINTS, 3), np.float32)
    points[:, : len(COCO_17)] = joints
    points[:, _CORNERS, :2] = boxes.reshape(-1, 2, 2)
    known = np.isfinite(points).all(axis=2) & (points[:, :, 2] >= MIN_CONFIDENCE)
    points[:, :, 2] = 1
    points[~known] = 0
    return points


@np.errstate(all="ignore")
def normalised(windows: F32) -> F32:
    """(N, T, 19, 3) in pixels -> centred on the median middle of the boxes, and divided by the height of the body.

    All zeros if no box is known.
    """
    known = windows[..., 2] > 0
    seen = known[..., POINTS - 1] & known[..., POINTS - 2]
    first, last = windows[:, :, POINTS - 2, :2], windows[:, :, POINTS - 1, :2]
    size = _usual(_longest(windows, known)) * _LIMBS_A_BODY
    size = np.maximum(size, _usual(np.where(seen, _length(last - first), 0)) * np.where(size > 0, _BOX_SHARE, 1))
    middle = _median(np.asarray((first + last) / 2, np.float32), seen)
    found = windows.copy()
    places = found[..., :2]
    places -= middle[:, None, None]
    places /= np.maximum(size, 1)[:, None, None, None]
    np.clip(places, -_FARTHEST, _FARTHEST, out=places)
    found[~known] = 0
    return found


def _longest(windows: F32, known: NDArray[np.bool_]) -> F32:
    """(N, T) the longest limb of each step, 0 if none is known."""
    lengths = _length(windows[:, :, _UPPER, :2] - windows[:, :, _LOWER, :2])
    return np.asarray((lengths * (known[:, :, _UPPER] & known[:, :, _LOWER])).max(axis=2))


def _length(ways: F32) -> F32:
    """(..., 2) -> (...)."""
    return np.asarray(np.hypot(ways[..., 0], ways[..., 1]))


def _usual(lengths: F32) -> F32:
    """(N, T) -> (N,) the quantile of those above 0, and 0 if there are none."""
    ordered = np.sort(lengths, axis=1)
    beyond = (np.count_nonzero(lengths, axis=1) * (1 - _USUAL)).astype(np.intp)
    return np.asarray(ordered[np.arange(len(ordered)), lengths.shape[1] - 1 - beyond])


def _median(places: F32, seen: NDArray[np.bool_]) -> F32:
    """(N, T, 2) -> (N, 2) of the steps that are seen."""
    ordered = np.sort(np.where(seen[..., None], places, np.inf), axis=1)
    middle = ordered[np.arange(len(ordered)), np.count_nonzero(seen, axis=1) // 2]
    return np.asarray(np.where(np.isfinite(middle), middle, 0))


class Posture:
    """What one person looks like. The network runs only if a rule asks, and at most once per person in `EVERY_NS`.

    The answer is about the first frame in each span of `EVERY_NS`, whenever within the span a rule asks. So the answer
    depends on the frames of the person alone, and not on what other rules ask.
    """

    __slots__ = ("_at_ns", "_scores", "_span", "record")

    def __init__(self) -> None:
        self.record = KeypointRecord(WINDOW_NS + GAP_NS, len(COCO_17), _PARTS)
        self._at_ns, self._span = 0, -1
        self._scores: list[float] | None = None

    def note(self, time_ns: int, box: F32, joints: F32) -> None:
        """The person in the next frame: `box` (4,) xyxy and `joints` (17, 3) x, y, confidence, in pixels."""
        self.record.add(time_ns, box, 1.0, joints)
        if time_ns // EVERY_NS != self._span:
            self._at_ns, self._span, self._scores = time_ns, time_ns // EVERY_NS, None

    def score(self, name: str, network: Network) -> float:
        """How much the person looks like a class, from 0 to 1; NaN if the window has too few steps to tell."""
        if self._scores is None:
            window = window_of(self.record, self._at_ns)
            enough = np.count_nonzero(window[:, -1, 2]) >= _LEAST_STEPS
            self._scores = network(normalised(window[None]))[0].tolist() if enough else _UNKNOWN
        return self._scores[_COLUMN[name]]


@dataclass(slots=True)
class Postures:
    """What everybody before one camera looks like."""

    _people: dict[int, Posture] = field(default_factory=dict)
    _size: tuple[int, int] = (0, 0)

    def seen(self, time_ns: int, size: tuple[int, int], people: Detected) -> dict[int, Posture]:
        """The posture of everybody in the next frame, by id.

        `size` is the frame's width and height: after another one, all windows begin anew, because places of before have
        another scale. A track that continues a lost one keeps the record of the lost track.
        """
        if size != self._size:
            self._people, self._size = {}, size
        found: dict[int, Posture] = {}
        tracks = people.ids.tolist()
        for row, track in enumerate(tracks):
            before = people.continues.get(track, 0)
            lost = None if before in tracks else self._people.get(before)
            posture = self._people.get(track) or lost or Posture()
            if posture is lost:
                del self._people[before]
            posture.note(time_ns, people.boxes[row], people.keypoints[row])
            found[track] = self._people[track] = posture
        self._forget(time_ns - FORGET_NS)
        return found

    def _forget(self, before_ns: int) -> None:
        for track in [track for track, one in self._people.items() if one.record.times_ns[-1] < before_ns]:
            del self._people[track]
