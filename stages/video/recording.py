"""Follows a recording: a video file, a folder of pictures or a picture, once or in a loop, fast or as it was.

`max_fps`, `start_s` and `duration_s` choose by the time in the file (`stages.video.timeline.Selection`); frames that
they leave out are no drops.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import av
from av.packet import Packet
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from camgraph.pipeline.errors import BadItem, UserError
from camgraph.pipeline.messages import Stamp
from camgraph.pipeline.stage import Context, Stop
from camgraph.stages.video import pictures, video
from camgraph.stages.video.addresses import file_of
from camgraph.stages.video.bare_times import has_no_times
from camgraph.stages.video.camera import Camera
from camgraph.stages.video.dates import Beginning
from camgraph.stages.video.ffmpeg_log import FfmpegLog, listening
from camgraph.stages.video.file_memory import FileMemory
from camgraph.stages.video.opening import Refused, Signs, metadata_of, open_video
from camgraph.stages.video.pixel_shape import FOR_FILES, WHAT_IS_OFF, odd_pixel_shape
from camgraph.stages.video.places import Place
from camgraph.stages.video.shots import Shot, Shots
from camgraph.stages.video.tap import PacketTap
from camgraph.stages.video.timeline import SECOND_NS
from camgraph.stages.video.waiting import wait

DAMAGED = "damaged"
"""The counter of pictures that are given as FFmpeg made them, although a part of them is damaged or missing."""
_UNFLAGGED = frozenset({"hevc", "mjpeg"})
"""Their decoders tell of damaged pictures in the log alone; those of H.264, MPEG-4 and MPEG-2 flag each one. Nothing
tells of damage in VP9 and AV1, unless they refuse the packet (measured with av 18.1).
"""


class Recording:
    """One camera that is a file or a folder."""

    def __init__(self, name: str, camera: Camera, context: Context, tap: PacketTap) -> None:
        self._name = name
        self._camera = camera
        self._context = context
        self._memory = FileMemory(file_of(camera.url), camera.memory_mb, alone=context.outputs_leave)
        self._epoch = 0
        self._tap = tap
        self._signs = Signs(self._packet_damaged, context.alive, self._memory.in_ffmpeg, self._packet_read, self._give)
        self._stream: VideoStream | None = None
        self._listeners = ExitStack()
        self._log: FfmpegLog | None = None
        # For one round through the file: the packets that the decoder refused, the frames that it gave, and those of
        # them that are damaged.
        self._bad_packets, self._decoded, self._bad_frames, self._logged = 0, 0, 0, False
        self._beginning = Beginning(0, "file")
        self._alone = False
        self._unjudged = False

    def shots(self, stop: Stop, resume: Stamp | None) -> Shots:
        """The file once, or with `loop` again and again. Raises UserError and BadItem, as `video.frames_of` does."""
        with self._memory, self._listeners:
            yield from self._rounds(stop, resume)

    def _rounds(self, stop: Stop, resume: Stamp | None) -> Shots:
        self._beginning = self._find_beginning()
        epoch = resume.epoch if resume else 0
        while not stop.is_set():
            empty = resume is None
            for shot in self._round(epoch, stop, resume):
                empty = False
                yield shot
            if not self._camera.loop or empty:
                return
            epoch, resume = epoch + 1, None

    def _round(self, epoch: int, stop: Stop, resume: Stamp | None) -> Shots:
        """One round; undecodable packets and damaged pictures are reported at its end."""
        self._bad_packets, self._decoded, self._bad_frames, self._epoch = 0, 0, 0, epoch
        try:
            yield from self._chosen(epoch, stop, resume)
        except BadItem:
            self._log_damages()
            raise
        self._log_damages()

    def _log_damages(self) -> None:
        """Once: in every round of a loop the same file is damaged in the same way."""
        damaged = self._bad_packets + self._bad_frames
        if damaged and not self._logged:
            self._logged = True
            self._context.log.warning(
                "pictures_damaged",
                camera=self._name,
                damaged=damaged,
                left_out=self._bad_packets,
                of=self._bad_packets + self._decoded,
            )

    def _chosen(self, epoch: int, stop: Stop, resume: Stamp | None) -> Shots:
        selection = self._camera.selection(resume)
        origin_ns: int | None = None
        for timed in self._timed(resume):
            self._context.alive()
            self._decoded += 1
            if isinstance(timed.content, VideoFrame) and self._is_damaged(timed.content):
                self._bad_frames += 1
                self._context.count(DAMAGED, self._name)
            if stop.is_set() or selection.is_over(timed.time_ns):
                return
            if not selection.takes(timed.time_ns):
                continue
            if self._camera.realtime:
                origin_ns = time.monotonic_ns() - timed.time_ns if origin_ns is None else origin_ns
                wait_s = (origin_ns + timed.time_ns - time.monotonic_ns()) / SECOND_NS
                if wait(wait_s, stop, self._context.alive):
                    return
            decoded = self._picture(timed.content) if isinstance(timed.content, Path) else timed.content
            if decoded is not None:
                photograph = timed.content if self._alone and isinstance(timed.content, Path) else None
                yield Shot(self._stamp(epoch, timed, self._taken(photograph, timed, decoded)), decoded)

    def _stamp(self, epoch: int, timed: video.Timed, at: Beginning) -> Stamp:
        base = (timed.time_base.numerator, timed.time_base.denominator)
        moments = (timed.time_ns, time.monotonic_ns(), at.wall_ns)
        return Stamp(self._name, epoch, timed.seq, *moments, timed.pts, base, at.clock, self._alone)

    def _taken(self, photograph: Path | None, timed: video.Timed, decoded: VideoFrame) -> Beginning:
        """The time of day at this frame, and its source: a photograph with a date has its own."""
        if photograph is not None:
            own = self._camera.beginning(photograph.name, decoded.metadata)
            if own.clock in ("metadata", "name"):
                return own
        return Beginning(self._beginning.wall_ns + timed.time_ns, self._beginning.clock)

    def _find_beginning(self) -> Beginning:
        """Also whether these are photographs, each a moment by itself."""
        path = self._camera.path(self._context.base_folder)
        album = pictures.is_album(path)
        self._alone = album and self._camera.film_fps(path) is None
        metadata: Mapping[str, str] = {}
        if not album and not self._camera.start_at:
            with self._memory.in_ffmpeg, open_video(path, playlist=self._camera.playlist) as opened:
                metadata = metadata_of(*opened)
        name = "" if self._alone else pictures.first_name(path)
        found = self._camera.beginning(name, metadata)
        self._context.camera_shows(self._name, clock=found.clock)
        if found.clock != "file":
            why = found.why(self._camera.time_zone)
            self._context.log.info("file_begins", camera=self._name, at=found.text, clock=found.clock, why=why)
        return found

    def _timed(self, resume: Stamp | None) -> Iterator[video.Timed]:
        """All of the file, or a part of it that begins no later than the wanted one."""
        path = self._camera.path(self._context.base_folder)
        if pictures.is_album(path):
            album = pictures.timed_pictures(path, self._camera.film_fps(path))
            return (timed for timed in album if resume is None or timed.seq > resume.seq)
        allowed = self._camera.playlist
        if resume is None:
            return video.frames_from(path, round(self._camera.start_s * SECOND_NS), self._signs, playlist=allowed)
        place = Place(resume.pts, resume.seq, resume.time_ns)
        return video.frames_after(path, place, self._signs, playlist=allowed)

    def _picture(self, path: Path) -> VideoFrame | None:
        """The picture, or None if one of a folder cannot be read: counted, and the next one comes."""
        try:
            with self._memory.in_ffmpeg:
                picture, harm = pictures.picture_and_harm(path)
        except (Refused, BadItem, av.FFmpegError, OSError) as error:
            if self._memory.is_too_large:
                raise
            why = str(error) if isinstance(error, BadItem) else pictures.why_unreadable(path, error)
            if path == self._camera.path(self._context.base_folder):
                raise UserError(why, error_id="video-unreadable") from None
            self._context.log.warning("picture_unreadable", camera=self._name, path=str(path), why=why)
            self._damaged()
            return None
        self._report_unjudged(path)
        if harm:
            self._context.log.warning("picture_damaged", camera=self._name, path=str(path), why=harm)
            self._context.count(DAMAGED, self._name)
        return picture

    def _report_unjudged(self, path: Path) -> None:
        """Once: a folder may have thousands of such pictures."""
        why = "" if self._unjudged else pictures.unjudged(path)
        if why:
            self._unjudged = True
            self._context.log.warning("pictures_not_judged", camera=self._name, path=str(path), why=why)

    def _is_damaged(self, frame: VideoFrame) -> bool:
        """Whether the decoder says so of this frame, or of a packet since the frame before."""
        return (self._log is not None and "damage" in self._log.take()) or frame.is_corrupt

    def _packet_read(self, packet: Packet[VideoStream]) -> None:
        if self._stream is None:
            self._stream = packet.stream
            self._report_pixels(odd_pixel_shape(packet.stream))
        if self._log is None and packet.stream.codec_context.name in _UNFLAGGED:
            self._log = self._listeners.enter_context(listening())
        if not has_no_times(packet.stream.container):
            self._give(packet)

    def _give(self, packet: Packet[VideoStream]) -> None:
        self._tap.offer(packet, self._epoch)

    def _report_pixels(self, shape: str) -> None:
        if shape:
            self._context.camera_shows(self._name, pixel_shape=shape)
            why = f"{WHAT_IS_OFF}; {FOR_FILES}"
            self._context.log.warning("pixels_not_square", camera=self._name, pixel_shape=shape, why=why)

    def _packet_damaged(self) -> None:
        self._bad_packets += 1
        if self._log is not None:
            self._log.take()  # of a packet that gave no picture
        self._damaged()

    def _damaged(self) -> None:
        self._context.count("dropped.damaged", self._name)
