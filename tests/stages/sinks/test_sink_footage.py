"""Pictures and clips of incidents, made of the packets of a real reader."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
import pytest
from camgraph_test_stages.waiting import until
from structlog.testing import capture_logs

from camgraph.pipeline.errors import BadItem, Unavailable, UserError
from camgraph.pipeline.messages import End, Event, Stamp
from camgraph.pipeline.stage import Settings
from camgraph.pipeline.system.names import ascii_form
from camgraph.pipeline.system.side_link import framed
from camgraph.pipeline.testing import HandContext
from camgraph.stages import events
from camgraph.stages.messages import Frame
from camgraph.stages.sinks.footage import recorder, retention
from camgraph.stages.sinks.footage.best import MOST_DECODED
from camgraph.stages.sinks.footage.incident_index import NAME
from camgraph.stages.sinks.footage.incident_record import IncidentRecord, records_in, sha256_of
from camgraph.stages.sinks.footage.picture_service import ask_picture
from camgraph.stages.sinks.footage.retention import remove
from camgraph.stages.sinks.footage.still import decode_last
from camgraph.stages.sinks.sink_footage import SinkFootage, SinkFootageSettings
from camgraph.stages.video.capture import Camera, Capture
from camgraph.stages.video.packets import Moment
from camgraph.stages.video.pixels import orientation_of
from camgraph.tools.scenes.simulator import CameraHandle, CameraSettings, ClipSettings, RtspSimulator

MakeClip = Callable[..., Path]
FPS = 10


class Watched:
    """A camera that is read, and the sink that keeps its incidents."""

    def __init__(self, folder: Path, url: Path | str, source: dict[str, Any], **settings: Any) -> None:
        self.folder = folder
        self.context = HandContext(folder, folder / "state" / "footage")
        self.context.state_folder.mkdir(parents=True, exist_ok=True)
        (folder / "state" / "capture").mkdir(exist_ok=True)
        self.sink = SinkFootage(SinkFootageSettings.model_validate(settings), self.context)
        self.sink.open()
        self.reading_context = HandContext(folder, folder / "state" / "capture")
        described = Camera.model_validate({"url": str(url), **source})
        self._capture = Capture(Settings(), "cam", described, self.reading_context)
        self.frames: list[Frame] = []
        self.stop = threading.Event()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read a live camera meanwhile, in a thread of its own."""
        thread = threading.Thread(target=self.read)
        thread.start()
        try:
            yield
        finally:
            self.stop.set()
            thread.join()

    def read(self, most: int = 1000) -> None:
        """Read the file to its end, or so many frames of it."""
        for frame in self._capture.frames(self.stop, None):
            self.frames.append(frame)
            if len(self.frames) >= most:
                return

    def incident(self, first: int, last: int | None, *, name: str = "fall", number: int = 1) -> None:
        """The rules say that something goes on from one frame to another; without a last one, it goes on."""
        start = self.event(self.frames[first].stamp, "start", name, number)
        self.sink.process([start])
        if last is not None:
            self.sink.process([self.event(self.frames[last].stamp, "end", name, number)])

    def event(self, stamp: Stamp, phase: str, name: str = "fall", number: int = 1, **data: Any) -> Event:
        size = (self.frames[0].width, self.frames[0].height)
        return incident_event(stamp, phase, name, number, size, **data)

    def finish(self) -> None:
        """The run ends."""

        def is_over() -> bool:
            try:
                self.sink.finish("*", End(self.frames[-1].stamp))
            except Unavailable:
                return False
            return True

        until(is_over)

    @property
    def records(self) -> list[IncidentRecord]:
        return list(records_in(self.folder / "footage"))

    @property
    def told(self) -> list[dict[str, Any]]:
        """The announcements."""
        return [events.FootageEvent.model_validate_json(e.body).model_dump() for e in self.context.emitted]


def incident_event(stamp: Stamp, phase: str, name: str, number: int, size: tuple[int, int], **more: Any) -> Event:
    data = {
        "incident": f"{number:032x}",
        "phase": phase,
        "rule": {"id": name, "hash": "abc"},
        "action": name,
        "camera": stamp.camera,
        "people": [{"track_id": 3, "bbox": [10, 5, 40, 60], "score": 0.9, "keypoints": [20.0, 15.0, 0.9] * 17}],
        "keypoints_format": "coco-17",
        "zones": [],
        "start_time": events.utc(stamp.wall_ns),
        "duration_s": 0.0,
        "frame": {
            "epoch": stamp.epoch,
            "seq": stamp.seq,
            "pts": stamp.pts,
            "time_base": stamp.time_base,
            "width": size[0],
            "height": size[1],
        },
    }
    whole = events.IncidentData.model_validate(data | more)
    key = ("test", number)
    return events.incident_event(stamp, "test", key, whole, time=events.utc(stamp.wall_ns), updates=0)


@contextmanager
def watched(folder: Path, url: Path | str, source: dict[str, Any] | None = None, **settings: Any) -> Iterator[Watched]:
    """`source`: more settings of the camera."""
    made = Watched(folder, url, source or {}, **settings)
    try:
        yield made
    finally:
        made.sink.close()


def pictures_in(path: Path) -> list[np.ndarray]:
    with av.open(str(path)) as container:
        return [frame.to_ndarray(format="bgr24") for frame in container.decode(video=0)]


CODECS = [
    ("a.mp4", "libx264", {"g": "10", "bf": "0"}),
    ("b.mp4", "libx264", {"g": "10", "bf": "2"}),
    ("c.ts", "libx264", {"g": "10", "bf": "2"}),
    ("d.mkv", "libx265", {"g": "10", "x265-params": "log-level=none"}),
    ("e.mp4", "mpeg4", {"g": "10"}),
    ("f.avi", "mjpeg", {}),
    ("g.avi", "msmpeg4", {"g": "10"}),  # which an MP4 cannot hold
    ("h.mkv", "libsvtav1", {"g": "10", "preset": "12", "crf": "10", "svtav1-params": "lookahead=0"}),
    ("i.mov", "prores_ks", {}),  # which a NUT file cannot hold either
    ("j.rm", "rv20", {"g": "10"}),  # nor can a MOV
    ("k.h265", "libx265", {"g": "10", "x265-params": "log-level=none"}),  # which has no times
    ("l.h264", "libx264", {"g": "10", "bf": "2"}),
]
PIXELS = {"mjpeg": "yuvj420p", "prores_ks": "yuv422p10le"}


