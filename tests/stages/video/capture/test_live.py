"""Live cameras: a connection that drops is opened again, as a new epoch, and no password is ever logged."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, ClassVar

import pytest
import structlog

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.stage import Settings
from camgraph.pipeline.testing import HandContext
from camgraph.stages.messages import Frame
from camgraph.stages.video.capture import Camera, Capture
from camgraph.stages.video.live import retries
from camgraph.stages.video.live.live_camera import EPOCHS_OF_A_LIFE

MakeClip = Callable[..., Path]


class OneClipEachTime(BaseHTTPRequestHandler):
    """Sends the clip as fast as it goes, then hangs up. Asks for no password, and is given one."""

    clip: ClassVar[bytes] = b""
    refuse: ClassVar[int] = 0

    def do_GET(self) -> None:
        kind = type(self)
        if kind.refuse:
            kind.refuse -= 1
            self.send_error(503)
            return
        self.send_response(200)
        self.send_header("Content-Type", "video/mp2t")
        self.end_headers()
        self.wfile.write(self.clip)

    def log_message(self, *_: Any) -> None:
        """Says nothing."""


@pytest.fixture
def camera(make_clip: MakeClip) -> Iterator[str]:
    """The address of a camera that drops after 20 frames, with a password in it."""
    OneClipEachTime.clip = make_clip("a.ts", frames=20, options={"g": "5"}).read_bytes()
    OneClipEachTime.refuse = 0
    with ThreadingHTTPServer(("127.0.0.1", 0), OneClipEachTime) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://viewer:geheim@127.0.0.1:{server.server_port}/live?token=geheim"
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(retries, "LOST", retries.Backoff(0.02, 0.02))
    monkeypatch.setattr(retries, "LEAST_PAUSE_S", 0.02)


def source(url: str, **settings: Any) -> Capture:
    here = Path.cwd()
    return Capture(Settings(), "front", Camera(url=url, **settings), HandContext(here, here))


def take(capture: Capture, count: int, resume: Any = None) -> list[Frame]:
    stop = threading.Event()
    frames = capture.frames(stop, resume)
    taken = list(islice(frames, count))
    stop.set()
    assert list(frames) == []
    return taken


def states_of(capture: Capture) -> list[tuple[str, str, str]]:
    assert isinstance(capture.context, HandContext)
    return capture.context.camera_states


def test_a_camera_that_drops_comes_back_as_a_new_epoch(camera: str) -> None:
    with structlog.testing.capture_logs() as logs:
        frames = take(capture := source(camera), 45)
    states = states_of(capture)
    epochs = [frame.stamp.epoch for frame in frames]
    assert epochs == sorted(epochs)
    assert set(epochs) == {0, 1, 2}
    for epoch in (0, 1):
        assert [f.stamp.seq for f in frames if f.stamp.epoch == epoch] == list(range(epochs.count(epoch)))
    assert states[:3] == [("front", "connecting", ""), ("front", "live", ""), ("front", "lost", states[2][2])]
    assert states[2][2].startswith("http://***@127.0.0.1:")
    assert "/live?***: " in states[2][2]
    assert len(states) >= 5
    assert "geheim" not in f"{states} {logs}"


def test_time_is_that_of_arrival(camera: str) -> None:
    before, wall = time.monotonic_ns(), time.time_ns()
    stamps = [frame.stamp for frame in take(source(camera), 25)]
    times = [stamp.time_ns for stamp in stamps]
    assert times == sorted(times)
    assert before <= times[0] <= times[-1] <= time.monotonic_ns()
    assert all(stamp.captured_ns == stamp.time_ns for stamp in stamps)
    assert wall <= stamps[0].wall_ns <= time.time_ns()


def test_the_rate_is_cut_by_the_cameras_own_time(camera: str) -> None:
    stamps = [f.stamp for f in take(source(camera, max_fps=5), 6)]
    assert [s.seq for s in stamps] == list(range(6))
    assert {b.pts - a.pts for a, b in pairwise(stamps)} == {18000}


def test_a_restart_is_a_new_epoch(camera: str) -> None:
    [last] = take(source(camera), 1)
    [again] = take(source(camera), 1, last.stamp)
    assert again.stamp.epoch == EPOCHS_OF_A_LIFE
    [later] = take(source(camera), 1, last.stamp._replace(epoch=5 * EPOCHS_OF_A_LIFE))
    assert later.stamp.epoch == 5 * EPOCHS_OF_A_LIFE + 1


def test_a_pause_is_a_new_epoch_of_the_same_life(camera: str) -> None:
    capture = source(camera)
    [last] = take(capture, 1)
    [again] = take(capture, 1, last.stamp)
    assert again.stamp.epoch == 1
    assert isinstance(capture.context, HandContext)
    assert capture.context.camera_facts["front"]["connections"] == 2


def test_readded_camera_has_new_epochs(camera: str) -> None:
    """In the same process or in another one, whose readers know nothing of it any more."""
    epochs = [frame.stamp.epoch for _ in range(2) for frame in take(source(camera), 25)]
    assert sorted(set(epochs)) == [0, 1, EPOCHS_OF_A_LIFE, EPOCHS_OF_A_LIFE + 1]


def test_a_camera_that_is_absent_at_first_is_waited_for(camera: str) -> None:
    OneClipEachTime.refuse = 2
    capture = source(camera)
    [frame] = take(capture, 1)
    assert frame.stamp.epoch == 0
    assert [state for _, state, _ in states_of(capture)] == ["connecting", "lost", "live"]
    assert "geheim" not in str(states_of(capture))


def test_enough_is_enough(camera: str) -> None:
    stop = threading.Event()
    frames = list(source(camera, duration_s=0.001, max_fps=1).frames(stop, None))
    assert len(frames) <= 2
    assert not stop.is_set()


@pytest.mark.parametrize("answers", [True, False], ids=["stalls", "is not there"])
def test_waiting_for_a_camera_gives_signs_of_life(
    make_clip: MakeClip, monkeypatch: pytest.MonkeyPatch, answers: bool
) -> None:
    monkeypatch.setattr(retries, "LOST", retries.Backoff(2.0, 2.0))
    stop = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        if answers:
            clip = make_clip("a.ts", frames=20, options={"g": "5"}).read_bytes()
            threading.Thread(target=answer_and_stall, args=(server, clip, stop), daemon=True).start()
        else:
            server.close()
        camera = source(f"http://127.0.0.1:{port}/")
        threading.Timer(2.5, stop.set).start()
        frames = list(camera.frames(stop, None))
    assert bool(frames) == answers
    assert isinstance(camera.context, HandContext)
    signs = [*camera.context.signs, time.monotonic()]
    assert signs[-1] - signs[0] > 1.5
    assert max(later - earlier for earlier, later in pairwise(signs)) < 1.2


def answer_and_stall(server: socket.socket, clip: bytes, stop: threading.Event) -> None:
    connection, _ = server.accept()
    with connection:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: video/mp2t\r\n\r\n" + clip)
        stop.wait(20)


def test_unknown_protocol_is_not_retried() -> None:
    with pytest.raises(UserError, match=r"^foo://\*\*\*@127\.0\.0\.1/x: .* does not open this protocol") as caught:
        take(source("foo://viewer:geheim@127.0.0.1/x"), 1)
    assert "geheim" not in str(caught.value)
