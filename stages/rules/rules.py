"""Judges the actions of people: Tracks in, the events of incidents out.

    actions: {use: rules, from: tracks, with: {file: rules.yaml}}

`docs/rules.md` explains the rules. The events of a camera depend on nothing but its own Tracks: not on other cameras,
the size of batches, or how fast anything was.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from pydantic import Field, field_validator, model_validator

from camgraph.pipeline.errors import BadItem, GraphError, ProblemText, SettingError, UserError
from camgraph.pipeline.foreign_text import shown
from camgraph.pipeline.graph.report import dotted
from camgraph.pipeline.messages import End, Event, EventPhase, Message, Stamp
from camgraph.pipeline.stage import Context, Counts, FrameSize, SettingProblems, Settings, Stage, Upstream
from camgraph.pipeline.system.paths import resolve
from camgraph.pipeline.system.spelling import did_you_mean
from camgraph.stages import events
from camgraph.stages.facts import Facts, RuleNamesFact, RulesFact, SkeletonFact
from camgraph.stages.messages import Tracks
from camgraph.stages.rules.camera_check import impossible_alone, outside_frames, too_few_frames, unwatched
from camgraph.stages.rules.counting import Counting, Report
from camgraph.stages.rules.evidence import UNITS
from camgraph.stages.rules.fault import Fault, KeyPath
from camgraph.stages.rules.firing import FiringRules
from camgraph.stages.rules.footage_names import names_of
from camgraph.stages.rules.frame_rate import FrameRate
from camgraph.stages.rules.key_hints import hint_at_key
from camgraph.stages.rules.language.crowd import Picture
from camgraph.stages.rules.language.geometry import Surroundings
from camgraph.stages.rules.language.judge import Evidence, Judge, Verdict, zones_with
from camgraph.stages.rules.language.vocabulary import label_word
from camgraph.stages.rules.library import hiding
from camgraph.stages.rules.merging import Merger
from camgraph.stages.rules.onlooker import picture_of
from camgraph.stages.rules.people_tap import PeopleTap, socket_path
from camgraph.stages.rules.python_functions import taken_failures, watch_calls
from camgraph.stages.rules.rule_file import (
    RULE_STAND_INS,
    Confidence,
    Counters,
    Holidays,
    Lenses,
    Lines,
    OtherCameras,
    RuleFile,
    RuleList,
    Schedules,
    Switches,
    Templates,
    Words,
    Zones,
    duration_ns,
)
from camgraph.stages.rules.rule_set import (
    ReadyRule,
    RuleSet,
    compile_rules,
    examined_rules,
    parse_rules,
    rules_text,
)
from camgraph.stages.rules.schedule import Zone
from camgraph.stages.vision.heads import Area, Heads, PeopleInFrame
from camgraph.stages.vision.skeleton import BODY

JUDGED = "judged."
"""With a rule's id behind it: a counter of the cameras (and epochs) in which its condition was ever true or false."""

_THEN = {
    "failed": "its answer is unknown then, and counted as `condition_failed`; this is logged once",
    "slow": "other people, rules and cameras wait meanwhile: make it faster, or set `every_s`; this is logged once",
}
_OF_FILE = tuple(name for name in RuleFile.model_fields if name != "version")
"""The settings that are also keys of a file of rules."""


class ModelSettings(Settings):
    """The model as events name it; by default as described by the stage that runs it."""

    name: str = Field(min_length=1, description="As events name it")
    sha256: str | None = Field(None, pattern="^[0-9a-f]{64}$", description="Of the model's file")
    provider: str | None = Field(None, description="Where it really runs, such as cpu; left out where that is open")


