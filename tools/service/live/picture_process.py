"""The process that makes live pictures, for all cameras: `python -P -m camgraph.tools.service.live.picture_process FD`.

It has the lowest priority there is, so that cameras lose nothing by it. In the service's own process a thread of low
priority would not do: on a busy machine it stops while it holds Python's lock, and then nobody is answered.

    FD        a socket: each byte brings the end of another one, for one camera; its end ends the process
    request   [[stream or packet, ...], people as JSON, [drawn, ...]]
    answer    [] (no picture is due), [epoch, at, [[drawn, JPEG], ...]], or the reason why it cannot be

Requests and answers are messages as in `pipeline.system.side_link`, streams and packets as in `stages.video.packets`.
There is no channel at a path, because the service gives each camera's socket to the one process that it has started
and watches. A camera is answered in a thread of its own, request by request: decoders work beside each other.
"""

from __future__ import annotations

import gc
import json
import os
import select
import socket
import sys
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from typing import Any

import cv2

from camgraph.pipeline.errors import UserError, WireError
from camgraph.pipeline.system.side_link import Link
from camgraph.stages.video.packets import PacketReader
from camgraph.tools.service.live.known_people import Moment, Scene
from camgraph.tools.service.live.picture_maker import PictureMaker

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
    """Answer the requests of one camera, until it has no more, or sends what is no message."""
    people, packets, link = ReportedPeople(), PacketReader(), Link(camera)
    with camera, closing(PictureMaker(people)) as maker, suppress(OSError, WireError):
        while True:
            for listed, reports, wanted in link.receive():
                people.take(json.loads(reports))
                try:
                    made = maker.make(list(packets.packets(listed)), set(wanted))
                    answer: Any = [] if made is None else [*made.moment, [list(pair) for pair in made.jpegs.items()]]
                except (UserError, WireError) as error:
                    answer = str(error)
                link.send(answer)


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
