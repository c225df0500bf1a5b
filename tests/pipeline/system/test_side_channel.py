"""A channel beside the run: answers in bounded time, whatever others do, and bounded room for those who follow."""

from __future__ import annotations

import os
import resource
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgpack
import pytest
import structlog
from camgraph_test_stages.waiting import until
from structlog.testing import capture_logs

from camgraph.pipeline.errors import WireError
from camgraph.pipeline.system.side_channel import MOST_CLIENTS, Client, SideChannel
from camgraph.pipeline.system.side_link import Link, ask, follow, framed

WITHIN_S = 60.0
MOST = 10_000_000
Connect = Callable[[], socket.socket]
BEGUN = struct.pack(">I", 9)
"""The beginning of a request."""


def answer(client: Client) -> Any:
    """What was asked, or many bytes."""
    match client.message:
        case {"bug": True}:
            raise ZeroDivisionError
        case {"odd": True}:
            return object()
        case {"many": int(count)}:
            return bytes(count)
        case {"said": said}:
            return {"heard": said}
    raise WireError("expected something said")


def channel_of(
    path: Path, within_s: float = 3.0, handler: Callable[[Client], Any] = answer, **more: Any
) -> SideChannel:
    limits = {"most_request": MOST} | more
    return SideChannel(path, handler, structlog.get_logger(), name="test", within_s=within_s, **limits)


@contextmanager
def channel_at(path: Path, within_s: float) -> Iterator[Path]:
    channel = channel_of(path, within_s)
    channel.serve()
    try:
        yield path
    finally:
        channel.close()
        assert not path.exists()


@pytest.fixture
def within_s() -> float:
    return 3.0


@pytest.fixture
def path(tmp_path: Path, within_s: float) -> Iterator[Path]:
    with channel_at(tmp_path / "channel", within_s) as place:
        yield place


@pytest.fixture
def connect(path: Path) -> Iterator[Connect]:
    with ExitStack() as stack:

        def connected() -> socket.socket:
            client = stack.enter_context(socket.socket(socket.AF_UNIX))
            client.connect(str(path))
            client.settimeout(WITHIN_S)
            return client

        yield connected


def is_answered(path: Path, said: Any = "hello") -> bool:
    return bool(ask(path, {"said": said}, within_s=WITHIN_S) == {"heard": said})


def heard(client: socket.socket) -> Any:
    """The next message."""
    link = Link(client)
    while not (messages := list(link.receive())):
        pass
    return messages[0]


def test_a_message_is_answered_by_a_message(path: Path) -> None:
    assert is_answered(path)
    assert is_answered(path, os.urandom(5 << 20))
    assert is_answered(path, [None, True, -1.5, {"a": [1, b""]}])


@pytest.mark.parametrize(
    "sent",
    [
        b"\0\0\0\0",
        b"no message\n",
        b'{"said": 1}\n',
        framed(7),
        framed({"said": 1})[:-1] + b"\xc1",
        BEGUN + b"\xdd\xff\xff\xff\xff\xdd\xff\xff\xff",
        struct.pack(">I", 5000) + b"\x91" * 5000,
        struct.pack(">I", MOST + 1),
        b"\xff" + bytes(8) + b"\x7f",
    ],
)
def test_nonsense_is_answered_in_words(path: Path, connect: Connect, sent: bytes) -> None:
    client = connect()
    client.sendall(sent)
    assert "expected" in heard(client)["error"]
    assert is_answered(path)


@pytest.mark.parametrize("kind", ["bug", "odd"])
def test_a_bug_costs_one_answer(path: Path, kind: str) -> None:
    with capture_logs() as logged:
        assert "the log of the run" in ask(path, {kind: True}, within_s=WITHIN_S)["error"]
    assert [(one["event"], one["channel"]) for one in logged] == [("answer_failed", "test")]
    assert is_answered(path)


def test_who_goes_in_the_middle_harms_nobody(path: Path, connect: Connect) -> None:
    for part in (b"", b"\0", BEGUN, BEGUN + b"few", framed({"many": 10_000_000})):
        client = connect()
        client.sendall(part)
        client.close()
    assert is_answered(path)


