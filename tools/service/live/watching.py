"""Cameras that somebody watches: the packets of each are read once, however many watch, and not at all if nobody does.

    capture's socket --packets--> WatchedCamera --> viewers, one of each who watches

What viewers get is made by subclasses. All of it runs in the service's loop.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import ExitStack, aclosing, closing
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import av
import structlog

from camgraph.pipeline.errors import Unavailable, UserError, WireError
from camgraph.pipeline.system.side_link import Link, follow
from camgraph.stages.video.packets import Packet, PacketReader
from camgraph.tools.service.web.quotas import Quota, Requester

log = structlog.get_logger()

MOST_VIEWERS = 32
"""Of all cameras, whatever they get."""
_FIRST_S = 20.0
"""How long the first picture may take to come: cameras send keyframes every few seconds."""


class Viewer(Protocol):
    """One who watches, and what waits for it."""

    def end(self) -> None:
        """Nothing more comes."""

    def pieces(self) -> AsyncIterator[bytes]:
        """The body of its answer, until the end."""


V = TypeVar("V", bound=Viewer)


class WatchedCamera(ABC, Generic[V]):
    """One camera while somebody watches it. `ended` is called once, when nothing more comes.

    `silent_s`: a camera that sends nothing for so long has ended; None if it may be silent.
    """

    def __init__(self, path: Path, ended: Callable[[], object], *, silent_s: float | None = None) -> None:
        self._path, self._ended, self._silent_s = path, ended, silent_s
        self.viewers: set[V] = set()
        self.refused = ""
        """Why it cannot be shown at all, for people."""
        self.begun = asyncio.Event()
        """There is something to show, or it is over."""
        self.is_over = False
        self._task = asyncio.ensure_future(self._read())

    @property
    def why_late(self) -> str:
        """Why the first picture has not come within `_FIRST_S`, for people."""
        return f"the camera has sent no keyframe for {_FIRST_S:g} s"

    @abstractmethod
    def take(self, packet: Packet) -> None:
        """The next packet. Raises UserError for a stream that cannot be shown, WireError if it ends with this one."""

    @abstractmethod
    def admit(self, viewer: V) -> None:
        """Give a new viewer what it begins with."""

    def join(self, viewer: V) -> None:
        self.viewers.add(viewer)
        self.admit(viewer)

    def leave(self, viewer: V) -> None:
        """The last who leaves ends it."""
        self.viewers.discard(viewer)
        if not self.viewers:
            self.end()

    def end(self) -> None:
        """Part with the camera, and tell its viewers."""
        if self.is_over:
            return
        self.is_over = True
        self._task.cancel()
        self.begun.set()
        for viewer in self.viewers:
            viewer.end()
        self._ended()

    async def _read(self) -> None:
        try:
            async with aclosing(self._received()) as received:
                async for packets in received:
                    for packet in packets:
                        self.take(packet)
        except (WireError, av.FFmpegError):
            pass  # the stream cannot go on; the next viewer tries anew
        except UserError as error:
            self.refused = str(error)
        except Exception:
            log.exception("live_view_failed", socket=self._path.name)
        finally:
            self.end()

    async def _received(self) -> AsyncGenerator[list[Packet]]:
        """The packets as they come. Ends if the camera ends, also in the middle of a packet, or is silent.

        Raises UserError if the camera refuses its packets.
        """
        try:
            with closing(follow(self._path)) as link:
                packets = PacketReader()
                while not packets.ended:
                    yield list(packets.packets(await self._next(link)))
                    if packets.refusal:
                        raise UserError(packets.refusal, error_id="no-picture")
        except (OSError, WireError, ValueError, TypeError):
            return  # the next viewer tries anew

    async def _next(self, link: Link) -> Iterator[Any]:
        """The messages that come next. Raises TimeoutError, an OSError."""
        # Not `wait_for`: until Python 3.12, a cancellation that comes together with the data is lost.
        async with asyncio.timeout(self._silent_s):
            return await link.arrive()


C = TypeVar("C", bound=WatchedCamera)  # type: ignore[type-arg]


class Showing(Generic[C]):
    """A camera and one who watches it, until `leave`."""

    def __init__(self, camera: C, viewer: Viewer, release: Callable[[], object] = lambda: None) -> None:
        """`release`: that of its quotas."""
        self.camera, self._viewer, self._release = camera, viewer, release
        self._has_left = False
        camera.join(viewer)

    async def begin(self) -> C:
        """Wait for the first picture. Raises UserError if it cannot be shown, Unavailable if it does not come."""
        try:
            async with asyncio.timeout(_FIRST_S):
                await self.camera.begun.wait()
        except TimeoutError:
            raise Unavailable(self.camera.why_late, error_id="camera-silent") from None
        if self.camera.refused:
            raise UserError(self.camera.refused, error_id="no-picture")
        return self.camera

    def pieces(self) -> AsyncIterator[bytes]:
        return self._viewer.pieces()

    def leave(self) -> None:
        if not self._has_left:
            self._has_left = True
            self._release()
            self.camera.leave(self._viewer)


class Watching(Generic[C]):
    """The cameras of one kind that are watched, by the paths of their sockets.

    `quotas`: each who watches counts for each of these. `most`: how many cameras there may be.
    """

    def __init__(self, *quotas: Quota, most: int = MOST_VIEWERS) -> None:
        self._quotas, self._most = quotas, most
        self._cameras: dict[Path, C] = {}

    def show(
        self, path: Path, make: Callable[[Callable[[], object]], C], viewer: Viewer, requester: Requester
    ) -> Showing[C]:
        """Begin to watch. `make` makes the camera if nobody watches it yet, and is given its `ended`.

        Raises Unavailable if too many watch, QuotaExceeded if this one does.
        """
        with ExitStack() as acquired:
            for quota in self._quotas:
                acquired.callback(quota.acquire(requester))
            camera = self._cameras.get(path)
            if camera is None:
                if len(self._cameras) >= self._most:
                    why = f"{self._most} other cameras are watched like this already"
                    raise Unavailable(why, error_id="too-many-readers")
                camera = self._cameras[path] = make(lambda: self._cameras.pop(path, None))
            return Showing(camera, viewer, acquired.pop_all().close)
