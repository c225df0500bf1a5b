"""Adds up where people spend their time, on a grid over the frames of each camera: as numbers, and as a picture.

    heat: {use: sink_heatmap, from: tracks, with: {path: "heatmaps/{camera}.json", picture: "heatmaps/{camera}.png"}}

Each person adds the time since the camera's last frame (at most 1 s) to the cell of their feet. The end of `path`
chooses the format: .json has the grid and what it is about, .csv and .npy the seconds of each cell, row by row.

A file is written anew every `every`, as a whole: a reader never sees half of it. It never takes the place of a
file of an earlier run; if its name is taken, `front.2.json` follows. With `period` each period has files of its own.
After a failure the process goes on with the last written state, so up to `every` is lost.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import Any, ClassVar

import cv2
import numpy as np
from pydantic import Field, model_validator

from camgraph.pipeline.errors import EnvironmentProblem, UserError
from camgraph.pipeline.messages import End, Message
from camgraph.pipeline.stage import Context, Counts, FrameSize, Settings, Stage
from camgraph.pipeline.system.disk import read_kept, write_whole
from camgraph.pipeline.system.paths import resolve
from camgraph.stages.events import utc
from camgraph.stages.messages import Tracks
from camgraph.stages.rules.onlooker import Onlooker
from camgraph.stages.rules.rule_file import Duration, RuleFile, Zones, duration_ns
from camgraph.stages.rules.rule_set import RuleSet, compile_rules
from camgraph.stages.sinks.writing.output_names import GivenNames, OutputNames, free_names, what_is_wrong
from camgraph.stages.vision.drawing import draw_caption
from camgraph.stages.vision.heat_map import F64, Picture, add_time, heat_picture, kept_share

LONGEST_STEP_NS = 1_000_000_000
"""A longer pause between two frames counts as this long."""
NUMBERS = (".json", ".csv", ".npy")
PICTURES = (".png", ".jpg")
_WHO = "who"
_DARK = 40
"""The grey of a picture without a background."""


class SinkHeatmapSettings(Settings):
    """The grid, whose time counts, and the files."""

    path: str | None = Field(
        None,
        min_length=1,
        description="File of the numbers of a camera, by default heatmaps/{camera}.json; .csv and .npy are other "
        "formats. {camera} becomes its name in ASCII, {run} the run's, {date} and {time} when the file is begun (UTC)",
    )
    picture: str | None = Field(None, min_length=1, description="Also a picture, such as heatmaps/{camera}.png")
    background: str | None = Field(
        None, min_length=1, description="A still picture of the camera to draw it over, such as stills/{camera}.jpg"
    )
    columns: int = Field(64, ge=2, le=256, description="Cells from left to right")
    rows: int = Field(36, ge=2, le=256, description="Cells from top to bottom")
    who: str | None = Field(None, min_length=1, description="A condition about a person: only their time counts")
    zones: Zones = Field({}, description="Zones for `who`, as in a file of rules")
    every: Duration = Field("1min", description="The files are written this often, in the time of the frames")
    period: Duration | None = Field(
        None, description="Begin anew after this time, counted from midnight in UTC: a file for each period"
    )
    half_life: Duration | None = Field(
        None, description="Time fades: after this long only half of it counts. By default nothing fades"
    )
    overwrite: bool = Field(False, description="Replace the files of earlier runs instead of counting on behind them")

    @model_validator(mode="after")
    def _named_well(self) -> SinkHeatmapSettings:
        for template, ends, example in (
            (self.numbers, NUMBERS, "heatmaps/{camera}.json"),
            (self.picture, PICTURES, "heatmaps/{camera}.png"),
            (self.background, PICTURES, "stills/{camera}.jpg"),
        ):
            problem = what_is_wrong(template, example, names_camera=False) if template else ""
            if template and not problem and PurePath(template).suffix not in ends:
                problem = f"{template}: expected an end of {', '.join(ends)}, as in {example}"
            if problem:
                raise ValueError(problem)
        for name in ("every", "period", "half_life"):
            value = getattr(self, name)
            if value is not None and duration_ns(value) < LONGEST_STEP_NS:
                raise ValueError(f"{name}: expected at least 1s, got {value}")
        return self

    @property
    def numbers(self) -> str:
        return self.path or "heatmaps/{camera}.json"

    def rules(self) -> RuleFile:
        """A file of rules with one rule, which says whose time counts."""
        rule = {"id": _WHO, "when": self.who or "score >= 0", "hold": "0s", "gap": "0s"}
        return RuleFile.model_validate({"zones": self.zones, "rules": [rule]})


@dataclass(slots=True)
class _Map:
    """The grid of one camera: (rows, columns) seconds since `begun_ns`. Times are those of its frames.

    `files`: the names that it has been given, of numbers and picture. `last`: the place of its last frame.
    """

    grid_s: F64
    begun_ns: int
    last_ns: int
    seen_ns: int
    written_ns: int
    period: int
    last: tuple[int, int] = (-1, -1)
    size: FrameSize = (0, 0)
    files: dict[str, str] = field(default_factory=dict)


_KEPT = ("begun_ns", "last_ns", "seen_ns", "written_ns", "period", "last", "size", "files")


class SinkHeatmap(Stage[SinkHeatmapSettings]):
    """Tracks -> a grid of each camera. A failing disk is reported as trouble, and tried again with the next writing."""

    settings_type = SinkHeatmapSettings
    inputs = Tracks
    outputs = ()
    counts: ClassVar[Counts] = {"repeated": "Frames that a sink had before, and did not add again."}

    def __init__(self, settings: SinkHeatmapSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._maps: dict[str, _Map] = {}
        self._onlooker: Onlooker | None = None
        self._given = GivenNames()
        self._every_ns = duration_ns(settings.every)
        self._period_ns = duration_ns(settings.period) if settings.period else 0
        self._half_life_s = duration_ns(settings.half_life) / 1e9 if settings.half_life else 0.0

    @classmethod
    def check(cls, settings: SinkHeatmapSettings, base_folder: Path) -> Iterable[tuple[tuple[str | int, ...], str]]:
        for name, template in (("path", settings.numbers), ("picture", settings.picture)):
            why = OutputNames(template, "", base_folder).why_not_writable() if template else ""
            if why:
                yield (name,), why
        if settings.who:
            for fault in compile_rules(settings.rules())[1]:
                yield (("who",) if fault.path[0] == "rules" else fault.path), fault.text

    @classmethod
    def check_cameras(
        cls, settings: SinkHeatmapSettings, base_folder: Path, cameras: Mapping[str, FrameSize | None]
    ) -> Iterable[tuple[tuple[str, ...], str]]:
        for name, template in (("path", settings.numbers), ("picture", settings.picture)):
            if template and len(cameras) > 1 and "{camera}" not in template:
                end = PurePath(template).suffix
                example = f"{template.removesuffix(end)}.{{camera}}{end}"
                text = f"{template}: without {{camera}} all {len(cameras)} cameras would write one file: {example}"
                yield (name,), text

    @classmethod
    def written_folders(cls, settings: Any, base_folder: Path) -> Iterable[Path]:
        templates = filter(None, (settings.numbers, settings.picture))
        return {OutputNames(template, "", base_folder).place() for template in templates}

    def open(self) -> None:
        self._names(self.settings.numbers).folder()
        if self.settings.who:
            self._onlooker = Onlooker(_sound(self.settings))
        if self.context.incarnation > 1:
            kept = read_kept(self._state_file, self._restored, self.context.log.warning)
            self._given, self._maps = kept or (self._given, self._maps)

    def process(self, items: Sequence[Tracks]) -> Iterable[Message]:
        for item in items:
            self._take(item)
        return ()

    def finish(self, camera: str, end: End) -> Iterable[Message]:
        if camera in self._maps:
            self._write(camera)
            del self._maps[camera]
            self.context.trouble("", camera)
            with suppress(OSError):
                self._save()
        if self._onlooker:
            self._onlooker.forget(camera)
        return ()

    def close(self) -> None:
        for camera in self._maps:
            self._write(camera)

    def _take(self, item: Tracks) -> None:
        at = item.stamp
        camera, known = at.camera, self._maps.get(at.camera)
        if known and at.place <= known.last:
            self.context.count("repeated", camera)
            return
        period = at.wall_ns // self._period_ns if self._period_ns else 0
        if known is None or known.period < period:
            known = self._begun(item, known, period)
        same = known.last[0] == at.epoch
        step_ns = min(max(at.time_ns - known.last_ns, 0), LONGEST_STEP_NS) if same else 0
        self._add(known, item, step_ns / 1e9)
        known.last, known.last_ns, known.seen_ns, known.size = at.place, at.time_ns, at.wall_ns, item.frame_size
        if not 0 <= at.wall_ns - known.written_ns < self._every_ns:
            self._write(camera)

    def _begun(self, item: Tracks, before: _Map | None, period: int) -> _Map:
        """The map of a new camera, or of the next period, in which a fading one goes on with its time."""
        at, settings = item.stamp, self.settings
        new = _Map(np.zeros((settings.rows, settings.columns)), at.wall_ns, at.time_ns, at.wall_ns, at.wall_ns, period)
        if before is not None:
            self._write(at.camera)
            new.last, new.last_ns = before.last, before.last_ns
            if self._half_life_s:
                new.grid_s = before.grid_s
        self._maps[at.camera] = new
        return new

    def _add(self, known: _Map, item: Tracks, seconds: float) -> None:
        if self._half_life_s and seconds:
            known.grid_s *= kept_share(seconds, self._half_life_s)
        counted = np.isfinite(item.boxes).all(axis=1)
        if self._onlooker:
            ids = {track_id for firing in self._onlooker.judge(item).firing for track_id in firing.ids}
            counted &= np.isin(item.ids, list(ids))
        boxes = item.boxes[counted].astype(np.float64)
        feet = np.stack([(boxes[:, 0] + boxes[:, 2]) / 2, boxes[:, 3]], 1)
        add_time(known.grid_s, feet, item.frame_size, seconds)

    # ---- files

    def _write(self, camera: str) -> None:
        """Write the files of a camera, and the state for a process after this one."""
        known = self._maps[camera]
        known.written_ns = known.seen_ns
        try:
            write_whole(self._named(camera, "numbers", self.settings.numbers), self._numbers(camera, known))
            if self.settings.picture:
                target = self._named(camera, "picture", self.settings.picture)
                write_whole(target, self._drawn(camera, known, target.suffix))
            self._save()
        except (OSError, UserError, EnvironmentProblem) as error:
            why = (error.strerror if isinstance(error, OSError) else None) or str(error)
            self.context.trouble(f"cannot write the heat map: {why}; it is tried again", camera)
            self.context.log.warning("heatmap_not_written", camera=camera, why=why)
            return
        self.context.trouble("", camera)
        for path in known.files.values():
            self.context.wrote(Path(path))

    def _named(self, camera: str, kind: str, template: str) -> Path:
        """The file of this map: the first name that no file of an earlier map or run has."""
        known = self._maps[camera]
        if kind not in known.files:
            first = self._names(template).first(camera, datetime.now(UTC))
            first.parent.mkdir(parents=True, exist_ok=True)
            writer = f"{kind} of {camera}"
            names = self._given.following(writer, first) if self.settings.overwrite else free_names(first)
            name = next(names)
            self._given.note(writer, first, name)
            known.files[kind] = str(name)
        return Path(known.files[kind])

    def _names(self, template: str) -> OutputNames:
        return OutputNames(template, self.context.graph, self.context.base_folder)

    def _numbers(self, camera: str, known: _Map) -> bytes:
        end = PurePath(self.settings.numbers).suffix
        grid = np.round(known.grid_s, 3)
        if end == ".npy":
            buffer = io.BytesIO()
            np.save(buffer, known.grid_s.astype(np.float32))
            return buffer.getvalue()
        if end == ".csv":
            text = io.StringIO()
            csv.writer(text, lineterminator="\n").writerows(grid.tolist())
            return text.getvalue().encode()
        values = {
            "camera": camera,
            "from": utc(known.begun_ns),
            "to": utc(known.seen_ns),
            "width": known.size[0],
            "height": known.size[1],
            "who": self.settings.who,
            "half_life": self.settings.half_life,
            "person_seconds": round(float(known.grid_s.sum()), 3),
            "seconds": grid.tolist(),
        }
        return json.dumps(values).encode()

    def _drawn(self, camera: str, known: _Map, end: str) -> bytes:
        picture = heat_picture(known.grid_s, self._background(camera, known.size))
        most = float(known.grid_s.max())
        draw_caption(
            picture, f"{camera}  {utc(known.begun_ns)[:16]} to {utc(known.seen_ns)[:16]}", f"most {most:.0f} s"
        )
        return bytes(cv2.imencode(end, picture)[1])

    def _background(self, camera: str, size: FrameSize) -> Picture:
        """The still picture of the camera; a dark one if there is none, or it cannot be read."""
        if self.settings.background:
            name = self.settings.background.replace("{camera}", camera).replace("{run}", self.context.graph)
            found = cv2.imread(str(resolve(name, self.context.base_folder)))
            if found is not None:
                return np.asarray(found, np.uint8)
            self.context.log.warning("heatmap_without_background", camera=camera, path=name)
        return np.full((size[1], size[0], 3), _DARK, np.uint8)

    # ---- state

    def _save(self) -> None:
        maps = {
            camera: {"grid": known.grid_s.tolist(), **{name: getattr(known, name) for name in _KEPT}}
            for camera, known in self._maps.items()
        }
        write_whole(self._state_file, json.dumps({"maps": maps, "given": self._given.highest}).encode())

    def _restored(self, state: Any) -> tuple[GivenNames, dict[str, _Map]]:
        """What the process before has left, from JSON; without maps that have other cells than the settings say."""
        maps = {}
        for camera, kept in state["maps"].items():
            values: dict[str, Any] = {name: kept[name] for name in _KEPT}
            values |= {name: tuple(kept[name]) for name in ("last", "size")}
            grid_s = np.array(kept["grid"], np.float64)
            if grid_s.shape == (self.settings.rows, self.settings.columns):
                maps[camera] = _Map(grid_s, **values)
        return GivenNames.restored(state["given"]), maps

    @property
    def _state_file(self) -> Path:
        return self.context.state_folder / f"heatmaps.{self.context.worker}.json"


def _sound(settings: SinkHeatmapSettings) -> RuleSet:
    rules, faults = compile_rules(settings.rules())
    if faults:
        raise UserError("\n".join(f"who: {fault.text}" for fault in faults), error_id="rule-mistake")
    return rules
