"""The people of one camera, frame after frame: who is there, who is lost, and what is known of each from before."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from camgraph.stages.rules.language.geometry import Line, Surroundings
from camgraph.stages.rules.language.lens import Lens, LensEstimate, Turn, straightened
from camgraph.stages.rules.language.people import (
    FRONTAL,
    JOINTLESS,
    LOST_AFTER_NS,
    LOST_NS,
    NAN,
    UNSEEN,
    Joints,
    Past,
    Person,
    Point,
    add_build,
    nobody_knows,
    with_more,
)
from camgraph.stages.vision.frame_interval import FrameInterval
from camgraph.stages.vision.heads import Area
from camgraph.stages.vision.posture import Postures
from camgraph.stages.vision.skeleton import COCO_17

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
Ids = tuple[int, ...]
Numbers = tuple[list[Joints], ...]
"""Some numbers of rows of joints: of the (first) person of each subject, then of the second one of each."""

LINE_MARGIN = 0.05
"""A side of a line counts from so many body heights away on: who stands on it does not cross it all the time."""
_BORDER = 0.01
"""Of the frame: a box that ends so near to its border ends at it."""
_WALKS, _SURE = 0.3, 0.3
"""Body heights a second, from which on people teach how the camera looks down; and the confidence of their joints."""
_SAME_PLACE = 0.3
"""Who begins with so much of their box in that of somebody who was lost goes on for them."""
_REPLACED_NS = 1_500_000_000
"""So long after somebody was last seen: the tracker takes a moment to be sure of somebody new."""
_AHEAD_S = 1.0
"""Who would have been out of the frame after so long, going on as before, has left it."""


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
    alone: bool = False
    """A photograph: nothing came before it, so conditions that look back in time are unknown."""
    continues: Mapping[int, int] = field(default_factory=dict)
    """Id -> that of an earlier track, which is likely the same person's."""
    labels: Sequence[Mapping[str, float]] = ()
    """Of each row, if classifiers have looked: class -> score, NaN if unknown."""
    heads: Sequence[Area] | None = None
    """The areas of all heads, if they are to be hidden."""
    lost: tuple[Picture, ...] = ()
    """For each of the last rows, a person out of sight: the picture in which that person was last seen."""

    @property
    def time_ns(self) -> int:
        return int(self.moment.time_ns)

    def showing(self, rows: Sequence[int]) -> Picture:
        """This picture if it shows one of `rows` or `rows` is empty; else the newest picture that shows one."""
        seen = len(self.ids) - len(self.lost)
        if not rows or min(rows) < seen:
            return self
        return max((self.lost[row - seen] for row in rows), key=lambda picture: picture.time_ns)


class Bodies:
    """The joints of everybody in a frame above a confidence, and the values behind them (`with_more`): a row each.

    A frame has a thousand numbers, of which most rules ask for few: so only those become Python's, and the last ones of
    a row are computed if somebody asks for them.
    """

    def __init__(self, values: F64, lost: int = 0, *, complete: bool = False) -> None:
        """`lost`: so many more people, who are not seen, have rows behind them. `complete`: with the last ones."""
        self._values = values
        self._complete = complete
        self._lost = lost
        self._rows: dict[int, Joints] = {}

    def joints(self, row: int) -> Joints:
        """All numbers of one person's row."""
        if row >= len(self._values):
            return UNSEEN
        if row not in self._rows:
            self._rows[row] = self._all()[row].tolist()
        return self._rows[row]

    def columns(self, places: NDArray[np.intp] | None) -> list[Joints]:
        """The numbers at some places of each row, in ascending order, or all of them (None)."""
        if places is None:
            return [*self._all().tolist(), *[UNSEEN] * self._lost]
        values = self._all() if places[-1] >= FRONTAL else self._values
        return [*values.take(places, axis=1).tolist(), *[UNSEEN[: len(places)]] * self._lost]

    def _all(self) -> F64:
        if not self._complete:
            add_build(self._values)
            self._complete = True
        return self._values


@dataclass(slots=True)
class Subject:
    """The input of a rule in one frame: the people, or the scene, and the rows of the people concerned."""

    ids: Ids
    rows: tuple[int, ...]
    known: tuple[Any, ...]
    """The arguments of its condition, except for the joints."""
    bodies: Bodies | None = None
    seen: bool = True
    """Whether they are in the frame; who is lost is judged, too."""
    members: Ids = ()
    """Of a group: the track ids of all of it."""
    _arguments: tuple[Any, ...] = ()

    @property
    def arguments(self) -> tuple[Any, ...]:
        """All arguments of its condition: before each person their joints."""
        bodies = self.bodies
        if bodies is None:
            return self.known
        if not self._arguments:
            *people, around = self.known
            self._arguments = (*(one for person in people for one in (bodies.joints(person.row), person)), around)
        return self._arguments


