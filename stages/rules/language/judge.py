"""Judges the people of one camera, frame after frame. Depends only on the frames that it was given."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, Literal

from camgraph.stages.rules.language.code_cell import Reported
from camgraph.stages.rules.language.condition import Condition
from camgraph.stages.rules.language.counters import Counter
from camgraph.stages.rules.language.crowd import Cast, Crowd, Ids, Picture, Subject, numbers_of
from camgraph.stages.rules.language.geometry import Surroundings, Zone
from camgraph.stages.rules.language.groups import Groups, Nearness
from camgraph.stages.rules.language.incidents import Incident, Timing, Watch
from camgraph.stages.rules.language.kinds import Kind
from camgraph.stages.rules.language.needs import without_joints
from camgraph.stages.rules.language.people import Clock, Person, Scene
from camgraph.stages.rules.language.program import Key, Memory, Program, program_of
from camgraph.stages.vision.frame_interval import FrameInterval

Why = Literal["condition", "unseen", "end", "schedule", "switch", "reload"]

FORGET_NS = 30_000_000_000
"""A track that was not seen for so long is not remembered: it will not come back."""


RuleScope = Literal["person", "pair", "scene", "group"]
_COUNTED = ("scene", "group")
"""Rules about several people together, whom each rule counts by itself."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule ready to use. `who` only for scenes and groups: the people to count. `nearness`: only for groups.

    `until`: an incident goes on until this is true, although `when` no longer is.
    """

    id: str
    scope: RuleScope
    when: Condition
    who: Condition | None
    timing: Timing
    gap_ns: int
    min_confidence: float
    nearness: Nearness | None = None
    until: Condition | None = None

    @property
    def conditions(self) -> dict[str, Condition]:
        """All that it has, by key."""
        return {
            key: one for key, one in (("when", self.when), ("until", self.until), ("who", self.who)) if one is not None
        }

    @property
    def asks_about(self) -> frozenset[str]:
        """The rules whose incidents its conditions ask about."""
        return frozenset(name for one in self.conditions.values() for name in one.rules)

    @property
    def labels(self) -> frozenset[str]:
        """The classes of classifiers that its conditions ask about."""
        return frozenset(name for one in self.conditions.values() for name in one.labels)

    @property
    def needs_joints(self) -> bool:
        """Whether it can never be true of people of whom the boxes alone are known."""
        deciding = [one.truth for one in (self.when, self.who) if one is not None]
        return not all(without_joints(one).true for one in deciding)

    @property
    def asks_network(self) -> bool:
        """Whether its conditions ask what people look like."""
        return any(one.asks_network for one in self.conditions.values())


@dataclass(frozen=True, slots=True)
class Evidence:
    """A part of a condition with the two values that it compared, its truth, or what its function reports."""

    text: str
    kind: str
    values: tuple[float, float] | bool | Reported | None
    """None: a truth that is unknown."""


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
    everyone: tuple[int, ...] = ()
    """Of an incident that was merged of several: all of its people so far. Of a group: its members."""


_Judged = tuple[Ids, Subject | None, bool | None]
"""Its person; the judgement (None: not in this frame): surely true, surely false or unknown."""


@dataclass(slots=True)
class _Watched:
    watch: Watch[Picture]
    rows: tuple[int, ...] = ()
    """The people at the incident's last true frame."""
    members: Ids = ()
    """Of a group, at that frame."""


@dataclass(frozen=True, slots=True)
class _About:
    """The people that conditions are judged of together. `rule`: of those that each rule counts by itself."""

    scope: RuleScope
    floor: float
    with_lost: bool
    rule: str = ""


@dataclass(slots=True)
class _Group:
    """Conditions about the same people, in one program, and the memory of each of them."""

    about: _About
    program: Program
    memories: dict[Ids, Memory] = field(default_factory=dict)
    true: dict[int, list[Subject]] = field(default_factory=dict)
    """Of the present frame: place of a condition -> of whom it is surely true."""


@dataclass(slots=True)
class _Placed:
    """A rule, and where its condition stands, as well as that of the people whom it counts: group and place.

    `until`: the place in the same group.
    """

    rule: Rule
    group: _Group
    place: int
    who: tuple[_Group, int] | None
    until: int | None = None
    id: str = field(init=False)
    counts: bool = field(init=False)
    """Whether it is about several people together."""

    def __post_init__(self) -> None:
        self.id, self.counts = self.rule.id, self.rule.scope in _COUNTED

    @property
    def with_lost(self) -> bool:
        """Whether one of them is also judged of people who are no longer seen."""
        return self.group.about.with_lost or (self.who is not None and self.who[0].about.with_lost)


