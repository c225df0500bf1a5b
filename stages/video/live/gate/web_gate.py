"""The gate for HTTP: pictures (MJPEG, or one at a time), streams and playlists (HLS).

    http://127.0.0.1:port/<token>/<kind>/<scheme>/<host:port>/<path?query>     FFmpeg's request
    kind: camera    the address of the camera: a stream, or a playlist
          list      a name in a playlist of playlists: one of segments
          segment   a name in a playlist of segments: media, its header, its key

Playlists pass with all names in them replaced by such addresses (`stages.video.playlists`), so FFmpeg asks nobody
else, and no playlist leads on without an end.

Pictures are cut out of the camera's answers (`mjpeg_stream`), and pass in parts that are written here. If a whole
answer is one picture, its address is asked again and again: for FFmpeg, that is one stream.
"""

from __future__ import annotations

import errno
import http.client
import re
import select
import socket
import time
from collections import OrderedDict
from collections.abc import Generator, Iterator
from contextlib import closing
from typing import Literal, NamedTuple, cast, get_args
from urllib.parse import quote

import av

from camgraph.stages.video import playlists
from camgraph.stages.video.live.camera_problems import Dropped
from camgraph.stages.video.live.gate import statuses
from camgraph.stages.video.live.gate.authorization import why_not_answered
from camgraph.stages.video.live.gate.gate import MOST_REDIRECTS, Gate, Road, fit_to_show
from camgraph.stages.video.live.gate.mjpeg_stream import MOST_PICTURE, PictureCutter, PictureTooLarge
from camgraph.stages.video.live.gate.origins import Origin, Target, target_from, target_of
from camgraph.stages.video.live.gate.web_answer import BEGIN_BYTES, PLAYLIST_BEGIN, Served, WebBody, is_enough, served

Kind = Literal["camera", "list", "segment"]

_GOOD = (http.client.OK, http.client.PARTIAL_CONTENT)
_REDIRECTS = (301, 302, 303, 307, 308)
_CHUNK = 1 << 16
_PASSED_ON = ("range", "user-agent", "accept", "icy-metadata")
_REFUSED = (http.client.UNAUTHORIZED, http.client.FORBIDDEN)
_MISSING = (http.client.NOT_FOUND, http.client.GONE)
_PASSED_BACK = ("Content-Type", "Content-Range", "Accept-Ranges")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")
_MOST_COOKIES, _MOST_COOKIE = 32, 4096
MOST_WITH_COOKIES = 8
"""Hosts: of one more, those of the host that was asked longest ago are forgotten."""
_PARTS_HEAD = (
    b"HTTP/1.1 200 -\r\nConnection: close\r\nContent-Type: multipart/x-mixed-replace; boundary=camgraph\r\n\r\n"
)
_PART_HEAD = "--camgraph\r\nContent-Type: image/jpeg\r\nContent-Length: {}\r\n\r\n"
_SAFE = "/?&=%:;,@+$!*'()~-._[]"


class _Asked(NamedTuple):
    """A request of FFmpeg."""

    kind: Kind
    target: Target
    headers: dict[str, str]


class _Answer(NamedTuple):
    """The camera's answer: who has it hangs `server` up.

    `begin`: the first bytes of its content, as far as they show what is `served`.
    """

    server: socket.socket
    response: http.client.HTTPResponse
    target: Target
    body: WebBody
    begin: bytes
    served: Served

    @property
    def is_one_picture(self) -> bool:
        """Whether it is declared as that; a preview or a gain map (MPF) may stand behind the picture itself."""
        kind = self.response.getheader("Content-Type") or ""
        return kind.strip().lower().startswith("image/") and self.body.size is not None


