from __future__ import annotations

import socket
import ssl

import pytest
from camgraph_test_stages.waiting import until

from camgraph.pipeline.errors import Unavailable
from camgraph.stages.sinks.delivery.web.web_addresses import WebAddress, web_address
from camgraph.stages.sinks.delivery.web.web_client import WebClient


def test_a_given_up_request_tries_no_further_address(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections, and shakes no hands
        port = silent.getsockname()[1]
        with socket.create_server(("127.0.0.2", port)) as other:
            places = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, port)) for ip in ("127.0.0.1", "127.0.0.2")]
            monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: places)
            address = web_address(f"https://two.example:{port}/")
            client = WebClient(address, tls=ssl.create_default_context, allow_private=True)
            exchange = client.post({}, b"", limit_s=600.0)
            until(lambda: exchange._connection.sock)
            taken, _ = silent.accept()
            client.close()
            assert until(exchange._over.is_set)
            other.setblocking(False)
            with pytest.raises(BlockingIOError):
                other.accept()
            taken.close()


def test_a_failure_before_a_request_is_not_blamed_on_an_event() -> None:
    nowhere = WebAddress("http", f"{'a' * 70}.example", 80, "/")
    exchange = WebClient(nowhere, tls=ssl.create_default_context, allow_private=True).post({}, b"", 30)
    with pytest.raises(Unavailable, match="no valid HTTP: UnicodeError"):
        exchange.answer(30)
