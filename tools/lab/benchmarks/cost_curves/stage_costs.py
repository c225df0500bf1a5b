"""The cost of the stages behind the model for a frame, in this process and one after the other, as a graph runs them.

Processor time of the thread, so that other processes do not count; the sink's wait for the disk neither. Rounds are
interleaved: each has a few frames of every point of the curve, and a figure is the median of the rounds' means.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from camgraph.pipeline.stage import Stage
from camgraph.pipeline.testing import opened, stamp
from camgraph.stages.messages import Tensor
from camgraph.stages.people.decode_yolo_pose import DecodeYoloPose
from camgraph.stages.people.track import Track
from camgraph.stages.rules.rules import Rules
from camgraph.stages.sinks.sink_jsonl import SinkJsonl

_FRAMES = 20
"""Frames of a point in a round: one raising and lowering of hands."""
USUAL_RULES = 10
USUAL_PEOPLE = 20


@dataclass(slots=True)
class Point:
    """One point of a curve: stage -> ms a frame, a value a round; and how many events came of how many frames."""

    people: int
    rules: int
    rounds: dict[str, list[float]] = field(default_factory=dict)
    events: int = 0
    frames: int = 0

    def ms(self, stage: str) -> float:
        """The median of the rounds."""
        return median(self.rounds[stage])

    @property
    def whole_ms(self) -> float:
        """The cost of all stages together."""
        return sum(map(self.ms, self.rounds))


class Line:
    """The stages for one point, opened; they go on from round to round."""

    def __init__(self, point: Point, folder: Path) -> None:
        self.point = point
        folder.mkdir()
        self._seq = 0
        self._stack = ExitStack()
        judged = {"rules": rules(point.rules), "zones": ZONES}
        decode = {"max_people": MOST, "iou": 0.5}
        wanted: Sequence[tuple[str, type[Stage[Any]], Mapping[str, Any]]] = (
            ("decode and NMS", DecodeYoloPose, decode),
            ("track", Track, {}),
            ("rules", Rules, judged),
            ("sink_jsonl", SinkJsonl, {"path": "events.jsonl"}),
        )
        self._stages = {
            name: self._stack.enter_context(opened(kind, settings, folder=folder, stage="stage"))
            for name, kind, settings in wanted
        }

    def frames(self, count: int) -> dict[str, float]:
        """Process this many more frames: stage -> ms of all of them."""
        spent = dict.fromkeys(self._stages, 0.0)
        for seq in range(self._seq, self._seq + count):
            items: Sequence[Any] = [tensor(self.point.people, seq)]
            for name, stage in self._stages.items():
                self.point.events += len(items) if name == "sink_jsonl" else 0
                began = time.thread_time_ns()
                items = list(stage.process(items)) if items else items
                spent[name] += (time.thread_time_ns() - began) / 1e6
        self._seq += count
        self.point.frames += count
        return spent

    def close(self) -> None:
        """Close the stages."""
        self._stack.close()


def measure(points: Sequence[Point], rounds: int) -> None:
    """Fill in the points. Warm-up is not counted."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        lines = [Line(point, Path(folder) / str(number)) for number, point in enumerate(points)]
        for line in lines:
            stack.callback(line.close)
            line.frames(_FRAMES)
            line.point.events = line.point.frames = 0
        for _ in range(rounds):
            for line in lines:
                for name, ms in line.frames(_FRAMES).items():
                    line.point.rounds.setdefault(name, []).append(ms / _FRAMES)


F32 = NDArray[np.float32]

# ---- a crowd of people who walk on the spot and raise their hands now and then, as outputs of a YOLO-pose model

ANCHORS = 8400
OF_EACH = 8
"""How many overlapping candidates a model has for a person."""
MOST = 100
FPS = 10.0
SIDE = 640
_STEP = SIDE // 10
_HANDS_UP_S = 1.0


def heads(people: int, seq: int) -> F32:
    """(1, 56, 8400): cx, cy, w, h, score, 17 x (x, y, visibility); ``people`` at most 100, on a grid of 10 x 10."""
    random = np.random.default_rng(seq)
    out = np.zeros((1, 56, ANCHORS), np.float32)
    index = np.arange(people)
    centres = np.stack([index % 10 * _STEP + _STEP / 2, index // 10 * _STEP + _STEP / 2], 1)
    each = np.repeat(centres, OF_EACH, axis=0) + random.normal(0, 1.0, (people * OF_EACH, 2))
    columns = slice(0, people * OF_EACH)
    out[0, 0:2, columns] = each.T
    out[0, 2, columns], out[0, 3, columns] = 0.5 * _STEP, 0.9 * _STEP
    out[0, 4, columns] = random.uniform(0.5, 0.95, people * OF_EACH)
    joints = out[0, 5:].reshape(17, 3, ANCHORS)
    joints[:, 0, columns] = each[:, 0]
    joints[:, 1, columns] = each[:, 1] + np.linspace(-0.4, 0.4, 17)[:, None] * _STEP
    if seq / FPS % (2 * _HANDS_UP_S) < _HANDS_UP_S:
        joints[9:11, 1, columns] = each[:, 1] - 0.44 * _STEP
    joints[:, 2, columns] = 0.9
    return out


def tensor(people: int, seq: int) -> Tensor:
    """The model's outputs for frame ``seq`` of a camera of 1280 x 1280 pixels."""
    fit = np.array([[0.5, 0.5, 0.0, 0.0]], np.float32)
    return Tensor(stamp(seq, fps=FPS), {"output0": heads(people, seq)}, fit, (2 * SIDE, 2 * SIDE), (SIDE, SIDE))


def rules(count: int) -> list[dict[str, str]]:
    """This many different rules, about joints, a zone, posture and speed. Only the first comes true again and again."""
    kinds = (
        "left_wrist.y < nose.y - 2.{n:03}h and right_wrist.y < nose.y - 2.{n:03}h",
        "in door and speed < 0.2{n:03}h/s",
        "lean > 50.{n:03}deg and box.width > 0.8h",
        "speed > 1.2{n:03}h/s and age > 1s",
    )
    first = "left_wrist.y < nose.y and right_wrist.y < nose.y"
    whens = [first, *(kinds[n % 4].format(n=n) for n in range(1, count))]
    return [{"id": f"rule{n}", "when": when, "for": "300ms"} for n, when in enumerate(whens)]


ZONES = {"door": [[0.1, 0.1], [0.6, 0.1], [0.7, 0.6], [0.2, 0.7]]}
