"""The server against those who only take a place: connections without requests, and answers that nobody reads."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager
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

from pipeline.errors import EnvironmentProblem
from tools.service.web import calls, http_server
from tools.service.web.http_server import HttpServer, bound

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


@pytest.mark.parametrize(("most", "is_cut"), [(1 << 20, True), (1 << 30, False)])
def test_a_body_without_end_is_not_read_for_long(monkeypatch: pytest.MonkeyPatch, most: int, *, is_cut: bool) -> None:
    """It was answered before; who sends a little more than is read shall still see why."""
    monkeypatch.setattr(http_server, "_MOST_REST", most)
    sent = 0
    with served() as place, socket.create_connection(place) as client:
        client.settimeout(WITHIN_S)
        client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 999999999999\r\n\r\n")
        assert client.recv(1000).startswith(b"HTTP/1.1 200")
        try:
            while sent < 32 << 20:
                sent += client.send(bytes(1 << 16))
        except ConnectionError:
            assert is_cut
        else:
            assert not is_cut


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
