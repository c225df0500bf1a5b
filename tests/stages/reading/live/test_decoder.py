"""Packets of real cameras into pictures: which are believed, chosen and decoded, and what is said of their times."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import av
import pytest
from av.packet import Packet
from av.video.stream import VideoStream
from structlog.testing import capture_logs

from pipeline.errors import EnvironmentProblem
from pipeline.testing import HandContext
from stages.reading.camera import Camera
from stages.reading.live import hardware
from stages.reading.live.arrivals import Arrival
from stages.reading.live.camera_reporter import CameraReporter
from stages.reading.live.decoder import Decoder, LivePicture
from stages.reading.live.ffmpeg_log import listening
from tools.damage_rate import Case, digest, from_keyframe, good_pictures, measure, open_camera
from tools.farm import CameraSettings, ClipSettings, Farm
from tools.farm.farm import CameraHandle

MakeClip = Callable[..., Path]
FPS, GOP = 50, 10
CLIP = ClipSettings(width=320, height=180, fps=FPS, gop=GOP, seconds=1)


@pytest.fixture(scope="module")
def farm() -> Iterator[Farm]:
    cameras = [
        CameraSettings(name="plain", clip=CLIP),
        CameraSettings(name="b", clip=CLIP.model_copy(update={"b_frames": 2})),
        CameraSettings(name="hevc", clip=CLIP.model_copy(update={"b_frames": 2, "codec": "h265"})),
        CameraSettings(name="late", clip=CLIP, clock_offset_s=-3600),
        CameraSettings(name="unset", clip=CLIP, clock_offset_s=-time.time()),
        CameraSettings(name="mute", clip=CLIP, report_s=0),
    ]
    with Farm(cameras) as running:
        yield running


class Read:
    """A camera that is read: its packets, decoder, and what it said."""

    def __init__(self, packets: Iterator[Packet[VideoStream]], decoder: Decoder, context: HandContext) -> None:
        self.packets = packets
        self.decoder = decoder
        self.context = context

    def pictures(self, packet: Packet[VideoStream]) -> list[LivePicture]:
        return list(self.decoder.pictures(Arrival(packet, time.monotonic_ns(), time.time_ns())))

    def of(self, count: int) -> list[LivePicture]:
        """The pictures of so many packets."""
        return [picture for packet in islice(self.packets, count) for picture in self.pictures(packet)]

    def counted(self, name: str) -> int:
        return self.context.counts[name, "front"]


@contextmanager
def reading(camera: CameraHandle | str, **settings: Any) -> Iterator[Read]:
    context = HandContext(Path(), Path())
    url = camera if isinstance(camera, str) else camera.url
    with listening() as heard, open_camera(url, "tcp") as container:
        stream = container.streams.video[0]
        decoder = Decoder(
            stream, Camera.model_validate({"url": url, **settings}), CameraReporter("front", context), heard
        )
        yield Read(iter(from_keyframe(container.demux(stream))), decoder, context)


@pytest.mark.parametrize(("codec", "b_frames"), [("h264", 0), ("h264", 2), ("h265", 2)])
def test_no_damaged_picture_gets_through_and_no_good_one_of_a_healthy_camera_is_lost(codec: Any, b_frames: int) -> None:
    # On a busy machine UDP loses packets by itself.
    cases = [Case(codec, b_frames, "tcp", "drop", 0), *(Case(codec, b_frames, "udp", "drop", n) for n in (2, 20))]
    healthy, lossy, bad = measure(cases, CLIP, 3.0)
    assert (healthy.dropped, healthy.through, healthy.wasted) == (0, 0, 0)
    assert healthy.kept > 50
    assert lossy.kept > 0
    assert lossy.wasted + lossy.dropped > 0
    assert lossy.through + bad.through == 0


def test_a_picture_that_was_never_sent_is_noticed(farm: Farm) -> None:
    camera = farm.camera("plain")
    good = good_pictures(camera, FPS + GOP)
    with reading(camera) as read:
        assert read.of(5)
        [left_out] = islice(read.packets, 1)
        assert not left_out.is_keyframe
        seen = read.of(2 * GOP)
    assert all(digest(picture.frame) in good for picture in seen)
    assert GOP <= len(seen) < 2 * GOP
    assert read.counted("dropped.damaged") == 2 * GOP - len(seen)


@pytest.mark.parametrize("name", ["plain", "b", "hevc"])
def test_an_idle_camera_is_decoded_at_its_keyframes_alone(farm: Farm, name: str) -> None:
    camera = farm.camera(name)
    good = good_pictures(camera, FPS + GOP)
    with reading(camera, max_fps=FPS / GOP) as read:
        read.of(4 * GOP)
        before = read.counted("skipped.rate")
        for _ in range(4):
            [key] = islice(read.packets, 1)
            assert key.is_keyframe
            [picture] = read.pictures(key)
            assert picture.frame.key_frame
            assert key.opaque == (picture.number,)
            assert digest(picture.frame) in good
            assert read.of(GOP - 1) == []
    assert read.counted("skipped.rate") - before == 4 * (GOP - 1)
    assert read.counted("dropped.damaged") == 0


def test_pictures_that_nobody_refers_to_are_left_out_where_the_others_are_enough(farm: Farm) -> None:
    camera = farm.camera("b")
    good = good_pictures(camera, FPS + GOP)
    with reading(camera, max_fps=15) as read:
        read.of(4 * GOP)
        seen = read.of(10 * GOP)
        assert read.decoder.level == "base"
    assert all(digest(picture.frame) in good for picture in seen)
    assert 26 <= len(seen) <= 32
    assert read.counted("dropped.damaged") == 0


def test_the_cameras_clock_is_told_with_each_picture(farm: Farm) -> None:
    camera = farm.camera("late")
    with reading(camera) as read:
        pictures = read.of(GOP)
    assert [picture.clock for picture in pictures] == ["ntp"] * len(pictures)
    sent = {frame.wall_ns // 1000 for frame in camera.sent()}
    assert all(any(abs(picture.wall_ns // 1000 - wall) <= 2 for wall in sent) for picture in pictures)
    assert read.context.camera_facts["front"]["clock"] == "ntp"


@pytest.mark.parametrize("name", ["unset", "mute"])
def test_without_a_clock_that_makes_sense_it_is_this_machines(farm: Farm, name: str) -> None:
    begun = time.time_ns()
    with reading(farm.camera(name)) as read:
        pictures = read.of(GOP)
    assert {picture.clock for picture in pictures} == {"wall"}
    assert begun <= pictures[0].wall_ns <= pictures[-1].wall_ns <= time.time_ns()
    assert read.context.camera_facts["front"]["clock"] == "wall"


def test_a_camera_that_declares_another_rate_is_measured(farm: Farm) -> None:
    with reading(farm.camera("plain")) as read:
        for n, packet in enumerate(islice(read.packets, 110)):
            arrival = Arrival(packet, n * 1_000_000_000 // 21, time.time_ns())
            assert len(list(read.decoder.pictures(arrival))) == 1
    assert read.context.camera_facts["front"]["fps"] == pytest.approx(21, rel=0.01)


def test_time_stamps_that_make_no_sense_cost_no_picture(farm: Farm) -> None:
    camera = farm.camera("plain")
    disturb: list[Callable[[], None]] = [
        lambda: camera.jump(3600),
        lambda: camera.jump(-7200),
        lambda: camera.stamps("constant"),
        lambda: camera.stamps("duplicate"),
        camera.heal,
    ]
    with reading(camera, max_fps=FPS / 2) as read:
        read.of(2 * GOP)
        for change in disturb:
            change()
            arrivals = [picture.arrived_ns for picture in read.of(4 * GOP)]
            assert arrivals == sorted(arrivals)
            # Of 2 * GOP; those that come at once, without time stamps of use, are one.
            assert len(arrivals) >= GOP // 2
    assert read.counted("dropped.damaged") == 0


def test_packets_that_are_no_pictures_are_counted(farm: Farm) -> None:
    with reading(farm.camera("plain")) as read:
        read.of(3)
        for packet in islice(read.packets, 2):
            packet.update(b"\0\0\0\1\x41" + b"\xff" * (packet.size - 5))
            assert read.pictures(packet) == []
        assert read.decoder.refused == 2
        assert read.counted("dropped.damaged") == 2
        assert len(read.of(2 * GOP)) >= GOP
        assert read.decoder.refused == 0


def test_who_wants_a_device_that_is_not_there_is_told_what_to_do(farm: Farm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "why_no_cuda", lambda: "no CUDA device can be opened: Operation not permitted")
    wanted = r"decode: cuda: no CUDA device can be opened: .*; install .* `decode: auto`"
    with pytest.raises(EnvironmentProblem, match=wanted), reading(farm.camera("plain"), decode="cuda"):
        pass


def test_auto_falls_back_and_says_so(farm: Farm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "why_no_cuda", lambda: "there is none")
    with capture_logs() as said, reading(farm.camera("plain"), decode="auto") as read:
        assert read.of(3)
    assert read.context.camera_facts["front"]["decoder"] == "cpu"
    assert [(line["event"], line["why"]) for line in said] == [("decode_falls_back", "there is none")]


def test_that_there_is_no_device_is_found_out_once() -> None:
    hardware.why_no_cuda.cache_clear()
    first = hardware.why_no_cuda()
    assert hardware.why_no_cuda() is first
    assert hardware.why_no_cuda.cache_info().misses == 1
    if not Path("/dev/nvidiactl").exists():
        assert first.startswith("no CUDA device can be opened: ")


@pytest.mark.parametrize(("form", "problem"), [("nv12", ""), ("p010le", ""), ("yuv420p", "pictures come as yuv420p")])
def test_pictures_say_where_they_come_from(form: str, problem: str) -> None:
    assert hardware.why_not_on_device(av.VideoFrame(64, 64, form), "h264").endswith(problem)
