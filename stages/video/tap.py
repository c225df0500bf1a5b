"""Gives the packets that a camera sends to those who keep or show them, beside their way into the decoder.

If nobody follows, a packet costs one look at a socket, or is kept until the next keyframe if a recorder is to come. If
somebody follows and does not keep up, a live camera's packets are left out until the next keyframe, so that reading
never waits; a file waits, up to `PATIENCE_S`.

No failure of the tap reaches the camera: followers learn why a stream cannot be given, and its pictures are judged.
"""

from __future__ import annotations

import io
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import av
from av.codec.context import CodecContext
from av.packet import Packet as AvPacket
from av.video.codeccontext import VideoCodecContext
from av.video.stream import VideoStream

from camgraph.pipeline.stage import Logger
from camgraph.pipeline.system.side_channel import Client, SideChannel
from camgraph.pipeline.system.side_link import framed
from camgraph.stages.video.formats import DECODER_OPTIONS
from camgraph.stages.video.packets import (
    Packet,
    VideoStreamInfo,
    end_message,
    packet_message,
    refusal_message,
    stream_message,
    wanted_mark,
)
from camgraph.stages.video.pixels import orientation_of
from camgraph.stages.vision.orientation import UPRIGHT, Orientation

MOST_WAITING = 16 << 20
"""Bytes that wait for one follower before packets are left out."""
PATIENCE_S = 5.0
_PARTING_S = 0.5
"""How long a live camera that ends waits for a follower that is behind."""
_ASK_S = 5.0
_MOST_REQUEST = 100
_LOOK_S = 0.2
_MOST_UNTIMED = 256
_SAMPLE_FORMS = ("nut", "mov", "rm")
"""Formats of samples, in the order in which they are tried. Only NUT keeps the codec's own data as they are, so another
one is for codecs that NUT does not know, such as ProRes (MOV) and RV20 (RealMedia)."""
_ORIENTATION_FORMS = ("matroska", "mov")
"""Formats that keep the orientation, which NUT loses. MOV is for old codecs of phones, such as H.263."""

Size = tuple[int, int]
"""Width and height in pixels, as they are coded: not set upright."""


@dataclass(slots=True, eq=False)
class _Follower:
    client: Client
    is_new: bool = True
    """It has not got the early packets yet."""
    behind: bool = True
    """It gets nothing before the next keyframe."""
    stream: VideoStreamInfo | None = None
    refusal: str = ""
    """Why this follower gets no packets of the present stream, as far as it knows."""


