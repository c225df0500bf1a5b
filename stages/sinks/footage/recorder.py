"""Makes the picture and the clip of each incident, in a thread of its own.

    begin(record) --> picture: as soon as its packet is there                          --> done(record, "snapshot")
    see(incident)   a better picture of it, until its end: that takes the first one's place --> done(record, "best")
                 '--> clip: from `before_s` before the incident, packet by packet ...
    end(incident) ... until `after_s` after its end, then given its name               --> done(record, "clip")

Incidents of a camera that overlap share a clip: the file has a name for each of them (hard links; copies on a disk
without these).
"""

from __future__ import annotations

import math
import os
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import tzinfo
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import av

from camgraph.pipeline.errors import CamgraphError
from camgraph.pipeline.stage import Logger
from camgraph.pipeline.system.disk import link_or_copy, write_whole, write_with_folder
from camgraph.pipeline.system.names import ascii_form
from camgraph.stages.sinks.footage.best import MOST_DECODED, Best, certainty, crops, sharpness
from camgraph.stages.sinks.footage.clip import PART, Clip
from camgraph.stages.sinks.footage.feed import PacketFeed
from camgraph.stages.sinks.footage.incident_record import KINDS, FileState, IncidentRecord, Kind, read_record, sha256_of
from camgraph.stages.sinks.footage.recording import Recording
from camgraph.stages.sinks.footage.ring import Ring
from camgraph.stages.sinks.footage.still import Look, Picture, decode_last, drawn, for_crops, jpeg, why_not_shown
from camgraph.stages.sinks.writing.recording import plays, whole_length
from camgraph.stages.video.packets import Moment, Packet, wanted_mark

_TURN_S = 0.1
_COMES_S = 5.0
"""How long a packet may take to come after the event about its picture."""
_LAST_SEEN_S = 10.0
"""How long before an event its people may have been seen for the last time: `lost` is true for so long."""
_LATE_S = 10.0
"""How much longer than `after_s` a clip waits for packets of a camera that is silent."""
_CLOSING_S = 3.0
"""How long a run that ends waits for the rest of a camera's packets."""
_ANSWER_S = 1.0
"""How long somebody who asks for packets waits for the thread."""
_NO_TIME = "the camera gave its picture no time"
_PLACE_PARTS = 3
_BUG = "it could not be made; the log of the run has the details"
_FAILED_S = 60.0
"""How often the log tells of the failures of one camera."""
_GIVEN_UP_S = 60.0
"""How much longer it waits for files that are being finished: none of them may keep a run from ending."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The files that are made of an incident. Times in seconds."""

    before_s: float
    after_s: float
    longest_s: float
    ring_bytes: int
    """Of the packets that are kept for one camera."""
    look: Look
    zone: tzinfo
    """Of the time in pictures."""
    clips: bool
    best: bool = True
    crops: bool = False

    @property
    def ring_s(self) -> float:
        """The seconds of packets that the ring keeps: an event may come late, because a rule may wait (`for`)."""
        return self.before_s + _COMES_S + 60.0 if self.clips else 2 * _COMES_S + _LAST_SEEN_S


@dataclass(slots=True, eq=False)
class _Session:
    """A clip that grows, and its incidents: each with the moment up to which it wants the clip, once that is known."""

    clip: Clip
    records: list[IncidentRecord]
    least: Fraction
    """The moment up to which it is wanted at least, while an incident goes on."""
    until: dict[str, Fraction | None] = field(default_factory=dict)
    written_dts: int = -(1 << 62)
    given_up_s: float = 0.0
    """By the monotonic clock: when it is closed without packets. 0: not yet known."""

    @property
    def written(self) -> Fraction:
        """The moment of the last packet in the clip."""
        return self.written_dts * self.clip.stream.time_base

    @property
    def last(self) -> Fraction | None:
        """The moment after which no incident wants more of the clip; None while an incident goes on."""
        ends = list(self.until.values())
        return None if None in ends else max(end for end in ends if end is not None)


