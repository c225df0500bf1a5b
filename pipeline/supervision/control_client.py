"""Asks the control socket of a run: one request and its answer, bounded in time and size, by the user who is expected.

The run's end of the socket is ZeroMQ (`pipeline.supervision.control`). A client of ZeroMQ bounds neither the number of
frames of an answer nor all of its bytes, and does not tell which user answers. So the few frames that a request needs
are written here, as ZMTP 3.0 has them (https://rfc.zeromq.org/spec/23/):

    greeting   FF, eight bytes, 7F, version 3.0, "NULL" in 20 bytes, 32 zeros
    frame      flags (1: more frames follow, 2: a long size, 4: a command), the size in 1 or 8 bytes, the content
    request    READY (a command), an empty frame, the request; the answer comes in the same form
"""

from __future__ import annotations

import socket
import time
from pathlib import Path
from typing import NamedTuple

from camgraph.pipeline.errors import EnvironmentProblem
from camgraph.pipeline.system.local_socket import Exchange, answering_user, short_address
from camgraph.pipeline.system.names import user_name

MOST_ANSWER = 64 << 20
"""Bytes of an answer. The status of a run of a thousand cameras has a megabyte."""
_MOST_FRAMES = 16
_GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
_MORE, _LONG, _COMMAND = 1, 2, 4
_READY = b"\x05READY\x0bSocket-Type\x00\x00\x00\x03REQ"
_ROOT = 0
_AGAIN_S = 0.05


class _Frame(NamedTuple):
    flags: int
    content: bytes


def exchange(path: Path, request: bytes, *, owner: int, within_s: float) -> bytes:
    """The answer of the run of the user `owner` whose control socket is at `path`.

    Raises TimeoutError if it does not come in time, EnvironmentProblem if another user answers, OSError, and ValueError
    for an answer of another form.
    """
    until_s = time.monotonic() + within_s
    with _connected(path, until_s) as connection:
        _require_user(answering_user(connection), owner, path)
        link = Exchange(connection, until_s - time.monotonic())
        link.send(_GREETING + _frame(_COMMAND, _READY))
        if link.read(len(_GREETING))[:1] != b"\xff":
            raise ValueError("expected ZMTP 3.0, got another protocol")
        _next_frame(link, MOST_ANSWER)  # its READY
        link.send(_frame(_MORE, b"") + _frame(0, request))
        return _answer(link)


def _connected(path: Path, until_s: float) -> socket.socket:
    """A run that starts has its folder before its socket: then the connection is tried again."""
    while True:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(max(_AGAIN_S, until_s - time.monotonic()))
            with short_address(path) as address:
                connection.connect(address)
            return connection
        except (FileNotFoundError, ConnectionRefusedError, BlockingIOError):
            connection.close()
            if time.monotonic() + _AGAIN_S > until_s:
                raise TimeoutError from None
            time.sleep(_AGAIN_S)
        except BaseException:
            connection.close()
            raise


def _require_user(found: int, expected: int, path: Path) -> None:
    if found not in (expected, _ROOT):
        raise EnvironmentProblem(
            f"{path}: expected an answer of {user_name(expected)}, got one of {user_name(found)}, "
            "which is not believed: end that program, or as root name the owner of the run with --user",
            error_id="run-of-others",
        )


def _frame(flags: int, content: bytes) -> bytes:
    if len(content) < 256:
        return bytes((flags, len(content))) + content
    return bytes((flags | _LONG,)) + len(content).to_bytes(8, "big") + content


def _next_frame(link: Exchange, most: int) -> _Frame:
    [flags] = link.read(1)
    size = int.from_bytes(link.read(8 if flags & _LONG else 1), "big")
    if size > most:
        raise ValueError(f"the answer has more than {MOST_ANSWER >> 20} MB")
    return _Frame(flags, link.read(size))


def _answer(link: Exchange) -> bytes:
    left = MOST_ANSWER
    for _ in range(_MOST_FRAMES):
        frame = _next_frame(link, left)
        left -= len(frame.content)
        if not frame.flags & (_MORE | _COMMAND):
            return frame.content
    raise ValueError(f"the answer has more than {_MOST_FRAMES} parts")
