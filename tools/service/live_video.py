"""The video of a camera as it comes, for those who watch: packets as the camera sent them, nothing is decoded.

    capture's socket --packets--> Film, one of each watched camera --fragments--> Viewer, one of each who watches

While nobody watches a camera, nobody listens to it. All of it runs in the service's loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import av

from pipeline.errors import Unavailable, UserError, WireError
from pipeline.system.local_socket import short_address
from stages.footage.live_mp4 import LiveMp4, can_play
from stages.footage.packets import Packet, PacketReader

MOST_VIEWERS = 32
_MOST_WAITING = 4 << 20
"""Bytes that wait for a viewer: whoever is further behind is parted with, and can begin anew."""
_MOST_KEPT = 16 << 20
"""Bytes since the last keyframe, with which the next viewer begins at once."""
_FIRST_S = 20.0
"""How long a keyframe may take to come."""
_READ_BYTES = 1 << 18


@dataclass(frozen=True, slots=True)
class FilmFacts:
    """`start`: the time of the stream, in seconds, that is 0 in the film; with `epoch` it names a frame."""

    content_type: str
    epoch: int
    start: Fraction


class Viewer:
    """The pieces that one who watches has not taken yet."""

    def __init__(self) -> None:
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self._most = _MOST_WAITING
        self._come = asyncio.Event()
        self._is_over = False

    def begin_with(self, pieces: Sequence[bytes]) -> None:
        """Give those that all viewers begin with. However many they are, nobody is behind because of them."""
        self._pieces.extend(pieces)
        self._size = sum(map(len, pieces))
        self._most = self._size + _MOST_WAITING
        self._come.set()

    def hand(self, piece: bytes) -> None:
        """Give the next piece, unless this one is over."""
        self._size += len(piece)
        if self._size > self._most:
            self._pieces.clear()
            self.end()
        if not self._is_over:
            self._pieces.append(piece)
        self._come.set()

    def end(self) -> None:
        self._is_over = True
        self._come.set()

    async def pieces(self) -> AsyncIterator[bytes]:
        """Until the film ends, or the viewer is too far behind."""
        while True:
            while self._pieces:
                piece = self._pieces.popleft()
                self._size -= len(piece)
                yield piece
            if self._is_over:
                return
            self._come.clear()
            await self._come.wait()


class Film:
    """One camera while somebody watches it. `ended` is called when nothing more comes."""

    def __init__(self, path: Path, ended: Callable[[Film], object]) -> None:
        self._path, self._ended = path, ended
        self.viewers: set[Viewer] = set()
        self.facts: FilmFacts | None = None
        self.refused = ""
        """Why it cannot be shown at all, for people."""
        self.begun = asyncio.Event()
        """It has facts, or is over."""
        self._mp4: LiveMp4 | None = None
        self._stream: object = None
        self._kept: list[bytes] = []
        """The beginning, and the fragments since the last keyframe; none of these if they would be too many."""
        self._kept_size = 0
        self._task = asyncio.ensure_future(self._read())

    def join(self, viewer: Viewer) -> None:
        """Once it has begun."""
        self.viewers.add(viewer)
        viewer.begin_with(self._kept)

    def leave(self, viewer: Viewer) -> None:
        """The last who leaves ends it."""
        self.viewers.discard(viewer)
        if not self.viewers:
            self._task.cancel()
            self._end()

    async def _read(self) -> None:
        try:
            with short_address(self._path) as address:
                reader, writer = await asyncio.open_unix_connection(address)
            try:
                packets = PacketReader()
                while not packets.ended and (data := await reader.read(_READ_BYTES)):
                    for packet in packets.feed(data):
                        self._take(packet)
            finally:
                writer.close()
        except (OSError, WireError, ValueError, TypeError, av.FFmpegError):
            pass  # of a camera that ends in the middle of a packet; the next viewer tries anew
        except UserError as error:
            self.refused = str(error)
        finally:
            self._end()

    def _end(self) -> None:
        self.begun.set()
        for viewer in self.viewers:
            viewer.end()
        self._ended(self)

    def _take(self, packet: Packet) -> None:
        """Raises UserError for a stream that cannot be shown, and WireError for the packet of another stream."""
        if self._mp4 is None:
            if packet.is_key:
                self._begin(packet)
            return
        if packet.stream is not self._stream:
            raise WireError("expected the packets of one stream")
        fragment = self._mp4.add(packet)
        if fragment.is_key:
            self._kept, self._kept_size = [self._mp4.beginning], 0
        self._kept_size += len(fragment.data)
        if self._kept_size < _MOST_KEPT:
            self._kept.append(fragment.data)
        elif len(self._kept) > 1:
            self._kept = [self._mp4.beginning]
        for viewer in self.viewers:
            viewer.hand(fragment.data)

    def _begin(self, packet: Packet) -> None:
        if not packet.stream.is_paced:
            raise UserError(
                "a file that is read as fast as possible cannot be watched: give it `realtime: true`",
                error_id="no-picture",
            )
        if not can_play(packet.stream):
            raise UserError(
                f"browsers cannot play the video of this camera ({packet.stream.codec}): look at its stills",
                error_id="no-picture",
            )
        self._mp4, self._stream = LiveMp4(packet), packet.stream
        self._kept = [self._mp4.beginning]
        self.facts = FilmFacts(self._mp4.content_type, packet.stream.epoch, self._mp4.start)
        for viewer in self.viewers:
            viewer.hand(self._mp4.beginning)
        self.begun.set()


class Showing:
    """A film and one who watches it, until `leave`."""

    def __init__(self, film: Film) -> None:
        self._film, self._viewer = film, Viewer()
        film.join(self._viewer)

    async def begin(self) -> FilmFacts:
        """Wait for the first picture. Raises UserError if it cannot be shown, Unavailable if it does not come."""
        try:
            await asyncio.wait_for(self._film.begun.wait(), _FIRST_S)
        except TimeoutError:
            raise Unavailable(f"the camera has sent no keyframe for {_FIRST_S:g} s") from None
        if self._film.refused:
            raise UserError(self._film.refused, error_id="no-picture")
        if self._film.facts is None:
            raise Unavailable("the camera sends no picture now")
        return self._film.facts

    def pieces(self) -> AsyncIterator[bytes]:
        return self._viewer.pieces()

    def leave(self) -> None:
        self._film.leave(self._viewer)


class LiveVideo:
    """The films of all cameras that are watched, by the paths of their sockets. For one loop."""

    def __init__(self) -> None:
        self._films: dict[Path, Film] = {}

    def show(self, path: Path) -> Showing:
        """Begin to watch. Raises Unavailable if too many do so."""
        if sum(len(film.viewers) for film in self._films.values()) >= MOST_VIEWERS:
            raise Unavailable(f"{MOST_VIEWERS} others watch already")
        film = self._films.get(path)
        if film is None:
            film = self._films[path] = Film(path, self._forget)
        return Showing(film)

    def _forget(self, film: Film) -> None:
        for path in [path for path, one in self._films.items() if one is film]:
            del self._films[path]
