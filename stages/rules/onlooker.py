"""Judges the same tracks by the same rules as the stage `rules`, for stages that show the judgement.

Tracks --judge--> incidents that run now, and why        rules -> zones and lines of the camera, in pixels
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from camgraph.stages.messages import Tracks
from camgraph.stages.rules.counting import Counting, Resets
from camgraph.stages.rules.firing import Firing, FiringRules, shapes_of
from camgraph.stages.rules.language.crowd import Picture
from camgraph.stages.rules.language.geometry import Surroundings
from camgraph.stages.rules.language.judge import Judge, Verdict
from camgraph.stages.rules.language.people import Point
from camgraph.stages.rules.language.vocabulary import label_word
from camgraph.stages.rules.python_functions import taken_failures
from camgraph.stages.rules.rule_set import ReadyRule, RuleSet
from camgraph.stages.vision.skeleton import BODY, COCO_17


def picture_of(item: Tracks) -> Picture:
    """The judge's view of the tracks. Own copies: a judge remembers, and the item's arrays may lie in shared memory."""
    known = item.skeleton == BODY and item.keypoints.shape[1] == len(COCO_17)
    boxes, scores, keypoints = item.boxes.copy(), item.scores.copy(), item.keypoints.copy()
    pairs = zip(item.ids.tolist(), item.continues.tolist(), strict=True)
    continues = {track: before for track, before in pairs if before}
    return Picture(
        item.stamp,
        item.ids.copy(),
        boxes,
        scores,
        keypoints,
        item.frame_size,
        known,
        item.stamp.alone,
        continues,
        _labels_of(item),
    )


def _labels_of(item: Tracks) -> list[dict[str, float]]:
    """Of each row, the classes by their words in conditions; none if no classifier has looked."""
    words = _words(item.label_names)
    return [dict(zip(words, row, strict=True)) for row in item.label_scores.tolist()] if words else []


@functools.lru_cache(maxsize=16)
def _words(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(label_word, names))


@dataclass(frozen=True, slots=True)
class Seen:
    """The things to show of one frame, in its pixels. `lines`: from and to, `rightward` goes to their right."""

    zones: Mapping[str, Sequence[Point]] = field(default_factory=dict)
    lines: Mapping[str, tuple[Point, Point]] = field(default_factory=dict)
    firing: Sequence[Firing] = ()


@dataclass(slots=True)
class _Camera:
    epoch: int
    rules: RuleSet
    judge: Judge
    ready: Sequence[ReadyRule]
    firing: FiringRules = field(default_factory=FiringRules)


class Onlooker:
    """Looks at the tracks of all cameras, those of each in order."""

    def __init__(self, rules: RuleSet, clocks: Mapping[str, str] | None = None) -> None:
        """`clocks`: camera -> whose its times are, for those of which the stage `rules` is told another clock."""
        self._rules, self._clocks = rules, clocks or {}
        self._cameras: dict[str, _Camera] = {}
        self._counting = Counting()

    def change(self, rules: RuleSet) -> None:
        """Look at the next frames by other rules."""
        self._rules = rules

    def floor(self, camera: str) -> float:
        """As `RuleSet.floor`, of the present rules."""
        return self._rules.floor(camera)

    def judge(self, item: Tracks, switches: Mapping[str, bool] | None = None, resets: Resets | None = None) -> Seen:
        """The view of its rules of the camera's next frame; a frame with a box that is no number changes nothing.

        `switches`, `resets`: those that somebody has set, as in `pipeline.stage.Context`.
        """
        camera = self._camera(item)
        now_ns = item.stamp.time_ns
        sound = np.isfinite(item.boxes).all() and np.isfinite(item.scores).all()
        dated = (self._clocks.get(item.stamp.camera) or item.stamp.clock) != "file"
        wall_ns = item.stamp.wall_ns if dated else None
        self._counting.resets = resets or {}
        self._counting.begin_frame(self._rules.file, item.stamp, dated=dated)
        asleep = self._rules.asleep(camera.ready, wall_ns, switches)
        for verdict in camera.judge.judge(picture_of(item), asleep) if sound else ():
            self._note(camera, verdict, now_ns)
        taken_failures()  # the stage `rules` has the same ones, and reports them
        shapes = shapes_of(self._rules, item.stamp.camera, item.frame_size)
        return Seen(shapes.zones, shapes.lines, camera.firing.now(now_ns))

    def forget(self, camera: str) -> None:
        """The camera has ended."""
        self._cameras.pop(camera, None)
        self._counting.end(camera, 0)

    def _camera(self, item: Tracks) -> _Camera:
        name = item.stamp.camera
        known = self._cameras.get(name)
        if known is None or known.epoch != item.stamp.epoch or item.stamp.alone:
            ready = self._rules.of_camera(name)
            judge = Judge([one.rule for one in ready], lambda size: self._around(name, size))
            known = self._cameras[name] = _Camera(item.stamp.epoch, self._rules, judge, ready)
        elif known.rules is not self._rules:
            self._change(known, name, item.stamp.time_ns)
        return known

    def _change(self, camera: _Camera, name: str, now_ns: int) -> None:
        """Go on with other rules; those that are as before remember."""
        before = {(one.definition.id, one.hash) for one in camera.ready}
        ready = self._rules.of_camera(name)
        same = {one.definition.id for one in ready if (one.definition.id, one.hash) in before}
        judge = Judge([one.rule for one in ready], lambda size: self._around(name, size))
        for verdict in judge.take_over(camera.judge, same):
            self._note(camera, verdict, now_ns)
        camera.rules, camera.judge, camera.ready = self._rules, judge, ready

    def _around(self, camera: str, size: tuple[int, int]) -> Surroundings:
        rules = self._rules
        return replace(rules.surroundings(camera, size), counters=self._counting.of(camera, rules.file))

    def _note(self, camera: _Camera, verdict: Verdict, now_ns: int) -> None:
        ready = next(one for one in camera.ready if one.definition.id == verdict.rule.id)
        camera.firing.note(ready, verdict, now_ns)
