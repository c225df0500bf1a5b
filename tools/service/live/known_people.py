"""The people in the last pictures of a camera, as the stages `rules` tell of them, and how they are drawn."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from camgraph.stages.vision.drawing import Picture, draw_lines, draw_people, draw_zones

_KEPT = 256
"""Frames of one stage."""
_SILENT_S = 3.0
"""A stage that has reported no frame for so long is not waited for."""
_SAME_S = 0.0015
"""Times are reported in microseconds, and no camera sends a picture each millisecond."""


class Moment(NamedTuple):
    """A picture of a camera, as `epoch` and `at` of a line name it; later ones are greater."""

    epoch: int
    at: float


@dataclass(frozen=True, slots=True)
class Scene:
    """What is known of one picture: a line about it, and one about shapes, of each stage."""

    frames: Sequence[Mapping[str, Any]]
    shapes: Sequence[Mapping[str, Any]]


@dataclass(slots=True)
class _Stage:
    shapes: Mapping[str, Any] | None = None
    frames: deque[tuple[Moment, Mapping[str, Any]]] = field(default_factory=lambda: deque(maxlen=_KEPT))
    reported_s: float = 0.0


class KnownPeople:
    """Takes lines in one thread, and answers in another. `now_s`: monotonic."""

    def __init__(self) -> None:
        self._stages: dict[str, _Stage] = {}
        self._lock = threading.Lock()

    def take(self, line: bytes, now_s: float) -> None:
        """A line of `LivePeople.lines`; an empty one says nothing. Raises ValueError for anything else."""
        if not line:
            return
        report = json.loads(line)
        with self._lock:
            stage = self._stages.setdefault(report["stage"], _Stage())
            if "zones" in report:
                stage.shapes = report
            elif report["at"] is not None:
                stage.frames.append((Moment(report["epoch"], report["at"]), report))
                stage.reported_s = now_s

    def is_past(self, moment: Moment, now_s: float) -> bool | None:
        """Whether all stages that report frames have reported this one or a later one; None if no stage reports any."""
        with self._lock:
            newest = [stage.frames[-1][0] for stage in self._stages.values() if now_s - stage.reported_s < _SILENT_S]
        return min(newest) >= Moment(moment.epoch, moment.at - _SAME_S) if newest else None

    def scene(self, moment: Moment) -> Scene | None:
        """The reports of the picture of this very moment; None if there are none."""
        with self._lock:
            stages = list(self._stages.values())
            frames = [report for stage in stages for when, report in stage.frames if _is_same(when, moment)]
            shapes = [stage.shapes for stage in stages if stage.shapes is not None]
        return Scene(frames, shapes) if frames else None

    def reports_of(self, moments: Iterable[Moment], now_s: float) -> dict[str, Any]:
        """What is known of these pictures, and of zones and lines: plain values, for another process."""
        asked = list(moments)
        scenes = [(moment, self.scene(moment)) for moment in asked]
        return {
            "scenes": [(moment, scene.frames) for moment, scene in scenes if scene is not None],
            "past": [moment for moment in asked if self.is_past(moment, now_s)],
            "shapes": self.shapes().shapes,
        }

    def shapes(self) -> Scene:
        """Zones and lines alone: they are in each picture."""
        with self._lock:
            return Scene((), [stage.shapes for stage in self._stages.values() if stage.shapes is not None])


def _is_same(one: Moment, other: Moment) -> bool:
    return one.epoch == other.epoch and abs(one.at - other.at) < _SAME_S


def draw_scene(picture: Picture, scene: Scene) -> None:
    """Draw zones, lines and people on the picture. People on whom a rule fires are red, with the words of the rule."""
    height, width = picture.shape[:2]
    size = np.array([width, height], np.float32)
    firing = [one for frame in scene.frames for one in frame["now"]]
    alarmed = {name for one in firing for name in one["shapes"]}
    for shapes in scene.shapes:
        zones = {name: _points(corners, size) for name, corners in shapes["zones"].items()}
        draw_zones(picture, zones, alarmed)
        ends = {name: _points(corners, size) for name, corners in shapes["lines"].items()}
        draw_lines(picture, {name: (first, last) for name, (first, last) in ends.items()}, alarmed)
    said: dict[int, list[str]] = {}
    for one in firing:
        for track_id in one["ids"]:
            said.setdefault(track_id, []).append(one["action"].replace("_", " "))
    floor = min((shapes["floor"] for shapes in scene.shapes), default=0.0)
    # Several stages see the same people.
    people = {one["id"]: one for frame in scene.frames for one in frame["people"]}
    for person in people.values():
        _draw_person(picture, person, size, floor, said)


def _draw_person(
    picture: Picture, person: Mapping[str, Any], size: NDArray[np.float32], floor: float, said: Mapping[int, list[str]]
) -> None:
    boxes = np.array([person["box"]], np.float32) * np.tile(size, 2)  # None becomes NaN, which is not drawn
    joints = np.array(person["joints"], np.float32).reshape(1, -1, 3) * np.append(size, np.float32(1))
    number = person["id"]
    label = " ".join([f"#{number}", *said.get(number, ())])
    draw_people(picture, boxes, joints, [number], [label], min_confidence=floor, alarmed=said.keys())


def _points(corners: Sequence[Sequence[float]], size: NDArray[np.float32]) -> list[tuple[float, float]]:
    return [(x * float(size[0]), y * float(size[1])) for x, y in corners]
