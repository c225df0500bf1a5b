"""Each fault of a camera, as bare sockets see it: packet by packet."""

from __future__ import annotations

import errno
import socket
import struct
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice, pairwise
from typing import Any

import pytest
from camgraph_test_stages.waiting import until

from camgraph.tools.scenes.simulator import CameraHandle, Fault, RtspSimulator, ScheduledFault

pytestmark = pytest.mark.timeout(90)

Bare = Callable[..., Any]
NTP_EPOCH_S = 2_208_988_800
TICKS = 1800
"""Of the 90 kHz clock, from frame to frame."""


def stamps_apart(stamps: list[int]) -> list[int]:
    return [later - earlier & 0xFFFF_FFFF for earlier, later in pairwise(stamps)]


def test_refuse_lets_nobody_in_and_those_who_are_in_go_on(camera: CameraHandle, bare: Bare) -> None:
    inside = bare(camera)
    inside.play()
    camera.refuse()
    with pytest.raises(ConnectionRefusedError):
        bare(camera)
    assert len(inside.media(40)) == 40
    camera.heal("refuse")
    assert bare(camera).ask("OPTIONS")[0] == 200


def test_silence_accepts_and_says_nothing(camera: CameraHandle, bare: Bare) -> None:
    camera.silence()
    client = bare(camera)
    client.tell("OPTIONS")
    assert client.silent_for(0.5)
    camera.heal("silence")
    assert bare(camera).ask("OPTIONS")[0] == 200


@pytest.mark.parametrize("status", [401, 404, 503])
def test_answer_says_so_to_everything_but_options(camera: CameraHandle, bare: Bare, status: int) -> None:
    camera.answer(status)  # type: ignore[arg-type]
    client = bare(camera)
    assert client.ask("OPTIONS")[0] == 200
    assert client.ask("DESCRIBE")[0] == status
    camera.heal("answer")
    assert client.ask("DESCRIBE")[0] == 200


def test_stall_after_packets_sends_so_many_and_still_answers(camera: CameraHandle, bare: Bare) -> None:
    camera.stall(after_packets=17)
    client = bare(camera)
    client.play()
    assert len(client.media(17)) == 17
    assert client.silent_for(0.5)
    assert client.ask("GET_PARAMETER")[0] == 200
    camera.heal("stall")
    # It goes on at a keyframe, which begins with its SPS.
    assert client.media(1)[0].payload[0] & 31 == 7


def test_stall_after_frames_sends_whole_pictures(camera: CameraHandle, bare: Bare) -> None:
    camera.stall(after_frames=5)
    client = bare(camera)
    client.play()
    assert len(client.pictures(5)) == 5
    assert client.silent_for(0.5)


def test_cut_in_order_ends_the_connection(camera: CameraHandle, bare: Bare) -> None:
    camera.cut("fin", after_packets=17)
    client = bare(camera)
    client.play()
    assert sum(packet.channel == 0 for packet in client.packets()) == 17


def test_reset_cuts_each_client_until_healed(camera: CameraHandle, bare: Bare) -> None:
    camera.cut("rst", after_packets=17)
    for _ in range(2):
        client = bare(camera)
        client.play()
        assert len(client.media(17)) == 17
        with pytest.raises(ConnectionResetError):
            client.media(1)


def test_cut_now_meets_those_who_are_there(camera: CameraHandle, bare: Bare) -> None:
    client = bare(camera)
    client.play()
    client.media(1)
    camera.cut("fin")
    assert all(packet.channel in (0, 1) for packet in client.packets())
    later = bare(camera)
    later.play()
    assert len(later.media(30)) == 30


def test_half_open_forgets_a_client_who_is_not_told(camera: CameraHandle, bare: Bare) -> None:
    camera.half_open(after_packets=9)
    client = bare(camera)
    client.play()
    assert len(client.media(9)) == 9
    client.tell("OPTIONS")
    assert client.silent_for(0.5)
    camera.heal("half_open")
    other = bare(camera)
    other.play()
    assert len(other.media(30)) == 30


def test_reboot_is_away_and_comes_back_as_another(camera: CameraHandle, bare: Bare) -> None:
    client = bare(camera)
    client.play()
    before = client.media(1)[0]
    boots = camera.counts().boots
    camera.reboot(1.0)
    with pytest.raises(ConnectionResetError):
        client.media(10_000)
    with pytest.raises(ConnectionRefusedError):
        bare(camera)
    camera.wait_for(lambda now: now.boots > boots)
    client = bare(camera)
    client.play()
    after = client.media(1)[0]
    assert after.ssrc != before.ssrc
    assert after.stamp != before.stamp


def test_a_reboot_takes_its_time_whatever_is_healed(camera: CameraHandle, bare: Bare) -> None:
    boots = camera.counts().boots
    camera.reboot(1.0)
    camera.heal()
    with pytest.raises(ConnectionRefusedError):
        bare(camera)
    camera.wait_for(lambda now: now.boots > boots)
    assert bare(camera).ask("OPTIONS")[0] == 200


def can_connect(port: int) -> bool:
    with socket.socket() as attempt:
        return attempt.connect_ex(("127.0.0.1", port)) != errno.ECONNREFUSED


def arrived(client: Any) -> list[int]:
    """Which of its packets come by UDP, counted from the first that was sent, in the order of arrival."""
    first = int(client.play()["rtp-info"].split("seq=")[1].split(";")[0])
    return [packet.sequence - first & 0xFFFF for packet in islice(client.packets(), 120)]


def arrived_at_two(camera: CameraHandle, bare: Bare) -> list[list[int]]:
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(arrived, [bare(camera, udp=True), bare(camera, udp=True)]))


