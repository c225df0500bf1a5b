"""How PyAV and FFmpeg behave where camgraph relies on it: a version that behaves otherwise shows here first."""

from __future__ import annotations

import os
import socket
import stat
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import av
import pytest

from camgraph.stages.video.camera import Camera
from camgraph.stages.video.live.options import options_of
from camgraph.stages.video.live.sockets import Peer, shut_down
from camgraph.tools.scenes.simulator import CameraHandle, CameraSettings, ClipSettings, RtspSimulator

Watch = Callable[..., Any]

PASSWORD = "geheim"


@pytest.fixture(scope="module")
def simulator() -> Iterator[RtspSimulator]:
    clip = ClipSettings(codec="h264", width=320, fps=20, seconds=1, gop=10)
    with RtspSimulator(
        [CameraSettings(name=name, clip=clip, auth="basic", user="me", password=PASSWORD) for name in "ab"]
    ) as made:
        yield made


@pytest.fixture
def camera(simulator: RtspSimulator) -> Iterator[CameraHandle]:
    yield simulator.camera("a")
    simulator.camera("a").heal()


def opened(camera: CameraHandle, read_s: float = 0.5) -> av.container.InputContainer:
    return av.open(camera.url, options=options_of(Camera(url=camera.url)), timeout=(5, read_s))


@pytest.mark.parametrize("how", ["fin", "rst"])
def test_a_server_that_ends_raises_nothing(camera: CameraHandle, how: str) -> None:
    with opened(camera) as container:
        packets = container.demux(container.streams.video[0])
        next(packets)
        camera.cut(how)  # type: ignore[arg-type]
        sizes = [packet.size for packet in packets]
    assert sizes[-1] == 0
    assert all(sizes[:-1])


def test_after_a_read_that_timed_out_rtsp_goes_on(camera: CameraHandle) -> None:
    with opened(camera) as container:
        packets = container.demux(container.streams.video[0])
        next(packets)
        camera.stall()
        with pytest.raises(av.ExitError):
            all(packets)
        camera.heal()
        assert next(container.demux(container.streams.video[0])).size > 0


@pytest.mark.parametrize("fault", ["refused", "unauthorised", "not found"])
def test_ffmpeg_error_text_has_password_but_not_strerror(camera: CameraHandle, fault: str) -> None:
    if fault == "refused":
        camera.refuse()
    else:
        camera.answer(401 if fault == "unauthorised" else 404)
    with pytest.raises(av.FFmpegError) as caught:
        opened(camera)
    assert PASSWORD in str(caught.value)
    assert PASSWORD in str(caught.value.filename)
    assert caught.value.strerror
    assert PASSWORD not in caught.value.strerror


def test_what_is_silent_ends_opening_as_if_it_were_invalid(camera: CameraHandle) -> None:
    camera.silence()
    begun = time.monotonic()
    with pytest.raises(av.InvalidDataError):
        av.open(camera.url, options={"rtsp_transport": "tcp"}, timeout=(1, 0.5))
    assert 0.9 < time.monotonic() - begun < 20


def test_another_codec_is_refused_packet_by_packet(camera: CameraHandle) -> None:
    with opened(camera) as container:
        packets = container.demux(container.streams.video[0])
        next(packets)
        camera.recode("h265")
        refused = 0
        for packet in packets:
            try:
                refused = 0 if packet.decode() else refused
            except av.InvalidDataError:
                refused += 1
            if refused == 15:
                break
        assert refused == 15


# --- sockets that are shut down from outside


def own_socket(port: int) -> socket.socket:
    """A copy of the socket of this process that is connected to that port."""
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - names alone are wanted
        try:
            copy = os.dup(int(name))
        except OSError:
            continue
        if not stat.S_ISSOCK(os.fstat(copy).st_mode):
            os.close(copy)
            continue
        found = socket.socket(fileno=copy)
        try:
            if found.family == socket.AF_INET and found.getpeername()[1] == port:
                return found
        except OSError:
            pass
        found.close()
    raise AssertionError(f"nothing here is connected to port {port}")


def fill(port: int) -> None:
    """Send through FFmpeg's socket until the other side, which does not read, has had no room for half a second."""
    with own_socket(port) as copy:
        full_since: float | None = None
        while full_since is None or time.monotonic() - full_since < 0.5:
            try:
                copy.send(b"x" * 4096, socket.MSG_DONTWAIT)
                full_since = None
            except BlockingIOError:
                full_since = full_since or time.monotonic()


def test_a_close_can_block_and_a_shutdown_ends_it(camera: CameraHandle) -> None:
    container = opened(camera)
    packets = container.demux(container.streams.video[0])
    next(packets)
    camera.half_open()
    fill(camera.port)
    packets.close()  # type: ignore[attr-defined]
    closing = threading.Thread(target=container.close)
    closing.start()
    closing.join(2)
    assert closing.is_alive(), "a close no longer blocks: then it needs no bound"
    assert shut_down({Peer("127.0.0.1", camera.port)}) == 1
    closing.join(5)
    assert not closing.is_alive()


def test_a_close_that_blocks_is_bounded(camera: CameraHandle, watch: Watch) -> None:
    watching = watch(camera.url)
    watching.until_frames()
    camera.half_open()
    fill(camera.port)
    assert watching.stop() < 4
    watching.until(lambda: not is_connected(camera.port))


def is_connected(port: int) -> bool:
    """Whether a socket of this process is."""
    try:
        own_socket(port).close()
    except AssertionError:
        return False
    return True


def test_a_shutdown_ends_a_read_and_leaves_the_neighbour_alone(simulator: RtspSimulator, camera: CameraHandle) -> None:
    neighbour = simulator.camera("b")
    with opened(camera, 30) as container, opened(neighbour, 30) as other:
        packets, others = container.demux(container.streams.video[0]), other.demux(other.streams.video[0])
        next(packets)
        camera.stall()
        ended = threading.Thread(target=all, args=(packets,))
        ended.start()
        assert shut_down({Peer("127.0.0.1", camera.port)}) == 1
        ended.join(5)
        assert not ended.is_alive()
        assert all(next(others).size for _ in range(30))


def test_a_shutdown_ends_a_connect_that_nobody_answers() -> None:
    """A queue of connections that is full: the kernel drops what comes, as a network without a camera does."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        address = server.getsockname()
        waiting = [socket.socket() for _ in range(3)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(address)
        failed: list[Exception] = []
        connecting = threading.Thread(target=connect, args=(f"rtsp://127.0.0.1:{address[1]}/x", failed))
        connecting.start()
        end = time.monotonic() + 10
        while connecting.is_alive():
            assert time.monotonic() < end
            shut_down({Peer(*address)})
            connecting.join(0.1)
        assert len(failed) == 1
        for one in waiting:
            one.close()


def connect(url: str, failed: list[Exception]) -> None:
    try:
        av.open(url, options={"rtsp_transport": "tcp"}, timeout=(60, 1))
    except (av.FFmpegError, OSError) as error:
        failed.append(error)