class RulesSettings(Settings):
    """Either a file of rules, or the rules themselves with their zones and lines, as they would stand in a file."""

    stand_ins = RULE_STAND_INS

    file: str | None = Field(None, min_length=1, description="A file of rules, relative to the graph file")
    text: str | None = Field(
        None,
        description="What the file held when the graph was read; filled in by itself, so that a process that has to be "
        "started again judges by the same rules",
    )
    rules: RuleList = Field(default=[])
    zones: Zones = Field(default={})
    lines: Lines = Field(default={})
    lenses: Lenses = Field(default={})
    schedules: Schedules = Field(default={})
    time_zone: Zone | None = Field(None, description="The zone of schedules, as Europe/Berlin or +01:00")
    holidays: Holidays = Field(default=[])
    switches: Switches = Field(default={})
    counters: Counters = Field(default={})
    define: Words = Field(default={})
    templates: Templates = Field(default={})
    other_cameras: OtherCameras = Field(default=[])
    min_confidence: Confidence | None = Field(None, description="Joints below this confidence are not known")
    model: ModelSettings | None = Field(None, description="The model that finds the people, for the events")
    footage: str | None = Field(
        None,
        description="The folder of pictures and clips, for the events; by default that of the stage `sink_footage`",
    )
    heads: bool = Field(
        False,
        description="Events tell where the heads of all people are, so that they can be hidden; by default if a stage "
        "`sink_footage` with `look: blurred_faces` reads them",
    )
    clocks: dict[str, events.Clock] = Field(
        {},
        description="Camera -> whose its times are, for events; by default as each frame says",
    )

    @field_validator("rules", mode="before")
    @classmethod
    def _not_a_file(cls, value: object) -> object:
        if isinstance(value, str):
            raise ValueError(f"expected a list of rules, got a text: for a file, write `file: {shown(value)[:60]}`")
        return value

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if self.file is None and not self.rules:
            raise ValueError("expected either `file: rules.yaml` or `rules:`")
        return self

    @classmethod
    def hint_at_key(cls, data: Any, path: KeyPath) -> str:
        return hint_at_key(data, path)

    def beside_file(self) -> Iterator[tuple[tuple[str], str]]:
        """Problems within the file of rules, which is checked by itself: (path of the key, text)."""
        for name in _OF_FILE:
            if self.file is not None and name in self.model_fields_set:
                yield (name,), f"`{name}` stands in the file of rules, where there is one: remove it here, or `file`"

    def whole(self) -> RuleFile:
        """The rules that stand here, as a file."""
        own = {name: getattr(self, name) for name in _OF_FILE if name in self.model_fields_set}
        return RuleFile.model_construct(**{name: value for name, value in own.items() if value is not None})


@dataclass(slots=True)
class _Camera:
    epoch: int
    rules: RuleSet
    judge: Judge
    ready: Sequence[ReadyRule]
    merger: Merger
    skeleton: str
    last: Stamp
    rate: FrameRate
    heads: Heads = field(default_factory=Heads)
    firing: FiringRules = field(default_factory=FiringRules)

    def ready_of(self, verdict: Verdict) -> ReadyRule:
        return next(one for one in self.ready if one.definition.id == verdict.rule.id)

    def shown(self, verdicts: Iterable[Verdict], now_ns: int) -> Iterator[Verdict]:
        """Pass them on and note them for viewers: each person's own, which `merge` makes one incident of."""
        for verdict in verdicts:
            self.firing.note(self.ready_of(verdict), verdict, now_ns)
            yield verdict


