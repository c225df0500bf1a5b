"""Judges what people do: Tracks in, the events of incidents out.

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

from pipeline.errors import BadItem, UserError
from pipeline.messages import End, Event, Message, Stamp
from pipeline.paths import resolve
from pipeline.stage import Context, Settings, Stage, Upstream
from stages import events
from stages.messages import Tracks
from stages.rulebook.rule_file import Confidence, Lines, RuleFile, RuleList, Zones
from stages.rulebook.rule_set import ReadyRule, RuleSet, compile_rules, parse_rules, read_rules, rules_text
from stages.vision.rules.judge import Evidence, Judge, Picture, Verdict, zones_with
from stages.vision.rules.people import COCO_17

UNITS = {"x": "px", "y": "px", "length": "px", "frame_width": "px", "frame_height": "px", "pixels": "px",
         "speed": "px/s", "time": "s", "angle": "deg"}  # fmt: skip


class ModelSettings(Settings):
    """What is said of the model in events; by default what the stage that runs it says of itself."""

    name: str = Field(min_length=1, description="As events name it")
    sha256: str | None = Field(None, pattern="^[0-9a-f]{64}$", description="Of the model's file")
    provider: str | None = Field(None, description="Where it really runs, such as cpu; left out where that is open")


class RulesSettings(Settings):
    """Either a file of rules, or the rules themselves with their zones and lines, as they would stand in a file."""

    file: str | None = Field(None, min_length=1, description="A file of rules, relative to the graph file")
    text: str | None = Field(
        None,
        description="What the file held when the graph was read; filled in by itself, so that a process that has to be "
        "started again judges by the same rules",
    )
    rules: RuleList = Field(default=[])
    zones: Zones = Field(default={})
    lines: Lines = Field(default={})
    min_confidence: Confidence | None = None
    model: ModelSettings | None = Field(None, description="The model that finds the people, for the events")
    clocks: dict[str, events.Clock] = Field(
        {}, description="Camera -> what its times are (file, wall, ntp), for events; by default as each frame says"
    )

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.file is None) == (not self.rules):
            raise ValueError("expected either `file: rules.yaml` or `rules:`")
        if self.file is not None and (self.zones or self.lines or self.min_confidence is not None):
            raise ValueError("zones, lines and min_confidence stand in the file of rules")
        return self

    def whole(self) -> RuleFile:
        """The rules that stand here, as a file."""
        whole = RuleFile(rules=self.rules, zones=self.zones, lines=self.lines)
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
    """Tracks -> Events: start, update and end of incidents, or `single` for rules that are told `once`.

    An incident that runs when a camera ends, or begins a new epoch, is ended then. Raises BadItem `nonfinite`.
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
        self._told_of: set[str] = set()

    @classmethod
    def check(cls, settings: RulesSettings, base_folder: Path) -> Iterable[tuple[tuple[str | int, ...], str]]:
        """Problems of the rules that stand here; raises GraphError with those of a file."""
        if settings.file is not None:
            read_rules(resolve(settings.file, base_folder))
            return ()
        return [(fault.path, fault.text) for fault in compile_rules(settings.whole())[1]]

    @classmethod
    def follow(cls, settings: RulesSettings, base_folder: Path, upstream: Upstream) -> Mapping[str, Any]:
        """Which model found the people, where exactly one stands before; and what the file of rules says now."""
        models = [said["model"] for said in upstream.stages.values() if "model" in said]
        found: dict[str, Any] = {"model": models[0]} if settings.model is None and len(models) == 1 else {}
        if settings.file is not None and settings.text is None:
            found["text"] = rules_text(resolve(settings.file, base_folder))
        return found

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
            path = resolve(self.settings.file, self.context.base_folder)
            return read_rules(path) if self.settings.text is None else parse_rules(self.settings.text, str(path))
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
        picture = _picture(item)
        camera.last = item.stamp
        for verdict in camera.judge.judge(picture):
            yield from self._events(camera, verdict, item.stamp, verdict.why)

    def _begun(self, item: Tracks) -> _Camera:
        assert self._rules is not None
        name, rules = item.stamp.camera, self._rules
        ready = rules.of_camera(name)
        judge = Judge([one.rule for one in ready], lambda size: rules.surroundings(name, size))
        if item.skeleton != "coco-17" and name not in self._told_of:
            self._told_of.add(name)
            self.context.log.warning("joints_unknown", camera=name, skeleton=item.skeleton, expected="coco-17")
        return _Camera(item.stamp.epoch, judge, item.skeleton, item.stamp)

    def _ended(self, camera: _Camera, at: Stamp, reason: str) -> Iterator[Event]:
        """The ends of what was running; they travel with the stamp `at`."""
        for verdict in camera.judge.finish():
            yield from self._events(camera, verdict, at, reason)

    def _events(self, camera: _Camera, verdict: Verdict, at: Stamp, reason: str) -> Iterator[Event]:
        assert self._rules is not None
        ready = self._rules.rules[verdict.rule.id]
        if ready.definition.once and verdict.phase != "start":
            return
        begun: Stamp = verdict.incident.begun.moment
        key = events.incident_key(self.context.graph, begun, verdict.rule.id, verdict.ids, begun.time_ns)
        phase: events.Phase = "single" if ready.definition.once else verdict.phase
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


def _picture(item: Tracks) -> Picture:
    known = item.skeleton == "coco-17" and item.keypoints.shape[1] == len(COCO_17)
    boxes, scores, keypoints = item.boxes.copy(), item.scores.copy(), item.keypoints.copy()
    return Picture(item.stamp, item.ids.copy(), boxes, scores, keypoints, item.frame_size, known)


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
