"""Reads one camera: a video file, a folder of pictures, a picture, or a live stream, with honest times.

Files are exact: `seq` is the index of the decoded frame in the file and `time_ns` its time since the file's first
frame, also with `start_s` and after a restart. `max_fps`, `start_s` and `duration_s` choose by that time
(`stages.reading.timeline.Selection`); what they leave out is not a drop. A live camera that drops is opened again.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import av
from av.video.frame import VideoFrame
from av.video.reformatter import VideoReformatter
from pydantic import AwareDatetime, ConfigDict, Field, model_validator

from pipeline.errors import BadItem, UserError
from pipeline.messages import Stamp
from pipeline.stage import CameraSettings, Context, Settings, Source, Stop
from stages.messages import Frame
from stages.reading import addresses, inspection, live, pictures, pixels, video
from stages.reading.opening import Signs
from stages.reading.places import Place
from stages.reading.probe import frame_bytes
from stages.reading.timeline import SECOND_NS, Selection

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SIGN_S = 0.5


EPOCHS_OF_A_PROCESS = 1_000_000
"""So many reconnections of a live camera have room before the numbers of a restarted process begin."""


class Camera(CameraSettings):
    """One camera, as it stands under its name in `cameras:`."""

    # An error must not quote the address: it may hold a password.
    model_config = ConfigDict(hide_input_in_errors=True, allow_inf_nan=False)

    url: str = Field(
        min_length=1,
        repr=False,
        description="A video file, a folder of pictures or a picture (relative to the graph file, or asset:NAME), "
        "an address such as rtsp://user:password@host/path, or /dev/video0",
    )
    max_fps: float | None = Field(
        None, gt=0, le=1000, description="Take at most so many frames for each second of media time; all by default"
    )
    start_s: float = Field(0.0, ge=0, description="Files: skip what lies before this time, in seconds of the file")
    duration_s: float | None = Field(None, gt=0, description="Stop after so many seconds of media time")
    loop: bool = Field(False, description="Files: begin again at the end; every round is a new epoch")
    realtime: bool = Field(False, description="Files: not faster than they were recorded")
    fps: float = Field(10.0, gt=0, le=1000, description="Frames per second of a folder of pictures")
    start_at: AwareDatetime = Field(_EPOCH, description="Files: the wall clock at the first frame, with a time zone")

    @model_validator(mode="after")
    def _live_has_no_beginning(self) -> Camera:
        if addresses.is_live(self.url):
            for name in ("start_s", "loop", "realtime"):
                if getattr(self, name):
                    raise ValueError(f"{name} is for files, and this camera is live; remove it")
        return self

    def path(self, base_folder: Path) -> Path:
        """Where the file or folder lies. Raises UserError."""
        return inspection.path_of(self.url, base_folder)

    def selection(self, resume: Stamp | None) -> Selection:
        """Which frames to take, after those up to `resume` have been taken."""
        start_ns = round(self.start_s * SECOND_NS)
        end_ns = None if self.duration_s is None else start_ns + round(self.duration_s * SECOND_NS)
        return Selection(start_ns, end_ns, self.max_fps, resume.time_ns if resume else None)

    @property
    def start_wall_ns(self) -> int:
        """`start_at` in nanoseconds since 1970."""
        return (self.start_at - _EPOCH) // timedelta(microseconds=1) * 1000


class Capture(Source[Settings]):
    """See the module's docstring."""

    camera_type = Camera
    outputs = (Frame,)

    def __init__(self, settings: Settings, camera: str, camera_settings: Camera, context: Context) -> None:
        super().__init__(settings, camera, camera_settings, context)
        self._reformatter = VideoReformatter()
        self._signs = Signs(self._packet_damaged, context.alive)
        # Of one round through a file: what the decoder refused, and what it gave.
        self._bad_packets, self._decoded, self._told = 0, 0, False

    @classmethod
    def is_live(cls, camera_settings: Camera) -> bool:
        return addresses.is_live(camera_settings.url)

    @classmethod
    def check_camera(cls, camera_settings: Camera, base_folder: Path) -> Iterable[tuple[tuple[str, ...], str]]:
        problem = inspection.what_is_wrong(camera_settings.url, base_folder)
        if problem:
            yield ("url",), problem

    @classmethod
    def describe_camera(cls, camera_settings: Camera) -> Mapping[str, str]:
        """`clock`: what the times of its frames are (`stages.events.Clock`)."""
        return {"clock": "wall" if addresses.is_live(camera_settings.url) else "file"}

    @classmethod
    def slot_bytes(cls, camera_settings: Camera, base_folder: Path) -> int | None:
        if addresses.is_live(camera_settings.url):
            return None
        path = camera_settings.path(base_folder)
        return frame_bytes(path) if path.is_file() or path.is_dir() else None

    def frames(self, stop: Stop, resume: Stamp | None) -> Iterator[Frame]:
        if addresses.is_live(self.camera_settings.url):
            return self._live(stop, resume)
        mistyped = inspection.why_mistyped(self.camera_settings.url, self.context.base_folder)
        if mistyped:
            raise UserError(mistyped)
        return self._rounds(stop, resume)

    def _rounds(self, stop: Stop, resume: Stamp | None) -> Iterator[Frame]:
        """The file once, or with `loop` again and again."""
        epoch = resume.epoch if resume else 0
        while not stop.is_set():
            empty = resume is None
            for frame in self._file(epoch, stop, resume):
                empty = False
                yield frame
            if not self.camera_settings.loop or empty:
                return
            epoch, resume = epoch + 1, None

    def _file(self, epoch: int, stop: Stop, resume: Stamp | None) -> Iterator[Frame]:
        """One round; what could not be decoded in it is told at its end."""
        self._bad_packets, self._decoded = 0, 0
        try:
            yield from self._chosen(epoch, stop, resume)
        except BadItem:
            self._tell_damages()
            raise
        self._tell_damages()

    def _tell_damages(self) -> None:
        """Once: in every round of a loop the same file is damaged in the same way."""
        if self._bad_packets and not self._told:
            self._told = True
            pictures = self._bad_packets + self._decoded
            self.context.log.warning("pictures_damaged", camera=self.camera, damaged=self._bad_packets, of=pictures)

    def _chosen(self, epoch: int, stop: Stop, resume: Stamp | None) -> Iterator[Frame]:
        settings: Camera = self.camera_settings
        selection = settings.selection(resume)
        origin_ns: int | None = None
        for timed in self._timed(resume):
            self.context.alive()
            self._decoded += 1
            if stop.is_set() or selection.is_over(timed.time_ns):
                return
            if not selection.takes(timed.time_ns):
                continue
            if settings.realtime:
                origin_ns = time.monotonic_ns() - timed.time_ns if origin_ns is None else origin_ns
                if self._wait((origin_ns + timed.time_ns - time.monotonic_ns()) / SECOND_NS, stop):
                    return
            decoded = self._picture(timed.content) if isinstance(timed.content, Path) else timed.content
            if decoded is not None:
                yield self._frame(decoded, epoch, timed, settings.start_wall_ns + timed.time_ns)

    def _timed(self, resume: Stamp | None) -> Iterator[video.Timed]:
        """All of the file, or a part of it that begins no later than what is wanted."""
        settings: Camera = self.camera_settings
        path = settings.path(self.context.base_folder)
        if pictures.is_album(path):
            return (t for t in pictures.timed_pictures(path, settings.fps) if resume is None or t.seq > resume.seq)
        if resume is None:
            return video.frames_from(path, round(settings.start_s * SECOND_NS), self._signs)
        return video.frames_after(path, Place(resume.pts, resume.seq, resume.time_ns), self._signs)

    def _picture(self, path: Path) -> VideoFrame | None:
        """The picture, or None where one of a folder cannot be read: counted, and the next one comes."""
        try:
            return pictures.read_picture(path)
        except (av.FFmpegError, OSError) as error:
            if path == self.camera_settings.path(self.context.base_folder):
                raise UserError(f"{path}: cannot be read as a picture ({live.why(error)})") from None
            self.context.log.warning("picture_unreadable", camera=self.camera, path=str(path), why=live.why(error))
            self._damaged()
            return None

    def _live(self, stop: Stop, resume: Stamp | None) -> Iterator[Frame]:
        """One connection after the other, each that brought a frame an epoch of its own."""
        # Never one that an earlier incarnation of this process may have used: readers know its frames.
        epoch = max(resume.epoch + 1 if resume else 0, (self.context.incarnation - 1) * EPOCHS_OF_A_PROCESS)
        backoff_s, first_ns = live.FIRST_BACKOFF_S, None
        while not stop.is_set():
            seen, why = False, "the stream ended"
            try:
                for frame in self._connection(epoch, stop):
                    seen, backoff_s = True, live.FIRST_BACKOFF_S
                    first_ns = frame.stamp.time_ns if first_ns is None else first_ns
                    if self._is_long_enough(frame.stamp.time_ns - first_ns):
                        return
                    yield frame
            except av.ProtocolNotFoundError:
                url = addresses.redact_url(self.camera_settings.url)
                raise UserError(f"{url}: the FFmpeg of this installation does not open this protocol") from None
            except (av.FFmpegError, OSError) as error:
                why = live.why(error)
            epoch += seen
            if not stop.is_set():
                url = addresses.redact_url(self.camera_settings.url)
                self.context.log.warning("camera_lost", camera=self.camera, url=url, why=why, retry_s=backoff_s)
                self._wait(backoff_s, stop)
                backoff_s = live.next_backoff_s(backoff_s)

    def _is_long_enough(self, passed_ns: int) -> bool:
        duration_s = self.camera_settings.duration_s
        return duration_s is not None and passed_ns >= duration_s * SECOND_NS

    def _connection(self, epoch: int, stop: Stop) -> Iterator[Frame]:
        """Frames stamped by their arrival, and chosen by the camera's own times, which do not jitter."""
        selection = Selection(max_fps=self.camera_settings.max_fps)
        arrived = live.arrivals(self.camera_settings.url, stop, self._signs)
        for seq, (decoded, clock) in enumerate(arrived):
            if selection.takes(clock.at(decoded.pts)):
                timed = video.Timed(decoded, seq, time.monotonic_ns(), decoded.pts, clock.time_base)
                yield self._frame(decoded, epoch, timed, time.time_ns())

    def _frame(self, decoded: VideoFrame, epoch: int, at: video.Timed, wall_ns: int) -> Frame:
        picture = pixels.picture_of(decoded)
        captured_ns = at.time_ns if self.is_live(self.camera_settings) else time.monotonic_ns()
        out = self.context.new_arrays({"pixels": (picture.shape, "uint8")})["pixels"]
        pixels.fill(decoded, picture, out, self._reformatter)
        base = (at.time_base.numerator, at.time_base.denominator)
        stamp = Stamp(self.camera, epoch, at.seq, at.time_ns, captured_ns, wall_ns, at.pts, base)
        return Frame(stamp, out, picture.width, picture.height, picture.format)

    def _packet_damaged(self) -> None:
        self._bad_packets += 1
        self._damaged()

    def _damaged(self) -> None:
        self.context.count("dropped.damaged", self.camera)

    def _wait(self, seconds: float, stop: Stop) -> bool:
        """Wait, not for longer than that, with signs of life; True when the stop came first."""
        until = time.monotonic() + seconds
        while (left_s := until - time.monotonic()) > 0:
            self.context.alive()
            if stop.wait(min(left_s, _SIGN_S)):
                return True
        return False
