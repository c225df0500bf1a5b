"""Who may ask for what: tokens, sessions of browsers, rates, sizes, and which names of hosts are believed.

    a token            `Authorization: Bearer TOKEN`, or a cookie that the page gets for it (`/login`)
    a password         `Authorization: Basic`, for programs that can send nothing else: the token, with any name. It
                       lets them look and never change anything: browsers keep a password and send it from any page
    no tokens set      everybody who reaches the address is an admin: it must be on loopback
    names of hosts     without tokens, the name in `Host` must be one of this machine: otherwise a web page elsewhere,
                       whose name was pointed to 127.0.0.1, could speak to the service from the user's browser
    changes            by a browser must come from a page of this service (`Origin`): otherwise any page could make
                       the browser send them, cookie included
    wrong tokens       a client that has tried too many may use those alone that it has used before: another right one
                       is refused like a wrong one, so that nobody learns more by trying on

A cookie holds a proof of the token, not the token: it dies with the token, and survives a restart of the service.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Generic, NamedTuple, TypeVar
from urllib.parse import urlsplit

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from camgraph.tools.service.web.calls import MOST_BODY, Role, failure
from camgraph.tools.service.web.quotas import client_of

_COOKIE = "camgraph_session"
_PORTS = {"http": 80, "https": 443}
T = TypeVar("T")
LOOPBACK = ("localhost", "127.0.0.1", "::1")
_PER_S, _BURST = 100.0, 300.0
"""Requests of one client."""
_WRONG_PER_S, _WRONG_BURST = 0.2, 10.0
"""Wrong tokens of one client: nobody types eleven of them."""
_MOST_CLIENTS = 10_000
_MOST_CACHED = 10_000
"""Tokens that are cached with the clients that sent them, the right and the wrong ones each."""
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

    def has(self, client: str) -> bool:
        """Whether it has one left."""
        return self._left_of(client, time.monotonic()) >= 1.0

    def take(self, client: str) -> bool:
        """Whether it had one left; that is taken."""
        now = time.monotonic()
        left = self._left_of(client, now)
        self._left.pop(client, None)
        allowed = left >= 1.0
        self._left[client] = (left - 1.0 if allowed else left, now)
        if len(self._left) > _MOST_CLIENTS:
            del self._left[next(iter(self._left))]
        return allowed

    def _left_of(self, client: str, now: float) -> float:
        left, at = self._left.get(client, (self._burst, now))
        return min(self._burst, left + (now - at) * self._per_s)


class TooManyWrong(Exception):
    """This client has tried too many wrong tokens: no other one is looked at."""


_Sent = tuple[str, bytes]
"""The client, and the digest of the token."""


class _TokenCache(Generic[T]):
    """What was found out about the last tokens that were sent."""

    def __init__(self) -> None:
        self._known: dict[_Sent, T] = {}

    def get(self, sent: _Sent) -> T | None:
        found = self._known.pop(sent, None)
        if found is not None:
            self._known[sent] = found  # the last one is the newest
        return found

    def add(self, sent: _Sent, found: T) -> None:
        self._known[sent] = found
        if len(self._known) > _MOST_CACHED:
            del self._known[next(iter(self._known))]


class Access:
    """Decides about requests. `hosts`: names, beside those of loopback, under which the service is reached.

    `service`: its own name. Browsers send cookies to all ports of a host, so two services there need two cookies.
    """

    def __init__(self, tokens: Sequence[Token] = (), hosts: Iterable[str] = (), *, service: str = "") -> None:
        self._tokens = tuple(tokens)
        self.cookie = f"{_COOKIE}_{hashlib.sha256(service.encode()).hexdigest()[:8]}"
        self._named = {_host_and_port(host.lower()) for host in hosts}
        self._hosts = {*LOOPBACK, *(host for host, _ in self._named)}
        self.rates = _Rates(_PER_S, _BURST)
        self._wrong = _Rates(_WRONG_PER_S, _WRONG_BURST)
        self._right_ones = _TokenCache[Identity]()
        self._wrong_ones = _TokenCache[bool]()

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

    def is_own_page(self, headers: Mapping[str, str], host: str, scheme: str) -> bool:
        """Whether a change comes from a page of the service, or a program. Browsers send `Origin` with each change.

        Host and port must be those of the request, whose `scheme` is http also behind a proxy that ends TLS. A proxy
        with another name in front may have changed `Host`: names of `hosts` are believed as well, at their ports.
        """
        origin = headers.get("origin")
        if origin is None:
            return headers.get("sec-fetch-site", "none") in ("none", "same-origin")
        try:
            place = urlsplit(origin.lower())
            usual = _PORTS.get(place.scheme)
            if usual is None or (scheme == "https" and place.scheme != "https"):
                return False
            found = (place.hostname or "", place.port or usual)
            known = [_host_and_port(host.lower()), *self._named]
            return found in [(name, port or usual) for name, port in known]
        except ValueError:  # it is no address
            return False

    def identity(self, headers: Mapping[str, str], client: str) -> Identity | None:
        """Who asks; None for a wrong token. Without one: anyone, or the admin if no tokens are set.

        Raises TooManyWrong.
        """
        if not self._tokens:
            return Identity("", "admin")
        kind, _, value = headers.get("authorization", "").partition(" ")
        if value:
            return self.authenticated(client, kind.lower(), value.strip())
        sessions = _values_of(self.cookie, headers.get("cookie", ""))
        found = (self.authenticated(client, "cookie", session) for session in sessions)
        return next(filter(None, found), None) or Identity("", "anyone")

    def authenticated(self, client: str, kind: str, value: str) -> Identity | None:
        """Whose token, password or cookie it is, None if it is wrong. The same wrong one counts once.

        A token that was right before stays so however it is sent. Cookies are not counted: they are proofs of 256 bits,
        which nobody guesses, so a neighbour who tries tokens logs nobody out. Raises TooManyWrong.
        """
        if kind == "cookie":
            return self._of_session(value)
        token = {"bearer": value, "basic": _password(value)}.get(kind, "")
        sent = (client, hashlib.sha256(token.encode(errors="replace")).digest())
        found = self._right_ones.get(sent)
        if found is None and not self._wrong_ones.get(sent):
            found = self._authenticated_anew(sent, token)
        return replace(found, role="viewer") if found and kind == "basic" else found

    def _authenticated_anew(self, sent: _Sent, token: str) -> Identity | None:
        client, _ = sent
        if not self._wrong.has(client):
            raise TooManyWrong
        found = self.of_token(token)
        if found is not None:
            self._right_ones.add(sent, found)
        else:
            self._wrong.take(client)
            self._wrong_ones.add(sent, True)
        return found

    def of_token(self, value: str) -> Identity | None:
        """Whose token it is. All are compared, so that the time tells nothing."""
        digest = hashlib.sha256(value.encode(errors="replace")).digest()
        same = [one for one in self._tokens if hmac.compare_digest(hashlib.sha256(one.value.encode()).digest(), digest)]
        return Identity(same[0].name, same[0].role) if same else None

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


def _host_and_port(text: str) -> tuple[str, int | None]:
    """Of a name with or without a port. What cannot be parsed is a name that nobody has."""
    try:
        place = urlsplit(f"//{text}")
        return place.hostname or "", place.port
    except ValueError:
        return text, None


def _password(value: str) -> str:
    """Of the value of `Authorization: Basic`; "" if there is none in it."""
    try:
        return base64.b64decode(value, validate=True).decode().partition(":")[2]
    except ValueError:
        return ""


def _values_of(cookie: str, header: str) -> Iterator[str]:
    """The values under a name. `SimpleCookie` would stop at the first cookie of a program that is less strict."""
    for part in header.split(";"):
        name, _, value = part.strip().partition("=")
        if name == cookie and value:
            yield value.strip('"')


class AccessProblem(NamedTuple):
    """`error_id`: of the kind of error, as `camgraph explain` knows it."""

    status: int
    why: str
    error_id: str

    def answer(self) -> Response:
        return failure(self.status, self.why, error_id=self.error_id)


_UNKNOWN = AccessProblem(401, "this token is not known", error_id="token-unknown")
TOO_MANY_WRONG = AccessProblem(
    429,
    "too many wrong tokens came from your address: wait a minute. Tokens that were used from there before are taken",
    error_id="too-many-requests",
)


class AccessLayer:
    """ASGI: lets a request through with `camgraph.role` and `camgraph.name` in its scope, or answers it itself."""

    def __init__(self, app: ASGIApp, access: Access, most_bodies: Mapping[str, int] = MappingProxyType({})) -> None:
        """`most_bodies`: path -> the bytes of a body, where they are other than `MOST_BODY`."""
        self._app, self._access, self._most_bodies = app, access, most_bodies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        client = client_of(scope)
        refused = self._problem_of(scope, headers, client)
        who = None
        if refused is None:
            try:
                who = self._access.identity(headers, client)
                refused = _UNKNOWN if who is None else None
            except TooManyWrong:
                refused = TOO_MANY_WRONG
        app: ASGIApp = refused.answer() if refused else self._app
        if who is not None:
            scope["camgraph.role"], scope["camgraph.name"] = who.role, who.name
        await app(scope, receive, _with_headers(send))

    def _problem_of(self, scope: Scope, headers: Mapping[str, str], client: str) -> AccessProblem | None:
        host = headers.get("host", "")
        if not self._access.believes_host(host):
            why = "the service is not known under this name: add it to `hosts`, or set `tokens`"
            return AccessProblem(421, why, error_id="host-unknown")
        if not self._access.rates.take(client):
            return AccessProblem(429, "too many requests", error_id="too-many-requests")
        if scope["method"] not in ("GET", "HEAD") and not self._access.is_own_page(
            headers, host, scope.get("scheme", "http")
        ):
            return AccessProblem(
                403, "changes are accepted from pages of this service alone", error_id="page-of-others"
            )
        length, most = headers.get("content-length", "0"), self._most_bodies.get(scope["path"], MOST_BODY)
        if not length.isdecimal() or int(length) > most:
            return AccessProblem(413, f"expected a body of at most {most} bytes", error_id="too-large")
        return None


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            known = {name for name, _ in message["headers"]}
            message["headers"] = [*message["headers"], *(one for one in _HEADERS if one[0] not in known)]
        await send(message)

    return sending