@dataclass(slots=True, eq=False)
class _Waiting:
    """A record whose packets have not come yet."""

    record: IncidentRecord
    kind: Kind
    until_s: float
    data: Mapping[str, Any]
    """Of the event whose picture it is."""


@dataclass(slots=True, eq=False)
class _Camera:
    ring: Ring
    session: _Session | None = None
    waiting: list[_Waiting] = field(default_factory=list)
    is_over: bool = False
    """No packets come before its next stream."""
    refusal: str = ""
    """Why the packets of its present stream cannot be had, for people; "" if they can."""
    heard_s: float = 0.0
    """By the monotonic clock: when its last packet came."""


class Recorder:
    """Makes the pictures and clips of all incidents. `done` is called in its thread, once for each file of a record.

    `folder`: of footage, with the records.
    `unfinished` is a folder for the paths of unfinished records, for the process, or the run, that comes after a killed
    one.
    `stages_folder` has the state folders of all stages: that of the source has the sockets of its cameras.
    """

    def __init__(
        self,
        wanted: Wanted,
        *,
        folder: Path,
        stages_folder: Path,
        unfinished: Path,
        log: Logger,
        done: Callable[[IncidentRecord, Kind], object],
        recording: Recording | None = None,
    ) -> None:
        self._recording = recording
        self._wanted = wanted
        self._log = log
        self._done = done
        self._folder = folder
        self._copies = False
        """The disk has no hard links, and the log says so."""
        self._stages_folder = stages_folder
        self._feed = PacketFeed(stages_folder, log, self._packet, self._over, self._refused)
        self._cameras: dict[str, _Camera] = {}
        self._present: Set[str] | None = None
        """The cameras of the run, by their names in ASCII; None while they are as they were at its start."""
        self._bests: dict[str, Best] = {}
        self._jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._unfinished = Unfinished(unfinished, folder)
        self._running: dict[str, IncidentRecord] = {}
        self._reporting = threading.Lock()
        self._reports: Counter[str] = Counter()
        """Incident -> reports that were made and not passed on."""
        self._failed_at_s: dict[str, float] = {}
        """Camera -> when the log told of its last failure, by the monotonic clock."""
        self._closing_at_s = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="footage", daemon=True)

    # ---- for the stage, from any thread

    def open(self) -> None:
        """Finish the files that a killed process has left, and begin to listen to the cameras."""
        for record in self._unfinished.records():
            self._put_job(record, partial(self._rescue, record))
            self._running[record.incident] = record
        wanted_mark(self._stages_folder).touch()
        self._thread.start()

    def begin(self, record: IncidentRecord) -> None:
        """An incident has begun, or was all in one moment. Raises OSError if its record cannot be written."""
        if record.incident in self._running:
            return
        record.begun_s = time.time()
        try:
            self._unfinished.add(record)
            record.write(durable=True)
        except OSError:
            self._unfinished.remove(record)
            raise
        self._running[record.incident] = record
        self._put_job(record, lambda: self._begin(record))

    def see(self, incident: str, event: dict[str, Any]) -> None:
        """An incident goes on: `event` is an update of it, whose picture may be better."""
        record = self._running.get(incident)
        if record is not None:
            self._put_job(record, lambda: self._see(record, event))

    def end(self, incident: str, event: dict[str, Any]) -> None:
        """An incident is over: `event` is its end."""
        record = self._running.get(incident)
        if record is not None:
            self._put_job(record, lambda: self._end(record, event))

    def _put_job(self, record: IncidentRecord, job: Callable[[], None]) -> None:
        """Have the thread do something for this record."""

        def do() -> None:
            with self._logging_failures(ascii_form(record.camera), lambda _: self._give_up_record(record)):
                job()

        self._jobs.put(do)

    def is_running(self, incident: str) -> bool:
        """Whether work is still to be done for this incident."""
        return incident in self._running

    def announced(self, record: IncidentRecord) -> None:
        """One report about this record has been passed on; after the last one, nothing is left to be done for it."""
        with self._reporting:
            if record.incident not in self._reports:
                return  # it could not be begun, so nothing was noted of it
            self._reports[record.incident] -= 1
            is_over = not record.is_pending and not self._reports[record.incident]
            if is_over:
                del self._reports[record.incident]
        if is_over:
            self._running.pop(record.incident, None)
            self._unfinished.remove(record)

    def cameras_changed(self, cameras: Iterable[str]) -> None:
        """Cameras have come and gone: these are left. Packets of others are kept while events about them may come."""
        present = frozenset(map(ascii_form, cameras))

        def note() -> None:
            self._present = present

        self._jobs.put(note)

    def packets_of(self, camera: str, moment: Moment | None) -> Sequence[Packet]:
        """The packets for a picture (`picture_service.FindPackets`); none if this thread is too late."""
        found: Future[Sequence[Packet]] = Future()

        def find() -> None:
            if found.set_running_or_notify_cancel():
                found.set_result(self._packets_of(camera, moment))

        self._jobs.put(find)
        try:
            return found.result(_ANSWER_S)
        except TimeoutError:
            found.cancel()
            return ()

    @property
    def is_busy(self) -> bool:
        """Whether some file is not finished, or not announced."""
        return bool(self._running)

    @property
    def is_late(self) -> bool:
        """Whether the run that ends has waited long enough for unfinished files."""
        return bool(self._closing_at_s) and time.monotonic() > self._closing_at_s + _GIVEN_UP_S

    def stop_soon(self) -> None:
        """The run ends: wait no longer for packets than cameras need to send their last ones."""
        if not self._closing_at_s:
            self._closing_at_s = time.monotonic() + _CLOSING_S

    def close(self) -> None:
        """Give up the unfinished files: the next process finds them."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()
        if self._recording is not None:
            self._recording.close()
        self._feed.close()

    # ---- the thread

    def _run(self) -> None:
        while not self._stop.is_set():
            with self._logging_failures():
                self._feed.turn(_TURN_S)
            with self._logging_failures():
                self._work()

    @contextmanager
    def _logging_failures(
        self, name: str = "", give_up: Callable[[Exception], object] = lambda _: None
    ) -> Iterator[None]:
        """Log an exception of this block, then `give_up` the work that would fail again. `name`: the camera's.

        A bug must cost a few files, not those of other cameras, nor all that come.
        """
        try:
            yield
        except Exception as error:  # noqa: BLE001 - as the docstring says
            now_s = time.monotonic()
            if now_s > self._failed_at_s.get(name, -math.inf) + _FAILED_S:
                self._failed_at_s[name] = now_s
                self._log.exception("footage_failed", camera=name)
            give_up(error)

    def _give_up_camera(self, camera: _Camera, error: Exception) -> None:
        waiting, camera.waiting = camera.waiting, []
        if camera.session is not None:
            self._abandon(camera, camera.session, error)
        for one in waiting:
            self._give_up_record(one.record)

    def _work(self) -> None:
        self._do_jobs()
        if self._recording is not None:
            with self._logging_failures():
                self._recording.trim()
        now_s = time.monotonic()
        closing = bool(self._closing_at_s) and now_s > self._closing_at_s
        for name, camera in list(self._cameras.items()):
            with self._logging_failures(name, partial(self._give_up_camera, camera)):
                self._work_on(camera, now_s, closing=closing)
        if self._present is not None:
            self._forget_gone(self._present, now_s)
        if closing:
            self._give_up_all()

    def _do_jobs(self) -> None:
        for _ in range(self._jobs.qsize()):
            self._jobs.get_nowait()()

    def _work_on(self, camera: _Camera, now_s: float, *, closing: bool) -> None:
        for waiting in list(camera.waiting):
            if not self._try(camera, waiting) and (camera.is_over or closing or now_s > waiting.until_s):
                camera.waiting.remove(waiting)
                self._give_up(camera, waiting)
        session = camera.session
        if session is not None:
            self._advance(camera, session)
        session = camera.session
        if session is not None and (closing or self._is_complete(camera, session, now_s)):
            self._close(camera, session)

    def _forget_gone(self, present: Set[str], now_s: float) -> None:
        """Free the packets of removed cameras once no incident wants them. Events come later than packets."""
        for name in self._cameras.keys() - present:
            if now_s > self._cameras[name].heard_s + self._wanted.ring_s and not self._has_incident(name):
                del self._cameras[name]

    def _has_incident(self, name: str) -> bool:
        return any(ascii_form(record.camera) == name for record in list(self._running.values()))

    def _give_up_all(self) -> None:
        for record in list(self._running.values()):
            self._settle_best(record)
            if self._joins_late(self._camera(ascii_form(record.camera)), record):
                self._missing(record, "clip", _NO_TIME)

    def _give_up_record(self, record: IncidentRecord) -> None:
        """Nothing more is made of an incident of which something failed by a bug; what is there stays."""
        camera = self._camera(ascii_form(record.camera))
        camera.waiting = [waiting for waiting in camera.waiting if waiting.record is not record]
        in_session = camera.session is not None and record in camera.session.records
        for kind in KINDS:
            if record.files[kind].state == "pending" and not (kind == "clip" and in_session):
                self._missing(record, kind, _BUG)
        if record.files["best"].state == "pending":
            self._bests.pop(record.incident, None)
            self._report_one(record, "best", _first_is_best())

    def _give_up_file(self, camera: _Camera, waiting: _Waiting) -> None:
        """A bug costs the file that it met; of a clip that grows, its session decides."""
        record, kind = waiting.record, waiting.kind
        in_session = camera.session is not None and record in camera.session.records
        if kind != "best" and record.files[kind].state == "pending" and not (kind == "clip" and in_session):
            self._missing(record, kind, _BUG)

    def _give_up(self, camera: _Camera, waiting: _Waiting) -> None:
        if waiting.kind != "best":
            why = camera.refusal or "its picture is gone: no packets of it were kept"
            self._missing(waiting.record, waiting.kind, why)
        self._settle_if_over(camera, waiting.record)

    def _is_complete(self, camera: _Camera, session: _Session, now_s: float) -> bool:
        if session.clip.is_full or session.written >= self._longest(session):
            return True
        last = session.last
        if last is None:
            return False
        return session.written >= last or camera.is_over or now_s > session.given_up_s

    def _longest(self, session: _Session) -> Fraction:
        clip = session.clip
        if not clip.packets:
            return Fraction(1 << 62)
        return clip.first_pts * clip.stream.time_base + Fraction(self._wanted.longest_s).limit_denominator(1000)

    def _wanted_until(self, camera: _Camera, session: _Session) -> Fraction:
        """The moment up to which packets belong to a clip, as far as is known now.

        A live camera's packets are written as they come. Those of a file come earlier than the events about them, and
        wait in the ring for the end of the incident, which must not depend on how fast anything is.
        """
        longest, last = self._longest(session), session.last
        if last is not None:
            return min(last, longest)
        newest = camera.ring.newest
        if session.clip.stream.is_live or newest is None:
            return longest
        leaving = newest.pts * newest.stream.time_base - Fraction(self._wanted.ring_s / 2).limit_denominator(1000)
        return min(max(session.least, leaving), longest)

    def _advance(self, camera: _Camera, session: _Session) -> None:
        """Write the packets of the clip, up to the first one that is decoded after the last wanted moment."""
        self._write_until(camera, session, self._wanted_until(camera, session))

    def _write_until(self, camera: _Camera, session: _Session, until: Fraction) -> None:
        for packet in camera.ring.behind(session.written_dts):
            if session.written >= until or session.clip.is_full or camera.session is not session:
                return
            self._write(camera, session, packet)

    def _packet(self, name: str, packet: Packet) -> None:
        if self._recording is not None:
            with self._logging_failures(name):
                self._recording.add(name, packet)
        camera = self._camera(name)
        with self._logging_failures(name, partial(self._give_up_camera, camera)):
            self._keep(camera, packet)

    def _keep(self, camera: _Camera, packet: Packet) -> None:
        camera.is_over, camera.refusal, camera.heard_s = False, "", time.monotonic()
        session = camera.session
        if session is not None and packet.stream != session.clip.stream:
            # A file begins anew while an incident goes on: the rest of it waits in the ring, and is about to leave it.
            longest, last = self._longest(session), session.last
            self._write_until(camera, session, longest if last is None else min(last, longest))
            if camera.session is session:
                self._close(camera, session)
        camera.ring.add(packet)
        if camera.session is not None:
            self._advance(camera, camera.session)

    def _write(self, camera: _Camera, session: _Session, packet: Packet) -> None:
        session.written_dts = packet.dts
        try:
            session.clip.add(packet)
        except Exception as error:  # noqa: BLE001 - as in `_begin_clip`
            self._abandon(camera, session, error)

    def _over(self, name: str) -> None:
        self._camera(name).is_over = True
        if self._recording is not None:
            with self._logging_failures(name):
                self._recording.over(name)

    def _refused(self, name: str, why: str) -> None:
        camera = self._camera(name)
        camera.is_over, camera.refusal = True, why

    def _camera(self, name: str) -> _Camera:
        """The camera of this name (in ASCII)."""
        if name not in self._cameras:
            self._cameras[name] = _Camera(Ring(self._wanted.ring_s, self._wanted.ring_bytes))
        return self._cameras[name]

    def _packets_of(self, name: str, moment: Moment | None) -> Sequence[Packet]:
        camera = self._cameras.get(name)
        stream = camera.ring.stream if camera else None
        if camera is None or stream is None:
            return ()
        if moment is None:
            return camera.ring.newest_key()
        return camera.ring.up_to(moment.epoch, moment.pts(stream.time_base))

    # ---- one incident

    def _begin(self, record: IncidentRecord) -> None:
        camera = self._camera(ascii_form(record.camera))
        until_s = time.monotonic() + _COMES_S
        kinds: tuple[Kind, ...] = ("snapshot", "clip") if self._wanted.clips else ("snapshot",)
        if record.data["phase"] == "single":
            record.files["best"] = _first_is_best()
        else:
            self._bests[record.incident] = Best(decoded=0 if self._wanted.best else MOST_DECODED)
        if Moment.of(record.first["data"]) is None:
            self._missing(record, "snapshot", _NO_TIME)
            self._forgo_clip(record)
            return
        if not self._wanted.clips:
            record.files["clip"] = FileState("missing", "no clips are wanted")
        for kind in kinds:
            self._try_or_wait(camera, _Waiting(record, kind, until_s, record.data))

    def _forgo_clip(self, record: IncidentRecord) -> None:
        """Give up the clip of an incident if its picture has no time. A later event may bring a clip."""
        if record.files["clip"].state != "pending":
            self._report(record, "clip", {})
        elif record.last or record.data["phase"] == "single":
            self._missing(record, "clip", _NO_TIME)

    def _joins_late(self, camera: _Camera, record: IncidentRecord) -> bool:
        if record.files["clip"].state != "pending" or any(waiting.record is record for waiting in camera.waiting):
            return False
        return camera.session is None or record.incident not in camera.session.until

    def _try_or_wait(self, camera: _Camera, waiting: _Waiting) -> None:
        if not self._try(camera, waiting):
            camera.waiting.append(waiting)

    def _try(self, camera: _Camera, waiting: _Waiting) -> bool:
        """Make the file, or begin to, if its packets are there."""
        made, record = True, waiting.record
        with self._logging_failures(ascii_form(record.camera), lambda _: self._give_up_file(camera, waiting)):
            made = self._join(camera, waiting) if waiting.kind == "clip" else self._picture(camera, waiting)
        if made and waiting in camera.waiting:
            camera.waiting.remove(waiting)
        if made:
            self._settle_if_over(camera, waiting.record)
        return made

    def _picture(self, camera: _Camera, waiting: _Waiting) -> bool:
        best = self._bests.get(waiting.record.incident)
        if waiting.kind == "best" and (best is None or not best.is_worth_decoding(waiting.data)):
            return True
        why = why_not_shown(waiting.data, self._wanted.look)
        if why:
            if waiting.kind == "snapshot":
                self._missing(waiting.record, "snapshot", why)
            return True
        stream, moment = camera.ring.stream, Moment.shown(waiting.data)
        assert moment is not None
        packets = camera.ring.up_to(moment.epoch, moment.pts(stream.time_base)) if stream else ()
        if not packets:
            return False
        picture = decode_last(packets)
        if waiting.kind == "snapshot":
            self._snapshot(waiting.record, picture)
        elif picture is not None and best is not None:
            self._compare(best, picture, waiting.data)
        return True

    def _snapshot(self, record: IncidentRecord, picture: Picture | None) -> None:
        if picture is None:
            self._missing(record, "snapshot", "its picture cannot be decoded")
            return
        best = self._bests.get(record.incident)
        if best is not None:
            best.beats(certainty(record.data) * sharpness(picture, record.data))
        state = FileState(height=picture.shape[0], width=picture.shape[1])
        self._report_one(
            record, "snapshot", self._written(record, "snapshot", state, *self._pictures(picture, record.data))
        )

    def _pictures(self, picture: Picture, data: Mapping[str, Any]) -> tuple[bytes, dict[int, bytes]]:
        """The picture, and those of its people if they are wanted, as JPEG. `picture` is changed."""
        look, zone, people = self._wanted.look, self._wanted.zone, {}
        if self._wanted.crops:
            people = {track_id: jpeg(part) for track_id, part in crops(for_crops(picture, data, look, zone), data)}
        return jpeg(drawn(picture, data, look, zone)), people

    def _written(
        self, record: IncidentRecord, kind: Kind, state: FileState, data: bytes, people: Mapping[int, bytes]
    ) -> FileState:
        """Write a picture, and those of its people. Returns the state of the file."""
        try:
            write_whole(record.file(kind), data)
            for track_id, part in people.items():
                write_whole(record.crop(track_id), part)
                state.crops.append(record.crop(track_id).name)
        except OSError as error:
            return FileState("missing", f"it cannot be written: {error.strerror or error}")
        return _completed(record.file(kind), state)

    # ---- the best picture

    def _see(self, record: IncidentRecord, event: dict[str, Any]) -> None:
        best, data = self._bests.get(record.incident), event["data"]
        camera, until_s = self._camera(ascii_form(record.camera)), time.monotonic() + _COMES_S
        if Moment.of(data) is None:
            return
        if self._joins_late(camera, record):
            self._try_or_wait(camera, _Waiting(record, "clip", until_s, data))
        if best is not None and best.is_worth_decoding(data):
            self._try_or_wait(camera, _Waiting(record, "best", until_s, data))

    def _compare(self, best: Best, picture: Picture, data: Mapping[str, Any]) -> None:
        if best.beats(certainty(data) * sharpness(picture, data)):
            best.height, best.width = picture.shape[:2]
            best.jpeg, best.crops = self._pictures(picture, data)

    def _settle_if_over(self, camera: _Camera, record: IncidentRecord) -> None:
        """Settle an incident after its last event, once all pictures that may be better were looked at."""
        if record.last and not any(
            waiting.record is record and waiting.kind in ("snapshot", "best") for waiting in camera.waiting
        ):
            self._settle_best(record)

    def _settle_best(self, record: IncidentRecord) -> None:
        best = self._bests.pop(record.incident, None)
        if best is None:
            return
        if best.jpeg is None:
            self._report_one(record, "best", _first_is_best())
            return
        first, wanted = record.files["snapshot"], FileState(width=best.width, height=best.height)
        state = self._written(record, "best", wanted, best.jpeg, best.crops or {})
        if state.state != "ready":
            self._report_one(record, "best", state)
            return
        state.crops = sorted({*first.crops, *state.crops})
        self._report(record, "best", {"best": state, "snapshot": state})

    def _join(self, camera: _Camera, waiting: _Waiting) -> bool:
        """Let the clip that grows be that of this incident too, or begin one."""
        record, moment = waiting.record, Moment.of(waiting.data)
        assert moment is not None
        session = camera.session
        if session is None or session.clip.stream.epoch != moment.epoch:
            session = self._begin_clip(camera, record, moment)
            if session is None:
                return record.files["clip"].state == "missing"
        session.records.append(record)
        record.files["clip"].grows_in = str(session.clip.target.relative_to(record.path.parent.parent))
        self._save(record)
        session.until[record.incident] = None
        session.least = max(session.least, moment.at + Fraction(self._wanted.after_s).limit_denominator(1000))
        end = record.first if record.first["data"]["phase"] == "single" else record.last
        if end:
            self._note_end(session, record, end)
        self._advance(camera, session)
        return True

    def _begin_clip(self, camera: _Camera, record: IncidentRecord, moment: Moment) -> _Session | None:
        stream = camera.ring.stream
        if stream is None or stream.epoch != moment.epoch:
            return None
        earlier_s = self._wanted.before_s + float(record.data.get("duration_s", 0.0))
        packets = camera.ring.since(moment.epoch, moment.pts(stream.time_base, earlier_s=earlier_s))
        if not packets or packets[-1].pts < moment.pts(stream.time_base):
            return None  # its own picture has not come yet
        try:
            session = camera.session = _Session(Clip(record.file("clip"), stream), [], moment.at)
        except Exception as error:  # noqa: BLE001 - PyAV raises many kinds for a codec that it cannot write
            self._missing(record, "clip", self._why_not_written(error))
            return None
        session.written_dts = packets[0].dts - 1
        return session

    def _end(self, record: IncidentRecord, event: dict[str, Any]) -> None:
        record.last = event
        camera = self._camera(ascii_form(record.camera))
        session = camera.session
        if session is not None and record.incident in session.until:
            self._note_end(session, record, event)
        self._save(record)
        self._see(record, event)
        if self._joins_late(camera, record):
            self._forgo_clip(record)
        self._settle_if_over(camera, record)

    def _note_end(self, session: _Session, record: IncidentRecord, event: dict[str, Any]) -> None:
        moment = Moment.of(event["data"])
        at = moment.at if moment is not None and moment.epoch == session.clip.stream.epoch else Fraction(0)
        session.until[record.incident] = at + Fraction(self._wanted.after_s).limit_denominator(1000)
        session.given_up_s = time.monotonic() + self._wanted.after_s + _LATE_S

    def _close(self, camera: _Camera, session: _Session) -> None:
        camera.session = None
        try:
            session.clip.close()
        except Exception as error:  # noqa: BLE001 - as in `_begin_clip`
            self._abandon(camera, session, error)
            return
        for record in session.records:
            self._name_clip(session.clip, record)

    def _name_clip(self, clip: Clip, record: IncidentRecord) -> None:
        target = record.file("clip")
        try:
            if target != clip.target:
                self._give_name(clip.target, target)
        except OSError as error:
            self._missing(record, "clip", f"it cannot be written: {error.strerror or error}")
            return
        width, height = clip.stream.upright_size
        self._ready(record, "clip", FileState(seconds=round(clip.seconds, 3), width=width, height=height))

    def _give_name(self, clip: Path, name: Path) -> None:
        """Let a finished clip also be that of another incident. Raises OSError."""
        why = link_or_copy(clip, name)
        if why and not self._copies:
            self._copies = True
            self._log.warning("clips_copied", folder=str(self._folder), why=why)

    def _abandon(self, camera: _Camera, session: _Session, error: Exception) -> None:
        camera.session = None
        with suppress(Exception):  # `error` is what people need to know
            session.clip.abandon()
        why = self._why_not_written(error)
        for record in session.records:
            self._missing(record, "clip", why)

    def _why_not_written(self, error: Exception) -> str:
        """For people. The log has the place of errors that neither the disk nor FFmpeg makes."""
        if not isinstance(error, OSError | av.FFmpegError | CamgraphError):
            self._log.error("clip_failed", exc_info=error)
            return _BUG
        return f"it cannot be written: {getattr(error, 'strerror', None) or error}"

    # ---- what became of a file

    def _ready(self, record: IncidentRecord, kind: Kind, state: FileState) -> None:
        self._report_one(record, kind, _completed(record.file(kind), state))

    def _missing(self, record: IncidentRecord, kind: Kind, why: str) -> None:
        self._report_one(record, kind, FileState("missing", why))

    def _report_one(self, record: IncidentRecord, kind: Kind, state: FileState) -> None:
        self._report(record, kind, {kind: state})

    def _report(self, record: IncidentRecord, kind: Kind, states: Mapping[Kind, FileState]) -> None:
        """Save the states of files, then pass on the news of one.

        Counted first: once nothing seems to be pending, the thread that passes on other news may let go of the record.
        """
        with self._reporting:
            self._reports[record.incident] += 1
        record.files.update(states)
        self._save(record)
        self._done(record, kind)

    def _save(self, record: IncidentRecord) -> None:
        try:
            record.write()
        except OSError as error:
            self._log.warning("incident_record_not_written", path=str(record.path), why=str(error.strerror or error))

    def _rescue(self, record: IncidentRecord) -> None:
        """Finish the records of a killed process: name clips that play, and repeat news that may be missing.

        An incident that goes on may still get a better picture, in particular one that has none yet.
        """
        if record.files["best"].state == "pending":
            self._bests[record.incident] = Best(decoded=0 if self._wanted.best else MOST_DECODED)
        for kind in KINDS:
            if record.files[kind].state != "pending":
                self._report(record, kind, {})
            elif kind == "clip":
                self._rescue_clip(record)
            else:
                self._missing(record, kind, "its process was killed")
        if record.last:
            self._settle_best(record)
        if record.files["best"].state != "pending":
            self._report(record, "best", {})

    def _rescue_clip(self, record: IncidentRecord) -> None:
        try:
            clip = record.shared_clip()
        except ValueError as error:
            self._missing(record, "clip", f"its record is damaged: {error}")
            return
        part = clip.with_name(clip.name + PART)
        try:
            if part.exists():
                os.truncate(part, whole_length(part))  # players may refuse the whole file for half a fragment
            if plays(part):
                part.replace(clip)
            part.unlink(missing_ok=True)
            if clip.exists() and clip != record.file("clip"):
                self._give_name(clip, record.file("clip"))
        except OSError as error:
            self._missing(record, "clip", f"it cannot be written: {error.strerror or error}")
            return
        if record.file("clip").exists():
            self._ready(record, "clip", FileState(why="its process was killed: the clip ends there"))
        else:
            self._missing(record, "clip", "its process was killed")


class Unfinished:
    """The places of records that are not finished, one small file each: they outlive the process.

    `footage`: the folder of all records, in which the places are `camera/day/name`.
    """

    def __init__(self, folder: Path, footage: Path) -> None:
        self._folder, self._footage = folder, footage

    def records(self) -> list[IncidentRecord]:
        """The records that an earlier process has left. Files without the form of a place are left out."""
        entries = sorted(self._folder.glob("*")) if self._folder.is_dir() else []
        whole = (entry for entry in entries if entry.suffix != PART)
        return [record for record in map(self._record, whole) if record is not None]

    def _record(self, entry: Path) -> IncidentRecord | None:
        with suppress(OSError, ValueError):
            place = Path(entry.read_text())
            if len(place.parts) == _PLACE_PARTS and not place.is_absolute() and ".." not in place.parts:
                return read_record(self._footage / place)
        return None

    def add(self, record: IncidentRecord) -> None:
        """Raises OSError."""
        place = str(record.path.relative_to(self._footage))
        write_with_folder(self._folder / record.incident, place.encode(), durable=True)

    def remove(self, record: IncidentRecord) -> None:
        """Forget a record that is finished."""
        with suppress(OSError):
            (self._folder / record.incident).unlink(missing_ok=True)
            self._folder.rmdir()
            self._folder.parent.rmdir()


def _first_is_best() -> FileState:
    return FileState("missing", "the first picture is the best")


def _completed(path: Path, state: FileState) -> FileState:
    """The state of a file that is finished."""
    try:
        state.state, state.bytes, state.sha256 = "ready", path.stat().st_size, sha256_of(path)
    except OSError as error:
        return FileState("missing", f"it cannot be read: {error.strerror or error}")
    return state
