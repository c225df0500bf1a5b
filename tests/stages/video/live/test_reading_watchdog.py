"""What the thread beside the reading one says, and whom it pulls out."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import av.logging
import pytest
from camgraph_test_stages.waiting import until

from camgraph.pipeline.testing import HandContext
from camgraph.stages.video.ffmpeg_log import listening
from camgraph.stages.video.live.camera_problems import Dropped
from camgraph.stages.video.live.camera_reporter import CameraReporter
from camgraph.stages.video.live.reading_watchdog import STOP_GRACE_S, ReadingWatchdog
from camgraph.stages.video.live.sockets import Peer

pytestmark = pytest.mark.slow
WITHIN_S = 60.0


class Line(NamedTuple):
    """A watchdog, the socket that it holds, and what was said."""

    watchdog: ReadingWatchdog
    socket: socket.socket
    context: HandContext
    stop: threading.Event

    def received_in_s(self) -> float:
        """How long a read took that nobody answers: until the socket was shut down."""
        begun = time.monotonic()
        self.socket.settimeout(WITHIN_S)
        assert self.socket.recv(1) == b""
        return time.monotonic() - begun


@pytest.fixture
def line() -> Iterator[Line]:
    """Of a camera that accepts and is silent; one second without a packet is a stall."""
    context, stop = HandContext(Path.cwd(), Path.cwd()), threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        with socket.create_connection(address, WITHIN_S) as made:
            with ReadingWatchdog(CameraReporter("cam", context), stop, frozenset({Peer(*address)}), 1.0) as watchdog:
                yield Line(watchdog, made, context, stop)


def test_who_overstays_a_lease_is_pulled_out(line: Line) -> None:
    with line.watchdog.lease(0.5):
        took_s = line.received_in_s()
    assert 0.4 < took_s < 30


def test_who_does_not_hear_a_stop_is_pulled_out(line: Line) -> None:
    line.stop.set()
    with line.watchdog.lease(WITHIN_S):
        took_s = line.received_in_s()
    assert STOP_GRACE_S * 0.9 < took_s < 30


def test_a_stop_does_not_shorten_what_belongs_to_it(line: Line) -> None:
    line.stop.set()
    with line.watchdog.lease(2.0, heeds_stop=False):
        took_s = line.received_in_s()
    assert took_s > 1.8


def test_signs_of_life_come_within_a_lease_alone(line: Line) -> None:
    with line.watchdog.lease(WITHIN_S):
        until(lambda: len(line.context.signs) >= 3)
    reported = len(line.context.signs)
    line.socket.settimeout(1.0)
    with pytest.raises(TimeoutError):
        line.socket.recv(1)
    assert len(line.context.signs) <= reported + 1


def test_silence_after_a_packet_is_a_stall(line: Line) -> None:
    with line.watchdog.lease(WITHIN_S):
        until(lambda: len(line.context.signs) >= 7)
        assert line.context.camera_states == []
        line.watchdog.note_arrival()
        until(lambda: bool(line.context.camera_states))
    assert line.context.camera_states == [("cam", "stalled", "it is connected, and nothing came for 1 s")]


def test_the_log_is_kept_short_while_no_packet_comes() -> None:
    context = HandContext(Path.cwd(), Path.cwd())
    with listening() as log:
        with ReadingWatchdog(CameraReporter("cam", context), threading.Event(), frozenset(), 1.0, log) as watchdog:
            with watchdog.lease(WITHIN_S):
                av.logging.log(av.logging.WARNING, "rtsp", "RTP: missed 1 packets")
                until(lambda: log.lines == 0)
        assert log.take() == {"loss"}


def test_without_another_thread_the_camera_is_tried_later(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    context = HandContext(Path.cwd(), Path.cwd())
    watchdog = ReadingWatchdog(CameraReporter("cam", context), threading.Event(), frozenset(), 1.0)
    monkeypatch.setattr(threading.Thread, "start", fail)
    with pytest.raises(Dropped, match="no thread can be started"):
        watchdog.__enter__()
