"""Keeps a picture and a clip of each incident, as the camera sent them. Only what an MP4 cannot hold is encoded
again.

    footage: {use: sink_footage, from: actions, with: {path: footage}}

    footage/front/2026-11-23/21-03-11_fall_1f00ba7e.jpg      the frame of its first event, with the people drawn on it
                             21-03-11_fall_1f00ba7e.mp4      from 5 s before the incident to 5 s after it
                             21-03-11_fall_1f00ba7e.json     its events, and what became of the two

Events name the files at once (`data.snapshot`, `data.clip`). As soon as one is there, an event of the type
`camgraph.footage.ready` goes to the sinks that read from the same stages; or `camgraph.footage.missing`, with the
reason. Incidents of a camera that overlap share a clip, which has a name for each of them.

A full disk costs pictures and clips, never events. `camgraph incidents` lists what is kept.
"""

from __future__ import annotations

import json
import math
import queue
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from camgraph.pipeline.errors import BadItem, SettingError, Unavailable
from camgraph.pipeline.messages import End, Message
from camgraph.pipeline.stage import Context, Counts, FrameSize, Settings, Stage, Upstream
from camgraph.pipeline.system.disk import why_no_links
from camgraph.pipeline.system.names import ascii_form, nfc
from camgraph.pipeline.system.paths import resolve_output_path, why_no_output
from camgraph.stages import events
from camgraph.stages.facts import Facts
from camgraph.stages.messages import Event, Frame
from camgraph.stages.rules.footage_names import names_of
from camgraph.stages.rules.upstream import time_zone_before
from camgraph.stages.sinks.footage import picture_service
from camgraph.stages.sinks.footage.incident_event import why_unusable
from camgraph.stages.sinks.footage.incident_index import IndexKeeper
from camgraph.stages.sinks.footage.incident_record import FileState, IncidentRecord, Kind, read_record
from camgraph.stages.sinks.footage.picture_service import PictureService
from camgraph.stages.sinks.footage.recorder import Recorder, Wanted
from camgraph.stages.sinks.footage.recording import Recording, RecordingLimits
from camgraph.stages.sinks.footage.retention import KeepRule, Retention
from camgraph.stages.sinks.footage.still import Look
from camgraph.stages.video.dates import zone_of

_INCIDENTS = "camgraph.incident."
_WAIT_S = 0.2
_TEND_S = 1.0
_DAY_S = 86_400.0
_REFUSED = {
    "skeleton_only": "`look: skeleton_only` lets no picture leave",
    "blurred_faces": "`look: blurred_faces` lets no picture leave but those of incidents: of the others, nobody tells "
    "where heads are",
}
"""Look -> why nobody may ask for pictures."""
_UNFINISHED = ".unfinished"
"""Beside the footage, for the state of a killed run does not outlive it. Several graphs may share a folder."""


class Keep(Settings):
    """How long some of the incidents are kept."""

    camera: str | None = Field(None, description="Of this camera alone")
    severity: Literal["info", "warning", "alarm"] | None = Field(None, description="Of this severity alone")
    days: float | None = Field(None, gt=0, description="They are removed when they are older; by default `keep_days`")
    gb: float | None = Field(None, gt=0, description="If all of them are larger, the oldest of them are removed")

    def rule(self, keep_days: float) -> KeepRule:
        """As the retention has it."""
        days = keep_days if self.days is None else self.days
        most = math.inf if self.gb is None else self.gb * 1e9
        return KeepRule(nfc(self.camera or ""), self.severity or "", days * _DAY_S, most)