@pytest.mark.parametrize("words", [b"", b"\0\0", BEGUN + b"few"])
def test_silent_clients_keep_nobody_waiting(path: Path, connect: Connect, words: bytes) -> None:
    for _ in range(3 * MOST_CLIENTS):
        connect().sendall(words)
    assert is_answered(path)


def test_clients_that_read_nothing_keep_nobody_waiting(path: Path, connect: Connect) -> None:
    for _ in range(MOST_CLIENTS - 1):
        connect().sendall(framed({"many": 5_000_000}))
    assert is_answered(path)


@pytest.mark.parametrize("within_s", [0.2])
def test_a_silent_client_is_told_and_parted_with(connect: Connect) -> None:
    silent = connect()
    assert "within 0.2 s" in heard(silent)["error"]
    assert silent.recv(1) == b""


@pytest.mark.parametrize("within_s", [0.5])
def test_a_client_that_reads_nothing_is_parted_with(connect: Connect) -> None:
    client = connect()
    client.sendall(framed({"many": 50_000_000}))
    poller = select.poll()
    poller.register(client, select.POLLRDHUP)
    until(lambda: bool(poller.poll(0)))
    got = 0
    with suppress(ConnectionResetError):
        while piece := client.recv(1 << 20):
            got += len(piece)
    assert got < 50_000_000


@pytest.mark.parametrize("within_s", [0.5])
@pytest.mark.parametrize("beginning", [b"", struct.pack(">I", 100_000)])
def test_a_request_in_pieces_has_one_bound(path: Path, connect: Connect, beginning: bytes) -> None:
    """Each piece comes in time, and all of them do not."""
    client = connect()
    client.sendall(beginning)

    def is_parted() -> bool:
        try:
            client.sendall(b"\0")
        except OSError:
            return True
        return False

    until(is_parted, every_s=0.05)
    assert is_answered(path)


@pytest.mark.parametrize("within_s", [1000.0])
def test_it_closes_at_once_though_a_client_sends_drop_by_drop(tmp_path: Path, within_s: float) -> None:
    stop = threading.Event()

    def drip(client: socket.socket) -> None:
        with suppress(OSError):
            while not stop.wait(0.05):
                client.sendall(b"\0")

    with socket.socket(socket.AF_UNIX) as client:
        with channel_at(tmp_path / "dripped", within_s) as place:
            client.connect(str(place))
            client.sendall(struct.pack(">I", 100_000))
            thread = threading.Thread(target=drip, args=(client,))
            thread.start()
            assert is_answered(place)
            closing_s = time.monotonic()
        assert time.monotonic() - closing_s < WITHIN_S
        stop.set()
        thread.join(WITHIN_S)


def test_it_closes_at_once_though_nobody_asks(tmp_path: Path) -> None:
    """Its thread sleeps until somebody comes."""
    with channel_at(tmp_path / "idle", 1000.0) as place:
        assert is_answered(place)


@pytest.mark.parametrize("within_s", [0.4])
def test_time_for_another_answer_costs_no_client_its_own(tmp_path: Path, within_s: float) -> None:
    """Nobody reads from it while the thread makes an answer."""
    begun = threading.Event()

    def slowly(client: Client) -> Any:
        begun.set()
        time.sleep(3 * within_s if client.message["slow"] else 0)
        return client.message

    channel = channel_of(tmp_path / "slow", within_s, slowly)
    channel.serve()
    with ExitStack() as stack:
        stack.callback(channel.close)
        waiting, slow = (stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(2))
        for client in (waiting, slow):
            client.settimeout(WITHIN_S)
            client.connect(str(tmp_path / "slow"))
        request = framed({"slow": False})
        waiting.sendall(request[:3])
        slow.sendall(framed({"slow": True}))
        assert begun.wait(WITHIN_S)
        waiting.sendall(request[3:])
        assert heard(waiting) == {"slow": False}


