"""The server against those who only take a place: connections without requests, and answers that nobody reads."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain
from pathlib import Path

import httpx
import pytest
import trustme
from camgraph_test_stages.waiting import until
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from structlog import get_logger
from structlog.testing import capture_logs

from camgraph.pipeline.errors import EnvironmentProblem
from camgraph.tools.service.web import calls, http_server
from camgraph.tools.service.web.http_server import HttpServer, bound

WITHIN_S = 60.0
GET = b"GET /%s HTTP/1.1\r\nHost: a\r\n\r\n"


async def small(request: Request) -> Response:
    return PlainTextResponse("here")


async def endless(request: Request) -> Response:
    async def pieces() -> AsyncIterator[bytes]:
        while True:
            await asyncio.sleep(0)
            yield bytes(1 << 20)

    return StreamingResponse(pieces())


@contextmanager
def served() -> Iterator[tuple[str, int]]:
    listener = bound("127.0.0.1", 0)
    server = HttpServer(Starlette(routes=[Route("/", small), Route("/endless", endless)]), listener, get_logger())
    place = listener.getsockname()[:2]
    server.start()
    try:
        yield place
    finally:
        server.stop()
        assert not server.is_alive


def is_closed(client: socket.socket) -> bool:
    """Wait until the server parts with it."""
    client.settimeout(WITHIN_S)
    try:
        while client.recv(1 << 20):
            pass
    except ConnectionError:
        pass
    return True


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost:", b"\x16\x03\x01\x02\x00\x01"])
def test_a_connection_without_a_request_is_closed(monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    monkeypatch.setattr(http_server, "_HEAD_S", 0.2)
    with served() as place, socket.create_connection(place) as client:
        client.sendall(sent)
        assert is_closed(client)


def test_a_second_request_has_its_bound_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "_HEAD_S", 0.5)
    with served() as place, socket.create_connection(place) as client:
        client.sendall(GET % b"" + b"G")
        assert client.recv(1000).startswith(b"HTTP/1.1 200")
        assert is_closed(client)
    with served() as place, socket.create_connection(place) as client:
        ask(client)
        client.sendall(b"G")
        assert is_closed(client)


def test_a_client_without_a_tls_handshake_loses_its_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(http_server, "_HEAD_S", 0.5)
    authority = trustme.CA()
    made = authority.issue_cert("127.0.0.1")
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    made.cert_chain_pems[0].write_to_path(certificate)
    made.private_key_pem.write_to_path(key)
    listener = bound("127.0.0.1", 0)
    server = HttpServer(Starlette(routes=[Route("/", small)]), listener, get_logger(), certificate=certificate, key=key)
    server.start()
    try:
        monkeypatch.setattr(http_server, "_MOST_OF_ADDRESS", 8)
        with ExitStack() as stack:
            idle = [stack.enter_context(socket.create_connection(listener.getsockname())) for _ in range(30)]
            assert all(map(is_closed, idle))
        context = ssl.create_default_context()
        authority.configure_trust(context)
        until(lambda: not listener.of_address, WITHIN_S, every_s=0.05)
        url = f"https://127.0.0.1:{listener.getsockname()[1]}/"
        assert httpx.get(url, verify=context, timeout=WITHIN_S).text == "here"
    finally:
        server.stop()


def test_a_renewed_certificate_is_taken_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(http_server, "_RENEW_S", 0.2)
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    first, second = trustme.CA().issue_cert("127.0.0.1"), trustme.CA().issue_cert("127.0.0.1")

    def write(pair: trustme.LeafCert, *, with_key: bool) -> None:
        pair.cert_chain_pems[0].write_to_path(certificate)
        if with_key:
            pair.private_key_pem.write_to_path(key)

    def presented() -> str:
        return ssl.get_server_certificate(place, timeout=WITHIN_S).strip()

    def pem(pair: trustme.LeafCert) -> str:
        return pair.cert_chain_pems[0].bytes().decode().strip()

    write(first, with_key=True)
    listener = bound("127.0.0.1", 0)
    place = listener.getsockname()[:2]
    app = Starlette(routes=[Route("/", small)])
    with capture_logs() as logs:
        server = HttpServer(app, listener, get_logger(), certificate=certificate, key=key)
        server.start()
        try:
            assert presented() == pem(first)
            write(second, with_key=False)
            until(lambda: any(line["event"] == "certificate_not_renewed" for line in logs), WITHIN_S, every_s=0.05)
            assert presented() == pem(first), "its key is still to come"
            write(second, with_key=True)
            until(lambda: presented() == pem(second), WITHIN_S, every_s=0.1)
        finally:
            server.stop()


def test_a_body_that_does_not_come_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "_BODY_S", 0.3)

    async def answer(request: Request) -> Response:
        return JSONResponse(await calls.json_body(request))

    app = Starlette(routes=calls.routes_of([calls.Call("POST", "/", "anyone", answer, "", calls.Gives())]))
    listener = bound("127.0.0.1", 0)
    server = HttpServer(app, listener, get_logger())
    server.start()
    try:
        with socket.create_connection(listener.getsockname()) as client:
            client.settimeout(WITHIN_S)
            client.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{")
            assert client.recv(1000).startswith(b"HTTP/1.1 400")
    finally:
        server.stop()


CHUNKED = b"POST /%s HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"


def answer_of(client: socket.socket) -> bytes:
    """Read until the server parts with the client."""
    client.settimeout(WITHIN_S)
    answer = b""
    with suppress(ConnectionError):
        while piece := client.recv(1 << 16):
            answer += piece
    return answer


def send_endlessly(client: socket.socket, piece: bytes, *, most: int = 1 << 40) -> int:
    """Send the piece again and again until the server closes. Returns the bytes sent, which are at most `most`."""
    sent = 0
    with suppress(ConnectionError):
        while sent < most:
            sent += client.send(piece)
    return sent


async def body_length(request: Request) -> Response:
    return PlainTextResponse(str(len(await calls.bytes_of(request, 1 << 30))))


@contextmanager
def reading() -> Iterator[tuple[str, int]]:
    """A server whose call reads any body to its end."""
    answering = calls.Call("POST", "/", "anyone", body_length, "", calls.Gives(), most_body=1 << 30)
    listener = bound("127.0.0.1", 0)
    routes = [*calls.routes_of([answering]), Route("/here", small, methods=["GET", "POST"]), Route("/endless", endless)]
    server = HttpServer(Starlette(routes=routes), listener, get_logger())
    server.start()
    try:
        yield listener.getsockname()[:2]
    finally:
        server.stop()


@pytest.mark.parametrize("path", [b"", b"here", b"none"])
@pytest.mark.slow
def test_chunks_of_a_byte_are_refused_and_nobody_else_waits(path: bytes) -> None:
    """A chunk of a byte takes as much time as one of 64 kB: 10 MB of them used to stop the service for 30 s."""
    with reading() as place, ExitStack() as stack:
        floods = [stack.enter_context(socket.create_connection(place)) for _ in range(4)]
        for client in floods:
            client.settimeout(WITHIN_S)
            client.sendall(CHUNKED % path)
        threads = [threading.Thread(target=send_endlessly, args=(one, b"1\r\nX\r\n" * 40_000)) for one in floods]
        for thread in threads:
            thread.start()
        began_s = time.monotonic()
        assert httpx.get(f"http://{place[0]}:{place[1]}/here", timeout=WITHIN_S).text == "here"
        assert time.monotonic() - began_s < 20
        for thread in threads:
            thread.join(WITHIN_S)
            assert not thread.is_alive(), "it was still read"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"1\r\nX\r\n" * 1000, "expected chunks of 4 kB or more"),
        (b"1;%s\r\nX\r\n" % (b"x" * 9000) * 20, "expected at most 32 kB of extensions"),
    ],
)
def test_a_body_in_costly_chunks_is_refused_in_words(body: bytes, why: str) -> None:
    with reading() as place, socket.create_connection(place) as client:
        client.sendall(CHUNKED % b"" + body)
        answer = answer_of(client)
        assert answer.startswith(b"HTTP/1.1 413")
        assert b"connection: close" in answer
        assert why.encode() in answer


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (CHUNKED % b"here" + b"no number\r\nX\r\n", 400),
        (CHUNKED % b"" + b"1\r\nXYZ\r\n", 400),
        (CHUNKED % b"" + b"0\r\n" + b"A: b\r\n" * 12_000, 431),
        (CHUNKED % b"here" + b"0\r\nno trailer\r\n\r\n", 400),
        (GET % b"here" + CHUNKED % b"here" + b"no number\r\n", 400),
        (b"no request\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nA: %s" % (b"x" * 80_000), 431),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
    ],
)
def test_malformed_request_is_answered_once_and_leaves_no_trace(
    caplog: pytest.LogCaptureFixture, sent: bytes, status: int
) -> None:
    with reading() as place, socket.create_connection(place) as client:
        with suppress(ConnectionError):
            client.sendall(sent)
        answer = answer_of(client)
    assert caplog.records == []
    assert answer.count(b"HTTP/1.1 %d " % status) == 1
    assert b"request-value" in answer
    assert b"connection: close" in answer


@pytest.mark.parametrize("chunk", [4 << 10, 64 << 10])
def test_a_large_body_in_ordinary_chunks_is_taken(chunk: int) -> None:
    pieces = (bytes(chunk) for _ in range((8 << 20) // chunk))
    small_ones = (b"x" for _ in range(100))
    with reading() as place:
        answer = httpx.post(f"http://{place[0]}:{place[1]}/", content=chain(small_ones, pieces), timeout=WITHIN_S)
        assert answer.text == str((8 << 20) + 100)


def test_a_body_of_two_lengths_is_refused() -> None:
    """A proxy in front may believe the other one, and take a part of the body for the request of somebody else."""
    with reading() as place, socket.create_connection(place) as client:
        client.sendall(
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        )
        answer = answer_of(client)
        assert answer.startswith(b"HTTP/1.1 400")
        assert b"expected either Content-Length or Transfer-Encoding" in answer


def test_a_refused_request_leaves_the_answer_before_it_whole() -> None:
    with reading() as place, socket.create_connection(place) as client:
        client.sendall(GET % b"here" + CHUNKED % b"" + b"1\r\nX\r\n" * 1000)
        answer = answer_of(client)
        assert answer.startswith(b"HTTP/1.1 200")
        assert answer.count(b"HTTP/1.1 413") == 1


def test_a_request_that_does_not_come_to_its_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while its answer is sent and read."""
    monkeypatch.setattr(http_server, "_REQUEST_S", 0.5)
    with served() as place, socket.create_connection(place) as client:
        client.sendall(b"GET /endless HTTP/1.1\r\nHost: a\r\nContent-Length: 99\r\n\r\n")
        assert is_closed(client)


