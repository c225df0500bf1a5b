"""Who asks for pictures gets an answer in bounded time, whatever others do who ask."""

from __future__ import annotations

import os
import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path

import pytest
import structlog
from camgraph_test_stages.waiting import until
from structlog.testing import capture_logs

from camgraph.pipeline.errors import EnvironmentProblem, UserError
from camgraph.stages.sinks.footage import picture_service
from camgraph.stages.sinks.footage.picture_service import MadePictures, PictureService, ask_picture
from camgraph.stages.video.packets import Moment, Packet

Connect = Callable[[], socket.socket]


def nothing(_: str, __: Moment | None) -> Sequence[Packet]:
    return ()


@contextmanager
def serving(place: Path) -> Iterator[Path]:
    service = PictureService(place, nothing, structlog.get_logger())
    service.open()
    try:
        yield place
    finally:
        service.close()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Path]:
    with serving(tmp_path / "pictures") as place:
        yield place


@pytest.fixture
def connect(service: Path) -> Iterator[Connect]:
    with ExitStack() as stack:

        def connected() -> socket.socket:
            client = stack.enter_context(socket.socket(socket.AF_UNIX))
            client.connect(str(service))
            client.settimeout(30)
            return client

        yield connected


@pytest.mark.parametrize("words", [b"", b'{"camera": '])
def test_silent_clients_keep_nobody_waiting(service: Path, connect: Connect, words: bytes) -> None:
    """More than there is room for: `ask_picture` waits for twice the time of one answer."""
    for _ in range(40):
        connect().sendall(words)
    with pytest.raises(UserError, match="no packets of cam"):
        ask_picture(service, "cam")


def test_a_silent_client_is_told_and_parted_with(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picture_service, "WITHIN_S", 0.1)
    silent = connect().makefile("rb")
    assert b"within 3 s" in silent.readline()
    assert silent.readline() == b""


def test_a_request_in_pieces_has_one_bound(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each piece comes in time, and all of them do not."""
    monkeypatch.setattr(picture_service, "WITHIN_S", 0.5)
    client = connect()

    def is_parted() -> bool:
        try:
            client.sendall(b" ")
        except OSError:
            return True
        return False

    until(is_parted, every_s=0.05)


def test_who_waits_too_long_for_his_turn_is_told(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picture_service, "WITHIN_S", picture_service._FIND_S)
    client = connect()
    client.sendall(b'{"camera": "cam"}\n')
    assert b"try again" in client.makefile("rb").readline()


def test_without_descriptors_it_waits_and_then_answers(service: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried_s: list[float] = []
    accept = socket.socket.accept

    def noted(server: socket.socket) -> tuple[socket.socket, object]:
        tried_s.append(time.monotonic())
        return accept(server)

    monkeypatch.setattr(socket.socket, "accept", noted)
    with socket.socket(socket.AF_UNIX) as client, capture_logs() as logged:
        with without_descriptors():
            client.connect(str(service))
            until(lambda: len(tried_s) >= 3)
            failed_s = tried_s[:3]
        client.settimeout(30)
        client.sendall(b'{"camera": "cam"}\n')
        assert b"no packets" in client.makefile("rb").readline()
    assert min(b - a for a, b in pairwise(failed_s)) > 0.1
    assert [one["event"] for one in logged] == ["picture_client_not_accepted"]


@contextmanager
def without_descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_the_newest_picture_of_every_camera_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wall of a hundred cameras has each made once, and not anew for each who looks."""
    made = MadePictures()
    for camera in range(100):
        made.keep((f"c{camera}", 0, 1), ({}, bytes(1000)), is_newest=True)
    assert all(made.get((f"c{camera}", 0, 1)) for camera in range(100))
    made.keep(("c0", 0, 2), ({}, bytes(1000)), is_newest=True)
    assert made.get(("c0", 0, 1)) is None
    for pts in range(50):
        made.keep(("c1", 1, pts), ({}, b"x"), is_newest=False)
    assert [pts for pts in range(50) if made.get(("c1", 1, pts))] == list(range(34, 50))
    assert made.get(("c1", 0, 1)), "pictures of other moments take no newest one's place"
    monkeypatch.setattr("camgraph.stages.sinks.footage.picture_service._MOST_NEWEST_BYTES", 50_000)
    made.keep(("c50", 0, 2), ({}, bytes(1000)), is_newest=True)
    kept = [camera for camera in range(1, 100) if camera != 50 and made.get((f"c{camera}", 0, 1))]
    assert len(kept) == 48
    assert kept[-1] == 99
    assert made.get(("c0", 0, 2)), "those that were asked for last stay"
    made.keep(("large", 0, 1), ({}, bytes(1 << 20)), is_newest=True)
    assert made.get(("large", 0, 1))
    assert len(made._newest) == 1


def test_a_picture_that_breaks_off_is_none(tmp_path: Path) -> None:
    """A service that is late ends the connection: half a picture must not pass for one."""
    with socket.socket(socket.AF_UNIX) as late:
        late.bind(str(tmp_path / "p"))
        late.listen()

        def answer() -> None:
            client, _ = late.accept()
            with client, client.makefile("rb") as request:
                request.readline()
                client.sendall(b'{"bytes": 500}\n' + bytes(200))

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(EnvironmentProblem, match="broke off after 200 of 500 bytes"):
            ask_picture(tmp_path / "p", "cam")
        thread.join()
