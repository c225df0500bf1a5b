"""Gives programs a picture of a camera: the newest one, or that of a moment, as long as its packets are kept.

    request   one line of JSON:  {"camera": "front"}                                         the newest
                                 {"camera": "front", "epoch": 0, "pts": 900, "time_base": [1, 90000]}
    answer    one line of JSON:  {"epoch": 0, "pts": 900, "time_base": [1, 90000], "width": 1280, "height": 720,
                                  "bytes": 81234}, and then so many bytes of JPEG
                                 {"gone": "why"}, or {"error": "why"}; if no picture may leave, also
                                 "id": "pictures-hidden"

Nothing is decoded before somebody asks: the newest picture is made of one keyframe, and another one of the packets from
its keyframe on. The socket lies in the run's folder, which other users cannot enter. One thread makes all answers, one
after another: a client that asks a lot waits, and neither cameras nor clips do.

Each client has `WITHIN_S` from the moment it is let in, for its request, the picture and the reading of it; then it is
disconnected. A picture that does not come in that time is "gone". A client that sends or reads nothing keeps nobody
waiting: all are served at once, and if there are `_MOST_CLIENTS`, a new one takes the place of the oldest.
"""

from __future__ import annotations

import json
import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from camgraph.pipeline.errors import EnvironmentProblem, UserError, WireError
from camgraph.pipeline.foreign_text import shown
from camgraph.pipeline.stage import Logger
from camgraph.pipeline.system.local_socket import Exchange, listening, short_address
from camgraph.pipeline.system.names import ascii_form, nfc
from camgraph.stages.sinks.footage.still import decode_last, jpeg
from camgraph.stages.video.packets import Moment, Packet

NAME = "pictures"
"""Of the socket, in the state folder of its stage."""
WITHIN_S = 3.0
_TURN_S = 0.2
_FIND_S = 1.0
"""How long `FindPackets` takes at most."""
_SEND_S = 0.5
"""Of `WITHIN_S`: what is left for the answer to be sent."""
_MOST_CLIENTS = 16
_MOST_MADE = 16
"""Pictures of moments that are kept for others who ask for the same ones."""
_MOST_NEWEST_BYTES = 64 << 20
"""Of the newest pictures, one of each camera, which many ask for: those of some hundred cameras."""
_MOST_REQUEST = 10_000
_MOST_JPEG = 64 << 20
_BACKLOG = 128
_HIDDEN = "pictures-hidden"


_EXPECTED = f"expected one line of JSON of at most {_MOST_REQUEST} bytes, within {WITHIN_S:g} s"

_Made = tuple[dict[str, Any], bytes]
"""The facts of a picture, and its JPEG."""
FindPackets = Callable[[str, Moment | None], Sequence[Packet]]
"""The packets that decode to the picture of this moment (the last of them), or to the newest; none if they are gone.

The camera is named in ASCII. May be called from any thread, and takes `_FIND_S` at most.
"""


@dataclass(slots=True, eq=False)
class _Client:
    """It has sent `request` so far, and gets what is left of `answer`."""

    socket: socket.socket
    until_s: float
    request: bytes = b""
    answer: memoryview | None = None


_Key = tuple[str, int, int]
"""A camera in ASCII, an epoch and a pts."""


class MadePictures:
    """Pictures for the next who ask: the newest of each camera, and those of the last moments that were asked for."""

    def __init__(self) -> None:
        self._newest: dict[str, tuple[_Key, _Made]] = {}
        self._newest_bytes = 0
        self._others: dict[_Key, _Made] = {}

    def get(self, key: _Key) -> _Made | None:
        known = self._newest.get(key[0])
        return known[1] if known is not None and known[0] == key else self._others.get(key)

    def keep(self, key: _Key, made: _Made, *, is_newest: bool) -> None:
        """`is_newest`: of its camera, when it was asked for."""
        if not is_newest:
            self._others.pop(key, None)
            self._others[key] = made  # the newest last
            if len(self._others) > _MOST_MADE:
                del self._others[next(iter(self._others))]
            return
        self._drop(key[0])
        self._newest[key[0]] = (key, made)
        self._newest_bytes += len(made[1])
        while self._newest_bytes > _MOST_NEWEST_BYTES and len(self._newest) > 1:
            self._drop(next(iter(self._newest)))

    def _drop(self, camera: str) -> None:
        _, made = self._newest.pop(camera, (None, ({}, b"")))
        self._newest_bytes -= len(made[1])