class PacketTap:
    """The packets of one camera, on a side channel. For one thread.

    `patient`: the tap waits for followers, because a file can wait and must be complete. `paced`: packets come as fast
    as they were filmed.
    """

    def __init__(self, path: Path, log: Logger, *, patient: bool, paced: bool = True) -> None:
        self._path = path
        self._log = log
        self._patient = patient
        self._paced = paced
        self._channel = SideChannel(
            path,
            self._follow,
            log,
            name="packets",
            within_s=_ASK_S,
            most_request=_MOST_REQUEST,
            most_waiting=MOST_WAITING,
        )
        self._followers: list[_Follower] = []
        self._info: VideoStreamInfo | None = None
        self._source: tuple[VideoStream, int] | None = None
        self._refusal = ""
        """Why no packets of this source can be given."""
        self._logged: set[str] = set()
        self.left_out = 0
        """Packets that a follower did not get, because it was behind."""
        self._early: list[Packet] = []
        """Packets of a live camera since a keyframe that came without a follower; a follower that comes before the next
        keyframe gets these packets. So the first incident after a start has its packets, however rare keyframes are."""
        self._early_bytes = 0
        self._untimed: list[Packet] = []
        """Those since a keyframe whose times are not known yet: the first ones of an RTSP connection have none."""
        self._awaited = False
        self._begun = False

    def offer(self, packet: AvPacket[VideoStream], epoch: int) -> None:
        """Give a packet of this epoch to all who follow. Never raises: the camera must be read all the same."""
        try:
            self._offer(packet, epoch)
        except Exception as error:  # noqa: BLE001 - PyAV raises many kinds, and a bug here must not cost the camera
            self._refuse(packet, f"the packets of this video cannot be kept: {error}")

    def _offer(self, packet: AvPacket[VideoStream], epoch: int) -> None:
        if not self._begun:
            self._begin()
        self._turn()
        if self._patient and not self._awaited:
            self._await_follower()
        if packet.size == 0 or not (self._followers or self._is_kept or self._is_wanted(packet)):
            return
        if self._source != (packet.stream, epoch):
            self._source, self._info, self._refusal = (packet.stream, epoch), None, ""
            self._untimed.clear()
            self._forget_early()
        made = [] if self._refusal else self._timed(packet)
        if self._refusal:
            self._tell_refusal()
        for one in made:
            self._note_early(one)
            frame = framed(packet_message(one)) if self._followers else b""
            for follower in self._followers:
                self._hand(follower, one, frame)

    @property
    def _is_kept(self) -> bool:
        """Whether packets since a keyframe are kept for somebody who is about to follow."""
        return bool(self._early or self._untimed)

    def _is_wanted(self, packet: AvPacket[VideoStream]) -> bool:
        """Whether to keep packets from this keyframe on for a recorder that is about to follow. A file waits for its
        follower instead."""
        return packet.is_keyframe and not self._patient and wanted_mark(self._path.parent.parent).exists()

    def _note_early(self, packet: Packet) -> None:
        if self._patient:
            return
        if packet.is_key:
            self._forget_early()
            if self._followers:
                return
        elif not self._early:
            return
        self._early.append(packet)
        self._early_bytes += len(packet.data)
        if self._early_bytes > MOST_WAITING:
            self._forget_early()

    def _forget_early(self) -> None:
        self._early.clear()
        self._early_bytes = 0

    def _refuse(self, packet: AvPacket[VideoStream], why: str) -> None:
        """Give no more packets of this source, and log it once."""
        self._refusal = why
        if why not in self._logged:
            self._logged.add(why)
            self._log.exception("packets_not_given", socket=self._path.name, why=why)

    def _tell_refusal(self) -> None:
        for follower in self._followers:
            if follower.refusal != self._refusal and follower.client.send(framed(refusal_message(self._refusal))):
                follower.refusal, follower.stream, follower.behind = self._refusal, None, True

    def _begin(self) -> None:
        """Listen from the first packet on, so that a reader that never reads leaves no socket."""
        self._begun = True
        with suppress(OSError, AttributeError):  # no pictures of incidents then, and all else goes on
            self._channel.open()

    def _turn(self, wait_s: float = 0.0) -> None:
        self._channel.turn(wait_s)
        if not self._followers:
            return
        self._followers = [one for one in self._followers if not one.client.is_gone]
        for follower in self._followers:
            if follower.is_new:
                follower.is_new = False
                for packet in self._early:
                    self._hand(follower, packet, framed(packet_message(packet)))

    def _follow(self, client: Client) -> None:
        self._followers.append(_Follower(client))

    def _await_follower(self) -> None:
        """Of a file, the first packets are wanted as well."""
        self._awaited = True
        until = time.monotonic() + PATIENCE_S
        wanted = wanted_mark(self._path.parent.parent)
        while self._channel.is_open and not self._followers and wanted.exists() and time.monotonic() < until:
            self._turn(_LOOK_S)

    def close(self) -> None:
        """Say that nothing more comes, and stop listening. Never raises, as `offer`."""
        for follower in self._followers:
            follower.client.end(framed(end_message()))
        for follower in self._followers:
            follower.client.flush(PATIENCE_S if self._patient else _PARTING_S)
        self._channel.close()

    def _timed(self, packet: AvPacket[VideoStream]) -> list[Packet]:
        """Copies of the packets whose times are known now: of this one, and of those before it that had none."""
        if self._info is None and self._source is not None and packet.is_keyframe:
            self._info = self._info_of(*self._source, packet)
        if self._info is None:
            return []
        if packet.is_keyframe:
            self._untimed.clear()
        pts = packet.pts
        dts = pts if packet.dts is None else packet.dts
        made = Packet(self._info, pts or 0, dts or 0, packet.duration or 0, packet.is_keyframe, bytes(packet))
        if pts is None:
            if packet.is_keyframe or 0 < len(self._untimed) < _MOST_UNTIMED:
                self._untimed.append(made)
            return []
        step, count = max(1, made.duration), len(self._untimed)
        times = (min(made.pts, made.dts) - step * back for back in range(count, 0, -1))
        before = [replace(one, pts=time, dts=time) for one, time in zip(self._untimed, times, strict=True)]
        self._untimed.clear()
        return [*before, made]

    def _info_of(self, stream: VideoStream, epoch: int, keyframe: AvPacket[VideoStream]) -> VideoStreamInfo | None:
        context = stream.codec_context
        size = _size_of(context, keyframe)
        if stream.time_base is None or size is None:
            return None
        name, is_live = context.codec.canonical_name, not self._patient  # a decoder's own name may be `libdav1d`
        sample = _first_sample(stream, keyframe, size)
        if sample is None:
            why = "no file format that is known here takes them"
            self._refusal = f"the packets of this video ({name}) cannot be kept: {why}"
            return None
        upright = _orientation(stream, keyframe, size)
        return VideoStreamInfo(name, sample, *size, stream.time_base, epoch, is_live, upright, self._paced)

    def _hand(self, follower: _Follower, packet: Packet, frame: bytes) -> None:
        client = follower.client
        if follower.behind and not (packet.is_key and not client.waiting):
            self.left_out += 1
            client.flush()
            return
        if follower.stream is not packet.stream:
            frame = framed(stream_message(packet.stream)) + frame  # both or none of them
        follower.behind = not client.send(frame)
        if follower.behind:
            self.left_out += 1
            return
        follower.stream, follower.refusal = packet.stream, ""
        if self._patient:
            client.flush(PATIENCE_S)
            follower.behind = client.waiting > 0