class Rules(Stage[RulesSettings]):
    """Tracks -> Events: start, update and end of incidents, or `single` for rules that are reported `once`.

    An incident that runs when a camera ends, or begins a new epoch, is ended then. A photograph (`Stamp.alone`) is
    judged without the frames before it, and each incident in it is a `single` one. Raises BadItem `nonfinite`.
    Joints are known in the order coco-17; of other skeletons conditions about joints stay unknown: that is logged once.
    """

    settings_type = RulesSettings
    inputs = Tracks
    outputs = (Event,)
    counts: ClassVar[Counts] = {
        f"{JUDGED}RULE": "Cameras, and their epochs, in which the condition of this rule was ever true or false. "
        "They are counted when they end.",
        "condition_failed.NAME": "Calls of this condition in Python that failed; its answer was unknown then.",
        "dropped.nonfinite": "A box or a score of a person was no finite number.",
    }
    stateful = True
    takes_settings = True
    adapts = ("footage", "heads")

    def __init__(self, settings: RulesSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._cameras: dict[str, _Camera] = {}
        self._rules: RuleSet | None = None
        self._counting = Counting(context.state_folder / f"counters.{context.worker}.json")
        self._tap = PeopleTap(socket_path(context.state_folder, context.worker), context.log)
        self._logged: set[tuple[str, str]] = set()
        self._given_up: list[str] = []
        self._unkept = ""
        """(camera or condition, problem) of the warnings that have been given."""

    @classmethod
    def check(cls, settings: RulesSettings, base_folder: Path) -> Iterable[tuple[tuple[str | int, ...], str]]:
        """Problems of the rules that stand here; raises GraphError with those of a file."""
        yield from settings.beside_file()
        if settings.text is not None:
            yield ("text",), "it is filled in by itself, with what the file holds: remove it"
            return
        if settings.file is None:
            yield from _problems(compile_rules(settings.whole())[1])
            return
        path, text = _file_of(settings, base_folder)
        parse_rules(text, str(path))

    @classmethod
    def check_cameras(
        cls, settings: RulesSettings, base_folder: Path, cameras: Mapping[str, FrameSize | None]
    ) -> Iterable[tuple[tuple[str | int, ...], str]]:
        """Problems with the cameras of these rules; raises GraphError with all of a file."""
        yield from (
            (("clocks", name), f"no camera of the graph is called `{name}`{did_you_mean(name, cameras)}")
            for name in settings.clocks
            if name not in cameras
        )
        if settings.file is None:
            yield from _problems(compile_rules(settings.whole(), cameras)[1])
            return
        path, text = _file_of(settings, base_folder)
        # Of a text that stands in the graph, as none should, the path is not to be told: it may be that of a variable.
        problems = examined_rules(text, str(path) if settings.text is None else "text", cameras)[1]
        if problems:
            raise GraphError(problems)

    @classmethod
    def remarks(
        cls, settings: RulesSettings, base_folder: Path, cameras: Mapping[str, FrameSize | None]
    ) -> Iterable[str]:
        rules = cls._rules_of(settings, base_folder)
        return [*hiding(rules.file), *rules.remarks, *unwatched(rules.file, rules.used, cameras)] if rules else ()

    @classmethod
    def remarks_alone(cls, settings: RulesSettings, base_folder: Path, cameras: Sequence[str]) -> Iterable[str]:
        rules = cls._rules_of(settings, base_folder)
        return impossible_alone(rules.file, cameras, rules.looking_back) if rules else ()

    @classmethod
    def remarks_on_rates(cls, settings: RulesSettings, base_folder: Path, rates: Mapping[str, float]) -> Iterable[str]:
        rules = cls._rules_of(settings, base_folder)
        return too_few_frames(rules.file.rules, rates) if rules else ()

    @classmethod
    def follow(cls, settings: RulesSettings, base_folder: Path, upstream: Upstream) -> Mapping[str, Any]:
        """The model that found the people, if exactly one stands before, besides those of classifiers; and the present
        text of the file of rules.
        """
        classifiers = _models_of_classifiers(upstream)
        models = [
            facts["model"] for name, facts in upstream.stages.items() if "model" in facts and name not in classifiers
        ]
        found: dict[str, Any] = {"model": models[0]} if settings.model is None and len(models) == 1 else {}
        if settings.file is not None and settings.text is None:
            found["text"] = _file_of(settings, base_folder)[1]
        rules = cls._rules_of(settings, base_folder)
        _check_labels(rules, upstream)
        _check_joints(rules, upstream)
        return found

    @classmethod
    def _rules_of(cls, settings: RulesSettings, base_folder: Path) -> RuleSet | None:
        """Without the mistakes in them, which are for `check`."""
        if settings.file is None:
            return compile_rules(settings.whole())[0]
        path, text = _file_of(settings, base_folder)
        return examined_rules(text, str(path))[0]

    @classmethod
    def describe(cls, settings: RulesSettings) -> Facts:
        """The rules it judges by, as the text of a file, for stages that show them."""
        text = (
            settings.text
            if settings.file is not None
            else settings.whole().model_dump_json(by_alias=True, exclude_unset=True)
        )
        if text is None:
            return {}
        fact: RulesFact = {
            "file": settings.file,
            "text": text,
            "names": _names_in(text),
            "heads": settings.heads,
            "clocks": settings.clocks,
        }
        return {"rules": fact}

    @classmethod
    def switches(cls, settings: RulesSettings) -> Mapping[str, bool]:
        """Those of the rules."""
        return {name: switch.default for name, switch in _known_rules(settings).switches.items()}

    @classmethod
    def kept_switches(cls, settings: RulesSettings) -> Collection[str]:
        """Those of the rules that have `keep`."""
        return [name for name, switch in _known_rules(settings).switches.items() if switch.keep]

    @classmethod
    def counters(cls, settings: RulesSettings) -> Collection[str]:
        """Those of the rules."""
        return _known_rules(settings).counters

    def open(self) -> None:
        self._rules = self._read()
        self._rules.open()
        self._counting.open()
        self._tap.open()
        for name in watch_calls(self.context.state_folder, self.context.worker):
            self._given_up.append(f"the condition {name} ended this process again and again: it is unknown from now on")
            self.context.log.error("condition_given_up", condition=name, then="it is unknown until the run ends")
        self._report_troubles()

    def change_settings(self, settings: RulesSettings) -> None:
        """Go on with other rules; those that are as before keep all that they remember. Raises as `open`."""
        before, self.settings = self.settings, settings
        try:
            self._rules = self._read()
        except BaseException:
            self.settings = before
            raise

    def process(self, items: Sequence[Tracks]) -> Iterable[Message]:
        # All are looked at before any is remembered: after a BadItem the runtime hands them in again one by one.
        for item in items:
            if not all(np.isfinite(one).all() for one in (item.boxes, item.scores, item.other_boxes)):
                raise BadItem("nonfinite", "a box or score of a person is no number")
        return [event for item in items for event in self._judge(item)]

    def finish(self, camera: str, end: End) -> Iterable[Message]:
        known = self._cameras.pop(camera, None)
        if known is None:
            return ()
        reports = self._counting.end(camera, known.last.wall_ns)
        if known.rules.file.counters:
            self.context.counters_are(camera, {})
        return [*self._ended(known, known.last, end.reason), *self._reports(reports, known.last)]

    def close(self) -> None:
        self._tap.close()

    def _read(self) -> RuleSet:
        if self.settings.file is not None:
            path, text = _file_of(self.settings, self.context.base_folder)
            return parse_rules(text, str(path))
        rules, faults = compile_rules(self.settings.whole())
        if faults:
            raise UserError(
                "\n".join(f"{'.'.join(map(str, fault.path))}: {fault.text}" for fault in faults),
                error_id="rule-mistake",
            )
        return rules

    def _judge(self, item: Tracks) -> Iterator[Event]:
        name = item.stamp.camera
        self._counting.resets = self.context.resets
        camera = self._cameras.get(name)
        if camera and camera.epoch != item.stamp.epoch:
            yield from self._ended(camera, item.stamp, "epoch")
            camera = None
        if camera is None:
            camera = self._cameras[name] = self._begun(item)
        elif camera.rules is not self._rules:
            yield from self._changed(camera, item.stamp)
        picture = picture_of(item)
        if self.settings.heads:
            picture = replace(picture, heads=_heads_of(camera, picture, item))
        camera.last = item.stamp
        self._note_rate(camera)
        at, wall_ns = item.stamp, self._wall_ns(item.stamp)
        found = list(self._reports(self._counting.begin_frame(camera.rules.file, at, dated=wall_ns is not None), at))
        asleep = camera.rules.asleep(camera.ready, wall_ns, self.context.switches)
        own = camera.shown(camera.judge.judge(picture, asleep), at.time_ns)
        for verdict in camera.merger.merged(own, at.time_ns, asleep):
            found += self._events(camera, verdict, at, verdict.why)
        if self._tap.wants(name):
            self._tap.offer(picture, camera.rules, camera.firing.now(at.time_ns))
        self._report_failures(name)
        if self._counting.keep(at, emitted=bool(found)):
            self.context.counters_are(name, self._counting.numbers(name))
        self._report_unkept()
        yield from found
        if item.stamp.alone:
            yield from self._ended(self._cameras.pop(name), item.stamp, "end")

    def _note_rate(self, camera: _Camera) -> None:
        """Report the rules that need more frames than the camera brings, for as long as it is so; log them once."""
        rate = camera.rate.note(camera.last.time_ns)
        if rate is None:
            return
        name = camera.last.camera
        few = "; ".join(too_few_frames((one.definition for one in camera.ready), {name: rate}))
        self.context.trouble(few, name)
        if few and (name, "too_few_frames") not in self._logged:
            self._logged.add((name, "too_few_frames"))
            self.context.log.warning("too_few_frames", camera=name, what=few)

    def _report_unkept(self) -> None:
        """Say that the counts would be lost with this process, for as long as it is so; log it once."""
        why = self._counting.why_unkept
        if why == self._unkept:
            return
        self._unkept = why
        self._report_troubles()
        if why:
            self.context.log.warning("counts_not_kept", why=why, then="it is tried again with the next frame")

    def _report_troubles(self) -> None:
        """Those of all cameras."""
        unkept = [f"the counts would be lost in a restart: {self._unkept}"] if self._unkept else []
        self.context.trouble("; ".join([*self._given_up, *unkept]))

    def _report_failures(self, camera: str) -> None:
        """Count what went wrong in conditions in Python, and log each kind once."""
        for failure in taken_failures():
            if failure.kind == "failed":
                self.context.count(f"condition_failed.{failure.name}", camera)
            kind = (failure.name, failure.kind if failure.kind == "slow" else failure.at)
            if kind in self._logged:
                continue
            self._logged.add(kind)
            self.context.log.warning(
                f"condition_{failure.kind}",
                condition=failure.name,
                package=failure.package,
                camera=camera,
                error=failure.error,
                at=failure.at,
                then=_THEN[failure.kind],
            )

    def _changed(self, camera: _Camera, at: Stamp) -> Iterator[Event]:
        """The camera goes on with other rules: the ends of the incidents of those that are not as they were."""
        assert self._rules is not None
        rules = self._rules
        before = {(one.definition.id, one.hash) for one in camera.ready}
        ready = rules.of_camera(at.camera)
        same = {one.definition.id for one in ready if (one.definition.id, one.hash) in before}
        judge = Judge([one.rule for one in ready], lambda size: self._surroundings(rules, at.camera, size))
        ends = camera.shown(judge.take_over(camera.judge, same), at.time_ns)
        for verdict in (*camera.merger.merged(ends, at.time_ns), *camera.merger.finish(but=same)):
            yield from self._events(camera, verdict, at, verdict.why)
        camera.merger.merge_ns = _merging(ready)
        camera.judge = judge
        if camera.rules.file.counters or rules.file.counters:
            self._counting.of(at.camera, rules.file)
            self.context.counters_are(at.camera, self._counting.numbers(at.camera))
        camera.rules, camera.ready = rules, ready

    def _begun(self, item: Tracks) -> _Camera:
        assert self._rules is not None
        name, rules = item.stamp.camera, self._rules
        ready = rules.of_camera(name)
        judge = Judge([one.rule for one in ready], lambda size: self._surroundings(rules, name, size))
        if self._counting.of(name, rules.file):
            self.context.counters_are(name, self._counting.numbers(name))
        asks = any(one.rule.needs_joints for one in ready)
        if asks and item.skeleton != BODY and (name, item.skeleton) not in self._logged:
            self._logged.add((name, item.skeleton))
            self.context.log.warning("joints_unknown", camera=name, skeleton=item.skeleton, expected=BODY)
        merger, at = Merger(_merging(ready)), item.stamp
        return _Camera(at.epoch, rules, judge, ready, merger, item.skeleton, at, FrameRate(at.time_ns))

    def _wall_ns(self, at: Stamp) -> int | None:
        """The time of day of a frame, for schedules; None in a file without a date, which has none."""
        clock = self.settings.clocks.get(at.camera) or at.clock
        return None if clock == "file" else at.wall_ns

    def _surroundings(self, rules: RuleSet, camera: str, size: FrameSize) -> Surroundings:
        """The zones and lines of a camera; of a live one it shows only now whether they lie within its frames."""
        for path, text in outside_frames(rules.file, {camera: size}):
            if (camera, text) not in self._logged:
                self._logged.add((camera, text))
                self.context.log.warning("outside_of_frame", camera=camera, what=f"{dotted(path)}: {text}")
        return replace(rules.surroundings(camera, size), counters=self._counting.of(camera, rules.file))

    def _ended(self, camera: _Camera, at: Stamp, reason: str) -> Iterator[Event]:
        """The ends of the running incidents; they travel with the stamp `at`."""
        self.context.trouble("", at.camera)
        for rule in sorted(camera.judge.judged):
            self.context.count(JUDGED + rule, at.camera)
        for verdict in camera.merger.merged(camera.judge.finish(), camera.last.time_ns):
            yield from self._events(camera, verdict, at, reason if verdict.why == "end" else verdict.why)
        for verdict in camera.merger.finish():
            yield from self._events(camera, verdict, at, verdict.why)

    def _events(self, camera: _Camera, verdict: Verdict, at: Stamp, reason: str) -> Iterator[Event]:
        ready = camera.ready_of(verdict)
        once = ready.definition.once or at.alone
        if once and verdict.phase != "start":
            return
        begun: Stamp = verdict.incident.begun.moment
        key = events.incident_key(self.context.graph, begun, verdict.rule.id, verdict.ids, begun.time_ns)
        phase: EventPhase = "single" if once else verdict.phase
        data = self._data(camera, ready, verdict, phase, reason)
        stamp = camera.last if verdict.phase == "end" else at
        yield events.incident_event(
            at,
            self.context.graph,
            key,
            data.model_copy(update=self._named(data, events.digest(*key), begun)),
            time=events.utc(stamp.wall_ns),
            updates=verdict.incident.updates,
            traced=self.context.traceparent,
        )

    def _reports(self, reports: Iterable[Report], at: Stamp) -> Iterator[Event]:
        """The events of counters, made at a frame."""
        for report in reports:
            data = _counter_data(report, at.camera)
            yield events.counter_event(at, self.context.graph, data, self.context.traceparent)

    def _named(self, data: events.IncidentData, incident: str, begun: Stamp) -> dict[str, str]:
        """The name of the incident, and the names of its files if a stage makes them."""
        if self.settings.footage is None or begun.alone:
            return {"incident": incident}
        names = names_of(self.settings.footage, begun.camera, data.action, incident, begun.wall_ns)
        return {"incident": incident, "snapshot": names.snapshot, "clip": names.clip}

    def _data(
        self, camera: _Camera, ready: ReadyRule, verdict: Verdict, phase: EventPhase, reason: str
    ) -> events.IncidentData:
        begun, seen = verdict.incident.begun.moment, verdict.picture.moment
        shown = verdict.picture.showing(verdict.rows)
        ended = phase == "end"
        return events.IncidentData.model_validate(
            {
                "incident": "0",
                "phase": phase,
                "rule": {
                    "id": ready.definition.id,
                    "hash": ready.hash,
                    "about": ready.definition.about.strip() or None,
                },
                "action": ready.action,
                "severity": ready.definition.severity,
                "schedules": self._schedules(camera.rules, ready, begun),
                "camera": seen.camera,
                "people": _people(verdict),
                "everyone": list(verdict.everyone) or None,
                "keypoints_format": camera.skeleton,
                "zones": _zones(camera.rules, ready, verdict),
                "start_time": events.utc(begun.wall_ns),
                "end_time": events.utc(seen.wall_ns) if ended else None,
                "duration_s": events.share((seen.time_ns - begun.time_ns) / 1e9),
                "reason": reason if ended else None,
                "frame": self._frame(verdict.picture),
                "last_seen": None if shown is verdict.picture else self._frame(shown),
                "heads": _heads(shown),
                "evidence": None if ended else _evidence(verdict),
                "model": self.settings.model.model_dump() if self.settings.model else None,
            }
        )

    def _schedules(self, rules: RuleSet, ready: ReadyRule, begun: Stamp) -> list[str] | None:
        """Those of the rule in whose time the incident began; None if it names none, or there is no time of day."""
        wall_ns = self._wall_ns(begun)
        if not ready.times.during or wall_ns is None:
            return None
        return [name for name in ready.times.during if rules.schedules[name].is_time(wall_ns)]

    def _frame(self, picture: Picture) -> events.FrameName:
        at: Stamp = picture.moment
        return events.FrameName(
            epoch=at.epoch,
            seq=at.seq,
            pts=at.pts,
            time_base=at.time_base,
            width=picture.size[0],
            height=picture.size[1],
            clock=self.settings.clocks.get(at.camera) or at.clock or None,
        )


def _models_of_classifiers(upstream: Upstream) -> set[str]:
    """The stages whose models label people, and do not find them."""
    before = upstream.before or {}
    found: set[str] = set()
    for classifier in (name for name, facts in upstream.stages.items() if "labels" in facts):
        own = {name for name in before.get(classifier, ()) if "model" in upstream.stages.get(name, {})}
        found |= {name for name in own if not any(name in before[other] for other in own)}
    return found


def _check_labels(rules: RuleSet | None, upstream: Upstream) -> None:
    """Raises UserError if a rule asks for a class that no classifier before has."""
    labels = [facts["labels"] for facts in upstream.stages.values() if "labels" in facts]
    if rules is None or any(names is None for names in labels):
        return
    known = {label_word(name) for names in labels for name in names}
    for rule_id, ready in rules.rules.items():
        for name in sorted(ready.rule.labels - known):
            listed = did_you_mean(name, known) or (f"; known: {', '.join(sorted(known))}" if known else "")
            where = "the classifiers before it have" if labels else "no classifier stands before it, and so it has"
            raise UserError(
                f"the rule `{rule_id}` asks for `label({name})`, and {where} no such class{listed}",
                error_id="rule-mistake",
            )


def _check_joints(rules: RuleSet | None, upstream: Upstream) -> None:
    """Raises UserError if a rule can never fire with the keypoints that the models before it find."""
    found = {stage: facts["skeleton"] for stage, facts in upstream.nearest("skeleton").items()}
    if rules is None or not found or any(one["name"] == BODY for one in found.values()):
        return
    asking = [f"`{rule_id}`" for rule_id, ready in rules.rules.items() if ready.rule.needs_joints]
    if asking:
        which = f"the rule {asking[0]} asks" if len(asking) == 1 else f"the rules {', '.join(asking)} ask"
        raise UserError(
            f"{which} for joints of a body ({BODY}), and "
            f"{', '.join(_joints_in_words(stage, one) for stage, one in found.items())}: use a model that finds "
            f"these joints, or remove the {'rule' if len(asking) == 1 else 'rules'}",
            error_id="rule-mistake",
        )


def _joints_in_words(stage: str, skeleton: SkeletonFact) -> str:
    number = skeleton["keypoints"]
    return f"`{stage}` finds " + (f"{number} others ({skeleton['name']})" if number else "boxes alone")


def _merging(rules: Iterable[ReadyRule]) -> dict[str, int]:
    """Rule -> its `merge` in nanoseconds, of those that have it."""
    merging = ((one.definition.id, one.definition.merge) for one in rules)
    return {rule_id: duration_ns(merge) for rule_id, merge in merging if merge is not None}


def _counter_data(report: Report, camera: str) -> events.CounterData:
    return events.CounterData(
        counter=report.name,
        camera=camera,
        line=report.definition.line,
        zone=report.definition.zone,
        reason=report.due,
        start_time=events.utc(report.begun_ns),
        end_time=events.utc(report.ended_ns),
        inside=report.inside,
        in_period=events.CounterNumbers.model_validate(report.in_period),
        since_reset=events.CounterNumbers.model_validate(report.since_reset),
    )


def _problems(faults: Iterable[Fault]) -> SettingProblems:
    return ((fault.path, ProblemText(fault.text, error_id="rule-mistake")) for fault in faults)


def _known_rules(settings: RulesSettings) -> RuleFile:
    """The rules as far as they are known while a graph is planned: all, or none of a file that was not read."""
    if settings.file is None:
        return settings.whole()
    if settings.text is None:
        return RuleFile.model_construct()
    return parse_rules(settings.text, settings.file).file


@lru_cache(maxsize=4)
def _names_in(text: str) -> RuleNamesFact | None:
    """The names in a rules file, also in one with mistakes; None if that cannot be read at all."""
    try:
        rules = examined_rules(text, "rules")[0]
    except GraphError:
        return None
    if rules is None:
        return None
    actions = [*(ready.action for ready in rules.rules.values()), *rules.file.counters]
    return {"rules": list(rules.rules), "actions": actions, "time_zone": rules.file.time_zone}


def _file_of(settings: RulesSettings, base_folder: Path) -> tuple[Path, str]:
    """The path of the file of rules, and its text when the run began, or now. Raises as `rules_text`."""
    assert settings.file is not None
    try:
        path = resolve(settings.file, base_folder)
        return path, rules_text(path) if settings.text is None else settings.text
    except UserError as error:
        raise SettingError(("file",), str(error), error_id=error.error_id) from None


def _people(verdict: Verdict) -> list[events.Person]:
    seen = verdict.picture
    return [
        events.person(
            int(seen.ids[row]),
            seen.boxes[row],
            float(seen.scores[row]),
            seen.keypoints[row],
            seen.continues.get(int(seen.ids[row])),
        )
        for row in verdict.rows
    ]


def _heads_of(camera: _Camera, picture: Picture, item: Tracks) -> list[Area]:
    """The areas of all heads of a frame, those of people without a track included."""
    joints = slice(None) if picture.joints_known else slice(0)
    people = PeopleInFrame(picture.boxes, picture.keypoints[:, joints])
    others = PeopleInFrame(item.other_boxes, item.other_keypoints[:, joints])
    return camera.heads.seen(picture.ids.tolist(), people, others, picture.time_ns)


def _heads(picture: Picture) -> list[tuple[int, ...]] | None:
    """In whole pixels, at least as large as before; those that lie in the frame."""
    if picture.heads is None:
        return None
    width, height = picture.size
    areas = [
        (max(0, math.floor(x1)), max(0, math.floor(y1)), min(width, math.ceil(x2)), min(height, math.ceil(y2)))
        for x1, y1, x2, y2 in picture.heads
    ]
    return [area for area in areas if area[0] < area[2] and area[1] < area[3]]


def _zones(rules: RuleSet, ready: ReadyRule, verdict: Verdict) -> list[str]:
    own = rules.zones_of(ready, verdict.picture.moment.camera, verdict.picture.size)
    return zones_with(own, verdict.picture, verdict.rows)


def _evidence(verdict: Verdict) -> dict[str, Any]:
    return {
        "conditions": _conditions(verdict.evidence),
        "true_s": events.share(verdict.incident.true_ns / 1e9),
        "visible": events.share(verdict.incident.visible),
    }


def _conditions(parts: Iterable[Evidence]) -> list[dict[str, Any]]:
    """The values that a function reports stand beside its own answer, if that is told."""
    found: list[dict[str, Any]] = []
    for part in parts:
        if isinstance(part.values, Mapping):
            reported = {
                name: events.share(value) if isinstance(value, float) else value for name, value in part.values.items()
            }
            same = next((one for one in found if one["text"] == part.text), None)
            if same is None:
                found.append({"text": part.text, "reported": reported})
            else:
                same["reported"] = reported
        else:
            found.append(_comparison(part.text, part.kind, part.values))
    return found


def _comparison(text: str, kind: str, values: tuple[float, float] | bool | None) -> dict[str, Any]:
    if values is None or isinstance(values, bool):
        return {"text": text, "holds": values}
    unit = UNITS.get(kind)
    rounded = events.pixels if unit == "px" else events.share
    left, right = (rounded(value) if math.isfinite(value) else None for value in values)
    return {"text": text, "left": left, "right": right, "unit": unit}