class SinkFootageSettings(Settings):
    """What to keep, where, and for how long."""

    path: str = Field("footage", min_length=1, description="The folder, relative to the graph file")
    before_s: float = Field(5.0, ge=0, le=60, description="A clip begins so many seconds before the incident")
    after_s: float = Field(5.0, ge=0, le=60, description="A clip ends so many seconds after the incident")
    longest_s: float = Field(
        120.0, ge=5, le=3600, description="A clip of a longer incident, or of several that overlap, ends there"
    )
    clips: bool = Field(True, description="false: pictures only")
    look: Look = Field(
        "annotated",
        description="Of pictures. `annotated`: boxes and skeletons are drawn on it. `clean`: nothing is. "
        "`blurred_faces`: annotated, and no head of anybody whom the model finds can be recognised; in clips they can. "
        "`skeleton_only`: skeletons on black; there are no clips then, and no other stage may read frames, but for "
        "models",
    )
    time_zone: str | None = Field(
        None, description="Of the time in pictures, such as Europe/Berlin; by default that of the rules, or UTC"
    )
    best: bool = Field(
        True,
        description="The picture of an incident is replaced at its end if a later event of it (its end, and its "
        "updates, if the rule has `update`) shows the people larger, sharper or with more certainty",
    )
    crops: bool = Field(False, description="Also a picture of each person, cut out")
    keep_days: float = Field(30.0, gt=0, description="Incidents older than this are removed")
    keep_gb: float = Field(
        20.0, gt=0, description="If all of it is larger than this many GB, the oldest incidents are removed"
    )
    keep: list[Keep] = Field(
        default_factory=list,
        max_length=1000,
        description="Other times and sizes for some incidents; the first entry that fits an incident counts",
    )
    record: Literal["incidents", "always"] = Field(
        "incidents", description="`always`: live cameras are also recorded without a break, in `CAMERA/recorded`"
    )
    record_part_s: float = Field(60.0, ge=5, le=3600, description="Of `record: always`: the length of a file")
    record_days: float = Field(3.0, gt=0, description="Of `record: always`: older files are removed")
    record_gb: float = Field(
        50.0, gt=0, description="Of `record: always`: if all its files are larger, the oldest are removed"
    )
    memory_mb: int = Field(
        64, ge=8, le=4096, description="The most memory for the packets of one camera; less than `before_s` may fit"
    )

    @field_validator("time_zone")
    @classmethod
    def _is_a_zone(cls, name: str | None) -> str | None:
        zone_of(name or "UTC")
        return name

    @model_validator(mode="after")
    def _promise_kept(self) -> Self:
        if self.look == "skeleton_only" and self.record == "always":
            raise ValueError(
                "`record: always` shows people, and `look: skeleton_only` lets no picture leave: remove one"
            )
        return self

    @property
    def wants_clips(self) -> bool:
        """Clips show faces."""
        return self.clips and self.look != "skeleton_only"