class PictureService:
    """See the module. `find` gets packets; `refused`: why no picture may leave, for people, or ""."""

    def __init__(self, path: Path, find: FindPackets, log: Logger, *, refused: str = "") -> None:
        self._path, self._find, self._log, self._refused = path, find, log, refused
        self._stop = threading.Event()
        self._server: socket.socket | None = None
        self._why = ""
        self._clients: list[_Client] = []
        """The oldest first."""
        self._made = MadePictures()
        self._selector = selectors.DefaultSelector()
        self._thread = threading.Thread(target=self._serve, name="pictures", daemon=True)

    def open(self) -> None:
        """Begin to answer. Without sockets of this kind, nobody can ask, and all else goes on."""
        with suppress(OSError, AttributeError):
            self._server = listening(self._path, _BACKLOG)
            self._selector.register(self._server, selectors.EVENT_READ)
            self._thread.start()

    def close(self) -> None:
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()
        for client in list(self._clients):
            self._part(client)
        self._selector.close()
        if self._server is not None:
            self._server.close()
            self._path.unlink(missing_ok=True)

    def _serve(self) -> None:
        while not self._stop.is_set():
            for key, _ in self._selector.select(_TURN_S):
                if key.data is None:
                    self._welcome()
                elif key.data in self._clients:
                    self._go_on(key.data)
            for client in [one for one in self._clients if time.monotonic() > one.until_s]:
                self._refuse(client)

    def _welcome(self) -> None:
        assert self._server is not None
        try:
            connection, _ = self._server.accept()
        except BlockingIOError:
            return
        except OSError as error:
            # Mostly because there are no descriptors: the client still waits, so that this would be tried without end.
            if self._why != str(error):
                self._log.warning("picture_client_not_accepted", why=str(error))
            self._why = str(error)
            self._stop.wait(_TURN_S)
            return
        connection.setblocking(False)
        if len(self._clients) >= _MOST_CLIENTS:
            self._refuse(self._clients[0])
        client = _Client(connection, time.monotonic() + WITHIN_S)
        self._clients.append(client)
        self._selector.register(connection, selectors.EVENT_READ, client)

    def _go_on(self, client: _Client) -> None:
        try:
            if client.answer is None:
                self._read(client)
            else:
                self._send(client)
        except BlockingIOError:
            pass
        except OSError:
            self._part(client)

    def _read(self, client: _Client) -> None:
        """Answer when its line is complete. Raises OSError."""
        piece = client.socket.recv(4096)
        if not piece:
            raise ConnectionResetError
        client.request += piece
        if client.request.endswith(b"\n") or len(client.request) > _MOST_REQUEST:
            client.answer = memoryview(self._answer(client))
            self._selector.modify(client.socket, selectors.EVENT_WRITE, client)
            self._send(client)

    def _send(self, client: _Client) -> None:
        """As much as it takes. Raises OSError."""
        assert client.answer is not None
        client.answer = client.answer[client.socket.send(client.answer) :]
        if not client.answer:
            self._part(client)

    def _refuse(self, client: _Client) -> None:
        """Who has sent no whole line is told so."""
        if client.answer is None:
            with suppress(OSError):
                client.socket.send(_wire({"error": _EXPECTED}, b""))
        self._part(client)

    def _part(self, client: _Client) -> None:
        self._clients.remove(client)
        self._selector.unregister(client.socket)
        client.socket.close()

    def _answer(self, client: _Client) -> bytes:
        try:
            if len(client.request) > _MOST_REQUEST:
                raise WireError(_EXPECTED)
            return _wire(*self._answer_to(client.request, client.until_s - _SEND_S))
        except WireError as error:
            return _wire({"error": str(error)}, b"")
        except Exception:  # noqa: BLE001
            # A bug must cost one answer, not all that come.
            self._log.exception("picture_failed")
            return _wire({"error": "it could not be made; the log of the run has the details"}, b"")

    def _answer_to(self, line: bytes, until_s: float) -> tuple[dict[str, Any], bytes]:
        """`until_s`: when it must be there. Raises WireError for a request that nobody can read."""
        camera, moment = _request(line)
        if self._refused:
            return {"error": self._refused, "id": _HIDDEN}, b""
        if time.monotonic() > until_s - _FIND_S:
            return {"gone": "too many ask for pictures: try again"}, b""
        packets = self._find(ascii_form(camera), moment)
        if not packets:
            return {"gone": f"no packets of {shown(camera)} are kept{' of that moment' if moment else ''}"}, b""
        key = (ascii_form(camera), packets[-1].stream.epoch, packets[-1].pts)
        made = self._made.get(key) or _picture_of(packets, until_s)
        if made is None:
            return {"gone": "it cannot be decoded, or not in time"}, b""
        self._made.keep(key, made, is_newest=moment is None)
        return made