def _size_of(context: VideoCodecContext, keyframe: AvPacket[VideoStream]) -> Size | None:
    """The size of a stream's pictures; None if not even its keyframe tells the size.

    FFmpeg does not know the size of a camera whose first keyframe came later than `connect_s`. The decoder of the
    stream learns the size after this packet, and never if a CUDA device decodes.
    """
    if context.width == 0:
        context = _probed(context, keyframe)
    return (context.width, context.height) if context.width else None


def _probed(context: VideoCodecContext, keyframe: AvPacket[VideoStream]) -> VideoCodecContext:
    """Another decoder, which has decoded the keyframe as far as possible."""
    decoder = CodecContext.create(context.name, "r")
    assert isinstance(decoder, VideoCodecContext)
    decoder.extradata, decoder.thread_type, decoder.options = context.extradata, "NONE", DECODER_OPTIONS
    with suppress(av.FFmpegError):
        decoder.decode(av.Packet(bytes(keyframe)))
        decoder.decode(None)
    return decoder


def _orientation(stream: VideoStream, keyframe: AvPacket[VideoStream], size: Size) -> Orientation:
    """With which `capture` sets its frames upright. Only decoded frames tell it."""
    for form in _ORIENTATION_FORMS:
        with suppress(av.FFmpegError, ValueError):
            sample = io.BytesIO(_sample(stream, keyframe, size, form))
            with av.open(sample, "r") as container:
                for frame in container.decode(video=0):
                    return orientation_of(frame)
    return UPRIGHT


def _first_sample(stream: VideoStream, keyframe: AvPacket[VideoStream], size: Size) -> bytes | None:
    """A file with the keyframe in it, in the first format that takes its codec; None if none of the formats does."""
    for form in _SAMPLE_FORMS:
        with suppress(av.FFmpegError, ValueError):
            return _sample(stream, keyframe, size, form)
    return None


def _sample(stream: VideoStream, keyframe: AvPacket[VideoStream], size: Size, form: str) -> bytes:
    """A file of this format with the keyframe in it. Raises av.FFmpegError or ValueError if it takes no such codec."""
    file = io.BytesIO()
    with av.open(file, "w", format=form) as container:
        copy = av.Packet(bytes(keyframe))  # muxing ties a packet to its file
        copy.pts = copy.dts = 0
        assert stream.time_base is not None
        copy.time_base, copy.is_keyframe = stream.time_base, True
        # `opaque`: otherwise PyAV looks for an encoder of the decoder's name, and `libdav1d` and `theora` have none.
        made = copy.stream = container.add_stream_from_template(stream, opaque=True)
        made.codec_context.width, made.codec_context.height = size
        container.mux_one(copy)
    return file.getvalue()