def numbers_of(subjects: Collection[Subject], places: NDArray[np.intp] | None) -> Numbers:
    """The numbers at some places of the rows of joints, None: at all; of scenes, and at no place, there are none.

    `subjects`: those of one frame, scope and floor of confidence.
    """
    first = next(iter(subjects), None)
    if first is None or first.bodies is None or (places is not None and not len(places)):
        return ()
    columns = first.bodies.columns(places)
    return tuple([columns[one.rows[i]] for one in subjects] for i in range(len(first.rows)))


@dataclass(slots=True)
class _Last:
    """The last sight of somebody: the row in a picture, and for how long, in all, frames had not come until then."""

    picture: Picture
    row: int
    stalled_ns: int

    def unseen_ns(self, now_ns: int, interval: FrameInterval) -> int:
        """For how long nobody has seen them. In a stall nobody looked, so it does not count."""
        return now_ns - self.picture.time_ns - (interval.stalled_ns - self.stalled_ns)


class _Gone(NamedTuple):
    """Somebody who is no longer seen. `left`: by the border."""

    id: int
    unseen_ns: int
    left: bool
    last: _Last


@dataclass(slots=True)
class Crowd:
    """Everybody whom a camera has seen, and has not forgotten."""

    _past: dict[int, Past] = field(default_factory=dict)
    _last: dict[int, _Last] = field(default_factory=dict)
    _estimate: LensEstimate = field(default_factory=LensEstimate)
    _postures: Postures = field(default_factory=Postures)
    _all_since_ns: float = math.inf
    """All tracks were last seen at this time or later."""

    def forget(self, before_ns: int) -> set[int]:
        """Forget the tracks that were last seen before a time, and return their ids."""
        if self._all_since_ns >= before_ns:
            return set()
        gone = {track_id for track_id, past in self._past.items() if past.seen_ns < before_ns}
        for track_id in gone:
            del self._past[track_id]
            self._last.pop(track_id, None)
        self._all_since_ns = min((past.seen_ns for past in self._past.values()), default=before_ns)
        return gone

    def knows(self, ids: Ids) -> bool:
        """Whether none of these tracks has been forgotten."""
        return all(track_id in self._past for track_id in ids)

    def forget_shapes(self, zones: Collection[str], lines: Collection[str]) -> None:
        """Keep only in which of these zones, and on which side of these lines, people were."""
        for past in self._past.values():
            past.inside = {name: inside for name, inside in past.inside.items() if name in zones}
            past.sides = {name: side for name, side in past.sides.items() if name in lines}

    def clear(self) -> None:
        self._past.clear()
        self._last.clear()
        self._postures = Postures()

    def seen(self, picture: Picture, around: Surroundings, interval: FrameInterval, *, with_lost: bool) -> Cast:
        """The people of the next frame; `with_lost`: also those who are no longer seen. `interval` knows this frame."""
        self._all_since_ns = min(self._all_since_ns, picture.time_ns)
        people = list(self._people(picture, around))
        if self._last:
            self._forget_replaced(picture, people, interval)
        gone = list(self._gone(picture, interval)) if with_lost else []
        if with_lost and not picture.alone:
            stalled_ns = interval.stalled_ns
            self._last.update({person.id: _Last(picture, person.row, stalled_ns) for person in people})
        lens = self._learnt(picture, people) if around.lens == "learn" else around.lens
        return Cast(picture, people, around, gone, lens)

    def _learnt(self, picture: Picture, people: Sequence[Person]) -> Lens | None:
        now = self._estimate.lens(picture.size)
        rows = [person.row for person in people if person.speed > _WALKS * person.h]
        if rows and picture.joints_known:
            self._estimate.look(_sure_places(picture)[rows], picture.size)
        return now

    def _people(self, picture: Picture, around: Surroundings) -> Iterator[Person]:
        """In the order of their ids, each with the facts known from before."""
        boxes, scores = picture.boxes.tolist(), picture.scores.tolist()
        confidences = (
            picture.keypoints[:, :, 2].tolist() if picture.joints_known else [[0.0] * len(COCO_17)] * len(boxes)
        )
        ids, time_ns = picture.ids.tolist(), picture.time_ns
        zones, still = around.zones.items(), dict.fromkeys(around.zones, 0)
        inside, labels, scores_of = _NOTHING, _NOTHING, self._scores_of(picture, around)
        for row in sorted(range(len(ids)), key=ids.__getitem__):
            left, top, right, bottom = boxes[row]
            if still:
                x, inside = (left + right) / 2, {}
                for name, zone in zones:
                    inside[name] = zone(x, bottom)
            if picture.labels:
                labels = picture.labels[row]
            person = Person(
                ids[row],
                row,
                left,
                top,
                right,
                bottom,
                scores[row],
                confidences[row],
                inside,
                labels,
                scores_of.get(ids[row], nobody_knows),
                _NOTHING,
                _NOTHING,
            )
            if not picture.alone:
                self._remember(person, time_ns, around, still)
            yield person

    def _scores_of(self, picture: Picture, around: Surroundings) -> Mapping[int, Callable[[str], float]]:
        """Of each person by id, if a rule asks; of a photograph nobody knows."""
        if around.network is None or picture.alone or not picture.joints_known:
            return {}
        found = self._postures.seen(picture.time_ns, picture.size, picture)
        return {track: partial(posture.score, network=around.network) for track, posture in found.items()}

    def _remember(self, person: Person, time_ns: int, around: Surroundings, still: Mapping[str, int]) -> None:
        """Add the facts that earlier frames tell; of a photograph they stay unknown. `still`: no zone was entered."""
        past = self._past.get(person.id)
        if past is None:
            past = self._past[person.id] = Past(time_ns, time_ns)
        person.age = (time_ns - past.first_ns) / 1e9
        person.lost_ns = -1
        person.speed = past.moved(time_ns, person.x, person.bottom)
        past.seen_ns = time_ns
        if around.lines:
            feet, margin = person.feet, LINE_MARGIN * person.h
            person.crossed = {name: _crossed(past, feet, margin, name, line) for name, line in around.lines.items()}
        if still:
            inside = person.inside
            person.entered = still if past.inside == inside else _entered(past.inside, inside)
            past.inside = inside

    def _gone(self, picture: Picture, interval: FrameInterval) -> Iterator[_Gone]:
        """Those whom few frames may have missed are unseen for 0 ns; if frames are few, all are lost for as long."""
        here, least_ns = set(picture.ids.tolist()), interval.at_least(0)
        until_ns = LOST_NS + max(0, least_ns - LOST_AFTER_NS)
        for track_id, last in self._last.items():
            unseen_ns = last.unseen_ns(picture.time_ns, interval)
            if track_id not in here and unseen_ns <= until_ns:
                lost_ns = unseen_ns if unseen_ns > least_ns else 0
                yield _Gone(track_id, lost_ns, self._left_frame(track_id, last), last)

    def _forget_replaced(self, picture: Picture, people: Sequence[Person], interval: FrameInterval) -> None:
        """Nobody is lost in whose place somebody begins at once: the tracker took the same person for another one.

        Who begins there later may be somebody who comes to help.
        """
        begun = [person for person in people if not picture.alone and self._past[person.id].first_ns == picture.time_ns]
        here = {person.id for person in people} if begun else set()
        for person in begun:
            lost = [(track_id, last) for track_id, last in self._last.items() if track_id not in here]
            for track_id, last in lost:
                at_once = last.unseen_ns(picture.time_ns, interval) <= interval.at_least(_REPLACED_NS)
                if at_once and _shared(last.picture.boxes[last.row].tolist(), person) >= _SAME_PLACE:
                    del self._last[track_id]

    def _left_frame(self, track_id: int, last: _Last) -> bool:
        """Whether somebody left by the border: the box ended there, or would have been beyond it soon."""
        (left, top, right, bottom), (width, height) = last.picture.boxes[last.row].tolist(), last.picture.size
        if left <= _BORDER * width or right >= (1 - _BORDER) * width or bottom >= (1 - _BORDER) * height:
            return True
        x, y = self._past[track_id].velocity
        ahead_x, ahead_y = (left + right) / 2 + x * _AHEAD_S, (top + bottom) / 2 + y * _AHEAD_S
        return not (0 <= ahead_x <= width and 0 <= ahead_y <= height)


