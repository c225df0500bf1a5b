"""A camera as a row of JPEGs (MJPEG), for those who cannot play its video: a few a second, with people drawn on them.

    packets ------------> PictureFilm, one of each watched camera --JPEGs--> PictureViewer, one of each who watches
    people of `rules` ------^  |  ^
                               v  |
                          the process that decodes, draws and encodes (`picture_process`)

All packets must be decoded, because pictures build on those before them, but only a few pictures are converted, drawn
on and encoded: once for all viewers. A packet waits for the rules to tell of its picture, for `_MOST_LATE_S` at most,
so that people are drawn where they are, and nobody is drawn into a picture of another moment.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path

from camgraph.pipeline.errors import Unavailable, UserError
from camgraph.stages.video.packets import Packet
from camgraph.tools.service.live.known_people import KnownPeople
from camgraph.tools.service.live.live_video import check_paced
from camgraph.tools.service.live.picture_link import PictureLink, PictureProcess
from camgraph.tools.service.live.picture_maker import LivePicture, moment_of
from camgraph.tools.service.live.watching import WatchedCamera
from camgraph.tools.service.web.thread_pools import ThreadPool

MOST_CAMERAS = 8
"""That are decoded at a time."""
BOUNDARY = "picture"
_MOST_LATE_S = 2.5
_MOST_WAITING_S = 5.0
"""If the decoder is further behind, it goes on at the next keyframe."""
_MOST_WAITING = 16 << 20
_MOST_AT_ONCE = 32
_SILENT_S = 20.0
_TURN_S = 0.25
_NO_TIME = "the machine has had no time to make a picture: the cameras come first. Try again, or watch `live.mp4`"


class PictureViewer:
    """Holds the newest picture alone, so that a slow reader gets fewer pictures, not older ones."""

    def __init__(self, *, drawn: bool) -> None:
        self.drawn = drawn
        self._newest: LivePicture | None = None
        self._come = asyncio.Event()
        self._is_over = False

    def hand(self, picture: LivePicture) -> None:
        self._newest = picture
        self._come.set()

    def end(self) -> None:
        self._is_over = True
        self._come.set()

    async def pieces(self) -> AsyncIterator[bytes]:
        """The parts of a `multipart/x-mixed-replace`. Each ends with the next boundary: browsers show it then."""
        yield f"--{BOUNDARY}\r\n".encode()
        while not self._is_over:
            picture, self._newest = self._newest, None
            if picture is not None and self.drawn in picture.jpegs:
                yield _part(picture, picture.jpegs[self.drawn])
            else:
                self._come.clear()
                await self._come.wait()


def _part(picture: LivePicture, data: bytes) -> bytes:
    epoch, at = picture.moment
    head = f"Content-Type: image/jpeg\r\nContent-Length: {len(data)}\r\nX-Camgraph-Epoch: {epoch}\r\n"
    return b"".join([f"{head}X-Camgraph-At: {at:.6f}\r\n\r\n".encode(), data, f"\r\n--{BOUNDARY}\r\n".encode()])


class PictureFilm(WatchedCamera[PictureViewer]):
    """One camera while somebody watches its pictures. `people`: lines about them, without an end."""

    def __init__(
        self,
        path: Path,
        ended: Callable[[], object],
        people: AsyncIterator[bytes],
        process: PictureProcess,
        threads: ThreadPool,
    ) -> None:
        super().__init__(path, ended, silent_s=_SILENT_S)
        self._people, self._known = people, KnownPeople()
        self._link = PictureLink(process, threads)
        self._why = "the camera sends no picture now"
        self._waiting: deque[tuple[float, Packet]] = deque()
        """Packets that are not decoded yet, and when they came; the first picture of all is a keyframe."""
        self._size = 0
        self._needs_key, self._has_key = True, False
        self._come = asyncio.Event()
        self._newest: LivePicture | None = None
        self._tasks = [asyncio.ensure_future(self._listen()), asyncio.ensure_future(self._work())]

    def begin_check(self) -> None:
        """Once it has begun. Raises Unavailable if it has ended without a picture."""
        if self._newest is None:
            raise Unavailable(self._why, error_id="no-picture")

    @property
    def why_late(self) -> str:
        return _NO_TIME if self._has_key else super().why_late

    def admit(self, viewer: PictureViewer) -> None:
        if self._newest is not None:
            viewer.hand(self._newest)

    def end(self) -> None:
        if not self.is_over:
            for task in self._tasks:
                task.cancel()
            self._link.close()
        super().end()

    def take(self, packet: Packet) -> None:
        check_paced(packet.stream)
        now_s = time.monotonic()
        if self._waiting and (now_s - self._waiting[0][0] > _MOST_WAITING_S or self._size > _MOST_WAITING):
            self._waiting.clear()
            self._size, self._needs_key = 0, True
        if self._needs_key and not packet.is_key:
            return
        self._needs_key, self._has_key = False, True
        self._waiting.append((now_s, packet))
        self._size += len(packet.data)
        self._come.set()

    async def _listen(self) -> None:
        async for line in self._people:
            self._known.take(line, time.monotonic())
            self._come.set()

    async def _work(self) -> None:
        try:
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(_TURN_S):
                        await self._come.wait()
                self._come.clear()
                while packets := self._ready(time.monotonic()):
                    moments = [moment_of(packet.stream, packet.pts) for packet in packets]
                    reports = self._known.reports_of(moments, time.monotonic())
                    made = await self._link.make(packets, reports, {viewer.drawn for viewer in self.viewers})
                    if made is not None:
                        self._hand(made)
        except UserError as error:
            self.refused = str(error)
        except Unavailable as error:
            self._why = str(error)
        finally:
            self.end()

    def _ready(self, now_s: float) -> list[Packet]:
        """The packets that need not wait any longer for the people in them."""
        ready: list[Packet] = []
        while self._waiting and len(ready) < _MOST_AT_ONCE:
            came_s, packet = self._waiting[0]
            is_late = now_s - came_s > _MOST_LATE_S
            if not is_late and self._known.is_past(moment_of(packet.stream, packet.pts), now_s) is False:
                break
            ready.append(packet)
            self._size -= len(packet.data)
            self._waiting.popleft()
        return ready

    def _hand(self, picture: LivePicture) -> None:
        self._newest = picture
        self.begun.set()
        for viewer in self.viewers:
            viewer.hand(picture)