@pytest.mark.parametrize(("name", "codec", "options"), CODECS)
def test_picture_and_clip_are_those_of_the_camera(
    make_clip: MakeClip, tmp_path: Path, name: str, codec: str, options: dict[str, str]
) -> None:
    clip = make_clip(name, frames=80, codec=codec, options=options, pix_fmt=PIXELS.get(codec, "yuv420p"))
    with watched(tmp_path, clip, before_s=1, after_s=1, look="clean", best=False) as camera:
        camera.read()
        camera.incident(30, 45)
        camera.finish()
        (record,) = camera.records
        assert [record.files[kind].state for kind in ("snapshot", "clip")] == ["ready", "ready"], record.files
        still = cv2.imread(str(record.file("snapshot")))
        assert still is not None
        assert np.abs(still.astype(int) - camera.frames[30].bgr()).mean() < 6, "the frame of the event"
        shown = pictures_in(record.file("clip"))
    originals = [frame.bgr() for frame in camera.frames]
    first = min(range(len(originals)), key=lambda n: np.abs(originals[n].astype(int) - shown[0]).mean())
    assert 10 <= first <= 20, "from the keyframe at or before a second before it"
    assert 45 + FPS <= first + len(shown) - 1 <= 45 + FPS + 3, "to a second after its end"
    for n, picture in enumerate(shown):
        assert np.abs(originals[first + n].astype(int) - picture).mean() < 6, "no picture is left out"


def test_a_video_that_cannot_be_kept_is_read_and_says_why(make_clip: MakeClip, tmp_path: Path) -> None:
    with watched(tmp_path, make_clip("a.apng", codec="apng", pix_fmt="rgb24", frames=8)) as camera:
        camera.read()
        assert len(camera.frames) == 8
        camera.incident(2, 6)
        camera.finish()
        (record,) = camera.records
    for kind in ("snapshot", "clip"):
        assert "(apng) cannot be kept" in record.files[kind].why  # type: ignore[index]


def test_a_video_that_no_decoder_of_clips_knows_says_why(make_clip: MakeClip, tmp_path: Path) -> None:
    with watched(tmp_path, make_clip("a.avi", codec="rawvideo", frames=8), look="clean") as camera:
        camera.read()
        assert len(camera.frames) == 8
        camera.incident(2, 6)
        camera.finish()
        (record,) = camera.records
    assert "cannot be written" in record.files["clip"].why
    assert "cannot be decoded" in record.files["snapshot"].why
    assert not list(tmp_path.rglob("*.part"))


@pytest.mark.parametrize("clips", [True, False])
def test_the_picture_of_somebody_lost_shows_them(make_clip: MakeClip, tmp_path: Path, *, clips: bool) -> None:
    """And the clip goes on after the incident, not after that frame."""
    path = make_clip("a.mp4", frames=160, options={"g": "10", "bf": "0"})
    with watched(tmp_path, path, before_s=1, after_s=1, look="clean", best=False, clips=clips) as camera:
        camera.read()
        before, now = camera.frames[30].stamp, camera.frames[120].stamp
        name = {"epoch": before.epoch, "seq": before.seq, "pts": before.pts, "time_base": before.time_base}
        last_seen = {**name, "width": 96, "height": 64}
        camera.sink.process([camera.event(now, "single", last_seen=last_seen)])
        camera.finish()
        (record,) = camera.records
        still = cv2.imread(str(record.file("snapshot")))
        assert still is not None
        assert np.abs(still.astype(int) - camera.frames[30].bgr()).mean() < 6
        assert np.abs(still.astype(int) - camera.frames[120].bgr()).mean() > 6
        shown = pictures_in(record.file("clip")) if clips else [camera.frames[130].bgr()]
        assert min(np.abs(shown[-n].astype(int) - camera.frames[130].bgr()).mean() for n in (1, 2, 3)[: len(shown)]) < 6


def test_clips_begin_at_a_keyframe_with_times_that_grow(make_clip: MakeClip, tmp_path: Path) -> None:
    with watched(tmp_path, make_clip("a.mp4", frames=60, options={"g": "10", "bf": "2"})) as camera:
        camera.read()
        camera.incident(20, 30)
        camera.finish()
        (record,) = camera.records
    with av.open(str(record.file("clip"))) as container:
        stream = container.streams.video[0]
        packets = [packet for packet in container.demux(stream) if packet.size]
        assert packets[0].is_keyframe
        stamps = [packet.dts for packet in packets]
        assert stamps == sorted(set(stamps))
        assert container.duration is not None
        assert container.duration / av.time_base == pytest.approx(record.files["clip"].seconds, abs=0.3)


def test_each_file_is_announced_with_its_hash(make_clip: MakeClip, tmp_path: Path) -> None:
    with watched(tmp_path, make_clip("a.mp4", frames=40, options={"g": "10"}), path="kept/here") as camera:
        camera.read()
        camera.incident(20, 25)
        camera.finish()
        (record,) = records_in(tmp_path / "kept/here")
        told = {one["data"]["kind"]: one for one in camera.told}
    assert {one["type"] for one in told.values()} == {"camgraph.footage.ready"}
    for kind in ("snapshot", "clip"):
        data = told[kind]["data"]
        assert tmp_path / data["file"] == record.file(kind)  # type: ignore[arg-type]
        assert data["bytes"] == record.file(kind).stat().st_size  # type: ignore[arg-type]
        assert len(data["sha256"]) == 64
    assert told["clip"]["data"]["seconds"] > 0.5