def _shared(box_xyxy: Sequence[float], person: Person) -> float:
    """The part of the smaller of both boxes that lies in the other one."""
    left, top, right, bottom = box_xyxy
    width = min(right, person.right) - max(left, person.left)
    height = min(bottom, person.bottom) - max(top, person.top)
    smaller = min((right - left) * (bottom - top), (person.right - person.left) * (person.bottom - person.top))
    return max(width, 0.0) * max(height, 0.0) / max(smaller, 1e-9)


def _crossed(past: Past, feet: Point, margin: float, name: str, line: Line) -> int:
    distance = line.distance(*feet)
    if -margin <= distance <= margin:
        return 0
    side = 1 if distance > 0 else -1
    before = past.sides.get(name)
    past.sides[name] = (side, feet)
    return side if before and before[0] != side and line.met_by(before[1], feet) else 0


def _entered(before: Mapping[str, bool], inside: Mapping[str, bool]) -> dict[str, int]:
    return {name: int(now) - int(before.get(name, now)) for name, now in inside.items()}


class Cast:
    """The people that a frame's rules are about. Values that several rules need are computed once.

    `picture` has the people of the frame. `with_lost` also has a row for each who is no longer seen, as they last were.
    """

    def __init__(
        self,
        picture: Picture,
        people: Sequence[Person],
        around: Surroundings,
        gone: Sequence[_Gone],
        lens: Lens | None = None,
    ) -> None:
        self.picture = picture
        self._turns = None if lens is None else _turns(lens, picture)
        self.with_lost = _extended(picture, [one.last for one in gone])
        self.people = people
        if self._turns is not None:
            for person in people:
                person.turn = Turn(*self._turns[person.row].tolist())
        self.around = around
        self._gone = gone
        self._bodies: dict[float, Bodies] = {}
        self._subjects: dict[tuple[str, float, bool], dict[Ids, Subject]] = {}

    def subjects(self, scope: Literal["person", "pair"], floor: float, *, with_lost: bool) -> dict[Ids, Subject]:
        """Each person, or each two; joints below the floor of confidence are unknown."""
        key = (scope, floor, with_lost)
        found = self._subjects.get(key)
        if found is None:
            found = self._pairs(floor) if scope == "pair" else self._persons(floor)
            if with_lost:
                found |= self._lost(floor)
            self._subjects[key] = found
        return found

    def _persons(self, floor: float) -> dict[Ids, Subject]:
        bodies, around = self._bodies_above(floor), self.around
        return {(p.id,): Subject((p.id,), (p.row,), (p, around), bodies) for p in self.people}

    def _pairs(self, floor: float) -> dict[Ids, Subject]:
        bodies, around = self._bodies_above(floor), self.around
        return {
            (a.id, b.id): Subject((a.id, b.id), (a.row, b.row), (a, b, around), bodies)
            for a, b in combinations(self.people, 2)
        }

    def _lost(self, floor: float) -> dict[Ids, Subject]:
        bodies = self._bodies_above(floor)
        subjects: dict[Ids, Subject] = {}
        for row, one in enumerate(self._gone, start=len(self.picture.ids)):
            nobody = Person(
                one.id, row, NAN, NAN, NAN, NAN, NAN, _NOT_SURE, lost_ns=one.unseen_ns, left_picture=one.left
            )
            subjects[(one.id,)] = Subject((one.id,), (row,), (nobody, self.around), bodies, seen=False)
        return subjects

    def _bodies_above(self, floor: float) -> Bodies:
        """Joints below the confidence are NaN."""
        if floor not in self._bodies:
            lost = len(self._gone)
            if self.picture.joints_known:
                self._bodies[floor] = Bodies(with_more(self._places(floor)), lost)
            else:
                self._bodies[floor] = Bodies(_JOINTLESS_ROW.repeat(len(self.people), axis=0), lost, complete=True)
        return self._bodies[floor]

    def _places(self, floor: float) -> F64:
        keypoints = self.picture.keypoints
        places = keypoints[:, :, :2].astype(np.float64)
        # The confidence is compared as it came: 0.3 of a model is less than 0.3 in double precision.
        places[~(keypoints[:, :, 2] >= floor)] = NAN  # also of a confidence that is no number
        return places if self._turns is None else straightened(places, self._turns)