def _picture_of(packets: Sequence[Packet], until_s: float) -> _Made | None:
    """The picture of the last of these packets; None if it cannot be decoded until then."""
    picture = decode_last(packets, until_s=until_s)
    if picture is None:
        return None
    data, last = jpeg(picture), packets[-1]
    base = last.stream.time_base
    head = {
        "epoch": last.stream.epoch,
        "pts": last.pts,
        "time_base": [base.numerator, base.denominator],
        "width": picture.shape[1],
        "height": picture.shape[0],
        "bytes": len(data),
    }
    return head, data


def _wire(head: Mapping[str, Any], data: bytes) -> bytes:
    return json.dumps(head).encode() + b"\n" + data


def _request(line: bytes) -> tuple[str, Moment | None]:
    try:
        match json.loads(line):
            case {"camera": str(camera), "epoch": int(epoch), "pts": int(pts), "time_base": [int(num), int(den)]} if (
                den
            ):
                return nfc(camera), Moment(epoch, Fraction(num, den) * pts)
            case {"camera": str(camera)}:
                return nfc(camera), None
    except (ValueError, RecursionError, ZeroDivisionError):
        pass
    raise WireError('expected {"camera": NAME}, or also "epoch", "pts" and "time_base"')


# ---- who asks


@dataclass(frozen=True, slots=True)
class ServedPicture:
    """A JPEG, and the facts about it as the answer has them."""

    jpeg: bytes
    facts: Mapping[str, Any]


def ask_picture(path: Path, camera: str, moment: Moment | None = None) -> ServedPicture:
    """Ask the service at this socket.

    Raises UserError if there is no such picture, EnvironmentProblem if no answer comes.
    """
    request: dict[str, Any] = {"camera": camera}
    if moment is not None:
        request |= {"epoch": moment.epoch, "pts": moment.at.numerator, "time_base": [1, moment.at.denominator]}
    try:
        with _connected(path) as connection:
            link = Exchange(connection, 2 * WITHIN_S)
            link.send(json.dumps(request).encode() + b"\n")
            facts = json.loads(link.line(_MOST_REQUEST))
            data = link.read(min(int(facts.get("bytes", 0)), _MOST_JPEG))
    except (OSError, ValueError) as error:
        raise EnvironmentProblem(
            f"no picture came from {path}: {error or type(error).__name__}: try again", error_id="no-picture"
        ) from None
    if facts.get("id") == _HIDDEN:
        raise UserError(str(facts.get("error")), error_id="pictures-hidden")
    if why := facts.get("gone") or facts.get("error"):
        raise UserError(str(why), error_id="no-picture")
    return ServedPicture(data, facts)


@contextmanager
def _connected(path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(2 * WITHIN_S)
        with short_address(path) as address:
            connection.connect(address)
        yield connection
