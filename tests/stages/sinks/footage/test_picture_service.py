"""Who asks for pictures gets an answer in bounded time, whatever others do who ask."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import structlog

from camgraph.pipeline.errors import EnvironmentProblem
from camgraph.pipeline.system.side_link import ask, framed
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


def test_who_waits_too_long_for_his_turn_is_told(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picture_service, "WITHIN_S", picture_service._FIND_S)
    client = connect()
    client.sendall(framed({"camera": "cam"}))
    assert b"try again" in client.recv(1000)


@pytest.mark.parametrize("wrong", [{}, [1], None, {"camera": 1}, {"camera": b"cam"}])
def test_wrong_requests_are_answered_in_words(service: Path, wrong: object) -> None:
    assert "expected" in ask(service, wrong, within_s=30)["error"]


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
            with client:
                client.recv(1000)
                client.sendall(framed({"jpeg": bytes(500)})[:-300])

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(EnvironmentProblem, match=r"broke off after \d+ of \d+ bytes"):
            ask_picture(tmp_path / "p", "cam")
        thread.join()