@pytest.mark.parametrize("percent", [1, 5, 20])
def test_drop_loses_the_same_udp_packets_for_each_client(camera: CameraHandle, bare: Bare, percent: int) -> None:
    camera.drop(percent, seed=1)
    first, second = arrived_at_two(camera, bare)
    assert first == second == sorted(first)
    assert 0.3 * percent < 100 * (1 - len(first) / (first[-1] + 1)) < 2.5 * percent


@pytest.mark.parametrize("percent", [1, 5, 20])
def test_reorder_brings_udp_packets_late_and_loses_none(camera: CameraHandle, bare: Bare, percent: int) -> None:
    camera.reorder(percent, seed=1)
    first, second = arrived_at_two(camera, bare)
    assert first == second != sorted(first)
    assert set(range(110)) <= set(first)


def test_tcp_loses_nothing(camera: CameraHandle, bare: Bare) -> None:
    camera.drop(20)
    camera.reorder(20)
    client = bare(camera)
    client.play()
    sequences = [packet.sequence for packet in client.media(60)]
    assert [sequence - sequences[0] & 0xFFFF for sequence in sequences] == list(range(60))


def test_corrupt_changes_the_same_packets_each_time(camera: CameraHandle, bare: Bare) -> None:
    def payloads() -> list[bytes]:
        client = bare(camera)
        client.play()
        made = [packet.payload for packet in client.media(60)]
        client.close()
        return made

    well = payloads()
    camera.corrupt(20, seed=1)
    first, second = payloads(), payloads()
    assert first == second
    assert 3 <= sum(one != other for one, other in zip(well, first, strict=True)) <= 25
    assert [len(one) for one in well] == [len(one) for one in first]


@pytest.mark.parametrize("seconds", [3600, -3600])
def test_jump_shifts_time_stamps_after_so_many_frames(camera: CameraHandle, bare: Bare, seconds: int) -> None:
    camera.jump(seconds, after_frames=10)
    client = bare(camera)
    client.play()
    apart = stamps_apart(client.pictures(14))
    assert apart == [TICKS] * 9 + [TICKS + seconds * 90_000 & 0xFFFF_FFFF] + [TICKS] * 3


def test_wrap_lets_time_stamps_pass_their_end(camera: CameraHandle, bare: Bare) -> None:
    camera.wrap(0.1)
    client = bare(camera)
    client.play()
    stamps = client.pictures(8)
    assert stamps[:6] == [(1 << 32) - 9000 + TICKS * n for n in range(5)] + [0]
    assert stamps_apart(stamps) == [TICKS] * 7


def test_constant_stamps_stand_still(camera: CameraHandle, bare: Bare) -> None:
    camera.stamps("constant")
    client = bare(camera)
    client.play()
    assert stamps_apart(client.pictures(6)) == [0] * 5
    camera.heal("timestamps")
    assert stamps_apart(client.pictures(6))[-1] == TICKS


def test_duplicate_stamps_come_twice(camera: CameraHandle, bare: Bare) -> None:
    camera.stamps("duplicate")
    client = bare(camera)
    client.play()
    assert stamps_apart(client.pictures(6)) == [0, 2 * TICKS, 0, 2 * TICKS, 0]


def reported_s(client: Any) -> Iterator[float]:
    """The time of day of its sender reports, in seconds since 1970."""
    for packet in client.packets():
        if packet.channel == 1:
            seconds, fraction = struct.unpack_from("!II", packet.payload, 8)
            yield seconds - NTP_EPOCH_S + fraction / 2**32


def test_a_wrong_clock_is_wrong_by_so_much(camera: CameraHandle, bare: Bare) -> None:
    camera.clock(-7200)
    client = bare(camera)
    client.play()
    reports = reported_s(client)
    first_s = next(reports)
    assert abs(first_s - camera.sent()[-1].wall_ns / 1e9) < 5
    camera.heal("clock")
    later_s = next(report_s for report_s in islice(reports, 20) if report_s > first_s + 60)
    assert 7199 < later_s - first_s < 7215


def test_a_false_rate_stands_in_the_description(camera: CameraHandle, bare: Bare) -> None:
    camera.declare(25)
    client = bare(camera)
    assert "a=framerate:25\r\n" in client.ask("DESCRIBE")[2]
    client.play()
    assert stamps_apart(client.pictures(4)) == [TICKS] * 3


def test_faults_of_one_camera_are_not_those_of_another(
    simulator: RtspSimulator, camera: CameraHandle, bare: Bare
) -> None:
    camera.silence()
    camera.refuse()
    other = bare(simulator.camera("h265"))
    other.play()
    assert len(other.media(30)) == 30


def test_handles_can_be_used_from_many_threads(simulator: RtspSimulator) -> None:
    def use(camera: CameraHandle) -> str:
        for second in range(20):
            camera.clock(second)
            assert camera.counts().boots >= 1
        camera.heal()
        return camera.name

    with ThreadPoolExecutor(6) as pool:
        names = list(pool.map(use, simulator.cameras))
    assert names == [camera.name for camera in simulator.cameras]


def test_scheduled_faults_begin_and_end_by_themselves(simulator: RtspSimulator) -> None:
    settings = simulator.camera("h264").settings
    fault = ScheduledFault(fault=Fault(name="refuse"), at_s=0.5, for_s=1.0)
    with RtspSimulator([settings], schedule=[fault]) as scheduled:
        port = scheduled.cameras[0].port
        until(lambda: not can_connect(port))
        until(lambda: can_connect(port))
