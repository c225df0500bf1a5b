"""Answers who asks for a picture of a camera: the newest one, or that of a moment, as long as its packets are kept.

    request   one line of JSON:  {"camera": "front"}                                         the newest
                                 {"camera": "front", "epoch": 0, "pts": 900, "time_base": [1, 90000]}
    answer    one line of JSON:  {"epoch": 0, "pts": 900, "time_base": [1, 90000], "width": 1280, "height": 720,
                                  "bytes": 81234}, and then so many bytes of JPEG
                                 {"gone": "why"}, or {"error": "why"}

Nothing is decoded before somebody asks: the newest picture is made of one keyframe, and another one of the packets from
its keyframe on. Each answer takes `WITHIN_S` at most. The socket lies in the run's folder, which other users cannot
enter. It serves one client at a time, in a thread of its own: who asks a lot waits, and neither cameras nor clips do.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from pipeline.errors import EnvironmentProblem, UserError, WireError
from pipeline.foreign_text import shown
from pipeline.stage import Logger
from pipeline.system.names import ascii_form, nfc
from stages.footage.packets import Moment, Packet
from stages.footage.still import decode_last, jpeg
from stages.footage.tap import listening, short_address

NAME = "pictures"
"""Of the socket, in the state folder of its stage."""
WITHIN_S = 3.0
_TURN_S = 0.2
_MOST_REQUEST = 10_000
_MOST_JPEG = 64 << 20
_BACKLOG = 16


FindPackets = Callable[[str, Moment | None], Sequence[Packet]]
"""The packets that decode to the picture of this moment (the last of them), or to the newest; none if they are gone.

The camera is named in ASCII. May be called from any thread.
"""


class PictureService:
    """See the module. `find` gets packets; `refused`: why no picture may leave, for people, or ""."""

    def __init__(self, path: Path, find: FindPackets, log: Logger, *, refused: str = "") -> None:
        self._path, self._find, self._log, self._refused = path, find, log, refused
        self._stop = threading.Event()
        self._server: socket.socket | None = None
        self._thread = threading.Thread(target=self._serve, name="pictures", daemon=True)

    def open(self) -> None:
        """Begin to answer. Without sockets of this kind, nobody can ask, and all else goes on."""
        with suppress(OSError, AttributeError):
            self._server = listening(self._path, _BACKLOG)
            self._server.settimeout(_TURN_S)
            self._thread.start()

    def close(self) -> None:
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()
        if self._server is not None:
            self._server.close()
            self._path.unlink(missing_ok=True)

    def _serve(self) -> None:
        assert self._server is not None
        while not self._stop.is_set():
            with suppress(OSError):  # nobody asks, or the client has gone
                client, _ = self._server.accept()
                with client:
                    client.settimeout(WITHIN_S)
                    self._answer(client)

    def _answer(self, client: socket.socket) -> None:
        """Raises OSError."""
        try:
            head, data = self._answer_to(_line_of(client, _MOST_REQUEST))
        except WireError as error:
            head, data = {"error": str(error)}, b""
        except Exception:  # noqa: BLE001
            # A bug must cost one answer, not all that come.
            self._log.exception("picture_failed")
            head, data = {"error": "it could not be made; the log of the run has the details"}, b""
        client.sendall(json.dumps(head).encode() + b"\n" + data)

    def _answer_to(self, line: bytes) -> tuple[dict[str, Any], bytes]:
        """Raises WireError for a request that nobody can read."""
        camera, moment = _request(line)
        if self._refused:
            return {"error": self._refused}, b""
        packets = self._find(ascii_form(camera), moment)
        if not packets:
            return {"gone": f"no packets of {shown(camera)} are kept{' of that moment' if moment else ''}"}, b""
        picture = decode_last(packets, until_s=time.monotonic() + WITHIN_S / 2)
        if picture is None:
            return {"gone": "it cannot be decoded, or not in time"}, b""
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


def _line_of(client: socket.socket, most: int) -> bytes:
    """One line, in the time of one answer. Raises OSError, and WireError for one that is longer."""
    data, until_s = b"", time.monotonic() + WITHIN_S
    while not data.endswith(b"\n"):
        if len(data) > most or time.monotonic() > until_s:
            raise WireError(f"expected one line of JSON of at most {most} bytes, within {WITHIN_S:g} s")
        piece = client.recv(4096)
        if not piece:
            raise ConnectionResetError
        data += piece
    return data


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
        with _connected(path) as connection, connection.makefile("rb") as answer:
            connection.sendall(json.dumps(request).encode() + b"\n")
            facts = json.loads(answer.readline(_MOST_REQUEST))
            data = answer.read(min(int(facts.get("bytes", 0)), _MOST_JPEG))
    except (OSError, ValueError) as error:
        raise EnvironmentProblem(f"no picture came from {path}: {error or type(error).__name__}: try again") from None
    if why := facts.get("gone") or facts.get("error"):
        raise UserError(str(why))
    return ServedPicture(data, facts)


@contextmanager
def _connected(path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(2 * WITHIN_S)
        with short_address(path) as address:
            connection.connect(address)
        yield connection