@pytest.mark.parametrize(("most", "is_cut"), [(1 << 20, True), (1 << 30, False)])
def test_a_body_after_its_answer_is_dropped_for_a_moment(
    monkeypatch: pytest.MonkeyPatch, most: int, *, is_cut: bool
) -> None:
    """Whoever sends a little more than is read shall still see why."""
    monkeypatch.setattr(http_server, "_MOST_REST", most)
    monkeypatch.setattr(http_server, "_REST_S", WITHIN_S)
    with served() as place, socket.create_connection(place) as client:
        client.settimeout(WITHIN_S)
        client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 999999999999\r\n\r\n")
        assert client.recv(1000).startswith(b"HTTP/1.1 200")
        assert (send_endlessly(client, bytes(1 << 16), most=32 << 20) < 32 << 20) is is_cut


@pytest.mark.parametrize("head", [b"", b"Connection: close\r\n"])
def test_an_answer_is_read_though_the_body_still_comes(head: bytes) -> None:
    """A connection closed with unread bytes is reset, and the client loses the answer that waits for it."""
    with reading() as place, socket.create_connection(place) as client:
        client.settimeout(WITHIN_S)
        client.sendall(b"POST /none HTTP/1.1\r\nHost: a\r\n%sContent-Length: 4000000\r\n\r\n" % head)
        assert send_endlessly(client, bytes(1 << 16), most=3 << 20) >= 3 << 20
        assert answer_of(client).startswith(b"HTTP/1.1 404")