@dataclass(slots=True)
class _Level:
    """Rules that ask about the incidents of lower levels only. Groups of people; the scenes come after them."""

    groups: list[_Group]
    rules: list[_Placed]


@dataclass(slots=True)
class Judge:
    """All rules of one camera and epoch. `surroundings` gives the zones and lines for a frame size."""

    rules: Sequence[Rule]
    surroundings: Callable[[tuple[int, int]], Surroundings]
    judged: set[str] = field(default_factory=set)
    """The rules whose condition was surely true or surely false of somebody, at least once."""
    _levels: list[_Level] = field(default_factory=list)
    _with_lost: bool = False
    _watched: dict[str, dict[Ids, _Watched]] = field(default_factory=dict)
    _running: dict[str, dict[Ids, Ids]] = field(default_factory=dict)
    """Rule -> its incidents that are running, each with its people; of a group, at the last true frame."""
    _inherited: dict[tuple[_About, Ids], dict[Key, Any]] = field(default_factory=dict)
    """Cells of the judge before this one."""
    _crowd: Crowd = field(default_factory=Crowd)
    _interval: FrameInterval = field(default_factory=FrameInterval)
    _clock: Clock = field(default_factory=Clock)
    _around: Surroundings | None = None
    _groupings: dict[Nearness, Groups] = field(default_factory=dict)
    _together: dict[Nearness, dict[int, tuple[Person, ...]]] = field(default_factory=dict)
    """The groups of the present frame, by number."""

    def __post_init__(self) -> None:
        self._levels = [_level(rules) for rules in in_levels(self.rules)]
        self._with_lost = any(group.about.with_lost for level in self._levels for group in level.groups)
        self._groupings = {rule.nearness: Groups(rule.nearness) for rule in self.rules if rule.nearness}

    def judge(self, picture: Picture, asleep: Mapping[str, Why] | None = None) -> Iterator[Verdict]:
        """The changes of the next frame, in the order of the rules and ids.

        `asleep`: rule -> why it is not judged in this frame. Its incidents end, and it begins anew when it wakes; its
        condition remembers meanwhile.
        """
        self._note_time(picture.time_ns)
        around = self._surroundings(picture.size)
        cast = self._crowd.seen(picture, around, self._interval, with_lost=self._with_lost)
        for counter in around.counters.values():
            counter.step(cast.people)
        at_least_ns = self._interval.at_least(0)
        self._together = {
            near: groups.step(cast.people, picture.time_ns, at_least_ns) for near, groups in self._groupings.items()
        }
        verdicts: dict[int, list[Verdict]] = {}
        for level in self._levels:
            for group in level.groups:
                about = group.about
                assert about.scope != "scene" and about.scope != "group"  # noqa: PT018, PLR1714 - for mypy
                subjects = cast.subjects(about.scope, about.floor, with_lost=about.with_lost)
                self._ask(group, subjects, alone=picture.alone)
            for placed in level.rules if asleep else self._due(level):
                found = self._of_rule(placed, cast, asleep or {})
                if found:
                    verdicts[id(placed.rule)] = found
        if verdicts:
            for rule in self.rules:
                yield from verdicts.get(id(rule), ())

    def _due(self, level: _Level) -> list[_Placed]:
        """The rules of a level for which this frame means something; most are true of nobody for most of the time."""
        watched, judged = self._watched, self.judged
        return [
            placed
            for placed in level.rules
            if placed.counts or placed.place in placed.group.true or placed.id in watched or placed.id not in judged
        ]

    def finish(self) -> Iterator[Verdict]:
        """The ends of all incidents that are running; nothing is remembered afterwards."""
        for rule in self.rules:
            yield from self._rest(rule, "end")
        self._watched.clear()
        self._crowd.clear()
        for group in self._groups():
            group.memories.clear()

    def take_over(self, other: Judge, same: Collection[str]) -> list[Verdict]:
        """Go on where another judge of the same camera stopped; `same`: the ids of rules that did not change.

        Returns the ends of the incidents of the others, of which nothing is remembered, nor of zones and lines that
        only they used, unless a counter that goes on counts there.
        """
        ends = [verdict for rule in other.rules if rule.id not in same for verdict in other._rest(rule, "reload")]
        self._watched, self._running = other._watched, other._running
        self.judged |= other.judged & set(same)
        self._crowd, self._interval, self._clock = other._crowd, other._interval, other._clock
        self._groupings |= {near: groups for near, groups in other._groupings.items() if near in self._groupings}
        kept = [rule for rule in other.rules if rule.id in same]
        conditions = [condition for rule in kept for condition in rule.conditions.values()]
        zones, lines = (
            {name for condition in conditions for name in getattr(condition, kind)} for kind in ("zones", "lines")
        )
        for counter in self._going_on(other):
            (zones if counter.of == "zone" else lines).add(counter.shape)
        self._crowd.forget_shapes(zones, lines)
        for level in other._levels:
            for placed in level.rules:
                until = None if placed.until is None else (placed.group, placed.until)
                for at in ((placed.group, placed.place), until, placed.who):
                    if at and placed.rule.id in same:
                        self._inherit(*at, other._inherited)
        self._drop_inherited()
        return ends

    def _going_on(self, other: Judge) -> list[Counter]:
        """The counters of another judge that are also those of this one."""
        if other._around is None:
            return []
        own = self._surroundings((other._around.width, other._around.height)).counters.values()
        return [counter for counter in other._around.counters.values() if any(counter is one for one in own)]

    def _inherit(self, group: _Group, place: int, before: Mapping[tuple[_About, Ids], dict[Key, Any]]) -> None:
        """Take the cells of one condition over, for the people that they know.

        `before`: those that the other had taken over, of people who have not come back since.
        """
        keys = list(group.program.cells)
        own = [keys[i] for i in group.program.places[place]]
        for ids, memory in group.memories.items() if own else ():
            self._inherited.setdefault((group.about, ids), {}).update({key: memory.cells[key] for key in own})
        for (about, ids), cells in before.items() if own else ():
            if about == group.about and ids not in group.memories:
                kept = {key: cells[key] for key in own if key in cells}
                self._inherited.setdefault((about, ids), {}).update(kept)

    # ---- conditions

    def _groups(self) -> Iterator[_Group]:
        for level in self._levels:
            yield from level.groups
            for placed in level.rules:
                if placed.counts:
                    yield placed.group

    def _ask(self, group: _Group, subjects: Mapping[Ids, Subject], *, alone: bool) -> None:
        """Ask all conditions of a group about everybody."""
        program, memories, present = group.program, group.memories, []
        numbers = numbers_of(subjects.values(), program.reads)
        if program.step is not None:
            present = [memories.get(ids) or self._new_memory(group, ids) for ids in subjects]
            for memory in present:
                memory.stepped_ns = self._clock.now_ns
            if not alone:
                program.step(subjects.values(), present, numbers, self._clock)
        group.true = program.hits(subjects.values(), present, numbers)
        if len(memories) > len(subjects):
            self._forget(group)

    def _new_memory(self, group: _Group, ids: Ids) -> Memory:
        inherited = self._inherited.pop((group.about, ids), None) if self._inherited else None
        memory = group.memories[ids] = group.program.new_memory(inherited)
        return memory

    def _forget(self, group: _Group) -> None:
        before_ns = self._clock.now_ns - self._interval.at_least(FORGET_NS)
        for ids in [ids for ids, memory in group.memories.items() if memory.stepped_ns < before_ns]:
            del group.memories[ids]

    def _truth(self, placed: _Placed, subject: Subject) -> bool | None:
        """The three-valued truth of a rule's condition, in the frame in which its group was asked."""
        condition, group = placed.rule.when, placed.group
        if not condition.cells:
            return condition.judge(*subject.arguments)
        return condition.judge(*subject.arguments, group.program.of_one(placed.place, group.memories[subject.ids])[0])

    def _evidence(self, placed: _Placed, subject: Subject) -> Iterator[Evidence]:
        condition, arguments, group = placed.rule.when, subject.arguments, placed.group
        if condition.cells:
            values, cells = group.program.of_one(placed.place, group.memories[subject.ids])
            arguments = (*arguments, values, cells, self._clock)
        for (text, kind), found in zip(condition.parts, condition.values(*arguments), strict=True):
            if kind is Kind.REPORTED and not found:
                continue
            yield Evidence(text, kind.name.lower(), found)

    # ---- rules

    def _of_rule(self, placed: _Placed, cast: Cast, asleep: Mapping[str, Why]) -> list[Verdict]:
        rule = placed.rule
        subjects: Mapping[Ids, Subject] = {}
        if placed.counts:
            subjects = {(): self._scene(placed, cast)} if rule.scope == "scene" else self._in_groups(placed, cast)
            self._ask(placed.group, subjects, alone=cast.picture.alone)
        if asleep and rule.id in asleep:
            return list(self._rest(rule, asleep[rule.id]))
        true = placed.group.true.get(placed.place, ())
        watched = self._watched.get(rule.id)
        if not true and not watched and rule.id in self.judged:
            return []
        if rule.scope != "scene" and rule.scope != "group":  # noqa: PLR1714 - mypy understands this
            subjects = cast.subjects(rule.scope, rule.min_confidence, with_lost=placed.group.about.with_lost)
        self._note_judged(placed, true, subjects.values())
        if not true and not watched:
            return []
        picture = cast.with_lost if placed.with_lost else cast.picture
        return list(self._judge_rule(placed, true, subjects, picture))

    def _scene(self, placed: _Placed, cast: Cast) -> Subject:
        if placed.who is None:
            rows = [person.row for person in cast.people]
        else:
            rows = [subject.rows[0] for subject in placed.who[0].true.get(placed.who[1], ())]
        return Subject((), tuple(rows), (Scene(len(cast.people), len(rows)), cast.around))

    def _in_groups(self, placed: _Placed, cast: Cast) -> dict[Ids, Subject]:
        """Each group by its number, which is negative here: tracks have the others."""
        assert placed.rule.nearness
        watched, groups = self._watched.get(placed.rule.id, {}), self._groupings[placed.rule.nearness]
        for ids in [ids for ids in watched if not watched[ids].watch.incident and not groups.knows(-ids[0])]:
            del watched[ids]  # as in `_drop_watches`
        counted = None
        if placed.who is not None:
            counted = {subject.rows[0] for subject in placed.who[0].true.get(placed.who[1], ())}
        found: dict[Ids, Subject] = {}
        for number, group in self._together[placed.rule.nearness].items():
            rows = tuple(person.row for person in group if counted is None or person.row in counted)
            scene, members = Scene(len(group), len(rows)), tuple(person.id for person in group)
            found[(-number,)] = Subject((-number,), rows, (scene, cast.around), members=members)
        return found

    def _note_judged(self, placed: _Placed, true: Sequence[Subject], subjects: Iterable[Subject]) -> None:
        rule = placed.rule
        if rule.id not in self.judged and (
            true or any(self._truth(placed, subject) is not None for subject in subjects)
        ):
            self.judged.add(rule.id)

    def _judge_rule(
        self, placed: _Placed, true: Sequence[Subject], subjects: Mapping[Ids, Subject], picture: Picture
    ) -> Iterator[Verdict]:
        rule = placed.rule
        watched = self._watched.setdefault(rule.id, {})
        gap_ns = self._interval.at_least(rule.gap_ns)
        present: dict[Ids, tuple[Subject | None, bool | None]] = {subject.ids: (subject, True) for subject in true}
        for ids in watched:
            if ids not in present:
                subject = subjects.get(ids)
                present[ids] = (subject, self._truth(placed, subject) if subject else None)
        if placed.until is not None:
            present |= {ids: (subject, True) for ids, subject in self._going_on_until(placed, present)}
        for ids in sorted(present):
            entry = watched.get(ids)
            if entry is None:
                entry = watched[ids] = _Watched(Watch(rule.timing))
            yield from self._step(placed, entry, picture, (ids, *present[ids]), gap_ns)
            if entry.watch.idle(picture.time_ns):
                del watched[ids]
        if not watched:
            del self._watched[rule.id]

    def _going_on_until(
        self, placed: _Placed, present: Mapping[Ids, tuple[Subject | None, bool | None]]
    ) -> Iterator[tuple[Ids, Subject]]:
        """People in sight whose incident goes on, because `until` is not known to be true of them."""
        assert placed.until is not None
        over = {subject.ids for subject in placed.group.true.get(placed.until, ())}
        running = self._running.get(placed.rule.id, {})
        for ids, (subject, truth) in present.items():
            if subject and not truth and ids in running and ids not in over and subject.seen:
                yield ids, subject

    def _step(
        self, placed: _Placed, entry: _Watched, picture: Picture, judged: _Judged, gap_ns: int
    ) -> Iterator[Verdict]:
        ids, subject, truth = judged
        rule, before, members = placed.rule, entry.rows, entry.members
        if truth and subject:
            entry.rows, entry.members = subject.rows, subject.members
        # Who is unseen for less than `lost_after` still is a subject; then only what is known counts as seen.
        seen = subject is not None and (truth is not None or subject.seen)
        running = self._running.setdefault(rule.id, {})
        for step in entry.watch.step(picture, truth, gap_ns, seen=seen):
            if step.phase == "end":
                running.pop(ids, None)
            if step.phase == "end" or subject is None:
                last = step.incident.last
                yield Verdict(rule, ids, step.phase, step.incident, last, before, step.why, everyone=members)
            else:
                evidence = tuple(self._evidence(placed, subject))
                rows, everyone = subject.rows, subject.members
                yield Verdict(rule, ids, step.phase, step.incident, picture, rows, step.why, evidence, everyone)
        if truth and subject and entry.watch.incident and entry.watch.incident.running:
            running[ids] = subject.members or ids

    def _rest(self, rule: Rule, why: Why) -> Iterator[Verdict]:
        """The ends of a rule's incidents that are running; nothing of it is remembered."""
        self._running.pop(rule.id, None)
        for ids, watched in sorted(self._watched.pop(rule.id, {}).items()):
            incident = watched.watch.incident
            if incident and incident.running:
                last, everyone = incident.last, watched.members
                yield Verdict(rule, ids, "end", incident, last, watched.rows, why, everyone=everyone)

    # ---- frames

    def _note_time(self, time_ns: int) -> None:
        self._interval.note(time_ns)
        self._clock.tick(time_ns, 2 * self._interval.usual_ns, self._interval.at_least(0))
        gone = self._crowd.forget(time_ns - self._interval.at_least(FORGET_NS))
        if gone:
            self._drop_watches(gone)
            self._drop_inherited()

    def _drop_watches(self, gone: AbstractSet[int]) -> None:
        """A cooldown of days must not cost anything for people who never come back under the same id."""
        for watched in self._watched.values():
            for ids in [ids for ids in watched if not watched[ids].watch.incident and not gone.isdisjoint(ids)]:
                del watched[ids]

    def _drop_inherited(self) -> None:
        """People who have been forgotten do not come back for what another judge knew of them."""
        for key in [key for key in self._inherited if key[0].scope != "group" and not self._crowd.knows(key[1])]:
            del self._inherited[key]

    def _surroundings(self, size: tuple[int, int]) -> Surroundings:
        if self._around is None or (self._around.width, self._around.height) != size:
            self._around = dataclasses.replace(self.surroundings(size), running=self._running)
        return self._around


