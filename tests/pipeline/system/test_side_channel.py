"""A channel beside the run: answers in bounded time, whatever other clients do."""

from __future__ import annotations

import os
import resource
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import structlog
from camgraph_test_stages.waiting import until
from structlog.testing import capture_logs

from camgraph.pipeline.errors import WireError
from camgraph.pipeline.system.side_channel import MOST_CLIENTS, Answer, Request, SideChannel, answered_head, ask

WITHIN_S = 60.0
Connect = Callable[[], socket.socket]


def answer(request: Request) -> Answer:
    """What was asked, the payload backwards, or many bytes."""
    match request.head:
        case {"bug": True}:
            raise ZeroDivisionError
        case {"many": int(count)}:
            return Answer({"bytes": count}, [bytes(count)])
        case dict():
            return Answer({"head": request.head}, [request.payload[::-1], b"", b"end"])
    raise WireError("expected an object")


def payload_of(head: Any) -> int:
    size = head.get("size", 0) if isinstance(head, dict) else 0
    if size < 0:
        raise WireError("expected a size")
    return int(size)


@contextmanager
def channel_at(path: Path, within_s: float) -> Iterator[Path]:
    channel = SideChannel(path, answer, structlog.get_logger(), name="test", within_s=within_s, payload_of=payload_of)
    channel.open()
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


def answered(path: Path, payload: bytes = b"") -> bytes:
    with ask(path, {"size": len(payload)}, payload, within_s=WITHIN_S) as link:
        assert answered_head(link) == {"head": {"size": len(payload)}}
        return link.read(len(payload) + 3)


def test_a_line_and_bytes_are_answered_by_a_line_and_bytes(path: Path) -> None:
    assert answered(path) == b"end"
    assert answered(path, b"abc") == b"cbaend"
    large = os.urandom(5 << 20)
    assert answered(path, large) == large[::-1] + b"end"


@pytest.mark.parametrize(
    "sent", [b"\n", b"no json\n", b"[" * 5000 + b"\n", b"x" * 20_000, b"7\n", b'{"size": -1}\n', b"\xff\n"]
)
def test_nonsense_is_answered_in_words(path: Path, connect: Connect, sent: bytes) -> None:
    client = connect()
    client.sendall(sent)
    assert b'{"error": "expected' in client.makefile("rb").readline()
    assert answered(path) == b"end"


def test_a_bug_costs_one_answer(path: Path) -> None:
    with capture_logs() as logged, ask(path, {"bug": True}, within_s=WITHIN_S) as link:
        assert "the log of the run" in answered_head(link)["error"]
    assert [(one["event"], one["channel"]) for one in logged] == [("answer_failed", "test")]
    assert answered(path) == b"end"


def test_who_goes_in_the_middle_harms_nobody(path: Path, connect: Connect) -> None:
    for part in (b"", b"{", b'{"size": 9}\n', b'{"size": 9}\nfew', b'{"many": 10000000}\n'):
        client = connect()
        client.sendall(part)
        client.close()
    assert answered(path) == b"end"


@pytest.mark.parametrize("words", [b"", b'{"size": ', b'{"size": 9}\nfew'])
def test_silent_clients_keep_nobody_waiting(path: Path, connect: Connect, words: bytes) -> None:
    for _ in range(3 * MOST_CLIENTS):
        connect().sendall(words)
    assert answered(path) == b"end"


def test_clients_that_read_nothing_keep_nobody_waiting(path: Path, connect: Connect) -> None:
    for _ in range(MOST_CLIENTS - 1):
        connect().sendall(b'{"many": 5000000}\n')
    assert answered(path) == b"end"


@pytest.mark.parametrize("within_s", [0.2])
def test_a_silent_client_is_told_and_parted_with(connect: Connect) -> None:
    silent = connect().makefile("rb")
    assert b"within 0.2 s" in silent.readline()
    assert silent.readline() == b""


@pytest.mark.parametrize("within_s", [0.5])
def test_a_client_that_reads_nothing_is_parted_with(connect: Connect) -> None:
    client = connect()
    client.sendall(b'{"many": 50000000}\n')
    poller = select.poll()
    poller.register(client, select.POLLRDHUP)
    until(lambda: bool(poller.poll(0)))
    got = 0
    with suppress(ConnectionResetError):
        while piece := client.recv(1 << 20):
            got += len(piece)
    assert got < 50_000_000


@pytest.mark.parametrize("within_s", [0.5])
@pytest.mark.parametrize("head", [b"", b'{"size": 100000}\n'])
def test_a_request_in_pieces_has_one_bound(path: Path, connect: Connect, head: bytes) -> None:
    """Each piece comes in time, and all of them do not."""
    client = connect()
    client.sendall(head)

    def is_parted() -> bool:
        try:
            client.sendall(b" ")
        except OSError:
            return True
        return False

    until(is_parted, every_s=0.05)
    assert answered(path) == b"end"


@pytest.mark.parametrize("within_s", [1000.0])
def test_it_closes_at_once_though_a_client_sends_drop_by_drop(tmp_path: Path, within_s: float) -> None:
    stop = threading.Event()

    def drip(client: socket.socket) -> None:
        with suppress(OSError):
            while not stop.wait(0.05):
                client.sendall(b" ")

    with socket.socket(socket.AF_UNIX) as client:
        with channel_at(tmp_path / "dripped", within_s) as place:
            client.connect(str(place))
            thread = threading.Thread(target=drip, args=(client,))
            thread.start()
            assert answered(place) == b"end"
            closing_s = time.monotonic()
        assert time.monotonic() - closing_s < WITHIN_S
        stop.set()
        thread.join(WITHIN_S)


@pytest.mark.parametrize("within_s", [0.4])
def test_time_for_another_answer_costs_no_client_its_own(tmp_path: Path, within_s: float) -> None:
    """Nobody reads from it while the thread makes an answer."""
    begun = threading.Event()

    def slowly(request: Request) -> Answer:
        begun.set()
        time.sleep(3 * within_s if request.head.get("slow") else 0)
        return Answer({"slow": False})

    channel = SideChannel(tmp_path / "slow", slowly, structlog.get_logger(), name="slow", within_s=within_s)
    channel.open()
    with ExitStack() as stack:
        stack.callback(channel.close)
        waiting, slow = (stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(2))
        for client in (waiting, slow):
            client.settimeout(WITHIN_S)
            client.connect(str(tmp_path / "slow"))
        waiting.sendall(b"{")
        slow.sendall(b'{"slow": true}\n')
        assert begun.wait(WITHIN_S)
        waiting.sendall(b"}\n")
        assert waiting.makefile("rb").readline() == b'{"slow": false}\n'


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
        client.sendall(b"{}\n")
        assert b"head" in client.makefile("rb").readline()
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


def test_without_a_channel_nobody_answers(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), ask(tmp_path / "none", {}, within_s=WITHIN_S):
        pass