def test_overlapping_incidents_share_a_clip(make_clip: MakeClip, tmp_path: Path) -> None:
    with watched(tmp_path, make_clip("a.mp4", frames=100, options={"g": "10"}), before_s=1, after_s=1) as camera:
        camera.read()
        camera.incident(30, None, name="fall", number=1)
        camera.incident(35, 50, name="crowd", number=2)
        camera.sink.process([camera.event(camera.frames[60].stamp, "end", number=1)])
        camera.finish()
        first, second = sorted(camera.records, key=lambda record: record.incident)
        assert first.file("clip").stat().st_ino == second.file("clip").stat().st_ino
        assert first.files["clip"].seconds == second.files["clip"].seconds > 4.5


def test_overlapping_incidents_have_copies_without_links(
    make_clip: MakeClip, tmp_path: Path, disk_without_links: Path
) -> None:
    path = make_clip("a.mp4", frames=100, options={"g": "10"})
    kept = disk_without_links / "footage"
    with capture_logs() as logged, watched(tmp_path, path, before_s=1, after_s=1, path=str(kept)) as camera:
        camera.read()
        camera.incident(30, None, name="fall", number=1)
        camera.incident(35, 50, name="crowd", number=2)
        camera.incident(35, 50, name="wave", number=3)
        camera.sink.process([camera.event(camera.frames[60].stamp, "end", number=1)])
        camera.finish()
        records = list(records_in(kept))
        assert [record.files["clip"].state for record in records] == ["ready"] * 3
        assert len({record.files["clip"].sha256 for record in records}) == 1
        assert all(len(pictures_in(record.file("clip"))) > 40 for record in records)
    assert not list(kept.rglob("*.part"))
    assert [line["folder"] for line in logged if line["event"] == "clips_copied"] == [str(kept)], "said once"


def test_check_says_that_a_disk_has_no_links(tmp_path: Path, disk_without_links: Path) -> None:
    settings = SinkFootageSettings(path=str(disk_without_links / "not-yet" / "there"))
    assert any("no hard links" in one for one in SinkFootage.remarks(settings, tmp_path, {"cam": None}))
    assert not any("no hard links" in one for one in SinkFootage.remarks(SinkFootageSettings(), tmp_path, {}))
    pictures = settings.model_copy(update={"clips": False})
    assert not any("no hard links" in one for one in SinkFootage.remarks(pictures, tmp_path, {}))
    assert not list(disk_without_links.iterdir()), "nothing is left there"


def test_what_goes_on_as_a_file_begins_anew_is_shown_to_its_end(make_clip: MakeClip, tmp_path: Path) -> None:
    clip = make_clip("a.mp4", frames=60, options={"g": "10", "bf": "0"})
    with watched(tmp_path, clip, {"loop": True}, before_s=1, after_s=1) as camera:
        frames = camera._capture.frames(camera.stop, None)
        camera.frames += islice(frames, 60)
        camera.incident(20, None)
        until(lambda: list(tmp_path.rglob("*.mp4.part")))
        camera.frames += islice(frames, 20)
        camera.sink.process([camera.event(camera.frames[59].stamp, "end")])
        camera.finish()
        (record,) = camera.records
        assert len(pictures_in(record.file("clip"))) == 50


def test_a_long_incident_is_cut_at_the_longest(make_clip: MakeClip, tmp_path: Path) -> None:
    clip = make_clip("a.mp4", frames=120, options={"g": "10"})
    with watched(tmp_path, clip, before_s=1, after_s=0, longest_s=5) as camera:
        camera.read()
        camera.incident(20, 110)
        camera.finish()
        (record,) = camera.records
        assert 5 <= record.files["clip"].seconds <= 6


BUGS = [
    ("camgraph.stages.sinks.footage.recorder.Recorder._wanted_until", {"clip"}),
    ("camgraph.stages.sinks.footage.ring.Ring.behind", {"clip"}),
    ("camgraph.stages.sinks.footage.recorder.Recorder._begin_clip", {"clip"}),
    ("camgraph.stages.sinks.footage.recorder.decode_last", {"snapshot"}),
    ("camgraph.stages.sinks.footage.recorder.Recorder._begin", {"snapshot", "clip"}),
]


@pytest.mark.parametrize(("broken", "lost"), BUGS)
def test_a_bug_costs_the_files_that_meet_it_and_is_logged(
    make_clip: MakeClip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str, lost: set[str]
) -> None:
    """Those of other cameras and of later incidents are made, and no connection to a camera is lost."""

    def fail(*_: object, **__: object) -> None:
        raise ValueError("a bug")

    clip = make_clip("a.mp4", frames=40, options={"g": "10"})
    with capture_logs() as logged, watched(tmp_path, clip, before_s=1, after_s=1, best=False) as camera:
        camera.read()
        with monkeypatch.context() as patched:
            patched.setattr(broken, fail)
            camera.incident(20, 25, number=1)
            until(lambda: {one["data"]["kind"] for one in camera.told} >= lost)
        camera.incident(20, 25, name="wave", number=2)
        until(lambda: len(camera.told) == 4)
        camera.finish()
        fall, wave = camera.records
        told = sorted((one["data"]["incident"][-1], one["data"]["kind"]) for one in camera.told)
    assert told == [("1", "clip"), ("1", "snapshot"), ("2", "clip"), ("2", "snapshot")], "each file once"
    assert {kind for kind in ("snapshot", "clip") if fall.files[kind].state == "missing"} == lost  # type: ignore[index]
    assert [wave.files[kind].state for kind in ("snapshot", "clip")] == ["ready", "ready"]
    assert "footage_failed" in {line["event"] for line in logged}
    assert not list(tmp_path.rglob("*.part"))