class SinkFootage(Stage[SinkFootageSettings]):
    """Hands incidents to the recorder, and announces what it has made."""

    settings_type = SinkFootageSettings
    inputs = Event
    outputs = ()
    counts: ClassVar[Counts] = {
        "snapshots.STATE": "First pictures of incidents, `ready` or `missing`.",
        "bests.STATE": "Better pictures that took the place of the first one, `ready`.",
        "clips.STATE": "Clips of incidents, `ready` or `missing`.",
        "not_recorded": "Times that a recording of `sink_footage` could not go on, because its disk refused it.",
        "failed": "Incidents of which `sink_footage` could not keep pictures and clips, because its folder refused "
        "them.",
        "dropped.invalid_event": "An event of an incident lacks what its picture and clip are made of, or has it in "
        "another form; the log has the reason.",
        "removed": "Incidents that `sink_footage` removed, because they were too old or too much.",
    }
    emits = True
    own_thread = True

    def __init__(self, settings: SinkFootageSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._folder = Path()
        self._recorder: Recorder | None = None
        self._pictures: PictureService | None = None
        self._announcements: queue.SimpleQueue[tuple[IncidentRecord, Kind] | None] = queue.SimpleQueue()
        self._announcer = threading.Thread(target=self._announce_all, name="announcer", daemon=True)
        self._closing = threading.Event()
        self._retention: Retention | None = None
        self._index: IndexKeeper | None = None

    @classmethod
    def check(cls, settings: SinkFootageSettings, base_folder: Path) -> Iterable[tuple[tuple[str, ...], str]]:
        why = why_no_output(f"{settings.path}/x.mp4", base_folder, grows=False)
        if why:
            yield ("path",), why

    @classmethod
    def written_folders(cls, settings: Any, base_folder: Path) -> Iterable[Path]:
        yield resolve_output_path(settings.path, base_folder)

    @classmethod
    def remarks(
        cls, settings: SinkFootageSettings, base_folder: Path, cameras: Mapping[str, FrameSize | None]
    ) -> Iterable[str]:
        most_mb = settings.memory_mb * len(cameras)
        yield f"pictures and clips: up to {most_mb} MB of memory for the packets of all cameras"
        if settings.record == "always":
            yield f"recordings: up to {settings.record_gb:g} GB of disk, those of {settings.record_days:g} days"
        folder = resolve_output_path(settings.path, base_folder)
        if settings.wants_clips and why_no_links(folder):
            yield f"{folder}: its disk has no hard links: incidents that share a clip each have a copy of it"
        if settings.look == "blurred_faces" and (settings.clips or settings.record == "always"):
            yield "`look: blurred_faces` is about pictures alone: clips and recordings show all faces"

    @classmethod
    def wants(cls, settings: SinkFootageSettings, base_folder: Path) -> Mapping[str, Any]:
        """That the events name the files, and tell where heads are if they are to be hidden."""
        return {"footage": settings.path} | ({"heads": True} if settings.look == "blurred_faces" else {})

    @classmethod
    def follow(cls, settings: SinkFootageSettings, base_folder: Path, upstream: Upstream) -> Mapping[str, Any]:
        for name, facts in upstream.stages.items() if settings.look == "blurred_faces" else ():
            if name in upstream.makers and "rules" in facts and not facts["rules"]["heads"]:
                raise SettingError(
                    ("look",),
                    f"`{name}` does not tell where heads are, so they cannot be blurred: write `from: {name}` here "
                    "instead of `from: events`, and no `heads: false` there",
                )
        for name, facts in upstream.beside.items():
            if "footage" in facts and _is_same(facts["footage"]["folder"], settings.path, base_folder):
                raise SettingError(
                    ("path",), f"`{name}` writes the same files: give each of the two a folder of its own"
                )
        zone = time_zone_before(upstream)
        return {"time_zone": zone} if zone and settings.time_zone is None else {}

    @classmethod
    def gives_away(cls, settings: SinkFootageSettings) -> Collection[type[Message]]:
        """Its pictures and clips are made of packets."""
        return () if settings.look == "skeleton_only" else (Frame,)

    @classmethod
    def withholds(cls, settings: SinkFootageSettings) -> Mapping[type[Message], str]:
        if settings.look != "skeleton_only":
            return {}
        return {Frame: "with `look: skeleton_only` no picture of the cameras may leave the graph"}

    @classmethod
    def describe(cls, settings: SinkFootageSettings) -> Facts:
        return {"footage": {"folder": settings.path, "clips": settings.wants_clips, "look": settings.look}}

    def open(self) -> None:
        settings = self.settings
        self._folder = resolve_output_path(settings.path, self.context.base_folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        wanted = Wanted(
            before_s=settings.before_s,
            after_s=settings.after_s,
            longest_s=settings.longest_s,
            ring_bytes=settings.memory_mb << 20,
            look=settings.look,
            zone=zone_of(settings.time_zone or "UTC"),
            clips=settings.wants_clips,
            best=settings.best,
            crops=settings.crops,
        )
        self._recorder = Recorder(
            wanted,
            folder=self._folder,
            stages_folder=self.context.state_folder.parent,
            unfinished=self._folder / _UNFINISHED / ascii_form(self.context.graph),
            log=self.context.log,
            done=lambda record, kind: self._announcements.put((record, kind)),
            recording=self._recording() if settings.record == "always" else None,
        )
        self._retention = Retention(
            self._folder,
            self.context.log,
            keep_s=settings.keep_days * _DAY_S,
            keep_bytes=settings.keep_gb * 1e9,
            rules=[one.rule(settings.keep_days) for one in settings.keep],
            is_running=self._recorder.is_running,
        )
        self._recorder.open()
        self._index = IndexKeeper(self._folder, self.context.log)
        self._index.open()
        place = self.context.state_folder / picture_service.NAME
        self._pictures = PictureService(
            place, self._recorder.packets_of, self.context.log, refused=_REFUSED.get(settings.look, "")
        )
        self._pictures.open()
        self._announcer.start()
        self.context.wrote(self._folder)

    def _recording(self) -> Recording:
        settings = self.settings
        limits = RecordingLimits(settings.record_part_s, settings.record_days * _DAY_S, settings.record_gb * 1e9)
        return Recording(self._folder, limits, self._not_recorded)

    def _not_recorded(self, camera: str, why: str) -> None:
        if why:
            self.context.count("not_recorded", camera)
        self.context.trouble(why and f"{self._folder}: {why}", camera)

    def process(self, items: Sequence[Any]) -> Iterable[Message]:
        """A failing disk is reported as trouble; the incident is left out then.

        Raises BadItem `invalid_event` before any of the events is taken: the runtime hands them in again one by one.
        """
        bodies = [json.loads(event.body) for event in items]
        incidents = [body for body in bodies if str(body.get("type", "")).startswith(_INCIDENTS)]
        for body in incidents:
            why = why_unusable(body)
            if why:
                raise BadItem("invalid_event", why)
        for body in incidents:
            self._take(body)
            self._touch_index()
        return ()

    def cameras_changed(self) -> None:
        if self._recorder is not None:
            self._recorder.cameras_changed(self.context.cameras)

    def _touch_index(self) -> None:
        if self._index is not None:
            self._index.touch()

    def _take(self, body: dict[str, Any]) -> None:
        assert self._recorder is not None
        data = body["data"]
        if data["phase"] == "end":
            self._end(self._recorder, data["incident"], body)
        elif data["phase"] == "update":
            self._recorder.see(data["incident"], body)
        else:
            self._begin(self._recorder, self._record_of(body))

    def _end(self, recorder: Recorder, incident: str, body: dict[str, Any]) -> None:
        """Also of one whose files a killed process has left, or that were finished earlier: its record has the end."""
        if recorder.is_running(incident):
            recorder.end(incident, body)
            return
        record = read_record(self._record_of(body).path)
        if record is not None and not record.last:
            record.last = body
            with suppress(OSError):
                record.write()

    def _begin(self, recorder: Recorder, record: IncidentRecord) -> None:
        if read_record(record.path) is not None:
            return
        try:
            recorder.begin(record)
        except OSError as error:
            self._give_up(record, f"it cannot be written: {error.strerror or error}")
            self.context.count("failed", record.camera)
            self.context.trouble(f"{self._folder}: {error.strerror or error}: pictures and clips are not kept")
        else:
            self.context.trouble("")

    def _give_up(self, record: IncidentRecord, why: str) -> None:
        """Its events have named the files already."""
        kinds: tuple[Kind, ...] = ("snapshot", "clip") if self.settings.wants_clips else ("snapshot",)
        for kind in kinds:
            record.files[kind] = FileState("missing", why)
            self._announcements.put((record, kind))

    def _record_of(self, body: dict[str, Any]) -> IncidentRecord:
        data = body["data"]
        at = datetime.fromisoformat(data["start_time"])
        start_ns = int(at.timestamp()) * 1_000_000_000
        names = names_of("", data["camera"], data["action"], data["incident"], start_ns)
        return IncidentRecord(self._folder / names.record, body)

    def finish(self, camera: str, end: End) -> Iterable[Message]:
        """Wait until all is finished and announced."""
        assert self._recorder is not None
        self._recorder.stop_soon()
        if self._recorder.is_busy and not self._recorder.is_late:
            raise Unavailable("clips are being finished", patient=True)
        if self._recorder.is_busy:
            self.context.log.error("footage_not_finished", folder=str(self._folder))
        return ()

    def close(self) -> None:
        self._closing.set()
        if self._pictures is not None:
            self._pictures.close()
        if self._recorder is not None:
            self._recorder.close()
        if self._announcer.ident is not None:
            self._announcements.put(None)
            self._announcer.join()
        if self._index is not None:
            self._index.close()

    # ---- the announcer's thread

    def _announce_all(self) -> None:
        while (next_one := self._next_announcement()) is not None:
            record, kind = next_one
            if kind == "best" and record.files[kind].state != "ready":
                self._announced(record)  # its first picture stays: nobody needs to know
                continue
            try:
                event = self._announcement(record, kind)
            except (KeyError, ValueError, TypeError):
                # Of a record that somebody has changed, or of another version.
                self.context.log.exception("footage_not_announced", record=str(record.path))
                self._announced(record)
                continue
            while not self._closing.is_set():
                try:
                    self.context.emit(event)
                except Unavailable:
                    self._closing.wait(_WAIT_S)
                else:
                    self._count(record, kind)
                    break

    def _next_announcement(self) -> tuple[IncidentRecord, Kind] | None:
        """Wait for it. Meanwhile old incidents are removed, also where nothing ever happens."""
        while True:
            self._remove_old()
            with suppress(queue.Empty):
                return self._announcements.get(timeout=_TEND_S)

    def _remove_old(self) -> None:
        assert self._retention is not None
        removed = self._retention.remove_due()
        if removed:
            self.context.count("removed", "", removed)
            self._touch_index()

    def _named(self, path: Path) -> str:
        """As events name files: relative to the folder of the graph file."""
        return f"{self.settings.path.rstrip('/')}/{path.relative_to(self._folder).as_posix()}"

    def _count(self, record: IncidentRecord, kind: Kind) -> None:
        assert self._recorder is not None
        self.context.count(f"{kind}s.{record.files[kind].state}", record.camera)
        self._announced(record)

    def _announced(self, record: IncidentRecord) -> None:
        assert self._recorder is not None
        self._recorder.announced(record)
        self._touch_index()

    def _announcement(self, record: IncidentRecord, kind: Kind) -> Event:
        state = record.files[kind].plain()
        if state.pop("state") == "ready":
            state["file"] = self._named(record.file(kind))
            if names := state.get("crops"):
                state["crops"] = [self._named(record.path.with_name(name)) for name in names]
        return events.footage_event(record.first, kind, state)


def _is_same(folder: str, other: str, base_folder: Path) -> bool:
    one, two = (resolve_output_path(path, base_folder).resolve() for path in (folder, other))
    return one == two
