"""One MP4 file while it is written.

    front.mp4.part   fragmented: if the writer is killed, all but the last second or two plays
         |           close(): FFmpeg puts an ordinary index behind it ("hybrid_fragmented"), then it is renamed
    front.mp4        an ordinary MP4

While it is written, its part is locked: a part without a lock was left by a writer that was killed, and can be rescued.
Times are honest: frames have the distances they were taken at (a variable frame rate), in ticks of 1/60000 s.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import av
import cv2
import numpy as np
from av.video.frame import PictureType
from av.video.stream import VideoStream
from numpy.typing import NDArray

from camgraph.pipeline.errors import EnvironmentProblem
from camgraph.pipeline.system.disk import HAS_LOCKS, is_at, open_regular, try_lock
from camgraph.stages.sinks.writing.output_names import named, part_of

Size = tuple[int, int]
CodecFamily = Literal["auto", "h264", "mpeg4"]

TICKS = 60_000
"""A second in ticks: whole numbers for 10 to 60 frames a second and NTSC's; MPEG-4 takes no more than 65535."""
TICK_NS = -(-1_000_000_000 // TICKS)
LONGEST_INTERVAL_NS = (2**31 - 1) * 1_000_000_000 // TICKS - TICK_NS
"""Between two pictures of a file: MP4 counts its ticks in 32 bits."""
KEYFRAME_NS = 2_000_000_000
LOOK_NS = 1_000_000_000
FIRST_INTERVAL_NS = 100_000_000
"""How long the only frame of a file is shown."""
ENCODERS: dict[CodecFamily, tuple[str, ...]] = {
    "auto": ("libx264", "libopenh264", "mpeg4"),
    "h264": ("libx264", "libopenh264"),
    "mpeg4": ("mpeg4",),
}
MOVFLAGS = {"movflags": "+hybrid_fragmented+frag_keyframe", "frag_duration": "1000000", "flush_packets": "1"}


@dataclass(frozen=True, slots=True)
class Encoding:
    """The compression of pictures: an encoder's name, and its quality: `crf`, or a rate if one is given."""

    encoder: str
    crf: int = 23
    bitrate_kbps: int | None = None
    preset: str = "superfast"

    def options(self) -> dict[str, str]:
        """The encoder's options. One thread: there is one encoder per camera, and a model wants the rest."""
        options = {"threads": "1", "flags": "+frame_duration"}
        if self.encoder == "libx264":
            options |= {"preset": self.preset, "bf": "0", "rc-lookahead": "10", "forced-idr": "1"}
        if self.bitrate_kbps is not None:
            return options | {"b": str(self.bitrate_kbps * 1000)}
        if self.encoder == "libx264":
            return options | {"crf": str(self.crf)}
        if self.encoder == "mpeg4":  # its scale is 2 to 31; 118 is FFmpeg's unit of it
            return options | {"flags": "+frame_duration+qscale", "global_quality": str(118 * max(2, self.crf // 4))}
        return options


def choose_encoder(family: CodecFamily) -> str:
    """The first encoder of this family that opens here. Raises EnvironmentProblem if none does."""
    for name in ENCODERS[family]:
        with contextlib.suppress(av.FFmpegError):
            context = av.CodecContext.create(name, "w")
            assert isinstance(context, av.VideoCodecContext)
            context.width, context.height, context.pix_fmt = 64, 64, "yuv420p"
            context.time_base = Fraction(1, TICKS)
            context.open()
            return name
    raise EnvironmentProblem(
        f"video encoder: none of {', '.join(ENCODERS[family])} opens in this build of PyAV's FFmpeg; "
        "install the `av` wheel from the package index, or set another codec",
        error_id="video-encoder",
    )


def even_size(size: Size, max_width: int) -> Size:
    """The size of the video: as `size` (width, height), no wider than `max_width`, both sides even."""
    scale = min(1.0, max_width / size[0])
    width, height = (max(2, round(side * scale) // 2 * 2) for side in size)
    return width, height


def plays(path: Path) -> bool:
    """Whether a picture can be decoded from the file, which anybody may have left."""
    try:
        with av.open(str(path)) as container:
            return next(container.decode(video=0), None) is not None
    except (av.FFmpegError, OSError, IndexError):
        return False


def frames_in(path: Path) -> int:
    """How many frames a file holds, without decoding them; 0 if it cannot be read."""
    try:
        with av.open(str(path)) as container:
            return sum(packet.size > 0 for packet in container.demux(video=0))
    except (av.FFmpegError, OSError, IndexError):
        return 0


class Recording:
    """An MP4 that grows. All methods raise OSError or av.FFmpegError when the disk or the encoder fails.

    `replace`: it may take the place of another file, and of the remains of a killed writer.
    """

    def __init__(self, target: Path, size: Size, encoding: Encoding, *, replace: bool = False) -> None:
        """Start the file with pictures of `size` (width, height).

        Raises EnvironmentProblem if another writes it, and FileExistsError if somebody did and it is not to be
        replaced.
        """
        self.target = target
        self.size = size
        self.frames = 0
        self._replace = replace
        self._part = PartFile(part_of(target), replace=replace)
        try:
            self._container = av.open(self._part, "w", format="mp4", options=MOVFLAGS)
            self._stream = self._add_stream(encoding)
        except BaseException:
            part_of(target).unlink(missing_ok=True)
            self._part.close()
            raise
        self._offset_ns = self._given_ns = 0
        self._time_ns = -1
        self._looked_ns = 0
        self._interval_ns = FIRST_INTERVAL_NS
        self._keyframe_ns = -KEYFRAME_NS

    @property
    def duration_ns(self) -> int:
        """From the first frame to the end of the last one."""
        return self._time_ns + self._interval_ns if self.frames else 0

    def moment_ns(self, time_ns: int) -> int:
        """The time in the file of a picture that is taken at `time_ns` and written next."""
        if self.frames == 0:
            return 0
        if time_ns < self._given_ns:
            return self._time_ns + self._interval_ns
        now_ns = time_ns - self._offset_ns
        return now_ns if self._ticks(now_ns) > self._ticks(self._time_ns) else self._time_ns + TICK_NS

    def takes(self, time_ns: int) -> bool:
        """Whether a picture may follow that is taken at `time_ns`: MP4 shows no picture for ten hours."""
        return self.moment_ns(time_ns) - self._time_ns <= LONGEST_INTERVAL_NS

    def is_gone(self, time_ns: int) -> bool:
        """Whether the path no longer names this file, looked at once a second of stream time.

        The file would grow on without a name, and be lost when it is closed.
        """
        moment_ns = self.moment_ns(time_ns)
        if moment_ns - self._looked_ns < LOOK_NS:
            return False
        self._looked_ns = moment_ns
        return not self._part.is_there()

    def write(self, picture: NDArray[np.uint8], time_ns: int) -> None:
        """Add a picture (H, W, 3) uint8 BGR of the file's size, taken at `time_ns` (any zero).

        Time that runs backwards (a file that starts over) goes on one interval after the last frame; a time that
        comes twice is one tick later, and moves none of those that follow.
        """
        planes: NDArray[Any] = cv2.cvtColor(picture, cv2.COLOR_BGR2YUV_I420)
        frame = av.VideoFrame.from_ndarray(planes, format="yuv420p")
        self._advance(time_ns)
        frame.pts, frame.time_base = self._ticks(self._time_ns), Fraction(1, TICKS)
        frame.duration = self._ticks(self._interval_ns)
        if self._time_ns - self._keyframe_ns >= KEYFRAME_NS:
            frame.pict_type, self._keyframe_ns = PictureType.I, self._time_ns
        self._container.mux(self._stream.encode(frame))
        self.frames += 1

    def close(self) -> None:
        """Complete the file and rename it. If another file has the name now, `target` becomes the next free one."""
        try:
            self._container.mux(self._stream.encode(None))
            self._container.close()
            self.target = named(self.target, replace=self._replace)
        finally:
            self._part.close()

    def abandon(self) -> Path | None:
        """Let go after a failure, and raise nothing: returns the file with the usable part, or None if there is none.

        A playable part gets its name, unless the disk refuses even that; anything else is removed.
        """
        self._part.deaf = True
        with contextlib.suppress(OSError, av.FFmpegError):
            self._container.close()
        self._part.close()
        try:
            return rescue(self.target, replace=self._replace)
        except OSError:
            part = part_of(self.target)
            return part if part.exists() else None

    def _add_stream(self, encoding: Encoding) -> VideoStream:
        stream = self._container.add_stream(encoding.encoder, rate=25, options=encoding.options())
        assert isinstance(stream, VideoStream)
        stream.width, stream.height = self.size
        stream.pix_fmt = "yuv420p"
        context = stream.codec_context
        context.time_base = Fraction(1, TICKS)
        context.gop_size = 600
        # The picture that `write` makes of BGR: limited range, BT.601. Players guess BT.709 for large pictures unless
        # told.
        context.color_range, context.colorspace, context.color_primaries, context.color_trc = 1, 6, 6, 6
        return stream

    def _advance(self, time_ns: int) -> None:
        now_ns = self.moment_ns(time_ns)
        if self.frames:
            self._interval_ns = now_ns - self._time_ns
        if self.frames == 0 or time_ns < self._given_ns:
            self._offset_ns = time_ns - now_ns
        self._given_ns, self._time_ns = time_ns, now_ns

    @staticmethod
    def _ticks(time_ns: int) -> int:
        return (time_ns * TICKS + 500_000_000) // 1_000_000_000


class PartFile:
    """The file that FFmpeg writes into, held under a lock that ends with the process.

    `deaf` after the first failure: FFmpeg's output on closing would spoil the whole fragments.
    """

    def __init__(self, path: Path, *, replace: bool = False) -> None:
        """Make the file, or with `replace` take one that is there, emptied.

        Raises FileExistsError if it is there, EnvironmentProblem if another process holds it, OSError for no
        file.
        """
        self.deaf = False
        self._path = path
        self._descriptor = open_regular(path, os.O_RDWR | os.O_CREAT | (0 if replace else os.O_EXCL), 0o644)
        if not _held(self._descriptor, path):
            os.close(self._descriptor)
            if not replace:  # another process that rescues files found this one before it was locked
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
            raise EnvironmentProblem(
                f"{path}: another run is writing this video; stop it, or give this one another path",
                error_id="file-in-use",
            )
        os.ftruncate(self._descriptor, 0)

    def write(self, data: bytes) -> int:
        """Write all of `data`. Raises OSError once; later data is swallowed."""
        rest = memoryview(data)
        try:
            while rest and not self.deaf:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError:
            self.deaf = True
            raise
        return len(data)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """As of any file."""
        return os.lseek(self._descriptor, offset, whence)

    def tell(self) -> int:
        """As of any file."""
        return self.seek(0, os.SEEK_CUR)

    def is_there(self) -> bool:
        """Whether its path still names this file."""
        return is_at(self._descriptor, self._path)

    def close(self) -> None:
        """Let go of the file and the lock; once is enough."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def rescue(target: Path, *, replace: bool = False) -> Path | None:
    """Give the part of `target` that a dead writer left a name, as `named`, or remove it if it does not play.

    None if there is nothing to keep, or the writer lives, or (without locks) may live. Raises OSError.
    """
    part = part_of(target)
    if not HAS_LOCKS:
        return None
    try:
        if not stat.S_ISREG(part.lstat().st_mode):  # a link or a pipe, which no writer has made
            return None
        descriptor = open_regular(part, os.O_RDWR)
    except FileNotFoundError:
        return None
    try:
        if not _held(descriptor, part):
            return None
        os.ftruncate(descriptor, whole_length(part))
        if plays(part):
            return named(target, replace=replace)
        part.unlink()
        return None
    finally:
        os.close(descriptor)


def _held(descriptor: int, path: Path) -> bool:
    """Lock the open file; False if another process has it, or the path is another file by now."""
    if not try_lock(descriptor):
        return False
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def whole_length(part: Path) -> int:
    """Bytes up to the end of the last whole fragment (`moof` + `mdat`) of a fragmented MP4.

    A file is a row of boxes: size (4 bytes, big-endian; 1: the size follows the type in 8 bytes), type (4), content.
    """
    whole, at, size = 0, 0, part.stat().st_size
    with part.open("rb") as file:
        while len(head := file.read(16)) >= 8:
            length, kind = int.from_bytes(head[:4]), head[4:8]
            if length == 1:
                length = int.from_bytes(head[8:16])
            if length < 8 or at + length > size:
                break
            at += length
            whole = whole if kind == b"moof" else at
            file.seek(at)
    return whole
