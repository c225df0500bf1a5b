"""The gate for HTTP: pictures, streams and playlists (HLS).

    http://127.0.0.1:port/<token>/<kind>/<scheme>/<host:port>/<path?query>     FFmpeg's request
    kind: camera    the address of the camera: a stream, or a playlist
          list      a name in a playlist of playlists: one of segments
          segment   a name in a playlist of segments: media, its header, its key

Playlists pass with all names in them replaced by such addresses (`stages.reading.playlists`), so FFmpeg asks nobody
else, and no playlist leads on without an end.
"""

from __future__ import annotations

import http.client
import re
import socket
from collections import OrderedDict
from typing import Literal, NamedTuple, cast, get_args
from urllib.parse import quote

from stages.reading import playlists
from stages.reading.live.gate.gate import MOST_REDIRECTS, Gate, Road, fit_to_show
from stages.reading.live.gate.origins import Origin, Target, target_from, target_of
from stages.reading.live.verdicts import Dropped

Kind = Literal["camera", "list", "segment"]

_GOOD = (http.client.OK, http.client.PARTIAL_CONTENT)
_REDIRECTS = (301, 302, 303, 307, 308)
_CHUNK = 1 << 16
_BEGIN = playlists.BEGIN.encode()
_PASSED_ON = ("range", "user-agent", "accept", "icy-metadata")
_PASSED_BACK = ("Content-Type", "Content-Range", "Accept-Ranges")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")
_MOST_COOKIES, _MOST_COOKIE = 32, 4096
MOST_WITH_COOKIES = 8
"""Hosts: of one more, those of the host that was asked longest ago are forgotten."""
_SAFE = "/?&=%:;,@+$!*'()~-._[]"


class _Asked(NamedTuple):
    """A request of FFmpeg."""

    kind: Kind
    target: Target
    headers: dict[str, str]


class _Answer(NamedTuple):
    """The camera's answer: who has it hangs `server` up.

    `begin`: the first of its bytes, as far as a playlist shows; `size`: of all of them, None if it does not say.
    """

    server: socket.socket
    response: http.client.HTTPResponse
    target: Target
    begin: bytes
    size: int | None

    @property
    def is_playlist(self) -> bool:
        return self.response.status in _GOOD and self.begin == _BEGIN


