"""The size of MultiPose's picture, chosen by a look at the frames of each camera.

MultiPose finds people who are 60 to 250 pixels tall in its picture (docs/accuracy.md): at 640 pixels somebody who fills
the frame falls into two halves or is not found, at 256 few are found on a square. So a few frames of each camera are
looked at in several sizes, and the size wins that shows people whole and certain:

    frame --every size--> detections --the same person--> Sighting: how whole and certain at each size
                                                             |
            sum over people of (importance x wholeness at the size) --> the smallest size nearly as good as the best

Half a person counts as that person, poorly seen, and never as two. Somebody whom only one size shows is perhaps nobody
and counts half. Large people count more than small ones, because those near the camera are those it was put up for.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from camgraph.stages.people.inference.engines.engine import one_line
from camgraph.stages.people.preprocess import USUAL_MAX_SIDE
from camgraph.stages.video import examiner
from camgraph.stages.video.inspection import MEMORY_MB
from camgraph.stages.vision.same_person import best_of_each, wholeness

if TYPE_CHECKING:
    from camgraph.tools.models.pose_estimators import Poses

F64 = NDArray[np.float64]
U8 = NDArray[np.uint8]
Frames = Callable[[int], Iterable[U8]]
"""So many frames of a camera, (H, W, 3) BGR, or fewer."""

SIDES = (256, USUAL_MAX_SIDE, 512, 640, 768)
LOOKS = 6
"""Frames of one camera; of several cameras fewer of each, at least `LOOKS_EACH`. Two seconds on two cores."""
LOOKS_EACH = 3
MOST_CAMERAS = 24
"""More are not looked at: they get the size that most of the others have."""
MIN_SCORE = 0.2
NOBODY = "nobody was seen in it, and this suits most rooms"
UNKNOWN = "the model could not be asked"
NEARLY = 0.95
"""A smaller size is as good if it reaches this share of the best."""
WORTH_TWO = 1.3
"""Two sizes cost as much as both; they are proposed if they show so many times as much as the best alone."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """One person in one frame: `height` in pixels of the frame, and how whole and certain each of `SIDES` shows them.

    `agreed`: pictures of several sizes show this person.
    """

    height: float
    whole: tuple[float, ...]
    agreed: bool


@dataclass(frozen=True, slots=True)
class Choice:
    """The longer side of the picture, and the reason for it in words.

    `near`: a smaller side that shows people whom this one cannot, if no size shows all; else None.
    """

    side: int
    why: str
    near: int | None = None


class CannotLook(Exception):
    """The model does not open, takes other pictures, or has other outputs than MultiPose; the text says why."""


def of_files(files: Mapping[str, Path]) -> dict[str, Frames]:
    """The frames of each camera's video or folder of pictures."""

    def some(path: Path) -> Frames:
        return lambda count: examiner.frames(path, count, MEMORY_MB)

    return {camera: some(path) for camera, path in files.items()}


def choose_sides(model: Path, cameras: Mapping[str, Frames]) -> dict[str, Choice]:
    """The choice for each camera, by its frames.

    If the model cannot be asked, that is no mistake here: the stage that runs it reports it, or runs it in another way.
    """
    try:
        return _chosen_sides(model, cameras)
    except CannotLook as error:
        return dict.fromkeys(cameras, Choice(USUAL_MAX_SIDE, f"{UNKNOWN}, and this suits most rooms: {error}"))