def test_a_slow_endless_body_is_not_read_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "_REST_S", 0.5)
    with reading() as place, socket.create_connection(place) as client:
        client.sendall(b"POST /none HTTP/1.1\r\nHost: a\r\nContent-Length: 4000000\r\n\r\n")
        assert answer_of(client).startswith(b"HTTP/1.1 404")
        until(lambda: not send_endlessly(client, b"x", most=1), WITHIN_S, every_s=0.05)


def test_one_address_has_so_many_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "_MOST_OF_ADDRESS", 4)
    with served() as place, ExitStack() as stack:
        first = [stack.enter_context(socket.create_connection(place)) for _ in range(4)]
        for client in first:
            ask(client)
        assert is_closed(stack.enter_context(socket.create_connection(place)))
        ask(first[0])


def ask(client: socket.socket) -> None:
    """Get a whole answer."""
    client.settimeout(WITHIN_S)
    client.sendall(GET % b"")
    answer = b""
    while not answer.endswith(b"here"):
        piece = client.recv(1000)
        assert piece, "the connection was closed"
        answer += piece


def test_an_answer_that_nobody_reads_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "_STALLED_S", 0.5)
    ended = []

    async def watched(request: Request) -> Response:
        async def pieces() -> AsyncIterator[bytes]:
            try:
                while True:
                    await asyncio.sleep(0)
                    yield bytes(1 << 16)
            finally:
                ended.append(True)

        return StreamingResponse(pieces())

    monkeypatch.setitem(globals(), "endless", watched)
    with served() as place, socket.create_connection(place) as client:
        client.sendall(GET % b"endless")
        first = client.recv(100)
        assert first.startswith(b"HTTP/1.1 200")
        until(lambda: ended, WITHIN_S, every_s=0.05)


