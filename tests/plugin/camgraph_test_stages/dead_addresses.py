"""Hosts with several addresses, some of which lead nowhere, as IPv6 addresses often do."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest


@contextmanager
def dead_address(port: int, ip: str = "::1") -> Iterator[None]:
    """Within, connections to this address are neither taken nor refused: the queue of who waits there is full."""
    family = socket.AF_INET6 if ":" in ip else socket.AF_INET
    with ExitStack() as open_ones:
        listener = open_ones.enter_context(socket.socket(family))
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((ip, port))
        except OSError as error:
            pytest.skip(f"{ip} cannot be used here: {error.strerror}")
        listener.listen(0)
        for _ in range(4):
            waiting = open_ones.enter_context(socket.socket(family))
            waiting.setblocking(False)
            waiting.connect_ex((ip, port))
        yield


def name_host(monkeypatch: pytest.MonkeyPatch, name: str, *ips: str) -> None:
    """In this process the resolver has these addresses for this name, in this order."""
    ask = socket.getaddrinfo

    def answer(host: Any, port: Any, *more: Any, **named: Any) -> Sequence[Any]:
        hosts = ips if host == name else [host]
        return [one for ip in hosts for one in ask(ip, port, *more, **named)]

    monkeypatch.setattr(socket, "getaddrinfo", answer)
