"""The service's end of the process that makes live pictures (`picture_process`)."""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from camgraph.pipeline.errors import Unavailable, UserError, WireError
from camgraph.pipeline.system.child_environment import handed_on
from camgraph.pipeline.system.side_link import Link
from camgraph.stages.video.packets import Packet, packet_message, stream_message
from camgraph.tools.service.live.known_people import Moment
from camgraph.tools.service.live.picture_maker import LivePicture
from camgraph.tools.service.web.thread_pools import ThreadPool

_AGAIN_S = 10.0
"""After it has died, a video that kills it must not have it started without end."""
_ANSWER_S = 30.0
"""A process that has not answered by then counts as hung; one without processor time shows nobody anything either."""
_HANGS = (
    "no picture came within {:g} s: the program that decodes them hangs, and is started anew. Try again, or watch the "
    "video, `live.mp4`"
)
_NO_PROCESS = "pictures cannot be made now: try again in a few seconds, or watch the video, `live.mp4`"


class Connection(NamedTuple):
    """The way of one camera to the process."""

    socket: socket.socket
    process: subprocess.Popen[bytes]


class PictureProcess:
    """One process for all cameras: started for the first of them, and again after it has ended. Used by any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._begun_s = -_AGAIN_S
        self._killed: subprocess.Popen[bytes] | None = None
        """The last one that hung. It may still be ending."""

    @property
    def pid(self) -> int | None:
        """None while there is none."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    def connect(self) -> Connection:
        """The way to it for one camera. Raises Unavailable."""
        with self._lock:
            if self.pid is None or self._process is self._killed:
                self._start()
            try:
                return self._connected()
            except OSError:  # it has ended a moment ago, as it does when nobody looks
                self._start()
            try:
                return self._connected()
            except OSError:
                raise Unavailable(_NO_PROCESS, error_id="no-picture") from None

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """End one that hangs; the next camera gets another. Does not wait."""
        self._killed = process
        process.kill()

    def close(self) -> None:
        """End it."""
        atexit.unregister(self.close)
        with self._lock:
            if self._control is not None:
                self._control.close()
                self._control = None
            if self._process is not None:
                self._process.kill()
                self._process.wait()
                self._process = None

    def _connected(self) -> Connection:
        """Raises OSError if it has ended."""
        assert self._control is not None
        assert self._process is not None
        ours, its = socket.socketpair()
        with its:
            try:
                socket.send_fds(self._control, [b"c"], [its.fileno()])
            except OSError:
                ours.close()
                raise
        return Connection(ours, self._process)

    def _start(self) -> None:
        has_died = self._process is not None and self._process.returncode != 0
        if has_died and time.monotonic() - self._begun_s < _AGAIN_S:
            raise Unavailable(_NO_PROCESS, error_id="no-picture")
        if self._control is not None:
            self._control.close()
        else:
            atexit.register(self.close)
        self._begun_s = time.monotonic()
        self._control, its = socket.socketpair()
        with its:
            try:
                self._process = _executed(its.fileno())
            except OSError:
                raise Unavailable(_NO_PROCESS, error_id="no-picture") from None
        # So that it is no zombie after it has ended.
        threading.Thread(target=self._process.wait, name="picture-process", daemon=True).start()


def _executed(control: int) -> subprocess.Popen[bytes]:
    """Raises OSError."""
    return subprocess.Popen(  # noqa: S603 - our own interpreter and module
        # -P: files in the working directory are no modules, whatever their names.
        [sys.executable, "-P", "-m", "camgraph.tools.service.live.picture_process", str(control)],
        pass_fds=(control,),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        env={**handed_on(os.environ), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        # Ctrl-C goes to all of a terminal's group; this one ends with its socket.
        process_group=0,
    )


class PictureLink:
    """One camera's way to the process. For one loop."""

    def __init__(self, process: PictureProcess, threads: ThreadPool) -> None:
        self._process, self._threads = process, threads
        self._its: subprocess.Popen[bytes] | None = None
        self._link: Link | None = None
        self._stream: object = None
        self._asking: asyncio.Task[Any] | None = None

    async def make(
        self, packets: Sequence[Packet], reports: Mapping[str, Any], wanted: Collection[bool]
    ) -> LivePicture | None:
        """The newest picture of these packets that is due, if any; `reports`: see `KnownPeople.reports_of`.

        Raises UserError if the video cannot be decoded, Unavailable if the process has ended. One that does not answer
        within `_ANSWER_S` is ended.
        """
        try:
            answer = await self._answer(packets, reports, wanted)
        except TimeoutError:
            self.close()
            raise Unavailable(_HANGS.format(_ANSWER_S), error_id="no-picture") from None
        except (OSError, WireError, ValueError):
            self.close()
            raise Unavailable(_NO_PROCESS, error_id="no-picture") from None
        if isinstance(answer, str):
            raise UserError(answer, error_id="no-picture")
        if not answer:
            return None
        epoch, at, jpegs = answer
        return LivePicture(Moment(epoch, at), dict(jpegs))

    def close(self) -> None:
        """The process then forgets this camera.

        An answer on its way is awaited first: a decoder that hangs is ended, also if nobody looks any more.
        """
        if self._asking is not None and not self._asking.done():
            self._asking.add_done_callback(lambda _: self._disconnect())
        else:
            self._disconnect()

    def _disconnect(self) -> None:
        if self._link is not None:
            self._link.close()
        self._link = None

    async def _answer(self, packets: Sequence[Packet], reports: Mapping[str, Any], wanted: Collection[bool]) -> Any:
        if self._link is None:
            connection = await self._threads.run(self._process.connect)
            connection.socket.setblocking(False)
            self._its, self._link, self._stream = connection.process, Link(connection.socket), None
        request = [list(self._messages(packets)), json.dumps(reports), list(wanted)]
        self._asking = asyncio.ensure_future(self._asked(request, self._link))
        return await asyncio.shield(self._asking)

    async def _asked(self, request: Any, link: Link) -> Any:
        """Raises TimeoutError for a process that hangs, after it has been ended: other cameras lose it as well."""
        try:
            async with asyncio.timeout(_ANSWER_S):
                await link.deliver(request)
                while True:
                    for answer in await link.arrive():
                        return answer
        except TimeoutError:
            assert self._its is not None
            self._process.kill(self._its)
            raise

    def _messages(self, packets: Sequence[Packet]) -> Iterator[list[Any]]:
        for packet in packets:
            if packet.stream is not self._stream:
                self._stream = packet.stream
                yield stream_message(packet.stream)
            yield packet_message(packet)