def test_places_that_were_only_taken_are_free_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "_HEAD_S", 0.5)
    monkeypatch.setattr(http_server, "_MOST_CONNECTIONS", 8)
    with served() as place, ExitStack() as stack:
        idle = [stack.enter_context(socket.create_connection(place)) for _ in range(20)]
        assert all(map(is_closed, idle))
        assert httpx.get(f"http://{place[0]}:{place[1]}/", timeout=WITHIN_S).text == "here"


def test_a_loop_that_turns_no_more_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "_STUCK_S", 0.5)
    stuck, go_on = threading.Event(), threading.Event()

    async def blocking(request: Request) -> Response:
        go_on.wait(WITHIN_S)
        return PlainTextResponse("at last")

    server = HttpServer(Starlette(routes=[Route("/", blocking)]), bound("127.0.0.1", 0), get_logger(), stuck=stuck.set)
    server.start()
    try:
        with socket.create_connection(server._listener.getsockname()) as client:
            client.sendall(GET % b"")
            assert stuck.wait(WITHIN_S)
            go_on.set()
            assert client.recv(100).startswith(b"HTTP/1.1 200")
    finally:
        go_on.set()
        server.stop()


def test_it_stops_though_answers_are_read() -> None:
    with served() as place, socket.create_connection(place) as client:
        client.sendall(GET % b"endless")
        assert client.recv(100)


def test_an_address_that_another_program_has_is_told() -> None:
    with (
        bound("127.0.0.1", 0) as listener,
        pytest.raises(EnvironmentProblem, match="Address already in use: choose another"),
    ):
        bound(*listener.getsockname()[:2])
