"""Opens video files and decodes them packet by packet, with clear words for their faults."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from fractions import Fraction
from pathlib import Path
from typing import ClassVar, NamedTuple, cast

import av
from av.container import Flags, InputContainer
from av.packet import Packet
from av.video.codeccontext import VideoCodecContext
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from camgraph.pipeline.errors import BadItem, EnvironmentProblem, UserError
from camgraph.pipeline.system import scarcity
from camgraph.pipeline.system.paths import instead_of_file
from camgraph.stages.video import formats, scripts
from camgraph.stages.video.bare_times import BareTimes, has_no_times
from camgraph.stages.video.contents import codec_of_matroska, content_of, is_tiled_photograph
from camgraph.stages.video.ffmpeg_errors import reason_of
from camgraph.stages.video.ffmpeg_log import FfmpegLog, codec_in, listening
from camgraph.stages.video.tiff import Read, why_unread
from camgraph.stages.video.timeline import SECOND_NS, MediaClock, ticks_to_ns

_DURATION = re.compile(r"(\d{1,6}):(\d\d):(\d\d(?:\.\d{1,9})?)", re.ASCII)
"""Anybody may have written the tag: as a number, `1e999999999` would take all memory."""


def _nobody() -> None:
    """Ignores everything."""


def _no_packet(_: object) -> None:
    """Ignores every packet."""


class Signs(NamedTuple):
    """Is called while a file is read: for each refused packet (`damaged`), and for each packet (`alive`).

    `in_ffmpeg` stands around each call of FFmpeg, and may raise at its end.
    """

    damaged: Callable[[], None] = _nobody
    alive: Callable[[], None] = _nobody
    in_ffmpeg: AbstractContextManager[object] = nullcontext()
    packet: Callable[[Packet[VideoStream]], None] = _no_packet
    """Is called for each packet that is decoded, with its stream in `packet.stream`."""
    timed: Callable[[Packet[VideoStream]], None] = _no_packet
    """Is called for each packet of a bare stream, a little later, with the times that `BareTimes` has given it."""


_SILENT = Signs()
ENCRYPTED = "encrypted (DRM), and camgraph has no key: get the video without encryption"


class Refused(UserError):
    """A file that must not be read even if FFmpeg could: a text, a playlist, or no file at all."""

    error_id = "video-unreadable"


def open_file(path: Path, *, playlist: bool = False) -> InputContainer:
    """The file, read by a format that is on the list, and no other file beside it.

    ``playlist``: it may be a list of files of its own folder. Raises Refused, av.FFmpegError or OSError.
    """
    other = instead_of_file(path)
    if other:
        raise Refused(f"{path}: is {other}, expected a video file")
    script = scripts.kind_of(path)
    if script:
        _require_followed(path, script, playlist=playlist)
    # With its protocol, because a name may look as if it began with one (`concat:a.mp4`).
    container = av.open(f"file:{path}", options=formats.file_options(script))
    if container.format.name == formats.TEXT:
        container.close()
        raise Refused(f"{path}: is a text, expected a video")
    try:
        _require_readable(path, container)
        _bound_pictures(path, container)
    except BaseException:
        container.close()
        raise
    return container


@contextmanager
def bytes_of(path: Path) -> Iterator[tuple[Read, int]]:
    """Reads any part of a file, and its size. Raises OSError."""
    with path.open("rb") as file:

        def read(at: int, count: int) -> bytes:
            file.seek(at)
            return file.read(count)

        yield read, file.seek(0, os.SEEK_END)


def what_it_is(path: Path) -> str:
    """As `contents.content_of`; "" for folders and for what cannot be read."""
    try:
        with bytes_of(path) as (read, size):
            return content_of(read, size)
    except OSError:
        return ""


def _require_readable(path: Path, container: InputContainer) -> None:
    """Raises Refused for pictures that FFmpeg reads wrongly without a word."""
    names = {stream.codec_context.name for stream in container.streams.video if is_decodable(stream)}
    if "tiff" in names:
        with bytes_of(path) as (read, _):
            why = why_unread(read)
        if why:
            raise Refused(f"{path}: {why}, which FFmpeg does not read; save it uncompressed, with LZW, or as PNG")
    if "mov" in container.format.name and len(container.streams) > 1:
        with bytes_of(path) as (read, _):
            tiled = is_tiled_photograph(read)
        if tiled:
            raise Refused(
                f"{path}: is a photograph in tiles (HEIC or AVIF), of which FFmpeg gives one; save it as JPEG"
            )


def _bound_pictures(path: Path, container: InputContainer) -> None:
    """Raises Refused for pictures that claim to be larger than any; later ones of the file the decoder refuses.

    Options of opening do not reach the decoders of PyAV.
    """
    for stream in container.streams.video:
        if not is_decodable(stream):
            continue
        context = stream.codec_context
        if context.width * context.height > formats.MOST_FILE_PIXELS:
            raise Refused(
                f"{path}: its pictures are {context.width}x{context.height}, expected at most "
                f"{formats.MOST_FILE_PIXELS // 1_000_000} megapixels"
            )
        context.options = {"max_pixels": str(formats.MOST_FILE_PIXELS)}


def _codec_by_file(path: Path) -> str:
    """The format of a video that FFmpeg does not name."""
    with suppress(OSError), bytes_of(path) as (read, _):
        return codec_of_matroska(read)
    return ""


def is_decodable(stream: VideoStream) -> bool:
    """Whether FFmpeg has a decoder for it: without one, PyAV gives no context."""
    return cast("VideoCodecContext | None", stream.codec_context) is not None


def _require_followed(path: Path, script: scripts.ScriptKind, *, playlist: bool) -> None:
    name = scripts.NAMES[script]
    if not playlist:
        raise Refused(
            f"{path}: is {name}, expected a video: it makes FFmpeg read other files; if you trust it and all that it "
            "names, write `playlist: true` for this camera"
        )
    problem = scripts.why_not_followed(path, script)
    if problem:
        raise Refused(f"{path}: is {name} that is not followed: {problem}")


@contextmanager
def open_video(
    path: Path, signs: Signs = _SILENT, *, playlist: bool = False
) -> Iterator[tuple[InputContainer, VideoStream]]:
    """The file and its first video stream, decoded by this thread alone. Raises UserError, EnvironmentProblem."""
    log = FfmpegLog([])
    try:
        with signs.in_ffmpeg, listening() as log:
            container = open_file(path, playlist=playlist)
    except MemoryError as error:
        raise EnvironmentProblem(f"{path}: {scarcity.in_words(error)}", error_id="system-limit") from None
    except (av.FFmpegError, OSError) as error:
        raise UserError(f"{path}: {_why_not_open(path, error)}", error_id="video-unreadable") from None
    with container:
        if not container.streams.video:
            raise UserError(f"{path}: there is no video in it, expected a video file", error_id="video-unreadable")
        stream = next((one for one in container.streams.video if is_decodable(one)), None)
        if stream is None:
            name = codec_in(log.take_lines()) or _codec_by_file(path)
            raise UserError(
                f"{path}: its video is of {f'the format `{name}`' if name else 'an unknown format'}, which the FFmpeg "
                "of this installation cannot decode; make a copy with a program that can, as H.264 in MP4",
                error_id="video-unreadable",
            )
        # PyAV has FFmpeg invent the presentation times that a file lacks. Those that it invents for H.264 in AVI know
        # nothing of B-frames: they run backwards.
        container.flags &= ~cast("int", Flags.gen_pts.value)
        # One thread for each camera: more cost memory and bring nothing if cameras outnumber cores.
        stream.thread_type = "NONE"
        yield container, stream


def length_of(container: InputContainer, stream: VideoStream) -> tuple[float, float] | None:
    """Seconds and frames a second of a video, by its container; None if that gives none."""
    if stream.duration and stream.time_base:
        seconds = float(stream.duration * stream.time_base)
    else:
        seconds = span_of(container)[1] / av.time_base
    fps = float(stream.average_rate or 0)
    return (seconds, fps) if seconds > 0 and fps > 0 else None


def span_of(container: InputContainer) -> tuple[int, int]:
    """When the file's times begin, and how long it lasts, in microseconds; 0 if it does not say."""
    begin, length = container.start_time or 0, container.duration or 0
    # FFmpeg writes the time of the end into Matroska as its length.
    from_zero = "matroska" in container.format.name and length > begin > 0
    return begin, length - begin if from_zero else length


