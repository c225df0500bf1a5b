"""From packets of real cameras to pictures: which are trusted, chosen and decoded, and their times."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import dropwhile, islice
from pathlib import Path
from typing import Any, NamedTuple, cast

import av
import numpy as np
import pytest
from av.packet import Packet
from av.video.frame import VideoFrame
from av.video.stream import VideoStream
from structlog.testing import capture_logs

from camgraph.pipeline.errors import EnvironmentProblem
from camgraph.pipeline.testing import HandContext
from camgraph.stages.video.camera import Camera
from camgraph.stages.video.ffmpeg_log import listening
from camgraph.stages.video.live import hardware
from camgraph.stages.video.live.arrivals import Arrival
from camgraph.stages.video.live.camera_reporter import CameraReporter
from camgraph.stages.video.live.connection import connected
from camgraph.stages.video.live.decoder import Decoder, LivePicture
from camgraph.stages.video.live.reading_watchdog import ReadingWatchdog
from camgraph.tools.lab.benchmarks.damage_rate import OnSilentDevice
from camgraph.tools.scenes.simulator import CameraHandle, CameraSettings, ClipSettings, RtspSimulator

FPS, GOP = 50, 10
CLIP = ClipSettings(width=320, height=180, fps=FPS, gop=GOP, seconds=1)


@pytest.fixture(scope="module")
def simulator() -> Iterator[RtspSimulator]:
    cameras = [
        CameraSettings(name="plain", clip=CLIP),
        CameraSettings(name="b", clip=CLIP.model_copy(update={"b_frames": 2})),
        CameraSettings(name="hevc", clip=CLIP.model_copy(update={"b_frames": 2, "codec": "h265"})),
        CameraSettings(name="late", clip=CLIP, clock_offset_s=-3600),
        CameraSettings(name="unset", clip=CLIP, clock_offset_s=-time.time()),
        CameraSettings(name="mute", clip=CLIP, report_s=0),
    ]
    with RtspSimulator(cameras) as running:
        yield running


class Read:
    """A camera that is read: its packets from a keyframe on, its decoder, and what was said."""

    def __init__(self, packets: Iterable[Packet[VideoStream]], decoder: Decoder, context: HandContext) -> None:
        self.packets = dropwhile(lambda packet: not packet.is_keyframe, packets)
        self.decoder = decoder
        self.context = context

    def pictures(self, packet: Packet[VideoStream]) -> list[LivePicture]:
        return list(self.decoder.pictures(Arrival(packet, time.monotonic_ns(), time.time_ns())))

    def of(self, count: int) -> list[LivePicture]:
        """The pictures of so many packets."""
        return [picture for packet in islice(self.packets, count) for picture in self.pictures(packet)]

    def counted(self, name: str) -> int:
        return self.context.counts[name, "front"]


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read leaves a lock in its folder, which is the current one here."""
    monkeypatch.chdir(tmp_path)


@contextmanager
def reading(camera: CameraHandle, decodes: type[Decoder] = Decoder, **settings: Any) -> Iterator[Read]:
    wanted, context = Camera.model_validate({"url": camera.url, **settings}), HandContext(Path(), Path())
    reporter, stop = CameraReporter("front", context), threading.Event()
    watchdog = ReadingWatchdog(reporter, stop, frozenset(), 10.0)
    with listening() as log, watchdog, connected(wanted, watchdog) as connection:
        decoder = decodes(connection.stream, wanted, reporter, log)
        yield Read((arrival.packet for arrival in connection.packets(stop)), decoder, context)


def digest(frame: VideoFrame) -> bytes:
    """Of all planes, without the padding at the end of their lines."""
    made = hashlib.blake2b(digest_size=16)
    for plane in frame.planes:
        lines = np.frombuffer(cast("memoryview[int]", plane), np.uint8).reshape(plane.height, plane.line_size)
        made.update(lines[:, : plane.width].tobytes())
    return made.digest()


def good_pictures(camera: CameraHandle, decodes: type[Decoder] = Decoder) -> set[bytes]:
    """All that a healthy camera gives: those of more than one round of its clip."""
    with reading(camera, decodes) as read:
        return {digest(picture.frame) for picture in read.of(FPS + 2 * GOP)}


