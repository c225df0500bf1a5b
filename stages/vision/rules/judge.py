"""Judges the people of one camera, frame after frame. Depends only on the frames that it was given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from stages.vision.frame_interval import FrameInterval
from stages.vision.rules.condition import Condition, Scope
from stages.vision.rules.geometry import Surroundings, Zone
from stages.vision.rules.incidents import Incident, Timing, Watch
from stages.vision.rules.people import COCO_17, UNSEEN, Joints, Past, Person, Scene

F32 = NDArray[np.float32]
Ids = tuple[int, ...]
Why = Literal["condition", "unseen", "end"]

FORGET_NS = 30_000_000_000
"""A track that was not seen for so long is not remembered: it will not come back."""
LINE_MARGIN = 0.05
"""A side of a line counts from so many body heights away on: who stands on it does not cross it all the time."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule ready to use. `who` only for scenes: the people to count."""

    id: str
    scope: Scope
    when: Condition
    who: Condition | None
    timing: Timing
    gap_ns: int
    min_confidence: float


@dataclass(frozen=True, slots=True)
class Picture:
    """The people of one frame: `ids` (N,), `boxes` (N, 4) xyxy, `scores` (N,), `keypoints` (N, K, 3). Own copies.

    `joints_known`: the keypoints are those of COCO, (N, 17, 3) in their order.
    """

    moment: Any
    ids: NDArray[np.int64]
    boxes: F32
    scores: F32
    keypoints: F32
    size: tuple[int, int]
    joints_known: bool = True

    @property
    def time_ns(self) -> int:
        return int(self.moment.time_ns)


@dataclass(frozen=True, slots=True)
class Evidence:
    """A part of a condition with the two values that it compared, or its truth."""

    text: str
    kind: str
    values: tuple[float, float] | bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """A change to report about a rule: the incident, its person, and the people in `picture`."""

    rule: Rule
    ids: Ids
    phase: Literal["start", "update", "end"]
    incident: Incident[Picture]
    picture: Picture
    rows: tuple[int, ...]
    why: Why = "condition"
    evidence: tuple[Evidence, ...] = ()


@dataclass(slots=True)
class _Subject:
    """The input of a rule in one frame: the arguments of its condition, and the rows of the people concerned."""

    ids: Ids
    rows: tuple[int, ...]
    arguments: tuple[Any, ...]


_Judged = tuple[Ids, _Subject | None, bool | None]
"""Its person; the judgement (None: not in this frame): surely true, surely false or unknown."""


@dataclass(slots=True)
class _Watched:
    watch: Watch[Picture]
    rows: tuple[int, ...] = ()
    """The people at the incident's last true frame."""


@dataclass(slots=True)
class Judge:
    """All rules of one camera and epoch. `surroundings` gives the zones and lines for a frame size."""

    rules: Sequence[Rule]
    surroundings: Callable[[tuple[int, int]], Surroundings]
    judged: set[str] = field(default_factory=set)
    """The rules whose condition was surely true or surely false of somebody, at least once."""
    _watched: dict[str, dict[Ids, _Watched]] = field(default_factory=dict)
    _past: dict[int, Past] = field(default_factory=dict)
    _interval: FrameInterval = field(default_factory=FrameInterval)
    _around: Surroundings | None = None

    def judge(self, picture: Picture) -> Iterator[Verdict]:
        """The changes of the next frame, in the order of the rules and ids."""
        self._note_time(picture.time_ns)
        around = self._surroundings(picture.size)
        people = self._people(picture, around)
        cast = _Cast(picture, people, around)
        for rule in self.rules:
            yield from self._judge_rule(rule, picture, cast.subjects(rule))

    def finish(self) -> Iterator[Verdict]:
        """The ends of all incidents that are running; nothing is remembered afterwards."""
        for rule in self.rules:
            for ids, watched in sorted(self._watched.get(rule.id, {}).items()):
                incident = watched.watch.incident
                if incident and incident.running:
                    yield Verdict(rule, ids, "end", incident, incident.last, watched.rows, "end")
        self._watched.clear()
        self._past.clear()

    # ---- rules

    def _judge_rule(self, rule: Rule, picture: Picture, subjects: Iterable[_Subject]) -> Iterator[Verdict]:
        watched = self._watched.setdefault(rule.id, {})
        gap_ns = self._interval.at_least(rule.gap_ns)
        judge = rule.when.judge
        present: dict[Ids, tuple[_Subject, bool | None]] = {}
        known = False
        for subject in subjects:
            truth = judge(*subject.arguments)
            known = known or truth is not None
            if truth or subject.ids in watched:
                present[subject.ids] = (subject, truth)
        if known:
            self.judged.add(rule.id)
        for ids in sorted({*present, *watched}):
            judged = present.get(ids, (None, None))
            entry = watched.setdefault(ids, _Watched(Watch(rule.timing)))
            yield from self._step(rule, entry, picture, (ids, *judged), gap_ns)
            if entry.watch.idle(picture.time_ns):
                del watched[ids]

    def _step(self, rule: Rule, entry: _Watched, picture: Picture, judged: _Judged, gap_ns: int) -> Iterator[Verdict]:
        ids, subject, truth = judged
        before = entry.rows
        if truth and subject:
            entry.rows = subject.rows
        for step in entry.watch.step(picture, truth, gap_ns, seen=subject is not None):
            if step.phase == "end" or subject is None:
                yield Verdict(rule, ids, step.phase, step.incident, step.incident.last, before, step.why)
            else:
                evidence = tuple(_evidence(rule.when, subject.arguments))
                yield Verdict(rule, ids, step.phase, step.incident, picture, subject.rows, step.why, evidence)

    # ---- time

    def _note_time(self, time_ns: int) -> None:
        self._interval.note(time_ns)
        forget_ns = self._interval.at_least(FORGET_NS)
        for track_id in [i for i, past in self._past.items() if time_ns - past.seen_ns > forget_ns]:
            del self._past[track_id]

    # ---- people

    def _surroundings(self, size: tuple[int, int]) -> Surroundings:
        if self._around is None or (self._around.width, self._around.height) != size:
            self._around = self.surroundings(size)
        return self._around

    def _people(self, picture: Picture, around: Surroundings) -> list[Person]:
        """In the order of their ids, each with the facts known from before."""
        boxes, scores = picture.boxes.tolist(), picture.scores.tolist()
        confidences = (
            picture.keypoints[:, :, 2].tolist() if picture.joints_known else [[0.0] * len(COCO_17)] * len(boxes)
        )
        ids = picture.ids.tolist()
        people = []
        for row in sorted(range(len(ids)), key=ids.__getitem__):
            left, top, right, bottom = boxes[row]
            person = Person(ids[row], row, left, top, right, bottom, scores[row], confidences[row])
            self._remember(person, picture.time_ns, around)
            people.append(person)
        return people

    def _remember(self, person: Person, time_ns: int, around: Surroundings) -> None:
        past = self._past.get(person.id)
        if past is None:
            past = self._past[person.id] = Past(time_ns, time_ns)
        person.age = (time_ns - past.first_ns) / 1e9
        person.speed = past.moved(time_ns, person.feet)
        past.seen_ns = time_ns
        person.crossed = {name: _crossed(past, person, name, around) for name in around.lines}
        person.entered = {name: _entered(past, person, name, around) for name in around.zones}


