"""The video of a camera as it comes, for those who watch: packets as the camera sent them, nothing is decoded.

packets --> Film, one of each watched camera --fragments--> FilmViewer, one of each who watches
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from camgraph.pipeline.errors import Unavailable, UserError, WireError
from camgraph.stages.sinks.footage.live_mp4 import LiveMp4, can_play
from camgraph.stages.video.packets import Packet, VideoStreamInfo
from camgraph.tools.service.live.watching import WatchedCamera

_MOST_WAITING = 4 << 20
"""Bytes that wait for a viewer. One that is further behind is disconnected, and can begin anew."""
_MOST_KEPT = 16 << 20
"""Bytes since the last keyframe, with which the next viewer begins at once."""


@dataclass(frozen=True, slots=True)
class FilmFacts:
    """`start`: the time of the stream, in seconds, that is 0 in the film; with `epoch` it names a frame."""

    content_type: str
    epoch: int
    start: Fraction


class FilmViewer:
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


class Film(WatchedCamera[FilmViewer]):
    """One camera while somebody watches it. `ended` is called when nothing more comes."""

    def __init__(self, path: Path, ended: Callable[[], object]) -> None:
        super().__init__(path, ended)
        self._facts: FilmFacts | None = None
        self._mp4: LiveMp4 | None = None
        self._stream: object = None
        self._kept: list[bytes] = []
        """The beginning, and the fragments since the last keyframe; none of these if they would be too many."""
        self._kept_size = 0

    @property
    def facts(self) -> FilmFacts:
        """Once it has begun. Raises Unavailable if it has ended before."""
        if self._facts is None:
            raise Unavailable("the camera sends no picture now", error_id="no-picture")
        return self._facts

    def admit(self, viewer: FilmViewer) -> None:
        viewer.begin_with(self._kept)

    def take(self, packet: Packet) -> None:
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
        check_paced(packet.stream)
        if not can_play(packet.stream):
            raise UserError(
                f"browsers cannot play the video of this camera ({packet.stream.codec}): take its pictures, `mjpeg`",
                error_id="no-picture",
            )
        self._mp4, self._stream = LiveMp4(packet), packet.stream
        self._kept = [self._mp4.beginning]
        self._facts = FilmFacts(self._mp4.content_type, packet.stream.epoch, self._mp4.start)
        for viewer in self.viewers:
            viewer.hand(self._mp4.beginning)
        self.begun.set()


def check_paced(stream: VideoStreamInfo) -> None:
    """Raises UserError for a stream that is read faster than anybody could watch."""
    if not stream.is_paced:
        raise UserError(
            "a file that is read as fast as possible cannot be watched: give it `realtime: true`",
            error_id="no-picture",
        )