def _turns(lens: Lens, picture: Picture) -> NDArray[np.float64]:
    nowhere = np.full((len(picture.ids), len(COCO_17), 2), NAN)
    joints = _sure_places(picture) if picture.joints_known else nowhere
    return lens.turns(picture.boxes.astype(np.float64), joints, picture.size)


def _sure_places(picture: Picture) -> NDArray[np.float64]:
    """The places of joints (N, 17, 2); NaN for those of less confidence than `_SURE`."""
    places = picture.keypoints[:, :, :2].astype(np.float64)
    places[~(picture.keypoints[:, :, 2] >= _SURE)] = NAN
    return places


_NOTHING: Mapping[str, Any] = MappingProxyType({})
_JOINTLESS_ROW = np.array([JOINTLESS])
_NOT_SURE = [NAN] * len(COCO_17)


def _extended(picture: Picture, lost: Sequence[_Last]) -> Picture:
    """A picture with a further row for each of the lost."""
    if not lost:
        return picture

    def with_rows(name: str) -> Any:
        rows = [getattr(last.picture, name)[last.row][None] for last in lost]
        return np.concatenate([getattr(picture, name), *rows])

    arrays = {name: with_rows(name) for name in ("ids", "boxes", "scores", "keypoints")}
    tracks = [(last.picture.continues, int(last.picture.ids[last.row])) for last in lost]
    continues = {track: before[track] for before, track in tracks if track in before}
    pictures = tuple(last.picture for last in lost)
    return replace(picture, **arrays, continues={**picture.continues, **continues}, lost=pictures)