class Seen(NamedTuple):
    """Of a camera with a fault: pictures that were let through, how many of them are damaged, how many thrown away."""

    believed: int
    damaged: int
    dropped: int


def seen_with_losses(decodes: type[Decoder], camera: CameraHandle, percent: float) -> Seen:
    """Of three seconds, and longer if a busy machine has shown little until then.

    Over UDP, or without a loss over TCP: on a busy machine UDP loses packets by itself.
    """
    good = good_pictures(camera, decodes)
    if percent:
        camera.drop(percent, seed=1)
    begin, believed = time.monotonic(), list[bool]()
    with reading(camera, decodes, transport="udp" if percent else "tcp") as read:

        def seen() -> Seen:
            return Seen(len(believed), believed.count(False), read.counted("dropped.damaged"))

        def is_enough() -> bool:
            return seen().believed > 50 if not percent else seen().believed > 0 and seen().dropped > 0

        while (passed_s := time.monotonic() - begin) < 3 or (passed_s < 60 and not is_enough()):
            believed += [digest(picture.frame) in good for picture in read.of(1)]
        return seen()


@pytest.mark.parametrize("decodes", [Decoder, OnSilentDevice])
@pytest.mark.parametrize(("codec", "b_frames"), [("h264", 0), ("h264", 2), ("h265", 2)])
def test_damaged_pictures_are_dropped_and_good_ones_kept(codec: Any, b_frames: int, decodes: type[Decoder]) -> None:
    """Nor where the decoder says nothing of damage, as NVDEC: packets that are missing are known by themselves."""
    clip, percents = CLIP.model_copy(update={"codec": codec, "b_frames": b_frames}), (0.0, 2.0, 20.0)
    with RtspSimulator([CameraSettings(name=f"c{percent:g}", clip=clip) for percent in percents]) as simulator:
        with ThreadPoolExecutor(3) as threads:
            healthy, lossy, bad = threads.map(partial(seen_with_losses, decodes), simulator.cameras, percents)
    assert (healthy.damaged, healthy.dropped) == (0, 0)
    assert healthy.believed > 50
    assert lossy.believed > 0
    assert lossy.dropped > 0
    assert lossy.damaged + bad.damaged == 0


def test_what_lies_before_the_first_keyframe_is_not_decoded(simulator: RtspSimulator) -> None:
    """A decoder joins in the middle; nothing is thrown away for that, and nothing is made up."""
    good = good_pictures(simulator.camera("plain"))
    with reading(simulator.camera("plain")) as read:
        later = list(islice(read.packets, 1, 2 * GOP))
        before = [picture for packet in later[: GOP - 1] for picture in read.pictures(packet)]
        after = [picture for packet in later[GOP - 1 :] for picture in read.pictures(packet)]
    assert before == []
    assert [picture.number for picture in after][:2] == [GOP - 1, GOP]
    assert all(digest(picture.frame) in good for picture in after)
    assert read.counted("dropped.damaged") == 0


@pytest.mark.parametrize("decodes", [Decoder, OnSilentDevice])
def test_a_picture_that_was_never_sent_is_noticed(simulator: RtspSimulator, decodes: type[Decoder]) -> None:
    camera = simulator.camera("plain")
    good = good_pictures(camera, decodes)
    with reading(camera, decodes) as read:
        assert read.of(5)
        [left_out] = islice(read.packets, 1)
        assert not left_out.is_keyframe
        seen = read.of(2 * GOP)
    assert all(digest(picture.frame) in good for picture in seen)
    assert GOP <= len(seen) < 2 * GOP
    assert read.counted("dropped.damaged") == 2 * GOP - len(seen)


@pytest.mark.parametrize("name", ["plain", "b", "hevc"])
def test_an_idle_camera_is_decoded_at_its_keyframes_alone(simulator: RtspSimulator, name: str) -> None:
    camera = simulator.camera(name)
    good = good_pictures(camera)
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


class FailsOnceAtItsEnd:
    """A decoder that refuses once to give what is left in it, as that of AV1 does for some damaged packets."""

    def __init__(self, context: Any) -> None:
        self._context, self._left = context, 1

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def decode(self, packet: Packet[VideoStream] | None) -> list[VideoFrame]:
        found: list[VideoFrame] = self._context.decode(packet)
        if packet is None and self._left:
            self._left -= 1
            raise av.InvalidDataError(1, "damaged")
        return found