class WebGate(Gate):
    """See the module's docstring."""

    schemes = ("http", "https")

    def __init__(self, road: Road) -> None:
        super().__init__(road)
        self._first: _Answer | None = None
        self._cookies: OrderedDict[Origin, dict[str, str]] = OrderedDict()
        self._cutter: PictureCutter | None = None
        self._unanswered: Exception | None = None
        """Why the last request for one more picture has failed; None if it has not."""

    @property
    def url(self) -> str:
        return self._here("camera", self._camera)

    def ask(self) -> Served:
        """Ask the camera before FFmpeg starts, because FFmpeg must know what to expect.

        FFmpeg's first request gets this answer: some cameras do not answer twice. Raises Dropped, OSError.
        """
        first = self._answered(_Asked("camera", self._camera, {"range": "bytes=0-"}), self._road.connect_s)
        with self._lock:
            self._first, closed = first, self._closed
        if closed:
            self.close()
        _require_good(first.response)
        return first.served

    @property
    def problem(self) -> Exception | None:
        return super().problem or self._pictures_problem()

    def _pictures_problem(self) -> Exception | None:
        """Why no picture has come for FFmpeg, of a camera that sends pictures; None if that is not so."""
        cutter = self._cutter
        if self._unanswered is not None or cutter is None or cutter.pictures or not cutter.bytes:
            return self._unanswered
        if cutter.is_in_picture:
            return Dropped("it sends a picture without its end")
        return _no_picture(cutter.bytes)

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
        if asked.kind == "camera" and answer.served == "pictures":
            self._pass_on_pictures(client, asked, answer)
            return
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

    def _answered(self, asked: _Asked, within_s: float | None, *, is_final: bool = True) -> _Answer:
        """The camera's answer, after its redirects and its challenge. Raises Dropped, OSError.

        ``is_final``: if the camera cannot be reached, that is the problem of this gate.
        """
        target, challenged = asked.target, False
        self._require_allowed(target, "names")
        for _ in range(MOST_REDIRECTS + 2):
            server = self._dialled(target.origin, is_final=is_final)
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
                    challenges = response.headers.get_all("WWW-Authenticate") or ()
                    if authorization.take(challenges):
                        continue
                    if why := why_not_answered(challenges):
                        raise Dropped(why, "unauthorised")
                elif response.status in _REDIRECTS and location:
                    target = self._target_after(location, target_from(target, location))
                    continue
                kept = self._begun(server, response, target, asked.kind)
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

    def _begun(self, server: socket.socket, response: http.client.HTTPResponse, target: Target, kind: Kind) -> _Answer:
        """The answer with its first bytes. Raises Dropped if a camera's stream is expected, and it is none."""
        body, begin = WebBody(response), b""
        declared = response.getheader("Content-Type") or ""
        is_good = response.status in _GOOD
        while is_good and not is_enough(declared, begin) and (more := self._read(body, BEGIN_BYTES - len(begin))):
            begin += more
        server.settimeout(None)
        if is_good and kind == "camera":
            what = served(declared, begin)
        else:
            what = "playlist" if begin == PLAYLIST_BEGIN else "stream"
        return _Answer(server, response, target, body, begin, what)

    def _exchange(
        self, server: socket.socket, response: http.client.HTTPResponse, target: Target, headers: dict[str, str]
    ) -> None:
        path = quote(target.path or "/", safe=_SAFE)
        default = {"http": 80, "https": 443}[target.origin.scheme] == target.origin.port
        host = target.origin.named.rpartition(":")[0] if default else target.origin.named
        lines = [f"GET {path} HTTP/1.1", f"Host: {host}", "Connection: close", "Accept-Encoding: identity"]
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
        if answer.served == "playlist":
            self._pass_on_playlist(client, kind, answer)
            return
        response, data = answer.response, answer.begin or self._read(answer.body, _CHUNK)
        if kind == "list" and response.status in _GOOD:
            raise Dropped("its playlist names something as a playlist that is none")
        # Written anew, so that FFmpeg reads nothing that was not read here.
        lines = [f"HTTP/1.1 {response.status} -", "Connection: close"]
        lines += [f"{name}: {_CONTROL.sub(' ', value)}" for name in _PASSED_BACK if (value := response.getheader(name))]
        lines += [f"Content-Length: {answer.body.size}"] if answer.body.size is not None else []
        client.sendall("\r\n".join([*lines, "", ""]).encode("latin-1", "replace"))
        while data:
            client.sendall(data)
            data = self._read(answer.body, _CHUNK)

    # ---- pictures

    def _pass_on_pictures(self, client: socket.socket, asked: _Asked, first: _Answer) -> None:
        """Until FFmpeg hangs up, or an answer with several pictures ends. Raises Dropped then, OSError."""
        client.sendall(_PARTS_HEAD)
        with closing(self._answers_with_pictures(client, asked, first)) as answers:
            for answer in answers:
                self._cutter = cutter = PictureCutter()
                for picture in self._pictures(answer, cutter):
                    if cutter.pictures > 1 and answer.is_one_picture:
                        continue
                    client.sendall(_PART_HEAD.format(len(picture)).encode())
                    client.sendall(picture)
                    client.sendall(b"\r\n")
                is_stream = cutter.pictures > 1 and not answer.is_one_picture
                if is_stream or (answer is first and not (cutter.pictures and answer.body.is_whole)):
                    raise self._pictures_problem() or Dropped("the stream ended")
                self._unanswered = None if cutter.pictures else self._pictures_problem()

    def _pictures(self, answer: _Answer, cutter: PictureCutter) -> Iterator[bytes]:
        data = answer.begin or self._read(answer.body, _CHUNK)
        try:
            while data:
                yield from cutter.feed(data)
                if not cutter.pictures and cutter.bytes > MOST_PICTURE:
                    raise _no_picture(cutter.bytes)
                data = self._read(answer.body, _CHUNK)
        except PictureTooLarge:
            raise Dropped(f"it sends a picture of more than {MOST_PICTURE >> 20} MB") from None
        except OSError as problem:
            self._require_open()
            self._unanswered = problem
            return
        if answer.body.is_whole:
            yield from cutter.finish()

    def _answers_with_pictures(
        self, client: socket.socket, asked: _Asked, first: _Answer
    ) -> Generator[_Answer, None, None]:
        """The first answer, then one each `every_s`; the last one is hung up before the next is asked for."""
        answer: _Answer | None = first
        plain = asked._replace(headers={name: value for name, value in asked.headers.items() if name != "range"})
        while True:
            asked_s = time.monotonic()
            if answer is not None:
                try:
                    yield answer
                finally:
                    self._drop(answer)
            _wait_for_end(client, asked_s + self._road.every_s - time.monotonic())
            answer = self._next_picture(plain)

    def _next_picture(self, asked: _Asked) -> _Answer | None:
        """One more answer; None if the camera has none just now: then it is silent, which has a bound.

        Raises Dropped if the camera refuses the user, or has nothing at this address any more.
        """
        try:
            answer = self._answered(asked, self._road.connect_s, is_final=False)
        except (Dropped, OSError) as problem:
            self._require_open()
            if isinstance(problem, Dropped) and problem.state == "unauthorised":
                raise
            self._unanswered = problem
            return None
        try:
            _require_good(answer.response)
        except Dropped as problem:
            self._unanswered = problem
            self._drop(answer)
            return None
        except av.FFmpegError:
            self._drop(answer)
            raise
        return answer

    # ---- playlists

    def _pass_on_playlist(self, client: socket.socket, kind: Kind, answer: _Answer) -> None:
        text = bytearray(answer.begin)
        while more := self._read(answer.body, _CHUNK):
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

    def _read(self, body: WebBody, most: int) -> bytes:
        """The next content, as soon as there is some; nothing at the end. Raises Dropped if nothing ever came."""
        try:
            return body.read(most)
        except TimeoutError:
            raise self._too_late() from None


def _no_picture(sent: int) -> Dropped:
    return Dropped(f"there is no picture (JPEG) in the {sent} bytes that it sent: choose MJPEG in the camera")


def _require_good(response: http.client.HTTPResponse) -> None:
    """Raises av.FFmpegError as FFmpeg does if the user is refused or nothing is there, and Dropped if it fails."""
    if response.status in _REFUSED:
        raise av.HTTPUnauthorizedError(errno.EACCES, "refused")
    if response.status in _MISSING:
        raise av.HTTPNotFoundError(errno.ENOENT, "not there")
    if response.status not in _GOOD:
        raise Dropped(f"it answers with {statuses.of_http(response.status, response.reason)}")


def _wait_for_end(client: socket.socket, seconds: float) -> None:
    """Wait so long. Raises OSError as soon as FFmpeg, or who closes this gate, ends the connection."""
    ended = select.poll()
    ended.register(client, select.POLLIN | select.POLLRDHUP)
    if ended.poll(max(seconds, 0) * 1000):
        raise ConnectionResetError(errno.ECONNRESET, "FFmpeg has hung up")
