"""Healthy cameras, seen by FFmpeg: pictures, time stamps, clocks, accounts."""

from __future__ import annotations

import struct
from collections.abc import Callable
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import av
import pytest

from camgraph.pipeline.errors import EnvironmentProblem, UserError
from camgraph.tools.scenes.simulator import CameraHandle, CameraSettings, ClipSettings, RtspSimulator

pytestmark = pytest.mark.timeout(90)

ROUND = 25
TICKS = 1800


@pytest.mark.parametrize("transport", ["tcp", "udp"])
@pytest.mark.parametrize("name", ["h264", "h264-b", "h265", "h265-b"])
def test_all_pictures_arrive_in_order_round_after_round(
    simulator: RtspSimulator, view: Callable[..., Any], name: str, transport: str
) -> None:
    seen = view(simulator.camera(name).url, transport).pictures(40)
    assert [one.number for one in seen] == [number % ROUND for number in range(40)]
    stamps = [one.pts for one in seen][1:]
    assert {later - earlier for earlier, later in pairwise(stamps)} == {TICKS}


@pytest.mark.parametrize("name", ["basic", "digest"])
def test_the_right_account_is_let_in(simulator: RtspSimulator, view: Callable[..., Any], name: str) -> None:
    assert len(view(simulator.camera(name).url).pictures(3)) == 3


@pytest.mark.parametrize("name", ["basic", "digest"])
def test_a_wrong_account_is_not(simulator: RtspSimulator, view: Callable[..., Any], name: str) -> None:
    with pytest.raises(av.HTTPUnauthorizedError):
        view(f"rtsp://me:wrong@127.0.0.1:{simulator.camera(name).port}/{name}")


def test_another_path_is_not_found(camera: CameraHandle, view: Callable[..., Any]) -> None:
    with pytest.raises(av.HTTPNotFoundError):
        view(camera.url + "x")


def prft_us(packet: Any) -> int:
    """The producer reference time of a packet: microseconds since 1970 on the camera's clock."""
    return int(struct.unpack_from("<q", bytes(packet.get_sidedata("prft")))[0])


@pytest.mark.parametrize("name", ["h264", "h265-b"])
def test_packets_carry_the_capture_time(simulator: RtspSimulator, view: Callable[..., Any], name: str) -> None:
    viewing = view(simulator.camera(name).url)
    reported = [prft_us(packet) for packet in islice(viewing.packets(), 10)]
    sent = [frame.wall_ns // 1000 for frame in simulator.camera(name).sent()]
    assert all(min(abs(one - other) for other in sent) <= 50 for one in reported)


def test_what_was_sent_can_be_accounted_for(camera: CameraHandle, bare: Callable[..., Any]) -> None:
    before = camera.counts()
    client = bare(camera)
    client.play()
    client.pictures(30)
    counts = camera.wait_for(lambda now: now.frames >= before.frames + 30)
    assert (counts.clients, counts.plays - before.plays) == (1, 1)
    sent = camera.sent(newest=30)
    assert all(later.caught_ns - earlier.caught_ns == 20_000_000 for earlier, later in pairwise(sent))
    assert all(frame.caught_ns <= frame.sent_ns for frame in sent)
    client.close()
    camera.wait_for(lambda now: now.clients == 0 and now.open_connections == 0)


def test_the_numbers_of_a_client_begin_where_play_said(camera: CameraHandle, bare: Callable[..., Any]) -> None:
    client = bare(camera)
    info = client.play()["rtp-info"]
    packets = client.media(20)
    assert f"seq={packets[0].sequence};rtptime={packets[0].stamp}" in info
    assert [packet.sequence for packet in packets] == [packets[0].sequence + n & 0xFFFF for n in range(20)]
    assert len({packet.ssrc for packet in packets}) == 1


def test_a_session_goes_through_all_its_methods(camera: CameraHandle, bare: Callable[..., Any]) -> None:
    client = bare(camera)
    assert "GET_PARAMETER" in client.ask("OPTIONS")[1]["public"]
    status, headers, body = client.ask("DESCRIBE")
    assert (status, headers["content-type"]) == (200, "application/sdp")
    assert "sprop-parameter-sets=" in body
    assert client.ask("PLAY")[0] == 455
    assert client.ask("SETUP", "/track0", Transport="RTP/AVP;multicast")[0] == 461
    client.play()
    assert client.ask("GET_PARAMETER")[0] == 200
    assert client.ask("RECORD")[0] == 501
    session, client.session = client.session, "another"
    assert client.ask("TEARDOWN")[0] == 454
    client.session = session
    assert client.ask("TEARDOWN")[0] == 200
    assert list(client.packets()) == []


def test_sender_reports_come_twice_a_second(camera: CameraHandle, bare: Callable[..., Any]) -> None:
    client = bare(camera)
    client.play()
    reports, pictures = 0, 0
    for packet in client.packets():
        reports += packet.channel == 1
        pictures += packet.marker
        if pictures == 51:
            break
    assert reports == 3


def test_a_clip_is_sent_as_it_is_where_it_can_be(test_data: Path, view: Callable[..., Any]) -> None:
    clip = test_data / "videos" / "intel_one-by-one-person-detection.mp4"
    with av.open(str(clip)) as container:
        original = [
            frame.to_ndarray(format="gray") for frame, _ in zip(container.decode(video=0), range(10), strict=False)
        ]
    with RtspSimulator([CameraSettings(name="real", clip=ClipSettings(path=str(clip), seconds=1))]) as simulator:
        viewing = view(simulator.camera("real").url)
        frames = [frame for packet in islice(viewing.packets(), 20) for frame in packet.decode()]
        got = [frame.to_ndarray(format="gray") for frame in frames]
    assert len(got) >= 9
    assert all((one == original[place % 10]).all() for place, one in enumerate(got))


def test_a_clip_with_far_keyframes_is_encoded(test_data: Path, view: Callable[..., Any]) -> None:
    clip = ClipSettings(path=str(test_data / "videos" / "opencv4nodejs_people.mp4"), seconds=1, height=180, fps=5)
    with RtspSimulator([CameraSettings(name="real", clip=clip)]) as simulator:
        viewing = view(simulator.camera("real").url)
        seen = viewing.pictures(6)
    assert {(one.width, one.height) for one in seen} == {(320, 180)}
    assert viewing.stream.average_rate == 5


def test_what_is_no_video_is_said_before_anything_is_served(tmp_path: Path) -> None:
    clip = tmp_path / "clip.mp4"
    clip.write_bytes(b"nothing of the kind" * 100)
    with pytest.raises(UserError, match=r"clip.mp4: expected a video, got: Invalid data"):
        RtspSimulator([CameraSettings(name="a", clip=ClipSettings(path=str(clip)))]).start()


def test_a_taken_port_is_said(camera: CameraHandle) -> None:
    with pytest.raises(EnvironmentProblem, match=rf"camera b: cannot listen on 127.0.0.1:{camera.port}"):
        RtspSimulator([CameraSettings(name="b", port=camera.port)]).start()


def test_twins_are_refused() -> None:
    with pytest.raises(UserError, match="expected names that differ, got a, a"):
        RtspSimulator([CameraSettings(name="a"), CameraSettings(name="a")])
