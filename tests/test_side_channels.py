"""Hostile clients of every side channel: whatever they do, the next client is served, and they are parted with."""

from __future__ import annotations

import io
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
import structlog
from av.video.stream import VideoStream
from camgraph_test_stages.waiting import until
from tests.stages.rules.test_people_tap import SETTINGS, tracks

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.supervision.control import ControlServer
from camgraph.pipeline.supervision.control_client import exchange
from camgraph.pipeline.system.local_socket import short_address
from camgraph.pipeline.system.side_channel import SideChannel
from camgraph.pipeline.system.side_link import Link, follow, framed
from camgraph.pipeline.testing import opened, stamp
from camgraph.stages.messages import Tensor
from camgraph.stages.people.inference.model_service import ModelService, ask_model
from camgraph.stages.rules import people_tap
from camgraph.stages.rules.rules import Rules
from camgraph.stages.sinks.footage.picture_service import PictureService, ask_picture
from camgraph.stages.video.packets import PacketReader
from camgraph.stages.video.tap import PacketTap

WITHIN_S = 60.0
LOG = structlog.get_logger()


@dataclass(frozen=True)
class Served:
    """A channel at work. `serves`: that a client of good will gets what it asks for; `good`: its request."""

    path: Path
    channel: SideChannel
    serves: Callable[[], object]
    good: Any

    def connected(self) -> socket.socket:
        client = socket.socket(socket.AF_UNIX)
        with short_address(self.path) as address:
            client.connect(address)
        client.settimeout(WITHIN_S)
        return client


def turning(stack: ExitStack, turn: Callable[[], object]) -> None:
    """Give a channel its turns in a thread, as its stage does."""
    over = threading.Event()

    def work() -> None:
        while not over.wait(0.002):
            turn()

    thread = threading.Thread(target=work)
    thread.start()
    stack.callback(thread.join)
    stack.callback(over.set)


def pictures(folder: Path, stack: ExitStack) -> Served:
    service = PictureService(folder / "pictures", lambda *_: (), LOG)
    stack.callback(service.close)
    service.open()

    def serves() -> None:
        with pytest.raises(UserError, match="no packets of cam are kept"):
            ask_picture(folder / "pictures", "cam")

    return Served(folder / "pictures", service._channel, serves, {"camera": "cam"})


def model(folder: Path, stack: ExitStack) -> Served:
    service = ModelService(folder / "model-0", lambda asked: {"out": asked.arrays_by_name["image"]}, LOG)
    stack.callback(service.close)
    service.open()
    picture = np.zeros((1, 4, 4, 3), np.uint8)
    asked = Tensor(stamp(), {"image": picture}, np.array([[1, 1, 0, 0]], np.float32), (4, 4), (4, 4))
    good = {"shape": [1, 4, 4, 3], "fit": [1, 1, 0, 0], "frame_size": [4, 4], "pixels": bytes(48)}
    return Served(folder / "model-0", service._channel, lambda: ask_model(folder / "model-0", asked), good)


def control(folder: Path, stack: ExitStack) -> Served:
    server = stack.enter_context(closing(ControlServer(folder / "control", lambda request: request)))
    turning(stack, server.serve)

    def serves() -> None:
        assert exchange(folder / "control", '{"op": "a"}', owner=os.getuid(), within_s=WITHIN_S) == '{"op": "a"}'

    return Served(folder / "control", server._channel, serves, json.dumps({"op": "a" * 100_000}))


def followed(path: Path, message: Any = None) -> Link:
    """As those who follow do: they try again while too many wait at the socket."""

    def tried() -> Link | None:
        try:
            return follow(path, message)
        except BlockingIOError:
            return None

    link = until(tried)
    link.connection.settimeout(WITHIN_S)
    return link


def people(folder: Path, stack: ExitStack) -> Served:
    stage = stack.enter_context(opened(Rules, SETTINGS, folder=folder))
    [path] = folder.rglob(f"*{people_tap.SUFFIX}")
    numbers = count()
    turning(stack, lambda: list(stage.process([tracks(next(numbers), x=350.0)])))

    def serves() -> None:
        with closing(followed(path, "cam")) as link:
            assert b'"zones"' in until(lambda: list(link.receive()))[0]

    return Served(path, stage._tap._channel, serves, "cam")


