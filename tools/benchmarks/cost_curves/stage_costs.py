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

from pipeline.stage import Stage
from pipeline.testing import opened
from stages.decode_yolo_pose import DecodeYoloPose
from stages.rules import Rules
from stages.sink_jsonl import SinkJsonl
from stages.track import Track
from tools.benchmarks.cost_curves.crowd import MOST, ZONES, rules, tensor

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
