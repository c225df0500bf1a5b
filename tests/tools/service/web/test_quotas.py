"""Quotas: nobody has all of them, by whatever addresses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, MutableMapping
from contextlib import suppress
from typing import Any

import pytest
from starlette.requests import ClientDisconnect

from camgraph.pipeline.errors import Unavailable
from camgraph.tools.service.web.quotas import Quota, QuotaExceeded, QuotaResponse, Requester, counted_address


@pytest.mark.parametrize(
    ("address", "counted"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("2001:db8:1:2:ffff::1", "2001:db8:1:2::"),
        ("2001:db8:1:3::1", "2001:db8:1:3::"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("fe80::1%eth0", "fe80::"),
        ("::1", "::"),
        ("", ""),
        ("a proxy says so", "a proxy says so"),
    ],
)
def test_a_network_of_ipv6_counts_as_one(address: str, counted: str) -> None:
    assert counted_address(address) == counted


def test_one_client_has_its_share_alone() -> None:
    quota = Quota("films", 4, of_client=2, of_name=9)
    release = [quota.acquire(Requester("", "a")) for _ in range(2)]
    with pytest.raises(QuotaExceeded, match="2 films are open from your address"):
        quota.acquire(Requester("boss", "a"))
    quota.acquire(Requester("", "b"))
    release[0]()
    release[0]()
    assert quota.in_use == 2
    quota.acquire(Requester("", "a"))
    quota.acquire(Requester("", "c"))
    with pytest.raises(Unavailable, match="4 films are open already"):
        quota.acquire(Requester("", "d"))


def test_one_token_has_its_share_from_wherever() -> None:
    quota = Quota("films", 9, of_client=2, of_name=3)
    for client in "abc":
        quota.acquire(Requester("ward", client))
    with pytest.raises(QuotaExceeded, match="3 films are open with your token"):
        quota.acquire(Requester("ward", "d"))
    quota.acquire(Requester("boss", "d"))


@pytest.mark.parametrize("leaves", [False, True])
def test_a_film_counts_no_longer_once_it_is_over(leaves: bool) -> None:
    """Also for a client that goes in the middle: otherwise nobody sees anything after a few of them."""
    quota = Quota("films", 1, of_client=1, of_name=1)

    async def pieces() -> AsyncIterator[bytes]:
        yield b"a film"

    async def send(message: MutableMapping[str, Any]) -> None:
        if leaves:
            raise OSError("the client is gone")

    answer = QuotaResponse(pieces(), quota.acquire(Requester("ward", "a")), "video/mp4", {})
    assert quota.in_use == 1
    with suppress(ClientDisconnect):
        asyncio.run(answer({"type": "http", "asgi": {"spec_version": "2.4"}}, None, send))  # type: ignore[arg-type]
    assert quota.in_use == 0
