"""Who may ask for what: tokens, sessions of browsers, rates, sizes, and which names of hosts are believed.

    a token            `Authorization: Bearer TOKEN`, or a cookie that the page gets for it (`/login`)
    a password         `Authorization: Basic`, for programs that can send nothing else: the token, with any name. It
                       lets them look and never change anything: browsers keep a password and send it from any page
    no tokens set      everybody who reaches the address is an admin: it must be on loopback
    names of hosts     without tokens, the name in `Host` must be one of this machine: otherwise a web page elsewhere,
                       whose name was pointed to 127.0.0.1, could speak to the service from the user's browser
    changes            by a browser must come from a page of this service (`Origin`): otherwise any page could make
                       the browser send them, cookie included

A cookie holds a proof of the token, not the token: it dies with the token, and survives a restart of the service.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from http.cookies import CookieError, SimpleCookie
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tools.service.calls import MOST_BODY, Role, failure

COOKIE = "camgraph_session"
LOOPBACK = ("localhost", "127.0.0.1", "::1")
_PER_S, _BURST = 100.0, 300.0
"""Requests of one client."""
_WRONG_PER_S, _WRONG_BURST = 0.2, 10.0
"""Wrong tokens of one client: nobody types eleven of them."""
_MOST_CLIENTS = 10_000
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (
        b"content-security-policy",
        b"default-src 'self'; img-src 'self' blob: data:; media-src 'self' blob:; frame-ancestors 'none'; "
        b"base-uri 'none'; form-action 'self'",
    ),
)


@dataclass(frozen=True, slots=True)
class Token:
    """`name`: whose it is, for people; the log and the labels of incidents show it."""

    name: str
    value: str
    role: Role


@dataclass(frozen=True, slots=True)
class Identity:
    """Who asks."""

    name: str
    role: Role


class _Rates:
    """So many a second for each client, and a number at once."""

    def __init__(self, per_s: float, burst: float) -> None:
        self._per_s, self._burst = per_s, burst
        self._left: dict[str, tuple[float, float]] = {}
        """Client -> how many it has left, and when that was so."""

    def take(self, client: str) -> bool:
        """Whether it had one left; that is taken."""
        now = time.monotonic()
        left, at = self._left.pop(client, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._per_s)
        allowed = left >= 1.0
        self._left[client] = (left - 1.0 if allowed else left, now)
        if len(self._left) > _MOST_CLIENTS:
            del self._left[next(iter(self._left))]
        return allowed


class Access:
    """Decides about requests. `hosts`: names, beside those of loopback, under which the service is reached."""

    def __init__(self, tokens: Sequence[Token] = (), hosts: Iterable[str] = ()) -> None:
        self._tokens = tuple(tokens)
        self._named = {host.lower() for host in hosts}
        self._hosts = {*LOOPBACK, *self._named}
        self.rates = _Rates(_PER_S, _BURST)
        self.wrong = _Rates(_WRONG_PER_S, _WRONG_BURST)

    @property
    def is_open(self) -> bool:
        """Whether no token is needed."""
        return not self._tokens

    def believes_host(self, host: str) -> bool:
        """Whether a request may name the service so; with tokens any name will do, for no other page has one."""
        if self._tokens:
            return True
        try:
            return (urlsplit(f"//{host}").hostname or "") in self._hosts
        except ValueError:
            return False

    def is_own_page(self, headers: Mapping[str, str], host: str) -> bool:
        """Whether a change comes from a page of the service, or a program. Browsers send `Origin` with each change.

        A proxy with another name in front may have changed `Host`: names of `hosts` are believed as well.
        """
        origin = headers.get("origin")
        if origin is None:
            return headers.get("sec-fetch-site", "none") in ("none", "same-origin")
        try:
            place = urlsplit(origin)
            return place.netloc.lower() == host.lower() or (place.hostname or "") in self._named
        except ValueError:  # it is no address
            return False

    def identity(self, headers: Mapping[str, str]) -> Identity | None:
        """Who asks; None for a wrong token. Without one: anyone, or the admin if no tokens are set."""
        if not self._tokens:
            return Identity("", "admin")
        kind, _, value = headers.get("authorization", "").partition(" ")
        if value:
            return self._of_header(kind.lower(), value.strip())
        session = _cookie(headers.get("cookie", ""))
        found = self._of_session(session) if session else None
        return found or Identity("", "anyone")

    def _of_header(self, kind: str, value: str) -> Identity | None:
        if kind == "bearer":
            return self.of_token(value)
        found = self.of_token(_password(value)) if kind == "basic" else None
        return replace(found, role="viewer") if found else None

    def of_token(self, value: str) -> Identity | None:
        """Whose token it is. All are compared, so that the time tells nothing."""
        digest = hashlib.sha256(value.encode(errors="replace")).digest()
        same = [one for one in self._tokens if hmac.compare_digest(hashlib.sha256(one.value.encode()).digest(), digest)]
        return Identity(same[0].name, same[0].role) if same else None

    def note_wrong(self, request: Request) -> bool:
        """This client has tried a wrong token; whether it may try more."""
        return self.wrong.take(_client(request.scope))

    def session_of(self, value: str) -> str:
        """The value of the cookie for a token."""
        found = self.of_token(value)
        assert found is not None
        return _proof(value, found.name)

    def _of_session(self, session: str) -> Identity | None:
        given = session.encode(errors="replace")
        same = [one for one in self._tokens if hmac.compare_digest(_proof(one.value, one.name).encode(), given)]
        return Identity(same[0].name, same[0].role) if same else None


def _proof(token: str, name: str) -> str:
    return hmac.new(token.encode(), f"camgraph session {name}".encode(), hashlib.sha256).hexdigest()


def _client(scope: Scope) -> str:
    return str(scope["client"][0]) if scope.get("client") else ""


def _password(value: str) -> str:
    """Of the value of `Authorization: Basic`; "" if there is none in it."""
    try:
        return base64.b64decode(value, validate=True).decode().partition(":")[2]
    except ValueError:
        return ""


def _cookie(header: str) -> str:
    try:
        morsel = SimpleCookie(header).get(COOKIE)
    except CookieError:
        return ""
    return morsel.value if morsel else ""


class _Refusal(NamedTuple):
    """`error_id`: of the kind of error, as `camgraph explain` knows it."""

    status: int
    why: str
    error_id: str


_UNKNOWN = _Refusal(401, "this token is not known", error_id="token-unknown")
_TOO_MANY_WRONG = _Refusal(429, "too many wrong tokens: wait a minute", error_id="too-many-requests")


class AccessLayer:
    """ASGI: lets a request through with `camgraph.role` and `camgraph.name` in its scope, or answers it itself."""

    def __init__(self, app: ASGIApp, access: Access, most_bodies: Mapping[str, int] = MappingProxyType({})) -> None:
        """`most_bodies`: path -> the bytes of a body, where they are other than `MOST_BODY`."""
        self._app, self._access, self._most_bodies = app, access, most_bodies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        client = _client(scope)
        refused = self._refusal(scope, headers, client)
        who = None if refused else self._access.identity(headers)
        if who is None and refused is None:
            # Who has a right one is never kept waiting for a neighbour with wrong ones.
            refused = _UNKNOWN if self._access.wrong.take(client) else _TOO_MANY_WRONG
        app: ASGIApp = failure(refused.status, refused.why, error_id=refused.error_id) if refused else self._app
        if who is not None:
            scope["camgraph.role"], scope["camgraph.name"] = who.role, who.name
        await app(scope, receive, _with_headers(send))

    def _refusal(self, scope: Scope, headers: Mapping[str, str], client: str) -> _Refusal | None:
        host = headers.get("host", "")
        if not self._access.believes_host(host):
            why = "the service is not known under this name: add it to `hosts`, or set `tokens`"
            return _Refusal(421, why, error_id="host-unknown")
        if not self._access.rates.take(client):
            return _Refusal(429, "too many requests", error_id="too-many-requests")
        if scope["method"] not in ("GET", "HEAD") and not self._access.is_own_page(headers, host):
            return _Refusal(403, "changes are accepted from pages of this service alone", error_id="page-of-others")
        length, most = headers.get("content-length", "0"), self._most_bodies.get(scope["path"], MOST_BODY)
        if not length.isdecimal() or int(length) > most:
            return _Refusal(413, f"expected a body of at most {most} bytes", error_id="too-large")
        return None


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            known = {name for name, _ in message["headers"]}
            message["headers"] = [*message["headers"], *(one for one in _HEADERS if one[0] not in known)]
        await send(message)

    return sending