def packets(folder: Path, stack: ExitStack) -> Served:
    file, path = io.BytesIO(), folder / "cam.packets"
    with av.open(file, "w", format="nut") as container:
        stream = container.add_stream("mpeg4", rate=25, options={"g": "2"})
        assert isinstance(stream, VideoStream)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for grey in (0, 99):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(np.full((48, 64, 3), grey, np.uint8))))
        container.mux(stream.encode())
    opened_file = stack.enter_context(av.open(io.BytesIO(file.getvalue())))
    kept = [packet for packet in opened_file.demux(video=0) if packet.size]
    tap, numbers = PacketTap(path, LOG, patient=False), count()
    stack.callback(tap.close)
    tap.offer(kept[0], 0)
    turning(stack, lambda: tap.offer(kept[next(numbers) % len(kept)], 0))

    def serves() -> None:
        with closing(followed(path)) as link:
            reader = PacketReader()
            until(lambda: list(reader.packets(link.receive())))

    return Served(path, tap._channel, serves, None)


CHANNELS = [pictures, model, control, people, packets]


@pytest.fixture(params=CHANNELS, ids=lambda make: make.__name__)
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    with ExitStack() as stack:
        yield request.param(tmp_path, stack)


def ends(client: socket.socket) -> bool:
    """Whether the channel parts with the client, which reads what comes."""
    until_s = time.monotonic() + WITHIN_S
    with suppress(ConnectionResetError):
        while client.recv(1 << 16):
            assert time.monotonic() < until_s
    return True


@pytest.mark.parametrize(
    "sent",
    [
        b"\0\0\0\0",
        b"\0\0\0\1\xc1",
        b"\0\0\0\5\xdd\xff\xff\xff\xff",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\xff" * 20,
        b"x" * 20_000,
    ],
    ids=["nothing", "no value", "a list without end", "http", "ff", "text"],
)
def test_nonsense_ends_its_client(served: Served, sent: bytes) -> None:
    with served.connected() as client:
        with suppress(OSError):  # it is parted with while it speaks
            client.sendall(sent)
        assert ends(client)
    served.serves()


def test_a_request_that_is_too_long_ends_its_client(served: Served) -> None:
    with served.connected() as client:
        client.sendall((served.channel._most_request + 1).to_bytes(4, "big"))
        assert ends(client)
    served.serves()


def test_many_who_say_nothing_keep_nobody_waiting(served: Served) -> None:
    with ExitStack() as stack:
        for number in range(2 * served.channel._most_clients + 10):
            client = stack.enter_context(served.connected())
            with suppress(OSError):
                client.sendall(framed(served.good)[: number % 5])
        served.serves()


def test_many_who_read_nothing_keep_nobody_waiting(served: Served) -> None:
    with ExitStack() as stack:
        for _ in range(served.channel._most_clients + 10):
            client = stack.enter_context(served.connected())
            with suppress(OSError):
                client.sendall(framed(served.good))
        served.serves()
        assert len(served.channel._clients) <= served.channel._most_clients
        assert all(one.waiting <= max(served.channel.most_waiting, 1 << 20) for one in list(served.channel._clients))


def test_those_who_vanish_at_any_byte_harm_nobody(served: Served) -> None:
    request = framed(served.good)
    for size in {0, 1, 4, 5, len(request) - 1, len(request)}:
        with served.connected() as client:
            client.sendall(request[:size])
    served.serves()


def test_a_request_byte_by_byte_has_one_deadline(served: Served) -> None:
    """Each byte comes in time, and all of them do not."""
    served.channel.within_s = 0.5
    with served.connected() as client:
        client.sendall(b"\0\0\0")

        def is_parted() -> bool:
            try:
                client.sendall(b"\0" if served.channel._most_request < 100 else b"\x40")
            except OSError:
                return True
            return False

        until(is_parted, every_s=0.05)
    served.channel.within_s = WITHIN_S
    served.serves()


def test_a_second_request_ends_its_client(served: Served) -> None:
    """A client says what it wants once: it cannot fill the channel's memory later."""
    with served.connected() as client:
        with suppress(OSError):
            client.sendall(2 * framed(served.good))
            client.sendall(framed(served.good))
        assert ends(client)
    served.serves()


def test_a_socket_that_is_left_over_is_replaced(served: Served, tmp_path: Path) -> None:
    """Of a process that was killed: the path is there, and nobody listens."""
    left = tmp_path / "left"
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(str(left))
    again = SideChannel(left, lambda client: client.message, LOG, name="again", within_s=5, most_request=100)
    with closing(again):
        again.open()
        with closing(follow(left, "hello")) as link:
            again.turn()
            assert list(link.receive()) == ["hello"]
    assert not left.exists()
    served.serves()
