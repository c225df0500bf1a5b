"""The process that makes live pictures, for all cameras: `python -P -m camgraph.tools.service.live.picture_process FD`.

It has the lowest priority there is, so that cameras lose nothing by it. In the service's own process a thread of low
priority would not do: on a busy machine it stops while it holds Python's lock, and then nobody is answered.

    FD        a socket: each message brings the end of another one, for one camera; its end ends the process
    request   length (4 bytes), then msgpack: [[stream or packet, ...], people as JSON, [drawn, ...]]
    answer    length, then msgpack: [] (no picture is due), [epoch, at, {drawn: JPEG}], or the reason why it cannot be

A message has `MOST_BYTES` at most. One that is longer, or cut off, ends its connection.

Streams and packets are as in `stages.video.packets`. A camera is answered in a thread of its own, request by request.
"""

from __future__ import annotations

import gc
import json
import os
import select
import socket
import struct
import sys
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from typing import Any, BinaryIO

import cv2
import msgpack

from camgraph.pipeline.errors import UserError, WireError
from camgraph.stages.video.packets import PacketReader
from camgraph.tools.service.live.known_people import Moment, Scene
from camgraph.tools.service.live.picture_maker import PictureMaker

LENGTH = struct.Struct("<I")
MOST_BYTES = 64 << 20
IDLE_S = 60.0
"""Without a camera for so long, it ends: starting it anew takes a third of a second of a core."""
_LOWEST = 19
_REMEMBERED = 128
"""Pictures whose reports it keeps. A decoder gives a picture back a few packets later at most."""


class ReportedPeople:
    """What the requests report of pictures. For one thread."""

    def __init__(self) -> None:
        self._scenes: deque[tuple[Moment, Sequence[Mapping[str, Any]]]] = deque(maxlen=_REMEMBERED)
        self._past: deque[Moment] = deque(maxlen=_REMEMBERED)
        self._shapes: Sequence[Mapping[str, Any]] = ()

    def take(self, reports: Mapping[str, Any]) -> None:
        """As `KnownPeople.reports_of` makes it."""
        self._scenes.extend((Moment(*moment), frames) for moment, frames in reports["scenes"])
        self._past.extend(Moment(*moment) for moment in reports["past"])
        self._shapes = reports["shapes"]

    def is_past(self, moment: Moment, now_s: float) -> bool:
        return moment in self._past

    def scene(self, moment: Moment) -> Scene | None:
        return next((Scene(frames, self._shapes) for when, frames in self._scenes if when == moment), None)

    def shapes(self) -> Scene:
        return Scene((), self._shapes)


def give_way() -> None:
    """Run only if nobody else would. If the system does not know that (or forbids it): nearly so."""
    with suppress(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, 0, _LOWEST)
    with suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def serve(camera: socket.socket) -> None:
    """Answer the requests of one camera, until it has no more."""
    people, packets = ReportedPeople(), PacketReader()
    with camera, camera.makefile("rb") as requests, closing(PictureMaker(people)) as maker, suppress(OSError, EOFError):
        while True:
            listed, reports, wanted = msgpack.unpackb(received(requests))
            people.take(json.loads(reports))
            try:
                made = maker.make(list(packets.packets(listed)), set(wanted))
                answer: Any = [] if made is None else [*made.moment, dict(made.jpegs)]
            except (UserError, WireError) as error:
                answer = str(error)
            camera.sendall(framed(msgpack.packb(answer)))


def framed(data: bytes) -> bytes:
    """A message with its length before it. Raises EOFError if it is too long."""
    if len(data) > MOST_BYTES:
        raise EOFError(f"a message of {len(data)} bytes")
    return LENGTH.pack(len(data)) + data


def received(stream: BinaryIO) -> bytes:
    """The next message. Raises EOFError at the end, wherever it comes, and for a message that is too long."""
    (size,) = LENGTH.unpack(_exactly(stream, LENGTH.size))
    if size > MOST_BYTES:
        raise EOFError(f"a message of {size} bytes")
    return _exactly(stream, size)


def _exactly(stream: BinaryIO, size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return data


def _accepted(control: socket.socket) -> threading.Thread | None:
    """A thread that serves the next camera, None at the end."""
    _, given, _, _ = socket.recv_fds(control, 1, 1)
    if not given:
        return None
    thread = threading.Thread(target=serve, args=(socket.socket(fileno=given[0]),), name="mjpeg", daemon=True)
    thread.start()
    return thread


def _end(control: socket.socket) -> None:
    """Serve the cameras that came at this very moment. Later ones are refused here, and another process is started."""
    control.shutdown(socket.SHUT_RD)
    last: list[threading.Thread] = []
    while thread := _accepted(control):
        last.append(thread)
    for thread in last:
        thread.join()


def main() -> None:
    """Serve cameras until the service has ended, or nobody has looked for a while."""
    control = socket.socket(fileno=int(sys.argv[1]))
    gc.freeze()
    cv2.setNumThreads(1)
    give_way()
    while True:
        is_idle = threading.active_count() == 1
        if select.select([control], [], [], IDLE_S)[0]:
            if _accepted(control) is None:
                os._exit(0)  # the service has ended: nobody reads what is being made
        elif is_idle:
            _end(control)
            return


if __name__ == "__main__":
    main()
