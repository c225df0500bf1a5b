"""A camera as a row of JPEGs (MJPEG), for those who cannot play its video: a few a second, with people drawn on them.

    packets --> PictureFilm, one of each watched camera --JPEGs--> PictureViewer, one of each who watches
                    its decoder, in a thread of its own
    people of `rules` --^

All packets must be decoded, because pictures build on those before them, but only a few pictures are converted, drawn
on and encoded: once for all viewers. A packet waits for the rules to tell of its picture, for `_MOST_LATE_S` at most,
so that people are drawn where they are, and nobody is drawn into a picture of another moment.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import av
import numpy as np
from av.container import InputContainer
from av.video.frame import VideoFrame

from pipeline.errors import Unavailable, UserError
from stages.footage.packets import Packet, VideoStreamInfo
from stages.footage.still import Picture, av_packet, jpeg, opened_sample
from tools.service.known_people import KnownPeople, Moment, Scene, draw_scene
from tools.service.live_video import check_paced
from tools.service.watching import WatchedCamera

MOST_CAMERAS = 8
"""That are decoded at a time."""
BOUNDARY = "picture"
_EVERY_S = 0.2
"""Between two pictures, in the time of the stream."""
_PLAIN_S = 1.0
"""If the rules leave this picture out and tell of others: so long those are waited for."""
_MOST_LATE_S = 2.5
_MOST_WAITING_S = 5.0
"""If the decoder is further behind, it goes on at the next keyframe."""
_MOST_WAITING = 16 << 20
_MOST_AT_ONCE = 32
_SILENT_S = 20.0
_TURN_S = 0.25
_LONGEST_SIDE = 1280
_QUALITY = 75
_NICE = 10


@dataclass(frozen=True, slots=True)
class LivePicture:
    """The JPEG of one moment: `drawn`, with people and zones on it, and without; those that are wanted."""

    moment: Moment
    jpegs: Mapping[bool, bytes]


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

    def __init__(self, path: Path, ended: Callable[[], object], people: AsyncIterator[bytes]) -> None:
        super().__init__(path, ended, silent_s=_SILENT_S)
        self._people, self._known = people, KnownPeople()
        self._maker = PictureMaker(self._known)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="mjpeg", initializer=_give_way)
        self._waiting: deque[tuple[float, Packet]] = deque()
        """Packets that are not decoded yet, and when they came; the first picture of all is a keyframe."""
        self._size = 0
        self._needs_key = True
        self._come = asyncio.Event()
        self._newest: LivePicture | None = None
        self._tasks = [asyncio.ensure_future(self._listen()), asyncio.ensure_future(self._work())]

    def begin_check(self) -> None:
        """Once it has begun. Raises Unavailable if it has ended without a picture."""
        if self._newest is None:
            raise Unavailable("the camera sends no picture now", error_id="no-picture")

    def greet(self, viewer: PictureViewer) -> None:
        if self._newest is not None:
            viewer.hand(self._newest)

    def end(self) -> None:
        if not self.is_over:
            for task in self._tasks:
                task.cancel()
            # The thread ends with the packets that it has; nobody waits for it.
            self._thread.submit(self._maker.close)
            self._thread.shutdown(wait=False)
        super().end()

    def take(self, packet: Packet) -> None:
        check_paced(packet.stream)
        now_s = time.monotonic()
        if self._waiting and (now_s - self._waiting[0][0] > _MOST_WAITING_S or self._size > _MOST_WAITING):
            self._waiting.clear()
            self._size, self._needs_key = 0, True
        if self._needs_key and not packet.is_key:
            return
        self._needs_key = False
        self._waiting.append((now_s, packet))
        self._size += len(packet.data)
        self._come.set()

    async def _listen(self) -> None:
        async for line in self._people:
            self._known.take(line, time.monotonic())
            self._come.set()

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while True:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._come.wait(), _TURN_S)
                self._come.clear()
                while packets := self._ready(time.monotonic()):
                    wanted = {viewer.drawn for viewer in self.viewers}
                    made = await loop.run_in_executor(self._thread, self._maker.make, packets, wanted)
                    if made is not None:
                        self._hand(made)
        except UserError as error:
            self.refused = str(error)
        finally:
            self.end()

    def _ready(self, now_s: float) -> list[Packet]:
        """The packets that need not wait any longer for the people in them."""
        ready: list[Packet] = []
        while self._waiting and len(ready) < _MOST_AT_ONCE:
            came_s, packet = self._waiting[0]
            is_late = now_s - came_s > _MOST_LATE_S
            if not is_late and self._known.is_past(_moment(packet.stream, packet.pts), now_s) is False:
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


def _give_way() -> None:
    """The run comes first: on Linux, a thread has a priority of its own."""
    with suppress(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)


def _moment(stream: VideoStreamInfo, pts: int) -> Moment:
    return Moment(stream.epoch, float(pts * stream.time_base))


class PictureMaker:
    """Makes pictures of the packets of one camera. For one thread."""

    def __init__(self, known: KnownPeople) -> None:
        self._known = known
        self._stream: VideoStreamInfo | None = None
        self._container: InputContainer | None = None
        self._context: Any = None
        self._last: Moment | None = None

    def make(self, packets: Sequence[Packet], wanted: Collection[bool]) -> LivePicture | None:
        """Decode the packets, and make the newest picture that is due, if any, with and without people as `wanted`.

        Raises UserError if there is no decoder.
        """
        chosen: tuple[VideoFrame, Moment, Scene | None] | None = None
        for packet in packets:
            for pts, frame in self._decoded(packet):
                moment = _moment(packet.stream, pts)
                scene = self._known.scene(moment)
                if self._is_due(moment, has_people=scene is not None):
                    chosen, self._last = (frame, moment, scene), moment
        if chosen is None:
            return None
        frame, moment, scene = chosen
        picture = _upright(frame, packets[-1].stream.turns)
        jpegs = {False: jpeg(picture, _QUALITY)} if False in wanted else {}
        if True in wanted:
            draw_scene(picture, scene or self._known.shapes())
            jpegs[True] = jpeg(picture, _QUALITY)
        return LivePicture(moment, jpegs)

    def close(self) -> None:
        if self._container is not None:
            self._container.close()
        self._container = self._context = None

    def _decoded(self, packet: Packet) -> list[tuple[int, VideoFrame]]:
        """Frames and their times."""
        if packet.stream is not self._stream:
            self._open(packet.stream)
        try:
            return [(frame.pts, frame) for frame in self._context.decode(av_packet(packet)) if frame.pts is not None]
        except av.FFmpegError:
            return []  # of a damaged packet; the next keyframe is well again

    def _open(self, stream: VideoStreamInfo) -> None:
        self.close()
        try:
            self._container = opened_sample(stream)
            self._context = self._container.streams.video[0].codec_context
            self._context.thread_type = "NONE"
        except (av.FFmpegError, IndexError):
            raise UserError(
                f"the video of this camera ({stream.codec}) cannot be decoded", error_id="no-picture"
            ) from None
        self._stream = stream

    def _is_due(self, moment: Moment, *, has_people: bool) -> bool:
        last = self._last
        if last is None or moment.epoch != last.epoch or moment.at < last.at:
            return True
        leaves_out = not has_people and self._known.is_past(moment, time.monotonic())
        return moment.at - last.at > (_PLAIN_S if leaves_out else _EVERY_S) - 0.001


def _upright(frame: VideoFrame, turns: int) -> Picture:
    """(H, W, 3) BGR, its longest side at most `_LONGEST_SIDE`."""
    scale = min(1.0, _LONGEST_SIDE / max(frame.width, frame.height))
    size = [max(2, round(side * scale)) for side in (frame.width, frame.height)]
    pixels = frame.to_ndarray(format="bgr24", width=size[0], height=size[1])
    return np.ascontiguousarray(np.rot90(pixels, turns))
