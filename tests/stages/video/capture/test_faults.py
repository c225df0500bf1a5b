"""One camera of the simulator, one fault after the other: what is said of it, how it comes back, how it stops."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest

from camgraph.stages.video.live import retries, timeouts
from camgraph.tools.scenes.simulator import CameraHandle, CameraSettings, ClipSettings, RtspSimulator

Watch = Callable[..., Any]

PASSWORD = "ge/heim#1"
BACK_WITHIN_S = 30.0


def small(name: str, codec: Any = "h264", b_frames: int = 0, **settings: Any) -> CameraSettings:
    """A camera of little work, with a keyframe twice a second."""
    clip = ClipSettings(codec=codec, width=320, fps=20, seconds=1, gop=10, b_frames=b_frames)
    return CameraSettings(name=name, clip=clip, **settings)


@pytest.fixture(scope="module")
def simulator() -> Iterator[RtspSimulator]:
    cameras = [
        small("faulty", auth="digest", user="me", password=PASSWORD),
        small("basic", b_frames=2, auth="basic", user="me", password=PASSWORD),
        small("h265", "h265"),
        small("h265-b", "h265", b_frames=2),
    ]
    with RtspSimulator(cameras) as made:
        yield made


@pytest.fixture
def camera(simulator: RtspSimulator) -> Iterator[CameraHandle]:
    """One that is well again afterwards."""
    yield simulator.camera("faulty")
    simulator.camera("faulty").heal()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """Settings, and waits, with which a fault is over soon."""
    monkeypatch.setattr(timeouts, "AFTER_STALLED_S", 1.0)
    monkeypatch.setattr(retries, "BACKOFFS", dict.fromkeys(("gone", "unauthorised"), retries.Backoff(0.2, 0.4)))
    return {"connect_s": 1.5, "stalled_s": 1.0}


# --- without a fault


@pytest.mark.parametrize(
    ("name", "transport"), [("faulty", "tcp"), ("basic", "udp"), ("h265", "udp"), ("h265-b", "tcp")]
)
def test_every_kind_of_camera_is_seen(simulator: RtspSimulator, watch: Watch, name: str, transport: str) -> None:
    watching = watch(simulator.camera(name).url, transport=transport)
    watching.until_frames(5)
    assert watching.stop() < 2
    assert watching.states == ["connecting", "live"]
    codec = simulator.camera(name).settings.clip.codec
    expected = {"codec": codec, "size": "320x180", "fps_declared": 20.0, "transport": transport, "connections": 1}
    assert {key: watching.facts[key] for key in expected} == expected
    assert [stamp.seq for stamp in watching.stamps] == list(range(len(watching.stamps)))
    assert PASSWORD not in watching.reported


def test_what_is_declared_is_told_and_not_believed(
    simulator: RtspSimulator, watch: Watch, camera: CameraHandle
) -> None:
    camera.declare(8)
    watching = watch(camera.url)
    watching.until_frames(40)
    assert watching.facts["fps_declared"] == 8
    took_s = (watching.stamps[-1].time_ns - watching.stamps[0].time_ns) / 1e9
    assert (len(watching.stamps) - 1) / took_s > 12


# --- absent when it begins


ABSENT: dict[str, tuple[Callable[[CameraHandle], None], str, str]] = {
    "refuses": (lambda camera: camera.refuse(), "lost", "Connection refused"),
    "is silent": (lambda camera: camera.silence(), "lost", "no usable answer within 1.5 s (connect_s)"),
    "503": (lambda camera: camera.answer(503), "lost", "it answers DESCRIBE with 503 Service Unavailable"),
    "401": (lambda camera: camera.answer(401), "unauthorised", "refuses the user or password of `url`"),
    "404": (lambda camera: camera.answer(404), "gone", "no stream at the path of `url`"),
}


@pytest.mark.parametrize("fault", ABSENT)
def test_one_that_is_absent_is_named_and_comes_back(
    camera: CameraHandle, watch: Watch, impatient: dict[str, float], fault: str
) -> None:
    strike, state, words = ABSENT[fault]
    strike(camera)
    watching = watch(camera.url, **impatient)
    watching.until_state(state)
    tries = camera.counts().connections
    if fault != "refuses":
        camera.wait_for(lambda counts: counts.connections >= tries + 2)
    camera.heal()
    watching.until_state("live", within_s=BACK_WITHIN_S)
    assert watching.states == ["connecting", state, "live"]
    why = watching.context.camera_states[1][2]
    assert words in why
    assert f"rtsp://***@127.0.0.1:{camera.port}/faulty" in why
    assert PASSWORD not in watching.reported
    assert "ge%2F" not in watching.reported
    watching.until_frames()
    assert {stamp.epoch for stamp in watching.stamps} == {0}
    assert watching.longest_silence_s() < 2


def test_a_wrong_password_is_the_cameras_word(camera: CameraHandle, watch: Watch) -> None:
    watching = watch(camera.url.replace("ge%2F", "falsch"))
    watching.until_state("unauthorised")
    assert "falsch" not in watching.reported


def test_one_that_sends_nothing_from_the_start_is_stalled(
    camera: CameraHandle, watch: Watch, impatient: dict[str, float]
) -> None:
    camera.stall()
    watching = watch(camera.url, **impatient)
    watching.until_state("stalled")
    camera.heal()
    watching.until_state("live")
    assert watching.states == ["connecting", "stalled", "live"]


def test_constant_time_stamps_do_not_keep_it_from_opening(camera: CameraHandle, watch: Watch) -> None:
    camera.stamps("constant")
    watching = watch(camera.url)
    watching.until_frames(5)
    assert watching.states == ["connecting", "live"]


# --- lost in mid-stream

LOST: dict[str, tuple[Callable[[CameraHandle], None], str]] = {
    "fin": (lambda camera: camera.cut("fin"), "the stream ended"),
    "rst": (lambda camera: camera.cut("rst"), ""),
    "reboot": (lambda camera: camera.reboot(1.5), ""),
    "recode": (lambda camera: camera.recode("h265"), "can no longer be decoded"),
}


@pytest.mark.parametrize(
    ("fault", "transport"), [("fin", "tcp"), ("fin", "udp"), ("rst", "tcp"), ("reboot", "udp"), ("recode", "tcp")]
)
def test_one_that_ends_is_back_as_a_new_epoch(camera: CameraHandle, watch: Watch, fault: str, transport: str) -> None:
    strike, words = LOST[fault]
    watching = watch(camera.url, transport=transport)
    watching.until_frames()
    strike(camera)
    watching.until_state("lost", within_s=60)
    watching.until_state("live", within_s=BACK_WITHIN_S + 1.5)
    assert watching.states == ["connecting", "live", "lost", "live"]
    assert words in watching.context.camera_states[2][2]
    watching.until_frames()
    assert {stamp.epoch for stamp in watching.stamps} == {0, 1}
    assert [stamp.seq for stamp in watching.stamps if stamp.epoch == 1][:3] == [0, 1, 2]
    assert watching.facts["connections"] == 2
    assert watching.facts["codec"] == ("h265" if fault == "recode" else "h264")
    times = [stamp.time_ns for stamp in watching.stamps]
    assert times == sorted(times)


def test_one_that_stalls_and_goes_on_keeps_its_connection(camera: CameraHandle, watch: Watch) -> None:
    watching = watch(camera.url, stalled_s=1)
    watching.until_frames()
    camera.stall()
    watching.until_state("stalled", within_s=60)
    camera.heal()
    watching.until_state("live", within_s=BACK_WITHIN_S)
    watching.until_frames()
    assert watching.states == ["connecting", "live", "stalled", "live"]
    assert {stamp.epoch for stamp in watching.stamps} == {0}


def test_a_network_that_pauses_inside_a_packet_costs_nothing(camera: CameraHandle, watch: Watch) -> None:
    watching = watch(camera.url, transport="tcp")
    for pause_s in (0.7, 1.3, 2.2):
        watching.until_frames()
        before = len(watching.stamps)
        camera.hold(pause_s)
        watching.until(lambda: len(watching.stamps) > before + 25 * pause_s)  # noqa: B023 - called within this round
    assert watching.states == ["connecting", "live"]
    assert [stamp.seq for stamp in watching.stamps] == list(range(len(watching.stamps)))
    assert watching.facts["connections"] == 1


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_reconnects_after_half_open_connection(
    camera: CameraHandle, watch: Watch, impatient: dict[str, float], transport: str
) -> None:
    watching = watch(camera.url, transport=transport, **impatient)
    watching.until_frames()
    camera.half_open()
    watching.until_state("lost", within_s=60)
    watching.until_state("live", within_s=BACK_WITHIN_S)
    assert watching.states == ["connecting", "live", "stalled", "lost", "live"]
    assert "nothing came for 2 s" in watching.context.camera_states[3][2]
    watching.until(lambda: watching.stamps[-1].epoch == 1)


def test_another_size_is_another_size_and_nothing_else(camera: CameraHandle, watch: Watch) -> None:
    watching = watch(camera.url)
    watching.until_frames()
    camera.resize(640, 360)
    watching.until(lambda: watching.sizes[-1] == (640, 360))
    assert set(watching.sizes) == {(320, 180), (640, 360)}
    assert watching.states == ["connecting", "live"]
    assert watching.facts["size"] == "640x360"
    assert watching.facts["connections"] == 1


# --- a stop


WAITS: dict[str, tuple[Callable[[CameraHandle], None], bool]] = {
    "plays": (lambda camera: None, True),
    "stalls": (lambda camera: camera.stall(), True),
    "stalls, udp": (lambda camera: camera.stall(), True),
    "has forgotten it": (lambda camera: camera.half_open(), True),
    "refuses": (lambda camera: camera.refuse(), False),
    "is silent": (lambda camera: camera.silence(), False),
    "is not found": (lambda camera: camera.answer(404), False),
}


@pytest.mark.parametrize("fault", WAITS)
def test_a_stop_is_heard_in_every_wait(camera: CameraHandle, watch: Watch, fault: str) -> None:
    strike, comes_first = WAITS[fault]
    if not comes_first:
        strike(camera)
    connections = camera.counts().connections
    transport = "udp" if fault.endswith("udp") else "tcp"
    watching = watch(camera.url, stalled_s=1, connect_s=20, transport=transport)
    if comes_first:
        watching.until_frames()
        strike(camera)
    if fault.startswith("stalls") or fault == "has forgotten it":
        watching.until_state("stalled")
    if fault == "is silent":
        camera.wait_for(lambda counts: counts.connections > connections)
    if fault in ("refuses", "is not found"):
        watching.until_state("lost", "gone")
    reported = watching.states
    assert watching.stop() < 2
    assert watching.states == reported


def test_a_neighbour_in_the_same_process_is_not_disturbed(
    simulator: RtspSimulator, camera: CameraHandle, watch: Watch
) -> None:
    neighbour = watch(simulator.camera("h265").url)
    neighbour.until_frames()
    camera.silence()
    connections = camera.counts().connections
    watching = watch(camera.url, connect_s=20)
    camera.wait_for(lambda counts: counts.connections > connections)
    assert watching.stop() < 2, "it was not pulled out"
    neighbour.until_frames(20)
    assert neighbour.states == ["connecting", "live"]
    assert neighbour.facts["connections"] == 1
    gaps_s = [(later.time_ns - earlier.time_ns) / 1e9 for earlier, later in pairwise(neighbour.stamps)]
    assert max(gaps_s) < 1
