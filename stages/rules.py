"""Judges the actions of people: Tracks in, the events of incidents out.

    actions: {use: rules, from: tracks, with: {file: rules.yaml}}

`docs/rules.md` explains the rules. The events of a camera depend on nothing but its own Tracks: not on other cameras,
the size of batches, or how fast anything was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from pydantic import Field, model_validator

from pipeline.errors import BadItem, GraphError, SettingError, UserError
from pipeline.graph.report import dotted
from pipeline.messages import End, Event, Message, Stamp
from pipeline.stage import Context, FrameSize, Settings, Stage, Upstream
from pipeline.system.paths import resolve
from pipeline.system.spelling import did_you_mean
from stages import events
from stages.facts import Facts
from stages.messages import Tracks
from stages.rulebook.camera_check import impossible_alone, outside_frames, unwatched
from stages.rulebook.evidence import UNITS
from stages.rulebook.onlooker import picture_of
from stages.rulebook.rule_file import (
    RULE_STAND_INS,
    Confidence,
    Lines,
    OtherCameras,
    RuleFile,
    RuleList,
    Zones,
)
from stages.rulebook.rule_set import (
    ReadyRule,
    RuleSet,
    compile_rules,
    examined_rules,
    parse_rules,
    rules_text,
)
from stages.vision.rules.geometry import Surroundings
from stages.vision.rules.judge import Evidence, Judge, Picture, Verdict, zones_with

JUDGED = "judged."
"""With a rule's id behind it: a counter of the cameras (and epochs) in which its condition was ever true or false."""


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
    other_cameras: OtherCameras = Field(default=[])
    min_confidence: Confidence | None = Field(None, description="Joints below this confidence are not known")
    model: ModelSettings | None = Field(None, description="The model that finds the people, for the events")
    clocks: dict[str, events.Clock] = Field(
        {},
        description="Camera -> whose its times are, for events; by default as each frame says",
    )

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if self.file is None and not self.rules:
            raise ValueError("expected either `file: rules.yaml` or `rules:`")
        return self

    def beside_file(self) -> Iterator[tuple[tuple[str], str]]:
        """Problems within the file of rules, which is checked by itself: (path of the key, text)."""
        for name in ("rules", "zones", "lines", "other_cameras", "min_confidence"):
            if self.file is not None and name in self.model_fields_set:
                yield (name,), f"`{name}` stands in the file of rules, where there is one: remove it here, or `file`"

    def whole(self) -> RuleFile:
        """The rules that stand here, as a file."""
        whole = RuleFile(rules=self.rules, zones=self.zones, lines=self.lines, other_cameras=self.other_cameras)
        if self.min_confidence is None:
            return whole
        return whole.model_copy(update={"min_confidence": self.min_confidence})


@dataclass(slots=True)
class _Camera:
    epoch: int
    judge: Judge
    skeleton: str
    last: Stamp