def _crossed(past: Past, person: Person, name: str, around: Surroundings) -> int:
    line, feet = around.lines[name], person.feet
    distance = line.distance(*feet)
    if abs(distance) <= LINE_MARGIN * person.h:
        return 0
    side = 1 if distance > 0 else -1
    before = past.sides.get(name)
    past.sides[name] = (side, feet)
    return side if before and before[0] != side and line.met_by(before[1], feet) else 0


def _entered(past: Past, person: Person, name: str, around: Surroundings) -> int:
    inside = around.zones[name](*person.feet)
    before = past.inside.get(name, inside)
    past.inside[name] = inside
    return int(inside) - int(before)


class _Cast:
    """The people that a frame's rules are about. Values that several rules need are computed once."""

    def __init__(self, picture: Picture, people: Sequence[Person], around: Surroundings) -> None:
        self._picture = picture
        self._people = people
        self._around = around
        self._joints: dict[float, list[Joints]] = {}
        self._subjects: dict[tuple[Scope, float], list[_Subject]] = {}

    def subjects(self, rule: Rule) -> list[_Subject]:
        if rule.scope == "scene":
            return [self._scene(rule)]
        key = (rule.scope, rule.min_confidence)
        if key not in self._subjects:
            self._subjects[key] = self._pairs(key[1]) if rule.scope == "pair" else self._persons(key[1])
        return self._subjects[key]

    def _persons(self, floor: float) -> list[_Subject]:
        joints = self._joints_above(floor)
        return [_Subject((p.id,), (p.row,), (joints[p.row], p, self._around)) for p in self._people]

    def _pairs(self, floor: float) -> list[_Subject]:
        joints = self._joints_above(floor)
        return [
            _Subject((a.id, b.id), (a.row, b.row), (joints[a.row], a, joints[b.row], b, self._around))
            for a, b in combinations(self._people, 2)
        ]

    def _scene(self, rule: Rule) -> _Subject:
        joints = self._joints_above(rule.min_confidence)
        who = rule.who
        counted = [p for p in self._people if who is None or who.judge(joints[p.row], p, self._around)]
        return _Subject((), tuple(p.row for p in counted), (Scene(len(self._people), len(counted)), self._around))

    def _joints_above(self, floor: float) -> list[Joints]:
        """By row; joints below the confidence are NaN."""
        if not self._picture.joints_known:
            return [UNSEEN] * len(self._people)
        if floor not in self._joints:
            keypoints = self._picture.keypoints
            places = np.where(keypoints[:, :, 2:] >= floor, keypoints[:, :, :2], np.nan)
            self._joints[floor] = places.reshape(len(places), 2 * len(COCO_17)).tolist()
        return self._joints[floor]


def _evidence(condition: Condition, arguments: tuple[Any, ...]) -> Iterator[Evidence]:
    for (text, kind), values in zip(condition.parts, condition.values(*arguments), strict=True):
        yield Evidence(text, kind.name.lower(), values)


def zones_with(zones: Mapping[str, Zone], picture: Picture, rows: Iterable[int]) -> list[str]:
    """The names of those zones in which the feet of one of the people are."""
    feet = [((left + right) / 2, bottom) for left, _, right, bottom in (picture.boxes[row].tolist() for row in rows)]
    return [name for name, zone in zones.items() if any(zone(x, y) for x, y in feet)]