def test_a_bug_at_one_camera_costs_no_other(
    make_clip: MakeClip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clip = make_clip("a.mp4", frames=40, options={"g": "10"})
    whole = recorder.Recorder._wanted_until

    def fail(self: Any, camera: Any, session: Any) -> Any:
        if "/cam/" in str(session.clip.target):
            raise ValueError("a bug")
        return whole(self, camera, session)

    monkeypatch.setattr(recorder.Recorder, "_wanted_until", fail)
    # Captured, since printing a traceback takes so long on a busy machine that the file of `yard` waits in vain.
    with capture_logs() as logged, watched(tmp_path, clip, before_s=1, after_s=1) as camera:
        camera.read()
        yard = list(
            Capture(Settings(), "yard", Camera(url=str(clip)), camera.reading_context).frames(camera.stop, None)
        )
        camera.incident(20, 25)
        for phase, at in (("start", 20), ("end", 25)):
            camera.sink.process([camera.event(yard[at].stamp, phase, number=2)])
        camera.finish()
        states = {record.camera: record.files["clip"].state for record in camera.records}
    assert states == {"cam": "missing", "yard": "ready"}
    assert "footage_failed" in {line["event"] for line in logged}


def test_a_clip_is_cut_before_a_disk_refuses_its_size(
    make_clip: MakeClip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clip = make_clip("a.mp4", frames=100, options={"g": "10"})
    monkeypatch.setattr("camgraph.stages.sinks.footage.clip.MOST_BYTES", clip.stat().st_size // 4)
    with watched(tmp_path, clip, before_s=1, after_s=1) as camera:
        camera.read()
        camera.incident(20, 90)
        camera.finish()
        (record,) = camera.records
        assert record.files["clip"].state == "ready"
        assert 1 < record.files["clip"].seconds < 5


def test_an_incident_at_the_end_of_the_file_is_kept(make_clip: MakeClip, tmp_path: Path) -> None:
    with watched(tmp_path, make_clip("a.mp4", frames=40, options={"g": "10"})) as camera:
        camera.read()
        camera.incident(38, 39)
        camera.finish()
        assert camera.records[0].files["clip"].state == "ready"


def test_a_picture_that_is_gone_is_missing_with_a_reason(make_clip: MakeClip, tmp_path: Path) -> None:
    with watched(tmp_path, make_clip("a.mp4", frames=40, options={"g": "10"})) as camera:
        camera.read()
        stamp = camera.frames[5].stamp._replace(pts=10_000_000)
        camera.sink.process([camera.event(stamp, "single")])
        camera.finish()
        (record,) = camera.records
        assert "gone" in record.files["snapshot"].why
        assert {one["type"] for one in camera.told} == {"camgraph.footage.missing"}


@pytest.mark.parametrize("look", ["annotated", "blurred_faces", "skeleton_only"])
def test_looks(make_clip: MakeClip, tmp_path: Path, look: str) -> None:
    with watched(
        tmp_path, make_clip("a.mp4", frames=40, size=(320, 240), options={"g": "10"}), look=look, best=False
    ) as camera:
        camera.read()
        camera.sink.process([camera.event(camera.frames[20].stamp, "single", heads=[])])
        camera.finish()
        (record,) = camera.records
        still, original = cv2.imread(str(record.file("snapshot"))), camera.frames[20].bgr()
    assert still is not None
    far = still[120:200, 200:300].astype(int)
    if look == "skeleton_only":
        assert far.max() < 40, "nothing of the room"
        assert record.files["clip"].state == "missing"
    else:
        assert np.abs(far - original[120:200, 200:300]).mean() < 8
        assert np.abs(still.astype(int) - original).max() > 60, "the person is drawn"


@pytest.mark.parametrize(("rotation", "mirrored"), [(90, False), (180, False), (0, True), (90, True), (180, True)])
def test_turned_and_mirrored_films_are_upright(
    make_clip: MakeClip, tmp_path: Path, rotation: int, mirrored: bool
) -> None:
    """Otherwise heads would be hidden in other places than they are."""
    clip = make_clip("a.mp4", frames=20, size=(320, 240), rotation=rotation, mirrored=mirrored, options={"g": "10"})
    head = (150, 30, 190, 70)
    with watched(tmp_path, clip, look="blurred_faces", after_s=0.2) as camera:
        camera.read()
        upright = camera.frames[10].bgr()
        camera.sink.process([camera.event(camera.frames[10].stamp, "single", people=[], heads=[head])])
        camera.finish()
        (record,) = camera.records
    still = cv2.imread(str(record.file("snapshot")))
    assert still.shape == upright.shape
    left, top, right, bottom = head
    assert upright[top:bottom, left:right].std() > 10
    assert still[top + 2 : top + 18, left + 2 : left + 18].std() < 5
    assert np.abs(still[120:180, 120:220].astype(int) - upright[120:180, 120:220]).mean() < 8
    with av.open(str(record.file("clip"))) as film:
        turned = next(film.decode(video=0))
    assert orientation_of(turned) == (rotation // 90, mirrored)
    size = record.files["clip"].width, record.files["clip"].height
    assert size == upright.shape[1::-1]


@pytest.mark.parametrize("people", [[], [{"track_id": 3, "bbox": [10, 5, 40, 60], "score": 0.9, "keypoints": []}]])
@pytest.mark.parametrize("look", ["annotated", "blurred_faces"])
def test_incidents_of_nobody_and_of_people_without_joints(
    make_clip: MakeClip, tmp_path: Path, look: str, people: list[Any]
) -> None:
    clip = make_clip("a.mp4", frames=20, size=(320, 240))
    with watched(tmp_path, clip, look=look, crops=True, clips=False) as camera:
        camera.read()
        for frame, phase in ((10, "start"), (15, "end")):
            camera.sink.process([camera.event(camera.frames[frame].stamp, phase, people=people, heads=[])])
        camera.finish()
        (record,) = camera.records
    assert record.files["snapshot"].state == "ready"


def test_no_picture_is_better_than_faces_that_should_be_hidden(make_clip: MakeClip, tmp_path: Path) -> None:
    """Neither a first one nor a better one is shown if its event does not tell where heads are."""
    with watched(tmp_path, make_clip("a.mp4", frames=20), look="blurred_faces", clips=False) as camera:
        camera.read()
        camera.incident(5, 10)
        small, large = (person(box, 0.9) for box in ((10.0, 10.0, 14.0, 14.0), (5.0, 5.0, 60.0, 60.0)))
        first = camera.event(camera.frames[5].stamp, "start", "wave", 2, people=[small], heads=[])
        camera.sink.process([first, camera.event(camera.frames[10].stamp, "end", "wave", 2, people=[large])])
        camera.finish()
        without, one = camera.records
    assert without.files["snapshot"].state == "missing"
    assert "where heads are" in without.files["snapshot"].why
    assert not without.file("snapshot").exists()
    assert (one.files["snapshot"].state, one.files["best"].state) == ("ready", "missing")


def test_any_picture_in_the_ring_is_served(make_clip: MakeClip, tmp_path: Path) -> None:
    path = make_clip("b.mp4", frames=40, fps=FPS, codec="libx264", options={"g": "10", "bf": "2"})
    with watched(tmp_path, path) as camera:
        camera.read()
        service, whole = camera.context.state_folder / "pictures", pictures_in(path)
        newest = ask_picture(service, "cam")
        assert (newest.facts["epoch"], newest.facts["width"]) == (0, whole[0].shape[1])
        seq = next(one.stamp.seq for one in camera.frames if one.stamp.pts == newest.facts["pts"])
        assert seq >= 30
        assert near(newest.jpeg, whole[seq])
        for seq in (3, 17, 39):
            stamp = camera.frames[seq].stamp
            assert stamp.pts is not None
            moment = Moment(stamp.epoch, Fraction(*stamp.time_base) * stamp.pts)
            assert near(ask_picture(service, "cam", moment).jpeg, whole[seq])
        with pytest.raises(UserError, match="of that moment"):
            ask_picture(service, "cam", Moment(0, Fraction(1000)))
        with pytest.raises(UserError, match="no packets of yard"):
            ask_picture(service, "yard")
    assert not service.exists()


def near(data: bytes, picture: np.ndarray) -> bool:
    shown = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    return shown.shape == picture.shape and float(np.abs(shown.astype(int) - picture).mean()) < 5


def test_clients_that_read_nothing_keep_nobody_waiting(make_clip: MakeClip, tmp_path: Path) -> None:
    path = make_clip("a.mp4", frames=3, fps=FPS, size=(1920, 1080), codec="libx264", options={"g": "10", "crf": "10"})
    with watched(tmp_path, path) as camera, ExitStack() as stack:
        camera.read()
        service = camera.context.state_folder / "pictures"
        # A busy machine may take longer than a client is made to wait.
        assert len(until(lambda: picture_if_made(service), every_s=0.1)) > 500_000, "more than a socket takes"
        for _ in range(4):
            client = stack.enter_context(socket.socket(socket.AF_UNIX))
            client.connect(str(service))
            client.sendall(framed({"camera": "cam"}))
        assert until(lambda: picture_if_made(service), every_s=0.1)


def picture_if_made(service: Path) -> bytes:
    """The newest picture of the camera; nothing if it was not made in time."""
    with suppress(UserError):
        return ask_picture(service, "cam").jpeg
    return b""


@pytest.mark.parametrize("look", ["skeleton_only", "blurred_faces"])
def test_no_picture_that_shows_more_leaves_by_the_service(make_clip: MakeClip, tmp_path: Path, look: str) -> None:
    path = make_clip("a.mp4", frames=10, fps=FPS, codec="libx264", options={"g": "10"})
    with watched(tmp_path, path, look=look) as camera:
        camera.read()
        with pytest.raises(UserError, match=look) as refused:
            ask_picture(camera.context.state_folder / "pictures", "cam")
        assert refused.value.error_id == "pictures-hidden"


def person(box: tuple[float, float, float, float], score: float, *, track_id: int = 3) -> dict[str, Any]:
    return {"track_id": track_id, "bbox": box, "score": score, "keypoints": [20.0, 15.0, score] * 17}


@pytest.mark.parametrize("clips", [True, False])
def test_the_best_picture_takes_the_place_of_the_first(make_clip: MakeClip, tmp_path: Path, clips: bool) -> None:
    small, large, doubtful = person((10, 5, 20, 25), 0.9), person((10, 5, 60, 60), 0.9), person((10, 5, 60, 60), 0.2)
    clip = make_clip("a.mp4", frames=60, options={"g": "10"})
    with watched(tmp_path, clip, look="clean", clips=clips) as camera:
        camera.read()
        for at, phase, one in [
            (20, "start", small),
            (25, "update", large),
            (30, "update", doubtful),
            (35, "end", small),
        ]:
            camera.sink.process([camera.event(camera.frames[at].stamp, phase, people=[one])])
        camera.finish()
        (record,) = camera.records
        still = cv2.imread(str(record.file("snapshot")))
        assert still is not None
        assert np.abs(still.astype(int) - camera.frames[25].bgr()).mean() < 6
        assert record.last["data"]["phase"] == "end"
        best = [one for one in camera.told if one["data"]["kind"] == "best"]
        snapshot = next(one for one in camera.told if one["data"]["kind"] == "snapshot")
    assert len(best) == 1
    assert best[0]["id"] != snapshot["id"]
    assert best[0]["data"]["file"] == snapshot["data"]["file"]
    assert best[0]["data"]["sha256"] == sha256_of(record.file("snapshot")) == record.files["snapshot"].sha256


def test_no_worse_picture_is_decoded(make_clip: MakeClip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded = []
    monkeypatch.setattr(recorder, "decode_last", lambda packets: (decoded.append(1), decode_last(packets))[1])
    with watched(tmp_path, make_clip("a.mp4", frames=60, options={"g": "10"})) as camera:
        camera.read()
        camera.sink.process([camera.event(camera.frames[10].stamp, "start")])
        for at in range(11, 50):
            small = person((10, 5, 12, 8), 0.1)
            camera.sink.process([camera.event(camera.frames[at].stamp, "update", people=[small])])
        camera.sink.process([camera.event(camera.frames[50].stamp, "end", people=[])])
        camera.finish()
        assert [one["data"]["kind"] for one in camera.told] == ["snapshot", "clip"]
    assert len(decoded) == 1


def test_people_that_grow_for_ever_cost_few_pictures(
    make_clip: MakeClip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded = []
    monkeypatch.setattr(recorder, "decode_last", lambda packets: (decoded.append(1), decode_last(packets))[1])
    with watched(tmp_path, make_clip("a.mp4", frames=60, options={"g": "10"})) as camera:
        camera.read()
        for at in range(50):
            large = person((0, 0, 1.2**at / 100 + 2, 1.2**at / 100 + 2), 0.9)
            phase = "start" if not at else "update"
            camera.sink.process([camera.event(camera.frames[at].stamp, phase, people=[large])])
        camera.finish()
    assert len(decoded) <= MOST_DECODED


def test_people_are_cut_out(make_clip: MakeClip, tmp_path: Path) -> None:
    people = [person((10, 5, 40, 55), 0.9), person((100, 100, 9000, 9000), 0.9, track_id=4)]
    with watched(tmp_path, make_clip("a.mp4", frames=60, size=(320, 240), options={"g": "10"}), crops=True) as camera:
        camera.read()
        camera.sink.process([camera.event(camera.frames[20].stamp, "single", people=people)])
        camera.finish()
        (record,) = camera.records
        told = next(one["data"] for one in camera.told if one["data"]["kind"] == "snapshot")
        one, other = (cv2.imread(str(tmp_path / name)) for name in told["crops"])
    assert one is not None
    assert other is not None
    assert one.shape[:2] == (62 - 0, 44 - 5)
    assert other.shape[:2] == (240, 320), "a margin around what lies in the picture"
    assert np.abs(one.astype(int) - camera.frames[20].bgr()[0:62, 5:44]).mean() < 8, "nothing is drawn on it"
    remove(record)
    assert not list((tmp_path / "footage").glob("[!.]*"))


def test_repeated_events_change_nothing(make_clip: MakeClip, tmp_path: Path) -> None:
    with watched(tmp_path, make_clip("a.mp4", frames=40, options={"g": "10"})) as camera:
        camera.read()
        camera.incident(20, 25)
        camera.finish()
        announced = len(camera.told)
        camera.incident(20, 25)
        camera.finish()
        assert len(camera.records) == 1
        assert len(camera.told) == announced


@pytest.mark.parametrize("cut", [0, 1, 500, 3000])
def test_a_killed_process_leaves_a_clip_that_plays(make_clip: MakeClip, tmp_path: Path, cut: int) -> None:
    """Its successor names the clip that grew, and announces it. `cut`: bytes that were still to be written."""
    clip = make_clip("a.mp4", frames=60, options={"g": "10"})
    with watched(tmp_path, clip, before_s=1) as killed:
        killed.read()
        killed.incident(30, None)
        part = until(lambda: next((tmp_path / "footage").glob("*/*/*.mp4.part"), None))
        # Without the fragment that was being written, pictures are left.
        until(lambda: part.read_bytes().count(b"moof") >= 3)
        until(lambda: killed.records[0].files["snapshot"].state == "ready")
        saved = tmp_path / "as_killed"
        shutil.copytree(tmp_path / "footage", saved)
        [half] = saved.glob("*/*/*.mp4.part")
        os.truncate(half, half.stat().st_size - cut)
        unfinished = tmp_path / "unfinished"
        shutil.copytree(killed.context.state_folder, unfinished, ignore=shutil.ignore_patterns("pictures"))
    shutil.rmtree(tmp_path / "footage")
    saved.rename(tmp_path / "footage")
    with watched(tmp_path, clip) as successor:
        until(lambda: len(successor.told) == 2)
        (record,) = successor.records
        assert record.files["clip"].state == "ready"
        assert "killed" in record.files["clip"].why
        assert len(pictures_in(record.file("clip"))) > 5


BAD_FRAMES: list[tuple[dict[str, Any], str]] = [
    (
        {"time_base": "1/1000"},
        'data.frame.time_base: expected [numerator, denominator], such as [1, 90000], got "1/1000"',
    ),
    ({"time_base": [1, 0]}, "data.frame.time_base: expected [numerator, denominator], such as [1, 90000], got [1, 0]"),
    ({"time_base": None}, "data.frame.time_base: expected [numerator, denominator], such as [1, 90000], got nothing"),
    ({"pts": "3 s"}, 'data.frame.pts: expected a whole number, got "3 s"'),
    ({"epoch": None}, "data.frame.epoch: expected a whole number, got nothing"),
]


@pytest.mark.parametrize(("frame", "why"), BAD_FRAMES)
@pytest.mark.parametrize("phase", ["start", "update", "end"])
def test_event_in_another_form_is_refused_with_the_right_one(
    make_clip: MakeClip, tmp_path: Path, frame: dict[str, Any], why: str, phase: str
) -> None:
    """It is the event of somebody else's stage. Incidents beside it have their pictures."""
    with watched(tmp_path, make_clip("a.mp4", frames=40, options={"g": "10"}), clips=False) as camera:
        camera.read()
        camera.incident(20, None)
        event = camera.event(camera.frames[25].stamp, phase, number=1 if phase != "start" else 2)
        body = json.loads(event.body)
        body["data"]["frame"] |= frame
        with capture_logs() as logged, pytest.raises(BadItem) as caught:
            camera.sink.process([replace(event, body=json.dumps(body).encode())])
        assert str(caught.value) == f"invalid_event: {why}"
        camera.sink.process([camera.event(camera.frames[30].stamp, "end")])
        camera.finish()
        (record,) = camera.records
    assert record.files["snapshot"].state == "ready"
    assert logged == []


def test_a_folder_that_cannot_be_written_costs_no_event(make_clip: MakeClip, tmp_path: Path) -> None:
    with watched(tmp_path, make_clip("a.mp4", frames=40, options={"g": "10"})) as camera:
        camera.read()
        (tmp_path / "footage").rmdir()
        (tmp_path / "footage").write_text("in the way")
        camera.incident(20, 25)
        assert "pictures and clips are not kept" in camera.context.troubles[""]
        assert camera.context.counts["failed", "cam"] == 1
        (tmp_path / "footage").unlink()
        camera.incident(20, 25, number=2)
        assert camera.context.troubles == {}
        camera.finish()
        assert len(camera.records) == 1


@pytest.fixture(scope="module")
def simulator() -> Iterator[RtspSimulator]:
    kinds: list[tuple[str, Any, int]] = [("h264", "h264", 0), ("h264-b", "h264", 2), ("h265-b", "h265", 2)]
    clips = {name: ClipSettings(codec=c, width=320, fps=20, seconds=2, gop=10, b_frames=b) for name, c, b in kinds}
    for name, seconds in (("rare_keys", 16), ("late_keys", 5)):
        clips[name] = ClipSettings(codec="h264", width=320, fps=20, seconds=seconds, gop=20 * seconds)
    with RtspSimulator([CameraSettings(name=name, clip=clip) for name, clip in clips.items()]) as made:
        yield made


@pytest.mark.parametrize("name", ["h264", "h264-b", "h265-b"])
def test_live_cameras_have_pictures_and_clips(simulator: RtspSimulator, tmp_path: Path, name: str) -> None:
    with watched(tmp_path, simulator.camera(name).url, before_s=1, after_s=1, look="clean", best=False) as camera:
        with camera.reading():
            until(lambda: len(camera.frames) > 60)
            now = len(camera.frames) - 1
            camera.incident(now - 5, None)
            (record,) = until(lambda: camera.records)
            until(lambda: record.file("snapshot").exists())
            growing = until(lambda: next((tmp_path / "footage").glob("*/*/*.mp4.part"), None))
            size = growing.stat().st_size
            until(lambda: growing.stat().st_size > size)
            camera.sink.process([camera.event(camera.frames[now].stamp, "end")])
            until(lambda: record.file("clip").exists())
        camera.finish()
        (record,) = camera.records
        assert record.files["clip"].seconds > 2
        still = cv2.imread(str(record.file("snapshot")))
        assert still is not None
        assert np.abs(still.astype(int) - camera.frames[now - 5].bgr()).mean() < 6
        assert len(pictures_in(record.file("clip"))) > 40
        if name.startswith("h265"):
            with av.open(str(record.file("clip"))) as container:
                assert container.streams.video[0].codec_context.codec_tag == "hvc1"


@pytest.mark.parametrize(
    ("name", "source", "starts"), [("rare_keys", {}, 1), ("late_keys", {"connect_s": 1}, 3)], ids=["rare", "late"]
)
def test_the_first_incident_of_a_live_camera_has_its_picture(
    simulator: RtspSimulator, tmp_path: Path, name: str, source: dict[str, Any], starts: int
) -> None:
    """The keyframe that it needs comes before anybody listens, and the next one comes seconds later.

    `late`: the first keyframe mostly comes after `connect_s`, and so the size of its pictures is not known yet.
    """
    for start in range(starts):
        (folder := tmp_path / str(start)).mkdir()
        with watched(folder, simulator.camera(name).url, source, before_s=1, after_s=0.2, look="clean") as camera:
            with camera.reading():
                first = until(
                    lambda: next((n for n, one in enumerate(camera.frames) if one.stamp.pts is not None), None)
                )
                camera.incident(first, first)
                until(lambda: len(camera.told) == 2)
            (record,) = camera.records
            assert [record.files[kind].state for kind in ("snapshot", "clip")] == ["ready", "ready"], record.files
            still = cv2.imread(str(record.file("snapshot")))
            assert still is not None
            assert np.abs(still.astype(int) - camera.frames[first].bgr()).mean() < 6


def lose(camera: CameraHandle) -> None:
    camera.refuse()
    camera.cut()


FAULTS: dict[str, Callable[[CameraHandle], None]] = {"stalled": lambda camera: camera.stall(), "lost": lose}


@pytest.mark.parametrize("state", FAULTS)
def test_a_camera_that_is_silent_or_lost_during_an_incident(
    simulator: RtspSimulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    """The clip of the incident ends although no packet comes any more, and plays; that of the next one is whole."""
    monkeypatch.setattr(recorder, "_LATE_S", 0.1)
    source = simulator.camera("h264")
    with watched(tmp_path, source.url, {"stalled_s": 1, "connect_s": 1.5}, before_s=1, after_s=1) as camera:
        with camera.reading():
            until(lambda: is_heard(camera), every_s=0.1)
            heard = len(camera.frames)
            until(lambda: len(camera.frames) > heard + 30)
            camera.incident(heard + 25, None)
            until(lambda: next((tmp_path / "footage").glob("*/*/*.mp4.part"), None))
            FAULTS[state](source)
            until(lambda: state in {one[1] for one in camera.reading_context.camera_states})
            silent = len(camera.frames)
            camera.sink.process([camera.event(camera.frames[silent - 1].stamp, "end")])
            assert len(pictures_in(ready_clip(camera, 1))) > 20

            source.heal()
            until(lambda: len(camera.frames) > silent + 40)
            now = len(camera.frames) - 1
            camera.incident(now - 10, now, number=2)
            assert len(pictures_in(ready_clip(camera, 2))) > 30
        assert [one["data"]["incident"][-1] for one in camera.told if one["data"]["kind"] == "clip"] == ["1", "2"]


def is_heard(camera: Watched) -> bool:
    """Whether packets of the camera come: a live one is read before."""
    with suppress(UserError):
        return bool(ask_picture(camera.context.state_folder / "pictures", "cam").jpeg)
    return False


def ready_clip(camera: Watched, number: int) -> Path:
    """The clip of an incident, when its record says that it is ready."""

    def ready() -> Path | None:
        found = next(one for one in camera.records if int(one.incident, 16) == number)
        assert found.files["clip"].state != "missing", found.files["clip"].why
        return found.file("clip") if found.files["clip"].state == "ready" else None

    return until(ready)


def test_a_run_that_stops_finishes_what_grows(simulator: RtspSimulator, tmp_path: Path) -> None:
    with watched(tmp_path, simulator.camera("h264").url, before_s=1, after_s=30) as camera:
        with camera.reading():
            until(lambda: len(camera.frames) > 30)
            camera.incident(20, 25)
            until(lambda: next((tmp_path / "footage").glob("*/*/*.mp4.part"), None))
        camera.finish()
        assert camera.records[0].files["clip"].state == "ready"


def test_a_file_that_is_never_finished_keeps_no_run_from_ending(
    make_clip: MakeClip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "_CLOSING_S", 0.1)
    monkeypatch.setattr(recorder, "_GIVEN_UP_S", 0.2)
    monkeypatch.setattr(recorder.Recorder, "_work", lambda *_: 1 / 0)
    with watched(tmp_path, make_clip("a.mp4", frames=20)) as camera:
        camera.read()
        camera.incident(10, 15)
        camera.finish()
        assert camera.told == []


def test_old_incidents_are_removed_where_nothing_ever_happens(make_clip: MakeClip, tmp_path: Path) -> None:
    clip = make_clip("a.mp4", frames=20)
    with watched(tmp_path, clip, clips=False) as camera:
        camera.read()
        camera.incident(10, 15)
        camera.finish()
        [record] = camera.records
    long_ago_s = time.time() - 40 * 86_400
    os.utime(record.path, (long_ago_s, long_ago_s))
    with watched(tmp_path, clip, keep_days=30) as camera:
        until(lambda: ("removed", "") in camera.context.counts)
    assert not record.path.exists()


def test_an_incident_that_goes_on_stays_if_the_clock_is_set(
    make_clip: MakeClip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "LOOK_S", 0.1)
    with watched(tmp_path, make_clip("a.mp4", frames=20), clips=False) as camera:
        camera.read()
        camera.incident(10, 15)
        camera.incident(10, None, name="wave", number=2)
        until(lambda: [one.is_pending for one in camera.records] == [False, True])
        until(lambda: camera.records[1].files["snapshot"].state != "pending")
        long_ago_s = time.time() - 40 * 86_400
        for record in camera.records:
            os.utime(record.path, (long_ago_s, long_ago_s))
        until(lambda: ("removed", "") in camera.context.counts)
        assert [int(one.incident, 16) for one in camera.records] == [2]


def test_incidents_are_in_the_index(make_clip: MakeClip, tmp_path: Path) -> None:
    with watched(tmp_path, make_clip("a.mp4", frames=20, options={"g": "10"})) as camera:
        camera.read()
        camera.incident(10, 15)
        camera.finish()
    (summary,) = index_rows(tmp_path / "footage")
    assert summary == ("cam", "fall", "ready", "ready")


def index_rows(folder: Path) -> list[Any]:
    with closing(sqlite3.connect(folder / NAME)) as db:
        return db.execute("SELECT camera, rule, snapshot, clip FROM incidents").fetchall()


def test_packets_of_removed_cameras_are_freed(
    make_clip: MakeClip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not before its incident is over, and those of the others never."""
    monkeypatch.setattr(recorder, "_COMES_S", 0.05)
    monkeypatch.setattr(recorder, "_LAST_SEEN_S", 2.0)
    with watched(tmp_path, make_clip("a.mp4", frames=20), clips=False) as camera:
        assert camera.sink._recorder is not None
        kept, jobs, receive = (getattr(camera.sink._recorder, name) for name in ("_cameras", "_jobs", "_packet"))
        camera.read()
        camera.incident(10, None)
        [packet] = until(lambda: "cam" in kept and kept["cam"].ring.newest_key())
        for name in ("gone", "Süd"):
            jobs.put(partial(receive, ascii_form(name), packet))
        until(lambda: {"gone", ascii_form("Süd")} <= kept.keys())
        camera.context.cameras = ("Süd",)
        camera.sink.cameras_changed()
        until(lambda: "gone" not in kept)
        assert kept.keys() == {"cam", ascii_form("Süd")}
        camera.sink.process([camera.event(camera.frames[15].stamp, "end")])
        until(lambda: "cam" not in kept)
        assert kept.keys() == {ascii_form("Süd")}


def test_other_events_are_none_of_its_business(make_clip: MakeClip, tmp_path: Path) -> None:
    with watched(tmp_path, make_clip("a.mp4", frames=4)) as camera:
        camera.read()
        stamp = camera.frames[0].stamp
        for body in ({"type": "camgraph.camera.lost", "data": {}}, {"type": "other"}, {}):
            camera.sink.process([Event(stamp, "1", "1", "single", json.dumps(body).encode())])
        camera.finish()
        assert camera.records == []


def test_a_full_disk_costs_pictures_and_never_an_event(make_clip: MakeClip, tmp_path: Path, small_disk: Path) -> None:
    """Each incident is accepted or left out, with a trouble that people see; later ones are kept again."""
    clip = make_clip("a.mp4", frames=60, size=(320, 240), options={"g": "10"})
    with watched(tmp_path, clip, path=str(small_disk / "footage"), before_s=1, after_s=1) as camera:
        camera.read()
        filler = small_disk / "filler"
        with suppress(OSError), filler.open("wb", buffering=0) as file:
            while file.write(bytes(1024)):
                pass
        camera.incident(20, 25)
        assert "pictures and clips are not kept" in camera.context.troubles[""]
        filler.unlink()
        camera.incident(30, 32, number=2)
        assert camera.context.troubles == {}
        camera.finish()
        (record,) = records_in(small_disk / "footage")
        states = {record.files[kind].state for kind in ("snapshot", "clip")}
        assert states <= {"ready", "missing"}
        assert {one["data"]["kind"] for one in camera.told} >= {"snapshot", "clip"}, "also of what did not fit"
        assert list((small_disk / "footage").rglob("*.part")) == []


def test_a_disk_that_fills_while_a_clip_grows(make_clip: MakeClip, tmp_path: Path, small_disk: Path) -> None:
    noisy = make_clip("a.mp4", frames=100, size=(320, 240), options={"g": "10", "crf": "5"})
    with watched(tmp_path, noisy, path=str(small_disk / "footage"), before_s=1, after_s=1) as camera:
        camera.read()
        camera.incident(20, 90)
        camera.finish()
        (record,) = records_in(small_disk / "footage")
        assert "cannot be written" in record.files["clip"].why
        assert list((small_disk / "footage").rglob("*.part")) == []
    missing = [one["data"]["kind"] for one in camera.told if one["type"] == "camgraph.footage.missing"]
    assert "clip" in missing