def test_without_descriptors_it_waits_and_then_answers(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried_s: list[float] = []
    accept = socket.socket.accept

    def noted(server: socket.socket) -> tuple[socket.socket, object]:
        tried_s.append(time.monotonic())
        return accept(server)

    monkeypatch.setattr(socket.socket, "accept", noted)
    with socket.socket(socket.AF_UNIX) as client, capture_logs() as logged:
        with without_descriptors():
            client.connect(str(path))
            until(lambda: len(tried_s) >= 3)
            failed_s = tried_s[:3]
        client.settimeout(WITHIN_S)
        client.sendall(framed({"said": 1}))
        assert heard(client) == {"heard": 1}
    assert min(b - a for a, b in pairwise(failed_s)) > 0.1
    assert [one["event"] for one in logged] == ["client_not_accepted"]


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


# ---- those who follow


@pytest.fixture
def open_channel(tmp_path: Path) -> Iterator[Callable[..., tuple[SideChannel, list[Client]]]]:
    """A channel that this thread gives turns, and those who follow it."""
    with ExitStack() as stack:

        def opened(**limits: Any) -> tuple[SideChannel, list[Client]]:
            followers: list[Client] = []
            channel = channel_of(tmp_path / "followed", handler=followers.append, **limits)
            channel.open()
            stack.callback(channel.close)
            return channel, followers

        yield opened


Open = Callable[..., tuple[SideChannel, list[Client]]]


def following(channel: SideChannel, followers: list[Client], path: Path) -> Link:
    link, count = follow(path, "news"), len(followers)
    until(lambda: channel.turn(0.05) or len(followers) > count)
    return link


def test_each_who_follows_gets_messages_until_one_side_ends(open_channel: Open, tmp_path: Path) -> None:
    channel, followers = open_channel()
    one, other = (following(channel, followers, tmp_path / "followed") for _ in range(2))
    assert [client.message for client in followers] == ["news", "news"]
    assert all(client.send(framed(number)) for number in range(3) for client in followers)
    assert list(one.receive()) == list(other.receive()) == [0, 1, 2]
    assert list(one.receive()) == []
    one.close()
    until(lambda: channel.turn(0.05) or followers[0].is_gone)
    assert not followers[0].send(framed(3))
    followers[1].end(framed("over"))
    assert list(other.receive()) == ["over"]
    with pytest.raises(ConnectionResetError):
        list(other.receive())
    other.close()


def test_what_waits_for_one_who_does_not_read_is_bounded(open_channel: Open, tmp_path: Path) -> None:
    channel, followers = open_channel(most_waiting=100_000)
    link = following(channel, followers, tmp_path / "followed")
    frame, taken = framed(bytes(10_000)), 0
    while followers[0].send(frame):
        taken += 1
        assert followers[0].waiting <= 100_000
    assert taken < 100
    got = []
    until(lambda: channel.turn() or got.extend(link.receive()) or not followers[0].waiting)
    assert followers[0].send(frame), "there is room again"
    assert followers[0].send(framed(bytes(3_000_000))), "a large message is sent if nothing waits"
    followers[0].end(framed("the last one finds room"))
    until(lambda: channel.turn() or got.extend(link.receive()) or got[-1] == "the last one finds room")
    assert [len(one) for one in got] == [10_000] * (taken + 1) + [3_000_000, len(got[-1])]
    link.close()


def test_who_says_more_than_a_request_is_parted_with(open_channel: Open, tmp_path: Path) -> None:
    channel, followers = open_channel()
    link = following(channel, followers, tmp_path / "followed")
    link.send("more")
    until(lambda: channel.turn(0.05) or followers[0].is_gone)
    link.close()


def test_those_who_come_replace_those_who_ask_and_then_the_last(open_channel: Open, tmp_path: Path) -> None:
    channel, followers = open_channel(most_clients=3)
    with ExitStack() as stack:
        for _ in range(2):
            stack.callback(following(channel, followers, tmp_path / "followed").close)
        silent = stack.enter_context(socket.socket(socket.AF_UNIX))
        silent.connect(str(tmp_path / "followed"))
        channel.turn()
        stack.callback(following(channel, followers, tmp_path / "followed").close)
        assert [one.is_gone for one in followers] == [False, False, False]
        assert silent.recv(100)
        stack.callback(following(channel, followers, tmp_path / "followed").close)
        assert [one.is_gone for one in followers] == [False, False, True, False]
        while followers[0].send(framed(bytes(10_000))):
            pass
        stack.callback(following(channel, followers, tmp_path / "followed").close)
        assert [one.is_gone for one in followers] == [True, False, True, False, False], "who is behind goes first"


def test_a_follower_is_waited_for_in_bounded_time(open_channel: Open, tmp_path: Path) -> None:
    channel, followers = open_channel(most_waiting=10_000_000)
    link = following(channel, followers, tmp_path / "followed")
    followers[0].send(framed(bytes(5_000_000)))
    begun_s = time.monotonic()
    followers[0].flush(0.2)
    assert time.monotonic() - begun_s >= 0.2
    assert followers[0].waiting
    got: list[Any] = []
    link.connection.settimeout(WITHIN_S)
    reader = threading.Thread(target=lambda: got.append(heard(link.connection)))
    reader.start()
    followers[0].flush(WITHIN_S)
    assert not followers[0].waiting
    reader.join(WITHIN_S)
    assert len(got[0]) == 5_000_000
    link.close()


# ---- the side that asks


@pytest.fixture
def pretend(tmp_path: Path) -> Iterator[Callable[[Callable[[socket.socket], object]], Path]]:
    """A socket whose first client is answered by a function, in a thread."""
    with socket.socket(socket.AF_UNIX) as server, ExitStack() as stack:

        def answer_with(function: Callable[[socket.socket], object]) -> Path:
            server.bind(str(tmp_path / "pretended"))
            server.listen()

            def accept() -> None:
                client, _ = server.accept()
                with client, suppress(OSError):
                    function(client)

            thread = threading.Thread(target=accept)
            thread.start()
            stack.callback(thread.join, WITHIN_S)
            return tmp_path / "pretended"

        yield answer_with


def test_an_answer_that_breaks_off_is_none(pretend: Any) -> None:
    place = pretend(lambda client: client.recv(100) and client.sendall(struct.pack(">I", 500) + bytes(200)))
    with pytest.raises(ConnectionResetError, match="broke off after 200 of 500 bytes"):
        ask(place, 1, within_s=WITHIN_S)


def test_an_answer_byte_by_byte_meets_the_deadline(pretend: Any) -> None:
    def drip(client: socket.socket) -> None:
        pause = threading.Event()
        client.sendall(struct.pack(">I", 500))
        while not pause.wait(0.05):
            client.sendall(b"\0")

    with pytest.raises(TimeoutError):
        ask(pretend(drip), 1, within_s=0.5)


def test_a_side_that_reads_nothing_meets_the_deadline(pretend: Any) -> None:
    stop = threading.Event()
    with pytest.raises(TimeoutError):
        ask(pretend(lambda _: stop.wait(WITHIN_S)), bytes(64 << 20), within_s=0.3)
    stop.set()


@pytest.mark.parametrize("sent", [struct.pack(">I", 1001), b"HTTP/1.1 400 Bad Request\r\n", b"\xff" + bytes(9)])
def test_too_long_an_answer_is_not_read(pretend: Any, sent: bytes) -> None:
    def answer_then_wait(client: socket.socket) -> None:
        client.sendall(sent)
        while client.recv(100):
            pass

    with pytest.raises(WireError, match="at most 1000 bytes"):
        ask(pretend(answer_then_wait), 1, within_s=WITHIN_S, most=1000)


def test_who_answers_is_told_before_anything_is_asked(pretend: Any) -> None:
    class Refused(Exception):
        pass

    def refuse(user: int) -> None:
        assert user == os.getuid()
        raise Refused

    asked: list[bytes] = []
    with pytest.raises(Refused):
        ask(pretend(lambda client: asked.append(client.recv(100))), 1, within_s=WITHIN_S, admit=refuse)
    until(lambda: asked)
    assert asked == [b""]


def test_without_a_channel_nobody_answers(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        ask(tmp_path / "none", {}, within_s=WITHIN_S)
    with pytest.raises(FileNotFoundError):
        follow(tmp_path / "none")


def test_a_path_may_be_longer_than_an_address(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    with channel_at(folder / "channel", 3.0) as place:
        assert is_answered(place)


@pytest.mark.parametrize("sizes", [[1], [3], [1 << 20]])
def test_messages_come_however_they_are_cut(sizes: list[int]) -> None:
    ours, its = socket.socketpair()
    with ours, its:
        messages = ["one", {"two": [2.5, b"x" * 300]}, None]
        data, got, link = b"".join(map(framed, messages)), [], Link(its)
        for at in range(0, len(data), sizes[0]):
            ours.sendall(data[at : at + sizes[0]])
            got += list(link.receive())
    assert got == messages
    assert msgpack.unpackb(framed("a")[4:]) == "a"
