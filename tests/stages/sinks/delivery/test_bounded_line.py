from __future__ import annotations

import select
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from camgraph_test_stages.brokers import certify
from camgraph_test_stages.hostile import Talk, flood, hostile, saying
from camgraph_test_stages.waiting import until

from camgraph.stages.sinks.delivery import bounded_line
from camgraph.stages.sinks.delivery.bounded_line import HERE, BoundedLine, LineCut

LONG_S = 100.0
"""Nobody waits for so long, also on a slow machine."""
SHORT_S = 0.4


def after(seconds: float) -> float:
    return time.monotonic() + seconds


@contextmanager
def line_to(talk: Talk, **more: Any) -> Iterator[tuple[BoundedLine, socket.socket]]:
    """A line to a server that talks like this, and the socket of a library on it."""
    with hostile(talk) as server, closing(BoundedLine(HERE, server.port, after(LONG_S), **more)) as line:
        with socket.create_connection((HERE, line.port), LONG_S) as library:
            yield line, library


def heard(library: socket.socket) -> bytes:
    """All until the line hangs up."""
    found = b""
    try:
        while some := library.recv(1 << 16):
            found += some
    except ConnectionResetError:
        pass
    return found


def received(library: socket.socket, size: int) -> bytes:
    """So many bytes."""
    found = b""
    while len(found) < size:
        some = library.recv(1 << 16)
        assert some
        found += some
    return found


def echo(connection: socket.socket) -> Iterator[bytes]:
    while some := connection.recv(1 << 16):
        yield some


def test_both_sides_hear_each_other() -> None:
    said = bytes(range(256)) * 4000
    with line_to(echo) as (line, library):
        threading.Thread(target=library.sendall, args=(said,), daemon=True).start()
        assert received(library, len(said)) == said
        assert not line.is_over


def test_library_hears_what_the_server_said_before_it_hung_up() -> None:
    def talk(connection: socket.socket) -> Iterator[bytes]:
        yield b"no such user"
        connection.shutdown(socket.SHUT_WR)

    with line_to(talk) as (line, library):
        until(lambda: line.is_over)
        library.sendall(b"an answer that nobody reads")
        assert heard(library) == b"no such user"
        assert line.why_cut is None


def test_server_hears_the_last_words_of_the_library() -> None:
    last = bytearray()

    def talk(connection: socket.socket) -> Iterator[bytes]:
        while some := connection.recv(1 << 16):
            last.extend(some)
        yield b""

    with line_to(talk) as (line, library):
        library.sendall(b"goodbye")
        library.close()
        line.close()
        until(lambda: last == b"goodbye")


def test_server_that_says_too_much_in_a_call_is_cut_off() -> None:
    with line_to(lambda _: flood()) as (line, library):
        assert len(heard(library)) <= bounded_line.MOST_ANSWER
        assert isinstance(line.why_cut, LineCut)
        assert "longer than any" in str(line.why_cut)


def test_each_call_may_hear_as_much() -> None:
    with line_to(saying(*[b"x" * 900] * 3)) as (line, library):
        for _ in range(3):
            with line.call(after(LONG_S), most_bytes=1000):
                library.sendall(b"more")
                assert received(library, 900) == b"x" * 900


def drip(connection: socket.socket) -> Iterator[bytes]:
    while True:
        yield b"x"
        select.select([], [], [connection], 0.02)


@pytest.mark.parametrize("talk", [drip, saying(b"")], ids=["drips", "is silent"])
def test_call_ends_in_time(talk: Talk) -> None:
    with line_to(talk) as (line, library), line.call(after(SHORT_S)):
        library.sendall(b"well?")
        heard(library)
        assert isinstance(line.why_cut, TimeoutError)


def test_silence_between_two_calls_is_no_fault() -> None:
    with line_to(echo) as (line, library):
        with line.call(after(SHORT_S)):
            library.sendall(b"1")
            assert library.recv(1) == b"1"
        over_s = after(2 * SHORT_S)
        until(lambda: time.monotonic() > over_s)
        with line.call(after(LONG_S)):
            library.sendall(b"2")
            assert library.recv(1) == b"2"


def test_host_that_is_not_found_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    found = threading.Event()

    def find(*_: Any) -> Any:
        found.wait(LONG_S)
        return []

    monkeypatch.setattr("camgraph.pipeline.system.happy_eyeballs.places_of", find)
    before = threading.active_count()
    with pytest.raises(TimeoutError):
        BoundedLine("slow.test", 1, after(SHORT_S))
    found.set()
    until(lambda: threading.active_count() == before)


def test_no_server() -> None:
    with closing(socket.create_server((HERE, 0))) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(ConnectionRefusedError):
        BoundedLine(HERE, port, after(LONG_S))


