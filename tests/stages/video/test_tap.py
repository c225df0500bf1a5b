"""Followers cost the camera's reader no time, and no failure of the tap costs the camera.

A follower that never reads loses packets."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import islice
from pathlib import Path

import av
import pytest
import structlog
from av.container import InputContainer
from structlog.testing import capture_logs

from camgraph.pipeline.system.side_link import follow
from camgraph.stages.sinks.footage.still import decode_last
from camgraph.stages.video.camera import Camera
from camgraph.stages.video.live.options import options_of
from camgraph.stages.video.packets import PacketReader, wanted_mark
from camgraph.stages.video.tap import MOST_WAITING, PacketTap
from camgraph.tools.scenes.simulator import CameraHandle, CameraSettings, ClipSettings, RtspSimulator


@pytest.mark.slow
def test_a_follower_that_never_reads_is_left_behind(make_clip: Callable[..., Path], tmp_path: Path) -> None:
    clip = make_clip("a.mp4", frames=60, size=(640, 480), options={"g": "10", "crf": "1"})
    tap = PacketTap(tmp_path / "cam.packets", structlog.get_logger(), patient=False)
    longest_s = 0.0
    with av.open(str(clip)) as container:
        packets = [packet for packet in container.demux(video=0) if packet.size]
        tap.offer(packets[0], 0)
        with closing(follow(tmp_path / "cam.packets")):
            rounds = 2 + 2 * MOST_WAITING // sum(packet.size for packet in packets)
            for packet in packets * rounds:
                begun_s = time.monotonic()
                tap.offer(packet, 0)
                longest_s = max(longest_s, time.monotonic() - begun_s)
                assert all(one.client.waiting <= MOST_WAITING for one in tap._followers)
    tap.close()
    assert tap.left_out > 0
    assert longest_s < 20.0, "no packet waited for it"


def test_who_is_behind_misses_no_beginning_of_a_stream(make_clip: Callable[..., Path], tmp_path: Path) -> None:
    """There is room for the next packet, and not for the new stream with it: packets must not count for the old one."""
    tap, reader, got = PacketTap(tmp_path / "cam.packets", structlog.get_logger(), patient=False), PacketReader(), []
    with av.open(str(make_clip("a.mp4", frames=1))) as container:
        packet = next(container.demux(video=0))
        tap.offer(packet, 0)
        with closing(follow(tmp_path / "cam.packets")) as link:
            tap.offer(packet, 0)
            [follower] = tap._followers
            while not follower.client.waiting:
                tap.offer(packet, 0)
            tap._channel.most_waiting = follower.client.waiting + packet.size + 100
            packet.pts = packet.dts = 1000
            tap.offer(packet, 1)
            assert tap.left_out == 1
            while follower.client.waiting:
                got += reader.packets(link.receive())
                tap._turn()
            for _ in range(3):
                tap.offer(packet, 1)
            tap.close()
            with suppress(ConnectionResetError):
                while True:
                    got += reader.packets(link.receive())
    assert [one.stream.epoch for one in got[-3:]] == [1, 1, 1]
    assert {(one.pts, one.stream.epoch) for one in got} == {(0, 0), (1000, 1)}


def heard(clip: Path, place: Path) -> PacketReader:
    """A reader that has had all that a tap says of a clip."""
    reader = PacketReader()
    tap = PacketTap(place, structlog.get_logger(), patient=False)
    with av.open(str(clip)) as container:
        packets = [packet for packet in container.demux(video=0) if packet.size]
        tap.offer(packets[0], 0)
        with closing(follow(place)) as link:
            for packet in packets:
                tap.offer(packet, 0)
            tap.close()
            assert not list(reader.packets(link.receive()))
    return reader


def test_a_video_that_no_file_takes_is_refused_with_its_codec(make_clip: Callable[..., Path], tmp_path: Path) -> None:
    reader = heard(make_clip("a.apng", codec="apng", pix_fmt="rgb24", frames=3), tmp_path / "cam.packets")
    assert "(apng) cannot be kept" in reader.refusal
    assert reader.ended


@pytest.mark.parametrize("error", [RuntimeError, MemoryError, AssertionError])
def test_whatever_fails_costs_the_packets_alone(
    make_clip: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def fail(*_: object) -> bytes:
        raise error("no such thing")

    monkeypatch.setattr("camgraph.stages.video.tap._sample", fail)
    with capture_logs() as logged:
        reader = heard(make_clip("a.mp4", frames=20, options={"g": "5"}), tmp_path / "cam.packets")
    assert "no such thing" in reader.refusal
    assert [line["event"] for line in logged] == ["packets_not_given"], "once, however many keyframes come"


@pytest.fixture
def camera() -> Iterator[CameraHandle]:
    """A camera that sends a keyframe every four seconds. Of H.265, FFmpeg knows the size by the camera's SDP."""
    clip = ClipSettings(codec="h264", width=320, fps=20, seconds=4, gop=80)
    with RtspSimulator([CameraSettings(name="cam", clip=clip)]) as made:
        yield made.camera("cam")


@contextmanager
def unidentified(url: str) -> Iterator[InputContainer]:
    """A connection that stood before the first keyframe came, so that FFmpeg does not know the size of pictures."""
    options, until_s = options_of(Camera(url=url)), time.monotonic() + 120
    while time.monotonic() < until_s:
        with suppress(av.ExitError), av.open(url, options=options, timeout=(1.0, 60.0)) as container:
            if container.streams.video[0].codec_context.width == 0:
                yield container
                return
    pytest.fail("FFmpeg knew the size of pictures each time")


def test_first_keyframe_is_given_although_its_size_is_not_known(camera: CameraHandle, tmp_path: Path) -> None:
    """Nor will the size be known later: these packets are not decoded, as if a CUDA device decoded them."""
    place, reader = tmp_path / "capture" / "cam.packets", PacketReader()
    place.parent.mkdir()
    wanted_mark(tmp_path).touch()
    tap = PacketTap(place, structlog.get_logger(), patient=False)
    with unidentified(camera.url) as container:
        for packet in islice(container.demux(video=0), 10):
            tap.offer(packet, 0)
        with closing(follow(place)) as link:
            tap.offer(next(container.demux(video=0)), 0)
            tap.close()
            packets = list(reader.packets(link.receive()))
    assert [packet.is_key for packet in packets] == [True] + [False] * 10
    assert packets[0].stream.upright_size == (320, 180)
    picture = decode_last(packets)
    assert picture is not None
    assert picture.shape == (180, 320, 3)
