"""The gate for RTSP: FFmpeg speaks to it without a password; it signs requests, and looks at each answer.

Media over UDP does not pass through: FFmpeg's sockets get it from the camera itself, and FFmpeg is given its address.
"""

from __future__ import annotations

import re
import selectors
import socket
import ssl
from dataclasses import dataclass, field

from camgraph.stages.video.live.camera_problems import Dropped
from camgraph.stages.video.live.gate import statuses
from camgraph.stages.video.live.gate.authorization import Authorization, why_not_answered
from camgraph.stages.video.live.gate.gate import MOST_REDIRECTS, Gate, Road
from camgraph.stages.video.live.gate.origins import Target, target_of
from camgraph.stages.video.live.gate.rtsp_stream import Malformed, Message, Splitter

_CHUNK = 1 << 16
_MOST_UNANSWERED = 32
_PASSED_BACK = ("Session", "Public", "Content-Base", "Content-Type", "Range", "RTP-Info")
"""Of an answer, as it is: nothing by which FFmpeg goes elsewhere, asks again, or takes the camera for another kind."""
_TOLD_BY_FFMPEG = (401, 403, 404)
"""Statuses that the state of the camera follows from."""
_OPENING = ("OPTIONS", "DESCRIBE", "SETUP", "PLAY")
"""If one of these is refused before pictures come, there is no connection."""
_VIDEO = re.compile(r"^m=video [0-9/]+ \S+ ([0-9]+)", re.MULTILINE)
_ENCODING = r"^a=rtpmap:{} +([^/\s]+)"
_PASSED_BACK_OF_REQUEST = ("CSeq", "Session")
_NUMBERS = r"(?:^|;)\s*{}\s*=\s*([0-9]{{1,5}}(?:-[0-9]{{1,5}})?)\s*(?=;|$)"


class RtspGate(Gate):
    """See the module's docstring."""

    schemes = ("rtsp", "rtsps")

    def __init__(self, road: Road) -> None:
        super().__init__(road)
        self._target = self._camera
        self._redirects = 0
        self._codec = ""

    @property
    def url(self) -> str:
        return f"rtsp://{self._own}{self._camera.path}"

    @property
    def codec(self) -> str:
        return self._codec

    def described(self, description: str) -> None:
        """Note what the camera says of its streams."""
        self._codec = codec_in(description)

    def _serve(self, client: socket.socket, begun: bytes) -> None:
        with self._lock:
            target = self._target
        server = self._dialled(target.origin)
        try:
            _Talk(self, client, server, target).run(begun)
        finally:
            self._hang_up(server)

    def authorization_for(self, target: Target) -> Authorization | None:
        """Signs the requests to this host; None if they are not signed."""
        return self._authorization_for(target.origin)

    def foreign(self, uri: str, target: Target) -> str:
        """A request's address for the camera: this gate's becomes the camera's, the camera's own stays."""
        own = f"rtsp://{self._own}"
        if uri.startswith(own):
            return f"{target.origin.scheme}://{target.origin.named}{uri[len(own) :]}"
        return uri

    def redirected(self, location: str) -> str:
        """The redirect as FFmpeg gets it, leading back to the gate. Raises Dropped if it is refused."""
        leads = self._target_after(location, target_of(location))
        with self._lock:
            self._redirects += 1
            if self._redirects > MOST_REDIRECTS:
                raise Dropped(f"it redirects more than {MOST_REDIRECTS} times")
            self._target = leads
        return f"rtsp://{self._own}{leads.path}"


@dataclass(slots=True)
class _Asked:
    """A request that is not answered yet. `number`: FFmpeg's own for it."""

    request: Message
    number: str
    signed: bool = field(default=False)


