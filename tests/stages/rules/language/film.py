"""One person, frame by frame, and a condition's answer to each frame."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from camgraph.stages.rules.language.condition import compile_condition
from camgraph.stages.rules.language.crowd import Picture
from camgraph.stages.rules.language.geometry import Line, Surroundings, zone_of
from camgraph.stages.rules.language.incidents import Timing
from camgraph.stages.rules.language.judge import Judge, Rule, Verdict
from camgraph.stages.vision.skeleton import COCO_17

SECOND = 1_000_000_000
SIZE = (640, 480)
ZONES = {"door": zone_of([(0, 0), (100, 0), (100, 480), (0, 480)]), "yard": zone_of([(0, 0), (1, 0), (1, 1)])}
LINES = {"gate": Line((200, 0), (200, 480))}
STANDING: dict[str, tuple[float, float] | None] = {
    **{"nose": (300, 112), "left_eye": (302, 110), "right_eye": (298, 110), "left_ear": (304, 111)},
    **{"right_ear": (296, 111), "left_shoulder": (306, 125), "right_shoulder": (294, 125)},
    **{"left_elbow": (310, 138), "right_elbow": (290, 138), "left_wrist": (312, 150), "right_wrist": (288, 150)},
    **{"left_hip": (304, 150), "right_hip": (296, 150), "left_knee": (304, 170), "right_knee": (296, 170)},
    **{"left_ankle": (304, 188), "right_ankle": (296, 188)},
}
"""From nose to ankles 76 pixels, the torso 25."""


@dataclass(frozen=True)
class At:
    time_ns: int


@dataclass(frozen=True)
class Pose:
    """One person in one frame: some joints moved, or not known (None); `feet` moves the whole person there."""

    moved: dict[str, tuple[float, float] | None]
    feet: tuple[float, float] = (300.0, 190.0)
    id: int = 1
    scale: float = 1.0
    mirrored: bool = False

    @property
    def places(self) -> dict[str, tuple[float, float] | None]:
        return {name: self._place(place) for name, place in {**STANDING, **self.moved}.items()}

    def _place(self, place: tuple[float, float] | None) -> tuple[float, float] | None:
        if place is None:
            return None
        x, y = place[0] + self.feet[0] - 300, place[1] + self.feet[1] - 190
        return ((SIZE[0] - x if self.mirrored else x) * self.scale, y * self.scale)

    @property
    def box(self) -> tuple[float, float, float, float]:
        x, y = self._place((300, 190)) or (0, 0)
        return x - 10 * self.scale, y - 90 * self.scale, x + 10 * self.scale, y

    @property
    def keypoints(self) -> list[tuple[float, float, float]]:
        rows = []
        for name in COCO_17:
            own = name
            if self.mirrored and name.startswith(("left_", "right_")):
                side, joint = name.split("_")
                own = f"{'right' if side == 'left' else 'left'}_{joint}"
            place = self.places[own]
            rows.append((place[0], place[1], 0.9) if place else (0.0, 0.0, 0.0))
        return rows


def still(**moved: tuple[float, float] | None) -> Pose:
    return Pose(moved)


def picture(time_ns: int, people: Sequence[Pose], *, alone: bool = False) -> Picture:
    n = len(people)
    boxes = np.array([pose.box for pose in people], np.float32).reshape(n, 4)
    keypoints = np.array([pose.keypoints for pose in people], np.float32).reshape(n, 17, 3)
    ids = np.array([pose.id for pose in people], np.int64)
    size = SIZE if not people else (round(SIZE[0] * people[0].scale), round(SIZE[1] * people[0].scale))
    return Picture(At(time_ns), ids, boxes, np.full(n, 0.9, np.float32), keypoints, size, alone=alone)


def rule(when: str, *, name: str = "rule", gap_s: float = 0.5, **given: Any) -> Rule:
    words = given.pop("words", {})
    condition = compile_condition(when, given.pop("scope", "person"), zones=ZONES, lines=LINES, words=words)
    seconds = {f"{key}_ns": round(value * SECOND) for key, value in given.items()}
    return Rule(name, "person", condition, None, Timing(**seconds), round(gap_s * SECOND), 0.3)


def answers(when: str, frames: Sequence[Pose | None], fps: float = 10, **given: Any) -> list[bool | None]:
    """The truth of a condition in each frame; None also for frames in which nobody was seen."""
    rules = [rule(when, name="true", **given), rule(f"not ({when})", name="false", **given)]
    judge = Judge(rules, lambda size: Surroundings(*size, ZONES, LINES))
    running: set[str] = set()
    truths: list[bool | None] = []
    for i, pose in enumerate(frames):
        for verdict in judge.judge(picture(round(i * SECOND / fps), [pose] if pose else [])):
            (running.discard if verdict.phase == "end" else running.add)(verdict.rule.id)
        assert len(running) < 2, "both the condition and its opposite are true"
        truths.append("true" in running if running and pose else None)
    return truths


def filmed(pose_at: Callable[[float], Pose | None], seconds: float, fps: float) -> list[Pose | None]:
    """The frames of a movement: `pose_at` of every frame's time in seconds."""
    return [pose_at(i / fps) for i in range(int(seconds * fps + 1e-6) + 1)]


def verdicts(one: Rule, frames: Sequence[Pose | None], fps: float = 10) -> Iterator[Verdict]:
    judge = Judge([one], lambda size: Surroundings(*size, ZONES, LINES))
    for i, pose in enumerate(frames):
        yield from judge.judge(picture(round(i * SECOND / fps), [pose] if pose else []))
    yield from judge.finish()