def test_another_user_gets_nothing_from_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """As far as it can be tried by one user: who is told to be another one is hung up on, and the next one served."""
    strangers = [True, False]
    monkeypatch.setattr(bounded_line, "_is_of_this_user", lambda *_: not strangers.pop(0))
    with hostile(saying(b"secret")) as server, closing(BoundedLine(HERE, server.port, after(LONG_S))) as line:
        with socket.create_connection((HERE, line.port), LONG_S) as stranger:
            assert heard(stranger) == b""
        with socket.create_connection((HERE, line.port), LONG_S) as library:
            library.sendall(b"well?")
            assert library.recv(100) == b"secret"


def test_a_connection_of_another_user_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(socket.create_server((HERE, 0))) as listener:
        to_port = listener.getsockname()[1]
        with socket.create_connection((HERE, to_port)) as one:
            port = one.getsockname()[1]
            assert bounded_line._is_of_this_user(port, to_port)
            monkeypatch.setattr("os.geteuid", lambda: 123_456)
            assert not bounded_line._is_of_this_user(port, to_port)


@pytest.mark.parametrize(
    "stay",
    [lambda line: None, lambda line: socket.create_connection((HERE, line.port), LONG_S)],
    ids=["nobody", "open"],
)
def test_no_thread_is_left(stay: Callable[[BoundedLine], Any]) -> None:
    with hostile(saying(b"")) as server:
        line = BoundedLine(HERE, server.port, after(LONG_S))
        library = stay(line)
        line.close()
        until(lambda: "line" not in [one.name for one in threading.enumerate()])
        if library:
            assert heard(library) == b""
            library.close()


@pytest.fixture
def server_tls(tmp_path: Path) -> ssl.SSLContext:
    certify(tmp_path, "broker.test")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem")
    return context


def encrypted(context: ssl.SSLContext, first: bytes = b"") -> Talk:
    def talk(connection: socket.socket) -> Iterator[bytes]:
        connection.sendall(first)
        with context.wrap_socket(connection.dup(), server_side=True) as secure:
            while some := secure.recv(1 << 16):
                secure.sendall(some)
        yield b""

    return talk


def client_tls(folder: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(folder / "ca.pem"))


def test_tls_under_another_name(tmp_path: Path, server_tls: ssl.SSLContext) -> None:
    more = {"tls": client_tls(tmp_path), "server_name": "broker.test"}
    said = bytes(range(256)) * 4000
    with line_to(encrypted(server_tls), **more) as (_, library):
        threading.Thread(target=library.sendall, args=(said,), daemon=True).start()
        assert received(library, len(said)) == said
    with hostile(encrypted(server_tls)) as server, pytest.raises(ssl.SSLCertVerificationError):
        BoundedLine(HERE, server.port, after(LONG_S), tls=client_tls(tmp_path), server_name="other.test")


def test_handshake_that_never_ends(tmp_path: Path, server_tls: ssl.SSLContext) -> None:
    with hostile(drip) as server, pytest.raises((TimeoutError, ssl.SSLError)):
        BoundedLine(HERE, server.port, after(SHORT_S), tls=client_tls(tmp_path), server_name="broker.test")
    with hostile(saying(b"")) as server, pytest.raises(TimeoutError):
        BoundedLine(HERE, server.port, after(SHORT_S), tls=client_tls(tmp_path), server_name="broker.test")


def test_server_that_greets_before_tls(tmp_path: Path, server_tls: ssl.SSLContext) -> None:
    context, greetings = client_tls(tmp_path), list[bytes]()

    def greeted(first: bytes) -> tuple[bytes, ssl.SSLContext]:
        greetings.append(first)
        return b"hello library\n", context

    talk = encrypted(server_tls, b"hello client\n")
    with line_to(talk, greeted=greeted, server_name="broker.test") as (_, library):
        assert library.recv(100) == b"hello library\n"
        library.sendall(b"echo")
        assert library.recv(4) == b"echo"
    assert greetings == [b"hello client\n"]


@pytest.mark.parametrize("talk", [lambda _: flood(most=1 << 20), lambda _: iter([b"no"])], ids=["no end", "hangs up"])
def test_greeting_without_an_end(talk: Talk) -> None:
    with hostile(talk) as server, pytest.raises((LineCut, TimeoutError)):
        BoundedLine(HERE, server.port, after(SHORT_S), greeted=lambda line: (line, None))


def test_what_a_server_says_is_inspected() -> None:
    def inspect(some: bytes) -> None:
        if b"bad" in some:
            raise LineCut("bad")

    with line_to(saying(b"good", b"bad"), inspect=inspect) as (line, library):
        library.sendall(b"1")
        assert library.recv(4) == b"good"
        library.sendall(b"2")
        assert heard(library) == b""
        assert str(line.why_cut) == "bad"