def _chosen_sides(model: Path, cameras: Mapping[str, Frames]) -> dict[str, Choice]:
    """Raises CannotLook."""
    # ONNX Runtime takes a while to import.
    from camgraph.stages.people.inference.engines.onnxruntime_engine import ORT_ERRORS  # noqa: PLC0415
    from camgraph.tools.models.pose_estimators import session  # noqa: PLC0415

    try:
        opened = session(model, threads=len(os.sched_getaffinity(0)))
    except ORT_ERRORS as error:
        raise CannotLook(one_line(error)) from None
    looked = list(cameras)[:MOST_CAMERAS]
    each = max(LOOKS_EACH, LOOKS // max(1, len(looked)))
    chosen = {}
    for camera in looked:
        chosen[camera] = choose([person for frame in cameras[camera](each) for person in detect(opened, frame)])
    usual = _most_common([choice.side for choice in chosen.values()])
    others = {camera: Choice(usual, "as for most of the other cameras") for camera in cameras if camera not in chosen}
    return chosen | others


def detect(model: Any, frame: U8) -> list[Sighting]:
    """The people of a frame (H, W, 3) BGR, out of what each size shows of it. Raises CannotLook."""
    from camgraph.stages.people.inference.engines.onnxruntime_engine import ORT_ERRORS  # noqa: PLC0415 - as above
    from camgraph.tools.models.pose_estimators import Poses, multipose  # noqa: PLC0415 - as above

    # Small frames are not made larger: all sides beyond theirs make the same picture.
    longest = max(frame.shape)
    sides = sorted({min(side, longest) for side in SIDES})
    failures: tuple[type[Exception], ...] = (ValueError, *ORT_ERRORS)
    try:
        shown = [multipose(model, side, MIN_SCORE)(frame) for side in sides]
    except failures as error:  # ValueError: WrongShape, NotFinite, and ONNX Runtime's for a name that it lacks
        raise CannotLook(one_line(error)) from None
    found = Poses(*(np.concatenate(arrays) for arrays in zip(*shown, strict=True)))
    return sightings(found, np.repeat(sides, [len(one.scores) for one in shown]), longest)


def sightings(found: Poses, sides: NDArray[np.int64], longest: int) -> list[Sighting]:
    """The people in detections of several sizes; `sides` (N,): which has shown each, `longest`: the frame's side."""
    whole = wholeness(found.scores, found.keypoints)
    best = best_of_each(found.boxes_xyxy, whole, found.keypoints)
    people = []
    for leader in np.unique(best).tolist():
        rows = np.flatnonzero(best == leader)
        at = tuple(float(whole[rows[sides[rows] == min(side, longest)]].max(initial=0.0)) for side in SIDES)
        height = float(found.boxes_xyxy[leader, 3] - found.boxes_xyxy[leader, 1])
        people.append(Sighting(height, at, len(np.unique(sides[rows])) > 1))
    return people


def choose(people: Sequence[Sighting]) -> Choice:
    """The smallest side that is nearly as good as the best; what suits most if nobody was seen."""
    if not people:
        return Choice(USUAL_MAX_SIDE, NOBODY)
    seen = _seen(people)
    shares = shares_of_best(people)
    side = SIDES[int(np.flatnonzero(shares >= NEARLY)[0])]
    why = _why(shares, side)
    near, far = _two(seen[:, [person.agreed for person in people]])
    return Choice(far, f"one size does not show all; {why}", near) if near else Choice(side, why)


def shares_of_best(people: Sequence[Sighting]) -> F64:
    """(sides,): how whole and certain each of `SIDES` shows these people (one or more), as a share of the best."""
    good = _seen(people).sum(axis=1)
    return np.asarray(good / good.max())


def _seen(people: Sequence[Sighting]) -> F64:
    """(sides, people): how whole and certain, times how much this person counts."""
    return np.asarray(np.array([person.whole for person in people]).T * _importance(people))


def _importance(people: Sequence[Sighting]) -> F64:
    """(N,): those whom only one size shows are perhaps nobody; those near the camera are those it was put up for."""
    tallest = max(person.height for person in people)
    agreed = np.array([1.0 if person.agreed else 0.5 for person in people])
    return np.asarray(agreed * (0.25 + np.array([person.height for person in people]) / tallest))


def _two(seen: F64) -> tuple[int | None, int]:
    """The sides (near, far) that together show most of `seen` (sides, people); no `near` if one is nearly as good."""
    near, far = max(combinations(range(len(SIDES)), 2), key=lambda pair: float(seen[list(pair)].max(axis=0).sum()))
    worth = seen[[near, far]].max(axis=0).sum() >= WORTH_TWO * max(seen.sum(axis=1).max(), 1e-9)
    return (SIDES[near] if worth else None), SIDES[far]


def _why(shares: F64, chosen: int) -> str:
    """`people are most whole and certain at 384 (256: 80 %, 512: 94 % of that)`."""
    others = ", ".join(
        f"{side}: {100 * share:.0f} %" for side, share in zip(SIDES, shares, strict=True) if side != chosen
    )
    return f"people are most whole and certain at {chosen} ({others} of that)"


def _most_common(sides: Sequence[int]) -> int:
    return max(sorted(set(sides), reverse=True), key=sides.count) if sides else USUAL_MAX_SIDE
