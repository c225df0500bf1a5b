"""The faults of a camera as FFmpeg, by PyAV, reports them, or fails to: what a reader of live cameras must expect."""

from __future__ import annotations

import struct
from collections.abc import Callable
from itertools import cycle, pairwise
from typing import Any

import av
import pytest

from camgraph.tools.scenes.simulator import CameraHandle, RtspSimulator

pytestmark = pytest.mark.timeout(90)

View = Callable[..., Any]
HOUR = 3600 * 90_000
ROUND = 25
TICKS = 1800


def test_refused(camera: CameraHandle, view: View) -> None:
    camera.refuse()
    with pytest.raises(av.ConnectionRefusedError):
        view(camera.url)


def test_silence_is_invalid_data_when_the_time_is_out(camera: CameraHandle, view: View) -> None:
    camera.silence()
    with pytest.raises((av.InvalidDataError, av.ExitError)):
        view(camera.url, timeout=(1.0, 1.0))


@pytest.mark.parametrize(
    ("status", "error"),
    [(401, av.HTTPUnauthorizedError), (404, av.HTTPNotFoundError), (503, av.HTTPServerError)],
)
def test_answers_are_errors_of_their_own(camera: CameraHandle, view: View, status: int, error: type[Exception]) -> None:
    camera.answer(status)  # type: ignore[arg-type]
    with pytest.raises(error):
        view(camera.url)


def test_a_stall_raises_and_the_same_container_reads_on(camera: CameraHandle, view: View) -> None:
    camera.stall(after_frames=40)
    viewing = view(camera.url, timeout=(5.0, 0.5))
    with pytest.raises(av.ExitError):
        viewing.pictures(1000)
    camera.heal("stall")
    seen = viewing.pictures(20)
    assert len(seen) == 20
    assert 0 in [one.number for one in seen[:3]]


@pytest.mark.parametrize("transport", ["tcp", "udp"])
@pytest.mark.parametrize("how", ["fin", "rst"])
def test_a_cut_raises_nothing(camera: CameraHandle, view: View, how: str, transport: str) -> None:
    camera.cut(how, after_frames=40)  # type: ignore[arg-type]
    # By UDP only the requests' connection ends, which FFmpeg looks at when it next has something to say.
    viewing = view(camera.url, transport, timeout=(5.0, 0.5))
    try:
        seen = len(viewing.pictures(1000))
        # A reset takes with it what a slow client had not read yet.
        assert seen in (39, 40) or (how == "rst" and 0 < seen < 39)
    except av.ExitError:
        assert transport == "udp"


def test_reboot_restarts_the_pictures(camera: CameraHandle, view: View) -> None:
    boots = camera.counts().boots
    camera.reboot(0.3)
    camera.wait_for(lambda now: now.boots > boots)
    assert [one.number for one in view(camera.url).pictures(30)] == [number % ROUND for number in range(30)]


def test_half_open_is_a_stall_to_ffmpeg(camera: CameraHandle, view: View) -> None:
    camera.half_open(after_frames=40)
    with pytest.raises(av.ExitError):
        view(camera.url, timeout=(5.0, 0.5)).pictures(1000)


def spoilt(seen: list[Any], well: list[Any]) -> int:
    """How many pictures are not, pixel for pixel, the one that was sent at their place."""
    return sum(one.checksum != other.checksum for one, other in zip(seen, cycle(well), strict=False))


@pytest.mark.parametrize("percent", [1, 5, 20])
def test_lost_packets_raise_nothing_and_spoil_pictures(
    camera: CameraHandle, view: View, well: list[Any], percent: int
) -> None:
    camera.drop(percent, seed=1)
    viewing = view(camera.url, "udp")
    seen = viewing.pictures(2 * ROUND)
    assert spoilt(seen, well) > percent / 4


def test_packets_out_of_order_are_put_in_order(camera: CameraHandle, view: View, well: list[Any]) -> None:
    camera.reorder(5, seed=1)
    # However late this process gets round to reading: a packet is waited for, and the socket has room.
    viewing = view(camera.url, "udp", max_delay="10000000", buffer_size="4000000")
    assert spoilt(viewing.pictures(2 * ROUND), well) == 0


def test_corrupt_packets_spoil_pictures(camera: CameraHandle, view: View, well: list[Any]) -> None:
    camera.corrupt(20, seed=1, after_packets=90)
    seen = view(camera.url).pictures(4 * ROUND)
    assert spoilt(seen[:ROUND], well) == 0
    assert spoilt(seen[2 * ROUND :], well) > 3


def test_another_resolution_is_just_another_size(camera: CameraHandle, view: View) -> None:
    camera.resize(320, 240, after_frames=40)
    seen = view(camera.url).pictures(50)
    assert [(one.width, one.height) for one in seen] == [(640, 360)] * 40 + [(320, 240)] * 10
    assert [one.number for one in seen[38:42]] == [13, 14, 0, 1]
    assert {later.pts - earlier.pts for earlier, later in pairwise(seen[1:])} == {TICKS}


def test_codec_change_needs_a_new_connection(camera: CameraHandle, view: View) -> None:
    viewing = view(camera.url)
    camera.recode("h265")
    packets = viewing.packets()
    while not viewing.undecodable:
        viewing._decoded(next(packets))
    again = view(camera.url)
    assert again.stream.codec_context.name == "hevc"
    assert len(again.pictures(10)) == 10


@pytest.mark.parametrize(("seconds", "least"), [(3600, HOUR), (-3600, 12 * HOUR)])
def test_a_jump_of_time_stamps_is_always_forward(camera: CameraHandle, view: View, seconds: int, least: int) -> None:
    camera.jump(seconds, after_frames=40)
    stamps = [one.pts for one in view(camera.url).pictures(50)][1:]
    assert max(later - earlier for earlier, later in pairwise(stamps)) >= least
    assert stamps == sorted(stamps)


def test_a_wrap_of_time_stamps_is_not_seen(camera: CameraHandle, view: View) -> None:
    camera.wrap(0.5)
    stamps = [one.pts for one in view(camera.url).pictures(50)][1:]
    assert {later - earlier for earlier, later in pairwise(stamps)} == {TICKS}


@pytest.mark.parametrize("how", ["constant", "duplicate"])
def test_equal_time_stamps_are_passed_on(camera: CameraHandle, view: View, how: str) -> None:
    camera.stamps(how, after_frames=40)  # type: ignore[arg-type]
    stamps = [one.pts for one in view(camera.url).pictures(60)]
    assert len(set(stamps[:40])) == 40
    assert len(set(stamps[-10:])) <= 6


def test_a_false_rate_is_believed(camera: CameraHandle, view: View) -> None:
    camera.declare(25)
    viewing = view(camera.url)
    assert viewing.stream.average_rate == 25
    stamps = [one.pts for one in viewing.pictures(10)][1:]
    assert {later - earlier for earlier, later in pairwise(stamps)} == {TICKS}


def test_a_wrong_clock_is_believed(simulator: RtspSimulator, camera: CameraHandle, view: View) -> None:
    camera.clock(-7200)
    packet = next(view(camera.url).packets())
    told_us = struct.unpack_from("<q", bytes(packet.get_sidedata("prft")))[0]
    camera.heal("clock")
    right_us = view(camera.url).container.start_time_realtime
    assert 7190e6 < right_us - told_us < 7215e6
