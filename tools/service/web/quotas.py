"""Quotas of open streams, and who they count: an address of IPv4, or a network of IPv6, with the name of the token.

A machine with IPv6 has at least a network of 64 bits, and may ask from each of its addresses: they count as one.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from camgraph.pipeline.errors import Unavailable

_NETWORK_BITS = 64


def counted_address(address: str) -> str:
    """That under which an address counts; anything else counts as it is."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((int(found), _NETWORK_BITS), strict=False).network_address)


def client_of(scope: Scope) -> str:
    """The counted address of a request, "" if it has none."""
    return counted_address(str(scope["client"][0])) if scope.get("client") else ""


class Requester(NamedTuple):
    """`name`: that of the token, "" without one."""

    name: str
    client: str


def requester_of(request: Request) -> Requester:
    """Behind the layer that knows who asks."""
    return Requester(request.scope.get("camgraph.name", ""), client_of(request.scope))


class QuotaExceeded(Unavailable):
    """This requester has as many as one may have; others could still have some."""

    error_id = "too-many-readers"


class Quota:
    """So many `most` in all, `of_client` of one client, and `of_name` of one token from all its clients together."""

    def __init__(self, what: str, most: int, *, of_client: int, of_name: int) -> None:
        self._what = what
        self._most, self._of_client, self._of_name = most, of_client, of_name
        self._clients: Counter[str] = Counter()
        self._names: Counter[str] = Counter()

    @property
    def in_use(self) -> int:
        return self._clients.total()

    def check(self, requester: Requester) -> None:
        """Raises as `acquire`."""
        if self.in_use >= self._most:
            raise Unavailable(f"{self._most} {self._what} are open already: try later", error_id="too-many-readers")
        if self._clients[requester.client] >= self._of_client:
            raise QuotaExceeded(f"{self._of_client} {self._what} are open from your address: close one of them")
        if requester.name and self._names[requester.name] >= self._of_name:
            raise QuotaExceeded(f"{self._of_name} {self._what} are open with your token: close one of them")

    def acquire(self, requester: Requester) -> Callable[[], None]:
        """Count one more. Returns the function that releases it, which may be called again.

        Raises Unavailable if all are in use, QuotaExceeded if this requester has its share.
        """
        self.check(requester)
        self._clients[requester.client] += 1
        self._names[requester.name] += 1
        left = [requester]

        def release() -> None:
            while left:
                one = left.pop()
                self._clients -= Counter([one.client])
                self._names -= Counter([one.name])

        return release


class QuotaResponse(StreamingResponse):
    """An answer that counts for a quota. `release` is called when it is over, however it ends."""

    def __init__(
        self, pieces: AsyncIterator[bytes], release: Callable[[], object], media_type: str, headers: Mapping[str, str]
    ) -> None:
        super().__init__(pieces, media_type=media_type, headers=headers)
        self._release = release

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> Any:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._release()
