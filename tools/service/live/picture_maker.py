"""Makes pictures of the packets of one camera: decodes all, and converts, draws on and encodes a few."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import av
import numpy as np
from av.container import InputContainer
from av.video.frame import VideoFrame

from camgraph.pipeline.errors import UserError
from camgraph.stages.sinks.footage.still import Picture, av_packet, jpeg, opened_sample
from camgraph.stages.video.packets import Packet, VideoStreamInfo
from camgraph.stages.vision.orientation import Orientation
from camgraph.tools.service.live.known_people import Moment, Scene, draw_scene

_EVERY_S = 0.2
"""Between two pictures, in the time of the stream."""
_PLAIN_S = 1.0
"""If the rules leave this picture out and report others: so long those are waited for."""
_LONGEST_SIDE = 1280
_QUALITY = 75


@dataclass(frozen=True, slots=True)
class LivePicture:
    """The JPEG of one moment: `drawn`, with people and zones on it, and without; those that are wanted."""

    moment: Moment
    jpegs: Mapping[bool, bytes]


class People(Protocol):
    """What is reported of pictures, as `KnownPeople` knows it."""

    def is_past(self, moment: Moment, now_s: float) -> bool | None: ...

    def scene(self, moment: Moment) -> Scene | None: ...

    def shapes(self) -> Scene: ...


def moment_of(stream: VideoStreamInfo, pts: int) -> Moment:
    return Moment(stream.epoch, float(pts * stream.time_base))


class PictureMaker:
    """Makes pictures of the packets of one camera. For one thread."""

    def __init__(self, known: People) -> None:
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
                moment = moment_of(packet.stream, pts)
                scene = self._known.scene(moment)
                if self._is_due(moment, has_people=scene is not None):
                    chosen, self._last = (frame, moment, scene), moment
        if chosen is None:
            return None
        frame, moment, scene = chosen
        picture = _upright(frame, packets[-1].stream.orientation)
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


def _upright(frame: VideoFrame, orientation: Orientation) -> Picture:
    """(H, W, 3) BGR, its longest side at most `_LONGEST_SIDE`."""
    scale = min(1.0, _LONGEST_SIDE / max(frame.width, frame.height))
    size = [max(2, round(side * scale)) for side in (frame.width, frame.height)]
    pixels = frame.to_ndarray(format="bgr24", width=size[0], height=size[1])
    return np.ascontiguousarray(orientation.upright(pixels))