def test_a_keyframe_that_fails_late_costs_none_behind_it(simulator: RtspSimulator) -> None:
    with reading(simulator.camera("b"), max_fps=FPS / GOP) as read:
        read.of(4 * GOP)
        read.decoder._context = FailsOnceAtItsEnd(read.decoder._context)  # type: ignore[assignment]
        found = []
        for _ in range(4):
            [key] = islice(read.packets, 1)
            found.append(len(list(read.pictures(key))))
            read.of(GOP - 1)
        assert found == [0, 1, 1, 1]
    assert read.counted("dropped.damaged") == 1


def test_unreferenced_pictures_are_skipped_at_low_max_fps(simulator: RtspSimulator) -> None:
    camera = simulator.camera("b")
    good = good_pictures(camera)
    with reading(camera, max_fps=15) as read:
        read.of(4 * GOP)
        seen = read.of(10 * GOP)
        assert read.decoder.level == "base"
    assert all(digest(picture.frame) in good for picture in seen)
    assert 26 <= len(seen) <= 32
    assert read.counted("dropped.damaged") == 0


def test_the_cameras_clock_is_told_with_each_picture(simulator: RtspSimulator) -> None:
    camera = simulator.camera("late")
    with reading(camera) as read:
        pictures = read.of(GOP)
    assert [picture.clock for picture in pictures] == ["ntp"] * len(pictures)
    sent = {frame.wall_ns // 1000 for frame in camera.sent()}
    assert all(any(abs(picture.wall_ns // 1000 - wall) <= 2 for wall in sent) for picture in pictures)
    assert read.context.camera_facts["front"]["clock"] == "ntp"


@pytest.mark.parametrize("name", ["unset", "mute"])
def test_without_a_clock_that_makes_sense_it_is_this_machines(simulator: RtspSimulator, name: str) -> None:
    begun = time.time_ns()
    with reading(simulator.camera(name)) as read:
        pictures = read.of(GOP)
    assert {picture.clock for picture in pictures} == {"wall"}
    assert begun <= pictures[0].wall_ns <= pictures[-1].wall_ns <= time.time_ns()
    assert read.context.camera_facts["front"]["clock"] == "wall"


def test_a_camera_that_declares_another_rate_is_measured(simulator: RtspSimulator) -> None:
    with reading(simulator.camera("plain")) as read:
        for n, packet in enumerate(islice(read.packets, 110)):
            arrival = Arrival(packet, n * 1_000_000_000 // 21, time.time_ns())
            assert len(list(read.decoder.pictures(arrival))) == 1
    assert read.context.camera_facts["front"]["fps"] == pytest.approx(21, rel=0.01)


def test_time_stamps_that_make_no_sense_cost_no_picture(simulator: RtspSimulator) -> None:
    camera = simulator.camera("plain")
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


def test_packets_that_are_no_pictures_are_counted(simulator: RtspSimulator) -> None:
    with reading(simulator.camera("plain")) as read:
        read.of(3)
        for packet in islice(read.packets, 2):
            packet.update(b"\0\0\0\1\x41" + b"\xff" * (packet.size - 5))
            assert read.pictures(packet) == []
        assert read.decoder.refused == 2
        assert read.counted("dropped.damaged") == 2
        assert len(read.of(2 * GOP)) >= GOP
        assert read.decoder.refused == 0


def test_who_wants_a_device_that_is_not_there_is_told_what_to_do(
    simulator: RtspSimulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hardware, "why_no_cuda", lambda _: "no CUDA device can be opened: Operation not permitted")
    wanted = r"decode: cuda: no CUDA device can be opened: .*; install .* `decode: auto`"
    with pytest.raises(EnvironmentProblem, match=wanted), reading(simulator.camera("plain"), decode="cuda"):
        pass


def test_auto_falls_back_and_says_so(simulator: RtspSimulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "why_no_cuda", lambda _: "there is none")
    with capture_logs() as logged, reading(simulator.camera("plain"), decode="auto") as read:
        assert read.of(3)
    assert read.context.camera_facts["front"]["decoder"] == "cpu"
    assert [(line["event"], line["why"]) for line in logged] == [("decode_falls_back", "there is none")]
