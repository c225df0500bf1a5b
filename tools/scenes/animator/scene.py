"""Actors with scripts on a floor with furniture, and the frames that a camera and a pose model make of them.

    scene = Scene("two meet", [Actor([walk([(4, 0)])]), Actor([walk([(0, 1)])], x=4, heading_deg=180)])
    for seen in scene.frames(fps=12.5, seed=1, camera=Camera(x=2, y=-6, heading_deg=90), model=YOLO11N):
        print(seen.time_ns, seen.ids, seen.boxes)

The motions of a scene depend on the seed alone: every camera, model and frame rate sees the same people do the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from camgraph.tools.scenes.animator.body import Body, any_body
from camgraph.tools.scenes.animator.camera import Camera
from camgraph.tools.scenes.animator.glimpse import Glimpse, Presence, glimpses
from camgraph.tools.scenes.animator.kinematics import joints
from camgraph.tools.scenes.animator.motion import Motion, Take, played
from camgraph.tools.scenes.animator.observer import Detection, Observer
from camgraph.tools.scenes.animator.pose import COLUMN, Posture, row_of
from camgraph.tools.scenes.animator.pose_model import YOLO11N, PoseModel
from camgraph.tools.scenes.animator.silhouette import Block, Shapes

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
Ids = NDArray[np.int64]

STRETCH = 256
"""So many frames are calculated at once."""


@dataclass(frozen=True)
class Actor:
    """Somebody who does ``motions`` one after the other, from ``start_s`` on, and then keeps the last pose.

    They are in the scene between ``appears_s`` and ``gone_s``, even in the middle of a motion: so a fall can be lost.
    Without a ``body`` the seed chooses one. ``posture``: the one in which they begin.
    """

    motions: Sequence[Motion]
    x: float = 0.0
    y: float = 0.0
    heading_deg: float = 0.0
    start_s: float = 0.0
    appears_s: float = 0.0
    gone_s: float = float("inf")
    body: Body | None = None
    posture: Posture = field(default_factory=dict)

    def start(self) -> F64:
        row = row_of(self.posture)
        row[[COLUMN["x"], COLUMN["y"], COLUMN["yaw"]]] = self.x, self.y, np.radians(self.heading_deg)
        return row

    def present(self, moments: F64) -> NDArray[np.bool_]:
        """When they are in the scene, (T,) seconds -> (T,)."""
        return np.asarray((moments >= self.appears_s) & (moments < self.gone_s))


@dataclass(frozen=True)
class Truth:
    """Everybody of whom something is in the picture."""

    ids: Ids
    boxes: F32
    """(N, 4) around the whole body, also beyond the border and behind others."""
    seen_boxes: F32
    """(N, 4) around the parts that are seen, within the picture."""
    seen: F32
    """(N,) the share of the body that is seen."""
    keypoints: F32
    """(N, 17, 3) without noise, also of hidden joints; the third is 1 for a joint that is seen, 0 for any other."""


@dataclass(frozen=True)
class Seen:
    """One frame as the model reports it, best score first. ``ids`` are the actors', counted from 1; -1 is nobody.

    A second box on the same person is nobody's too.
    """

    time_ns: int
    ids: Ids
    boxes: F32
    scores: F32
    keypoints: F32
    truth: Truth
    frame_size: tuple[int, int]


@dataclass(frozen=True)
class Rhythm:
    """When frames come: ``jitter`` is the standard deviation of their times in frame intervals, ``dropped`` the share
    of frames that never come (in bursts of ``burst`` on average)."""

    fps: float
    jitter: float = 0.0
    dropped: float = 0.0
    burst: float = 1.5

    def times_ns(self, duration_s: float, seed: int) -> list[int]:
        """Rising moments, at least a fifth of an interval apart."""
        count = max(1, int(np.ceil(duration_s * self.fps - 1e-9)))
        rng = np.random.default_rng([seed, 5])
        when = np.arange(count) + np.clip(rng.normal(0, 1, count) * self.jitter, -0.4, 0.4)
        when[0] = max(0.0, when[0])
        kept, lost = [], False
        for at, draw in zip(when, rng.random(count), strict=True):
            stop = 1 / max(1.0, self.burst)
            begin = min(1.0, stop * self.dropped / max(1e-9, 1 - self.dropped))
            lost = draw >= stop if lost else draw < begin
            if not lost:
                kept.append(round(float(at) * 1e9 / self.fps))
        return kept


@dataclass(frozen=True)
class Scene:
    """``duration_s``: until the last actor has done everything, if it is not given."""

    name: str
    actors: Sequence[Actor]
    furniture: tuple[Block, ...] = ()
    duration_s: float | None = None

    def takes(self, seed: int) -> list[tuple[Body, Take]]:
        """Every actor's body and motions."""
        made = []
        for number, actor in enumerate(self.actors, start=1):
            rng = np.random.default_rng([seed, 3, number])
            body = actor.body or any_body(rng)
            made.append((body, played(actor.motions, body, actor.start(), rng)))
        return made

    def length_s(self, seed: int) -> float:
        return self._length_s(self.takes(seed))

    def _length_s(self, takes: Sequence[tuple[Body, Take]]) -> float:
        if self.duration_s is not None:
            return self.duration_s
        ends = (actor.start_s + take.duration_s for actor, (_, take) in zip(self.actors, takes, strict=True))
        return max(ends, default=0.0)

    def frames(
        self, fps: float | Rhythm = 25.0, seed: int = 0, camera: Camera | None = None, model: PoseModel = YOLO11N
    ) -> Iterator[Seen]:
        """What ``model`` reports of what ``camera`` sees, frame by frame; the same for the same arguments."""
        view = Camera() if camera is None else camera
        rhythm = fps if isinstance(fps, Rhythm) else Rhythm(fps)
        observer = Observer(model, view, seed)
        for time_ns, people in self._glimpses(rhythm, seed, view):
            yield _seen(time_ns, observer.report(time_ns / 1e9, people), people, view)

    def _glimpses(self, rhythm: Rhythm, seed: int, camera: Camera) -> Iterator[tuple[int, list[Glimpse]]]:
        takes = self.takes(seed)
        times = rhythm.times_ns(self._length_s(takes), seed)
        for first in range(0, len(times), STRETCH):
            stretch = times[first : first + STRETCH]
            moments = np.array(stretch) / 1e9
            people = [
                self._presence(number, one, moments, camera)
                for number, one in enumerate(zip(self.actors, takes, strict=True), start=1)
                if one[0].present(moments).any()
            ]
            for row, time_ns in enumerate(stretch):
                yield time_ns, glimpses(people, row, camera)

    def _presence(self, number: int, one: tuple[Actor, tuple[Body, Take]], moments: F64, camera: Camera) -> Presence:
        actor, (body, take) = one
        nodes = joints(body, take.sample(np.clip(moments - actor.start_s, 0, take.duration_s)))
        shapes = Shapes.of(body, nodes, camera, self.furniture)
        nearest, farthest = shapes.depths.min(axis=1), shapes.depths.max(axis=1)
        return Presence(number, shapes, nodes, body.build, actor.present(moments), shapes.boxes(), nearest, farthest)


def _seen(time_ns: int, found: Sequence[Detection], people: Sequence[Glimpse], camera: Camera) -> Seen:
    return Seen(
        time_ns,
        np.array([one.number for one in found], np.int64),
        np.array([one.box for one in found], np.float32).reshape(-1, 4),
        np.array([one.score for one in found], np.float32),
        np.array([one.keypoints for one in found], np.float32).reshape(-1, 17, 3),
        _truth(people),
        camera.size,
    )


def _truth(people: Sequence[Glimpse]) -> Truth:
    keypoints = np.zeros((len(people), 17, 3), np.float32)
    for row, one in enumerate(people):
        keypoints[row, :, :2] = np.nan_to_num(one.keypoints, nan=-1e4)
        keypoints[row, :, 2] = one.facing & one.free & one.inside
    return Truth(
        np.array([one.number for one in people], np.int64),
        np.array([one.full_box for one in people], np.float32).reshape(-1, 4),
        np.array([one.seen_box for one in people], np.float32).reshape(-1, 4),
        np.array([one.seen for one in people], np.float32),
        keypoints,
    )