class Rules(Stage[RulesSettings]):
    """Tracks -> Events: start, update and end of incidents, or `single` for rules that are reported `once`.

    An incident that runs when a camera ends, or begins a new epoch, is ended then. A photograph (`Stamp.alone`) is
    judged without the frames before it, and each incident in it is a `single` one. Raises BadItem `nonfinite`.
    Joints are known in the order coco-17; of other skeletons conditions about joints stay unknown: that is logged once.
    """

    settings_type = RulesSettings
    inputs = Tracks
    outputs = (Event,)
    stateful = True

    def __init__(self, settings: RulesSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._cameras: dict[str, _Camera] = {}
        self._rules: RuleSet | None = None
        self._told_of: set[tuple[str, str]] = set()
        """(camera, problem) of the warnings that have been given."""

    @classmethod
    def check(cls, settings: RulesSettings, base_folder: Path) -> Iterable[tuple[tuple[str | int, ...], str]]:
        """Problems of the rules that stand here; raises GraphError with those of a file."""
        yield from settings.beside_file()
        if settings.file is None:
            yield from ((fault.path, fault.text) for fault in compile_rules(settings.whole())[1])
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
            faults = compile_rules(settings.whole(), cameras)[1]
            yield from ((fault.path, fault.text) for fault in faults)
            return
        path, text = _file_of(settings, base_folder)
        problems = examined_rules(text, str(path), cameras)[1]
        if problems:
            raise GraphError(problems)

    @classmethod
    def remarks(
        cls, settings: RulesSettings, base_folder: Path, cameras: Mapping[str, FrameSize | None]
    ) -> Iterable[str]:
        if settings.file is None:
            rules: RuleSet | None = compile_rules(settings.whole())[0]
        else:
            path, text = _file_of(settings, base_folder)
            rules = examined_rules(text, str(path))[0]
        return unwatched(rules.file, rules.used, cameras) if rules else ()

    @classmethod
    def remarks_alone(cls, settings: RulesSettings, base_folder: Path, cameras: Sequence[str]) -> Iterable[str]:
        if settings.file is None:
            rules: RuleSet | None = compile_rules(settings.whole())[0]
        else:
            path, text = _file_of(settings, base_folder)
            rules = examined_rules(text, str(path))[0]
        return impossible_alone(rules.file, cameras) if rules else ()

    @classmethod
    def follow(cls, settings: RulesSettings, base_folder: Path, upstream: Upstream) -> Mapping[str, Any]:
        """The model that found the people, if exactly one stands before; and the present text of the file of rules."""
        models = [said["model"] for said in upstream.stages.values() if "model" in said]
        found: dict[str, Any] = {"model": models[0]} if settings.model is None and len(models) == 1 else {}
        if settings.file is not None and settings.text is None:
            found["text"] = _file_of(settings, base_folder)[1]
        return found

    @classmethod
    def describe(cls, settings: RulesSettings) -> Facts:
        """The rules it judges by, as the text of a file, for stages that show them."""
        text = settings.text if settings.file is not None else settings.whole().model_dump_json(by_alias=True)
        return {"rules": {"file": settings.file, "text": text}} if text is not None else {}

    def open(self) -> None:
        self._rules = self._read()

    def process(self, items: Sequence[Tracks]) -> Iterable[Message]:
        # All are looked at before any is remembered: after a BadItem the runtime hands them in again one by one.
        for item in items:
            if not (np.isfinite(item.boxes).all() and np.isfinite(item.scores).all()):
                raise BadItem("nonfinite", "a box or score of a person is no number")
        return [event for item in items for event in self._judge(item)]

    def finish(self, camera: str, end: End) -> Iterable[Message]:
        known = self._cameras.pop(camera, None)
        return list(self._ended(known, known.last, end.reason)) if known else ()

    def _read(self) -> RuleSet:
        if self.settings.file is not None:
            path, text = _file_of(self.settings, self.context.base_folder)
            return parse_rules(text, str(path))
        rules, faults = compile_rules(self.settings.whole())
        if faults:
            raise UserError("\n".join(f"{'.'.join(map(str, fault.path))}: {fault.text}" for fault in faults))
        return rules

    def _judge(self, item: Tracks) -> Iterator[Event]:
        name = item.stamp.camera
        camera = self._cameras.get(name)
        if camera and camera.epoch != item.stamp.epoch:
            yield from self._ended(camera, item.stamp, "epoch")
            camera = None
        if camera is None:
            camera = self._cameras[name] = self._begun(item)
        picture = picture_of(item)
        camera.last = item.stamp
        for verdict in camera.judge.judge(picture):
            yield from self._events(camera, verdict, item.stamp, verdict.why)
        if item.stamp.alone:
            yield from self._ended(self._cameras.pop(name), item.stamp, "end")

    def _begun(self, item: Tracks) -> _Camera:
        assert self._rules is not None
        name, rules = item.stamp.camera, self._rules
        ready = rules.of_camera(name)
        judge = Judge([one.rule for one in ready], lambda size: self._surroundings(rules, name, size))
        if item.skeleton != "coco-17" and (name, item.skeleton) not in self._told_of:
            self._told_of.add((name, item.skeleton))
            self.context.log.warning("joints_unknown", camera=name, skeleton=item.skeleton, expected="coco-17")
        return _Camera(item.stamp.epoch, judge, item.skeleton, item.stamp)

    def _surroundings(self, rules: RuleSet, camera: str, size: FrameSize) -> Surroundings:
        """The zones and lines of a camera; of a live one it shows only now whether they lie within its frames."""
        for path, text in outside_frames(rules.file, {camera: size}):
            if (camera, text) not in self._told_of:
                self._told_of.add((camera, text))
                self.context.log.warning("outside_of_frame", camera=camera, what=f"{dotted(path)}: {text}")
        return rules.surroundings(camera, size)

    def _ended(self, camera: _Camera, at: Stamp, reason: str) -> Iterator[Event]:
        """The ends of the running incidents; they travel with the stamp `at`."""
        for rule in sorted(camera.judge.judged):
            self.context.count(JUDGED + rule, at.camera)
        for verdict in camera.judge.finish():
            yield from self._events(camera, verdict, at, reason)

    def _events(self, camera: _Camera, verdict: Verdict, at: Stamp, reason: str) -> Iterator[Event]:
        assert self._rules is not None
        ready = self._rules.rules[verdict.rule.id]
        once = ready.definition.once or at.alone
        if once and verdict.phase != "start":
            return
        begun: Stamp = verdict.incident.begun.moment
        key = events.incident_key(self.context.graph, begun, verdict.rule.id, verdict.ids, begun.time_ns)
        phase: events.Phase = "single" if once else verdict.phase
        data = self._data(camera, ready, verdict, phase, reason)
        told = camera.last if verdict.phase == "end" else at
        yield events.incident_event(
            at,
            self.context.graph,
            key,
            data.model_copy(update={"incident": events.digest(*key)}),
            time=events.utc(told.wall_ns),
            updates=verdict.incident.updates,
        )

    def _data(
        self, camera: _Camera, ready: ReadyRule, verdict: Verdict, phase: events.Phase, reason: str
    ) -> events.IncidentData:
        begun, seen = verdict.incident.begun.moment, verdict.picture.moment
        ended = phase == "end"
        return events.IncidentData.model_validate(
            {
                "incident": "0",
                "phase": phase,
                "rule": {"id": ready.definition.id, "hash": ready.hash},
                "action": ready.action,
                "camera": seen.camera,
                "people": _people(verdict),
                "keypoints_format": camera.skeleton,
                "zones": _zones(self._rules, ready, verdict),
                "start_time": events.utc(begun.wall_ns),
                "end_time": events.utc(seen.wall_ns) if ended else None,
                "duration_s": events.share((seen.time_ns - begun.time_ns) / 1e9),
                "reason": reason if ended else None,
                "frame": self._frame(verdict.picture),
                "evidence": None if ended else _evidence(verdict),
                "model": self.settings.model.model_dump() if self.settings.model else None,
            }
        )

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


def _file_of(settings: RulesSettings, base_folder: Path) -> tuple[Path, str]:
    """The path of the file of rules, and its text when the run began, or now. Raises as `rules_text`."""
    assert settings.file is not None
    try:
        path = resolve(settings.file, base_folder)
        return path, rules_text(path) if settings.text is None else settings.text
    except UserError as error:
        raise SettingError(("file",), str(error)) from None


def _people(verdict: Verdict) -> list[events.Person]:
    seen = verdict.picture
    return [
        events.person(int(seen.ids[row]), seen.boxes[row], float(seen.scores[row]), seen.keypoints[row])
        for row in verdict.rows
    ]


def _zones(rules: RuleSet | None, ready: ReadyRule, verdict: Verdict) -> list[str]:
    assert rules is not None
    own = rules.zones_of(ready, verdict.picture.moment.camera, verdict.picture.size)
    return zones_with(own, verdict.picture, verdict.rows)


def _evidence(verdict: Verdict) -> dict[str, Any]:
    return {
        "conditions": [_comparison(part) for part in verdict.evidence],
        "true_s": events.share(verdict.incident.true_ns / 1e9),
        "visible": events.share(verdict.incident.visible),
    }


def _comparison(part: Evidence) -> dict[str, Any]:
    if isinstance(part.values, bool):
        return {"text": part.text, "holds": part.values}
    unit = UNITS.get(part.kind)
    rounded = events.pixels if unit == "px" else events.share
    left, right = (rounded(value) if value == value else None for value in part.values)  # noqa: PLR0124 - NaN
    return {"text": part.text, "left": left, "right": right, "unit": unit}