def is_picture_inside(container: InputContainer) -> bool:
    """Whether the file is a single picture, whatever its name says."""
    return container.format.name.endswith("_pipe") or container.format.name == "image2"


def metadata_of(container: InputContainer, stream: VideoStream) -> dict[str, str]:
    """The metadata of a video, its container's before that of its picture."""
    return {**stream.metadata, **container.metadata}


def _why_not_open(path: Path, error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "no such file"
    if isinstance(error, PermissionError):
        return "no permission to read it"
    if path.is_file() and path.stat().st_size == 0:
        return "the file is empty, expected a video"
    content = what_it_is(path)
    if content:
        return f"cannot be read as a video: it {content}"
    return (
        f"cannot be read as a video ({reason_of(error)}); it may be none, be of a format that camgraph does not read, "
        "or be cut off before its index"
    )


def _rate_of(stream: VideoStream) -> Fraction:
    return stream.guessed_rate or stream.average_rate or Fraction(25)


def new_clock(stream: VideoStream) -> MediaClock[VideoFrame]:
    """A clock in this stream's units; frames without a timestamp are one interval of its frame rate apart."""
    return MediaClock(stream.time_base or Fraction(1, 1000), round(SECOND_NS / _rate_of(stream)))


def packets_of(container: InputContainer, stream: VideoStream, signs: Signs) -> Iterator[Packet[VideoStream]]:
    """The packets of one stream, and an empty one behind them. Raises av.FFmpegError."""
    demuxed = container.demux(stream)
    while True:
        with signs.in_ffmpeg:
            packet = next(demuxed, None)
        if packet is None:
            return
        signs.alive()
        yield packet


def is_repetition(packet: Packet[VideoStream]) -> bool:
    """Whether a packet says that the picture before it stays (Theora in Ogg): it is empty, and has a time.

    FFmpeg takes no such packet. The one at the end of a stream, which empties the decoder, has no time.
    """
    return packet.size == 0 and (packet.pts is not None or packet.dts is not None)


def _require_key(path: Path, packet: Packet[VideoStream]) -> None:
    """Raises BadItem for an encrypted packet: FFmpeg decodes it as if it were not."""
    if packet.has_sidedata("encryption_info"):
        raise BadItem("unreadable", f"{path} is {ENCRYPTED}")


def is_encrypted(container: InputContainer, stream: VideoStream) -> bool:
    """Whether the next picture of a video is encrypted: reads it."""
    try:
        first = next(container.demux(stream), None)
    except av.FFmpegError:
        return False
    return first is not None and first.has_sidedata("encryption_info")


def _held_back(context: VideoCodecContext, signs: Signs) -> list[VideoFrame]:
    """The pictures that are left in the decoder, which begins anew then."""
    try:
        with signs.in_ffmpeg:
            return context.decode(None)
    except av.FFmpegError:
        return []
    finally:
        context.flush_buffers()


def _time(times: BareTimes, frames: Sequence[VideoFrame], signs: Signs, *, is_over: bool) -> None:
    for frame in frames:
        times.show(frame)
    for packet in times.timed(is_over=is_over):
        signs.timed(packet)


def decoded(path: Path, container: InputContainer, stream: VideoStream, signs: Signs) -> Iterator[VideoFrame]:
    """The frames as the decoder gives them; a packet that it refuses is reported and left out.

    Raises BadItem if the file breaks, or after its last frame when packets are missing: it is cut off or damaged.
    """
    packets, last_ns, context = 0, 0, stream.codec_context
    sequences = Sequences(context.name, context.extradata)
    times = BareTimes(stream, _rate_of(stream)) if has_no_times(container) else None
    try:
        for packet in packets_of(container, stream, signs):
            last_ns = max(last_ns, end_ns(packet, stream))
            if is_repetition(packet):
                continue
            if packet.size:
                packets += 1
                _require_key(path, packet)
                signs.packet(packet)
                if sequences.is_new(memoryview(packet)):
                    yield from _held_back(context, signs)
                if times is not None:
                    times.number(packet)
            try:
                with signs.in_ffmpeg:
                    frames = packet.decode()
            except av.FFmpegError:
                signs.damaged()
            else:
                if times is not None:
                    _time(times, frames, signs, is_over=packet.size == 0)
                yield from frames
    except av.FFmpegError as error:
        raise BadItem("unreadable", f"{path} after {packets} packets: {error.strerror}") from None
    missing = missing_part(path, container, stream, last_ns)
    if missing:
        raise BadItem("truncated", f"{path} is cut off or damaged after {packets} packets: {missing}")


# ---- another size within the stream

_HEAD_BYTES = 1024
"""Parameters stand before the picture of their packet."""
_SEQUENCE = re.compile(rb"\x00\x00\x01\xb3(...)(.)", re.DOTALL)
_LAYER = re.compile(rb"\x00\x00\x01[\x20-\x2f](.*?)(?:\x00\x00\x01|\Z)", re.DOTALL)


class Sequences:
    """Finds where MPEG-1, MPEG-2 or MPEG-4 video goes on in another size. Pure.

    FFmpeg's decoders of these formats hold one picture back, because a B picture may come before it, and throw it away
    when the size or the shape of pixels changes (av 18.1; those of H.264 and H.265 give theirs first). So the picture
    must be asked for before such a packet:

        00 00 01 B3   sequence header of MPEG-1 and MPEG-2: width (12 bits), height (12), shape of pixels (4), ...
        00 00 01 2x   video object layer of MPEG-4, up to the next start code

    ``codec`` is FFmpeg's name; of other codecs nothing is read.
    """

    _readers: ClassVar = {"mpeg1video": _SEQUENCE, "mpeg2video": _SEQUENCE, "mpeg4": _LAYER}

    def __init__(self, codec: str, extradata: bytes | None) -> None:
        self._pattern = self._readers.get(codec)
        self._last = self._parameters(extradata or b"")

    def is_new(self, packet: memoryview) -> bool:
        """Whether the pictures from this packet on have other parameters than those before."""
        if self._pattern is None:
            return False
        found, last = self._parameters(bytes(packet[:_HEAD_BYTES])), self._last
        self._last = found or last
        return bool(found and last and found != last)

    def _parameters(self, data: bytes) -> tuple[bytes, ...]:
        found = self._pattern.search(data) if self._pattern else None
        if found is None:
            return ()
        # The low half of the second group is the frame rate.
        return (found[1], bytes([found[2][0] >> 4])) if self._pattern is _SEQUENCE else (found[1],)


# ---- whether a file ends where it should: FFmpeg ends a cut-off file as if nothing were wrong


def end_ns(packet: Packet[VideoStream], stream: VideoStream) -> int:
    """When the packet's picture is over; of a file without presentation times when it is decoded, which is close."""
    begins = packet.dts if packet.pts is None else packet.pts
    if begins is None or stream.time_base is None:
        return 0
    return ticks_to_ns(begins + (packet.duration or 0), stream.time_base)


def missing_part(path: Path, container: InputContainer, stream: VideoStream, last_ns: int) -> str:
    """The part that the file promises and does not hold, "" if nothing shows. Call it after the last packet."""
    form = container.format.name
    if "mov" in form:
        end = max((entry.pos + entry.size for entry in stream.index_entries), default=0)
        size = path.stat().st_size
        return f"its index reaches to byte {end}, it has {size}" if end > size else ""
    if form == "avi":
        end, size = _declared_avi_bytes(path), path.stat().st_size
        return f"its header states {end} bytes, it has {size}" if end > size else ""
    promised_ns = _declared_duration_ns(stream)
    if last_ns + SECOND_NS // 2 < promised_ns:
        return f"it ends at {last_ns / SECOND_NS:.2f} s of {promised_ns / SECOND_NS:.2f} s"
    return ""


def _declared_avi_bytes(path: Path) -> int:
    """The end of the first RIFF chunk, 0 if its size was never filled in."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8)[4:], "little")
    return size + 8 if size else 0


def _declared_duration_ns(stream: VideoStream) -> int:
    """The end of the stream by Matroska's tag, as in 00:01:30.500000000; 0 without one."""
    found = _DURATION.fullmatch(stream.metadata.get("DURATION", ""))
    if found is None:
        return 0
    hours, minutes, seconds = map(Fraction, found.groups())
    return int((hours * 3600 + minutes * 60 + seconds) * SECOND_NS)