def in_levels(rules: Sequence[Rule]) -> list[list[Rule]]:
    """The rules, each behind those whose incidents it asks about. Of a circle, as they come."""
    ids = {rule.id for rule in rules}
    levels: list[list[Rule]] = []
    placed: set[str] = set()
    left = list(rules)
    while left:
        level = [rule for rule in left if (rule.asks_about & ids) <= placed] or left
        levels.append(level)
        placed |= {rule.id for rule in level}
        left = [rule for rule in left if rule.id not in placed]
    return levels


def _level(rules: Sequence[Rule]) -> _Level:
    asked: dict[_About, list[tuple[Condition, int]]] = {}

    def place(condition: Condition, about: _About, gap_ns: int) -> tuple[_About, int]:
        conditions = asked.setdefault(about, [])
        conditions.append((condition, gap_ns))
        return about, len(conditions) - 1

    places = []
    for rule in rules:
        own = rule.id if rule.scope in _COUNTED else ""
        with_lost = rule.when.about_lost or (rule.until is not None and rule.until.about_lost)
        about = _About(rule.scope, rule.min_confidence, with_lost, own)
        when = place(rule.when, about, rule.gap_ns)
        until = place(rule.until, about, rule.gap_ns)[1] if rule.until else None
        who = None
        if rule.who:
            who = place(rule.who, _About("person", rule.min_confidence, with_lost=rule.who.about_lost), rule.gap_ns)
        places.append((rule, when, who, until))
    groups = {about: _Group(about, program_of(tuple(conditions))) for about, conditions in asked.items()}

    def at(found: tuple[_About, int]) -> tuple[_Group, int]:
        return groups[found[0]], found[1]

    placed = [_Placed(rule, *at(when), at(who) if who else None, until) for rule, when, who, until in places]
    return _Level([group for about, group in groups.items() if about.scope not in _COUNTED], placed)


def zones_with(zones: Mapping[str, Zone], picture: Picture, rows: Iterable[int]) -> list[str]:
    """The names of those zones in which the feet of one of the people are."""
    feet = [((left + right) / 2, bottom) for left, _, right, bottom in (picture.boxes[row].tolist() for row in rows)]
    return [name for name, zone in zones.items() if any(zone(x, y) for x, y in feet)]