class _Talk:
    """One connection of FFmpeg, and the one to the camera that belongs to it."""

    def __init__(self, gate: RtspGate, client: socket.socket, server: socket.socket, target: Target) -> None:
        self._gate = gate
        self._client = client
        self._server = server
        self._target = target
        self._authorization = gate.authorization_for(target)
        self._from_client, self._from_server = Splitter(), Splitter()
        self._asked: dict[str, _Asked] = {}
        self._number = 0
        self._is_playing = False
        # `recv` takes all that it may read for each packet, and cuts it down: that riddles the thread's heap with gaps.
        self._buffer = bytearray(_CHUNK)

    def run(self, begun: bytes) -> None:
        """Until either side ends; the client has begun with this. Raises OSError, Dropped."""
        self._take(begun)
        with selectors.DefaultSelector() as selector:
            for one in (self._client, self._server):
                selector.register(one, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    if key.fileobj is self._client:
                        data = self._read(self._client)
                        self._take(data)
                    else:
                        data = self._received()
                        self._answered(data)
                    if not data:
                        return

    def _received(self) -> bytes:
        """Read everything that is there: data that TLS has decoded already wakes no selector."""
        data = self._read(self._server)
        if isinstance(self._server, ssl.SSLSocket):
            while data and self._server.pending():
                data += self._read(self._server)
        return data

    def _read(self, source: socket.socket) -> bytes:
        size = source.recv_into(self._buffer)
        return bytes(memoryview(self._buffer)[:size])

    def _take(self, data: bytes) -> None:
        """Handle bytes from FFmpeg. Raises OSError for its mistakes, which end its own connection, not the camera's."""
        try:
            for piece in self._from_client.feed(data):
                self._to_server(piece)
        except Malformed as error:
            raise OSError(f"the client sends {error}") from None

    def _answered(self, data: bytes) -> None:
        try:
            self._client.sendall(b"".join(map(self._to_client, self._from_server.feed(data))))
        except Malformed as error:
            raise Dropped(f"it sends something that no camera sends: {error}") from None

    def _to_server(self, piece: bytes | Message) -> None:
        if isinstance(piece, bytes):
            self._server.sendall(piece)
        elif piece.is_answer:  # as the camera has asked for it
            self._server.sendall(piece.to_bytes())
        else:
            method, _, rest = piece.first.partition(" ")
            uri, _, version = rest.rpartition(" ")
            piece.first = f"{method} {self._gate.foreign(uri, self._target)} {version}"
            self._ask(_Asked(piece, piece.value("cseq")))

    def _ask(self, asked: _Asked) -> None:
        self._number += 1
        request = asked.request
        request.set("CSeq", str(self._number))
        method, uri, *_ = request.first.split()
        request.set("Authorization", self._authorization.header(method, uri) if self._authorization else "")
        self._asked[str(self._number)] = asked
        while len(self._asked) > _MOST_UNANSWERED:
            del self._asked[next(iter(self._asked))]
        self._server.sendall(request.to_bytes())

    def _to_client(self, piece: bytes | Message) -> bytes:
        """The part of it for FFmpeg."""
        if isinstance(piece, bytes):
            return piece
        if piece.is_answer:
            return self._answer(piece)
        method, _, rest = piece.first.partition(" ")
        headers = [(name, value) for name in _PASSED_BACK_OF_REQUEST if (value := piece.value(name))]
        return Message(f"{method} {rest.split()[0]} RTSP/1.0", headers).to_bytes()

    def _answer(self, answer: Message) -> bytes:
        """Written anew from the fields that FFmpeg needs, so that it reads nothing that was not read here."""
        status, asked = answer.status, self._asked_for(answer)
        if status is None:
            raise Dropped(f"it answers {asked.request.first.split()[0]} with a status that cannot be read")
        challenges = answer.values("www-authenticate")
        if status == 401 and not asked.signed and self._authorization and self._authorization.take(challenges):
            asked.signed = True
            self._ask(asked)
            return b""
        self._require_good(status, answer, asked.request)
        message = Message(f"RTSP/1.0 {status} -", [], answer.body)
        message.set("CSeq", asked.number)
        for name in _PASSED_BACK:
            message.set(name, answer.value(name))
        if 300 <= status < 400:
            message.set("Location", self._gate.redirected(answer.value("location")))
        if asked.request.first.startswith("SETUP "):
            wanted = asked.request.value("transport")
            message.set("Transport", _transport(wanted, answer.value("transport"), self._server.getpeername()[0]))
        if answer.body:
            message.set("Content-Length", str(len(answer.body)))
        return message.to_bytes()

    def _require_good(self, status: int, answer: Message, request: Message) -> None:
        """Raises Dropped for a refusal that FFmpeg has no words for."""
        method = request.first.partition(" ")[0]
        if status == 401 and self._authorization and (why := why_not_answered(answer.values("www-authenticate"))):
            raise Dropped(why, "unauthorised")
        if status < 400 and method == "DESCRIBE":
            self._gate.described(answer.body.decode("latin-1"))
        if self._is_playing or method not in _OPENING or status in _TOLD_BY_FFMPEG or status < 400:
            self._is_playing = self._is_playing or (method == "PLAY" and status < 300)
            return
        named = statuses.of_rtsp(status, answer.first.partition(str(status))[2])
        if status == 461:
            wanted, other = ("tcp", "udp") if "/TCP" in request.value("transport").upper() else ("udp", "tcp")
            raise Dropped(f"it does not send over {wanted} ({named}): write `transport: {other}` for this camera")
        raise Dropped(f"it answers {method} with {named}")

    def _asked_for(self, answer: Message) -> _Asked:
        """The request that it answers: by its number, else the oldest one, as FFmpeg has it. Raises Dropped."""
        number = answer.value("cseq")
        if number not in self._asked:
            number = next(iter(self._asked), "")
        asked = self._asked.pop(number, None)
        if asked is None:
            raise Dropped("it sends an answer without a request")
        return asked


def _transport(wanted: str, declared: str, camera: str) -> str:
    """The first transport in an answer to SETUP; media over UDP comes from the camera, and not from here."""
    if not declared:
        return ""
    protocol, _, parameters = declared.partition(",")[0].partition(";")
    profile = "/".join(wanted.split("/")[:2])
    is_tcp = protocol.strip().lower().split("/")[2:3] == ["tcp"]
    is_multicast = "multicast" in (one.strip().lower() for one in parameters.split(";"))
    parts = [f"{profile}/{'TCP' if is_tcp else 'UDP'}", "multicast" if is_multicast else "unicast"]
    for name in ("interleaved",) if is_tcp else ("client_port", "server_port"):
        found = re.search(_NUMBERS.format(name), parameters, re.IGNORECASE)
        parts += [f"{name}={found[1]}"] if found else []
    return ";".join(parts if is_tcp else (*parts, f"source={camera}"))


def codec_in(description: str) -> str:
    """The name of the first video in a description (SDP, RFC 8866), as the camera writes it; "" if it has none."""
    video = _VIDEO.search(description)
    found = re.search(_ENCODING.format(video[1]), description, re.MULTILINE) if video else None
    return found[1] if found else ""