class WebGate(Gate):
    """See the module's docstring."""

    schemes = ("http", "https")

    def __init__(self, road: Road) -> None:
        super().__init__(road)
        self._first: _Answer | None = None
        self._cookies: OrderedDict[Origin, dict[str, str]] = OrderedDict()

    @property
    def url(self) -> str:
        return self._here("camera", self._camera)

    def ask(self) -> bool:
        """Ask the camera before FFmpeg starts, because FFmpeg must know whether to expect a playlist.

        FFmpeg's first request gets this answer: some cameras do not answer twice. Raises Dropped, OSError.
        """
        first = self._answered(_Asked("camera", self._camera, {"range": "bytes=0-"}), self._road.connect_s)
        with self._lock:
            self._first, closed = first, self._closed
        if closed:
            self.close()
        return first.is_playlist

    def close(self) -> None:
        super().close()
        first = self._taken_first()
        if first is not None:
            self._drop(first)

    def _drop(self, answer: _Answer) -> None:
        answer.response.close()
        self._hang_up(answer.server)

    def _taken_first(self) -> _Answer | None:
        with self._lock:
            first, self._first = self._first, None
        return first

    def _here(self, kind: Kind, target: Target) -> str:
        path = quote(target.path or "/", safe=_SAFE)
        return f"http://{self._own}/{kind}/{target.origin.scheme}/{target.origin.authority}{path}"

    def _serve(self, client: socket.socket, begun: bytes) -> None:
        asked = self._asked_by(begun)
        if asked is None:
            client.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return
        # The reader bounds how long the camera may take for later requests.
        answer = (self._taken_first() if asked.kind == "camera" else None) or self._answered(asked, None)
        try:
            self._pass_on(client, asked.kind, answer)
        finally:
            self._drop(answer)

    def _asked_by(self, head: bytes) -> _Asked | None:
        """The request of FFmpeg; None for an address that is none of this gate's."""
        first, *lines = head.decode("latin-1").split("\r\n")
        method, _, rest = first.partition(" ")
        token, kind, scheme, authority, path = (rest.rpartition(" ")[0].lstrip("/").split("/", 4) + [""] * 5)[:5]
        target = target_of(f"{scheme}://{authority}/{path}")
        if method != "GET" or token != self._token or kind not in get_args(Kind):
            return None
        if target is None or target.origin.scheme not in self.schemes:
            return None
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        passed = {name: headers[name] for name in _PASSED_ON if name in headers}
        return _Asked(cast("Kind", kind), target, passed)

    def _answered(self, asked: _Asked, within_s: float | None) -> _Answer:
        """The camera's answer, after its redirects and its challenge. Raises Dropped, OSError."""
        target, challenged = asked.target, False
        self._require_allowed(target, "names")
        for _ in range(MOST_REDIRECTS + 2):
            server = self._dialled(target.origin)
            server.settimeout(within_s)
            response = http.client.HTTPResponse(server, method="GET")
            kept: _Answer | None = None
            try:
                self._exchange(server, response, target, asked.headers)
                self._keep_cookies(target.origin, response)
                authorization = self._authorization_for(target.origin)
                location = response.getheader("Location")
                if response.status == http.client.UNAUTHORIZED and authorization and not challenged:
                    challenged = True
                    if authorization.take(response.headers.get_all("WWW-Authenticate") or ()):
                        continue
                elif response.status in _REDIRECTS and location:
                    target = self._target_after(location, target_from(target, location))
                    continue
                size = response.length  # of the rest that is still to be read
                kept = _Answer(server, response, target, self._begin_of(server, response), size)
                return kept
            finally:
                if kept is None:
                    response.close()
                    self._hang_up(server)
        raise Dropped(f"it redirects more than {MOST_REDIRECTS} times")

    def _keep_cookies(self, origin: Origin, response: http.client.HTTPResponse) -> None:
        """For who set them alone, and while this connection lasts."""
        for cookie in response.headers.get_all("Set-Cookie") or ():
            name, equals, value = _CONTROL.sub(" ", cookie.partition(";")[0]).strip().partition("=")
            with self._lock:
                kept = self._cookies.setdefault(origin, {})
                self._cookies.move_to_end(origin)
                if equals and len(cookie) <= _MOST_COOKIE and (name in kept or len(kept) < _MOST_COOKIES):
                    kept[name] = value
                if len(self._cookies) > MOST_WITH_COOKIES:
                    self._cookies.popitem(last=False)

    def _begin_of(self, server: socket.socket, response: http.client.HTTPResponse) -> bytes:
        begin = self._read(response, len(_BEGIN))
        while begin and _BEGIN.startswith(begin) and (more := self._read(response, len(_BEGIN) - len(begin))):
            begin += more
        server.settimeout(None)
        return begin

    def _exchange(
        self, server: socket.socket, response: http.client.HTTPResponse, target: Target, headers: dict[str, str]
    ) -> None:
        path = quote(target.path or "/", safe=_SAFE)
        default = {"http": 80, "https": 443}[target.origin.scheme] == target.origin.port
        host = target.origin.authority.rpartition(":")[0] if default else target.origin.authority
        lines = [f"GET {path} HTTP/1.1", f"Host: {host}", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        authorization = self._authorization_for(target.origin)
        signed = authorization.header("GET", path) if authorization else ""
        lines += [f"Authorization: {signed}"] if signed else []
        with self._lock:
            if target.origin in self._cookies:
                self._cookies.move_to_end(target.origin)
            cookies = "; ".join(f"{name}={value}" for name, value in self._cookies.get(target.origin, {}).items())
        lines += [f"Cookie: {cookies}"] if cookies else []
        try:
            server.sendall("\r\n".join([*lines, "", ""]).encode("latin-1", "replace"))
            response.begin()
        except TimeoutError:
            raise self._too_late() from None
        except http.client.RemoteDisconnected:
            raise Dropped("it ends the connection instead of answering") from None
        except http.client.HTTPException:
            raise Dropped("it answers with something that is not HTTP") from None

    def _pass_on(self, client: socket.socket, kind: Kind, answer: _Answer) -> None:
        if answer.is_playlist:
            self._pass_on_playlist(client, kind, answer)
            return
        response, data = answer.response, answer.begin
        if kind == "list" and response.status in _GOOD:
            raise Dropped("its playlist names something as a playlist that is none")
        # Written anew, so that FFmpeg reads nothing that was not read here.
        lines = [f"HTTP/1.1 {response.status} -", "Connection: close"]
        lines += [f"{name}: {_CONTROL.sub(' ', value)}" for name in _PASSED_BACK if (value := response.getheader(name))]
        lines += [f"Content-Length: {answer.size}"] if answer.size is not None else []
        client.sendall("\r\n".join([*lines, "", ""]).encode("latin-1", "replace"))
        while data:
            client.sendall(data)
            data = self._read(response, _CHUNK)

    def _pass_on_playlist(self, client: socket.socket, kind: Kind, answer: _Answer) -> None:
        text = bytearray(answer.begin)
        while more := self._read(answer.response, _CHUNK):
            text += more
            if len(text) > playlists.MOST_BYTES:
                raise Dropped(f"its playlist is longer than {playlists.MOST_BYTES >> 20} MB")
        body = self._rewritten(text.decode(errors="replace"), kind, answer.target).encode()
        head = f"Content-Type: application/vnd.apple.mpegurl\r\nContent-Length: {len(body)}\r\nConnection: close"
        client.sendall(f"HTTP/1.1 200 OK\r\n{head}\r\n\r\n".encode() + body)

    def _rewritten(self, text: str, kind: Kind, target: Target) -> str:
        """Raise Dropped if the answer is a playlist although none is allowed here."""
        if kind == "segment" or (kind == "list" and playlists.is_master(text)):
            raise Dropped("its playlist names playlists that name playlists again")

        def here(reference: playlists.Reference) -> str:
            named = target_from(target, reference.uri)
            if named is None or named.origin.scheme not in self.schemes:
                raise Dropped(f"its playlist names {fit_to_show(reference.uri)}, which is no address of HTTP")
            self._require_allowed(named, "has a playlist that names")
            return self._here("list" if reference.is_playlist else "segment", named)

        return playlists.rewritten(text, here)

    def _read(self, response: http.client.HTTPResponse, most: int) -> bytes:
        """The next data, as soon as there is some; nothing at the end. Raises Dropped if nothing ever came."""
        try:
            return response.read1(most)
        except TimeoutError:
            raise self._too_late() from None
        except http.client.HTTPException:
            return b""
