"""Writes one annotated MP4 per camera: boxes, skeletons, track ids, scores, the camera's name and its time.

    videos: {use: sink_video, from: {frames: capture, tracks: tracks}, with: {path: "videos/{camera}.mp4"}}

A camera's first file is named as `path` says, and takes the place of one from an earlier run when it is complete.
Whatever makes a new file necessary adds a number: `front.2.mp4` follows when this process had to be started again (what
the dead one had written is kept under the first name), when the picture's size changes, after a failure, and after
`segment_minutes`. The names of a run's files stand in `videos.json` in the state folder.
"""

from __future__ import annotations

import json
import re
import tempfile
import zlib
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import av
import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from pipeline.errors import EnvironmentProblem
from pipeline.messages import End, Message, Stamp
from pipeline.paths import resolve_output
from pipeline.stage import Context, Ports, Settings, Stage
from stages.messages import Frame, Tracks
from stages.vision.drawing import draw_caption, draw_people
from stages.writing.recording import (
    CodecFamily,
    Encoding,
    Recording,
    Size,
    choose_encoder,
    even_size,
    frames_in,
    part_of,
    rescue,
)

YEAR_2000_NS = 946_684_800_000_000_000
RETRY_NS = 30_000_000_000
"""Stream time until a camera whose file failed is given a new one."""


class SinkVideoSettings(Settings):
    """Where the videos go and how they look."""

    path: str = Field("videos/{camera}.mp4", description="File of a camera; {camera} becomes its name")
    max_width: int = Field(1280, ge=64, le=7680, description="Wider pictures are made this wide, in pixels")
    codec: CodecFamily = Field("auto", description="auto takes H.264 where the build has an encoder, else MPEG-4")
    crf: int = Field(23, ge=0, le=51, description="Quality of H.264: lower is better and larger")
    bitrate_kbps: int | None = Field(None, ge=50, description="A fixed rate instead of crf, in kbit/s")
    preset: str = Field("superfast", pattern="^(ultra|super|very)fast$|^faster$|^fast$|^medium$", description="x264's")
    min_confidence: float = Field(0.3, ge=0, le=1, description="Joints below it are not drawn")
    segment_minutes: float = Field(60, gt=0, description="A longer video goes on in a new file")

    @field_validator("path")
    @classmethod
    def _names_camera(cls, path: str) -> str:
        if path.count("{camera}") != 1 or "{" in path.replace("{camera}", "") or not path.endswith(".mp4"):
            raise ValueError("expected {camera} once and .mp4 at the end, such as videos/{camera}.mp4")
        return path


class SinkVideo(Stage[SinkVideoSettings]):
    """One file at a time for each camera. A failing disk costs videos, never the run: it is counted and tried again."""

    settings_type = SinkVideoSettings
    inputs: ClassVar[Ports] = {"frames": Frame, "tracks": Tracks}
    outputs = ()
    stateful = True
    own_thread = True

    def __init__(self, settings: SinkVideoSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._recordings: dict[str, Recording] = {}
        self._names: dict[str, list[str]] = {}
        self._retry_ns: dict[str, int] = {}

    def open(self) -> None:
        self._encoding = self._choose_encoding()
        for camera in self.context.cameras:
            _check_writable(self._target(camera, 1).parent)
        if self.context.incarnation > 1:
            self._take_over()

    def process(self, items: Sequence[Any]) -> Iterable[Message]:
        for item in items:
            self._record(item["frames"], item["tracks"])
        return ()

    def finish(self, camera: str, end: End) -> Iterable[Message]:
        self._complete(camera)
        return ()

    def close(self) -> None:
        for camera in list(self._recordings):
            self._complete(camera)

    def _choose_encoding(self) -> Encoding:
        settings = self.settings
        encoder = choose_encoder(settings.codec)
        self.context.log.info("video_encoder", encoder=encoder)
        return Encoding(encoder, settings.crf, settings.bitrate_kbps, settings.preset)

    def _record(self, frame: Frame, tracks: Tracks) -> None:
        camera, time_ns = frame.stamp.camera, frame.stamp.time_ns
        try:
            if time_ns < self._retry_ns.get(camera, time_ns):
                self.context.count("dropped.write_failed", camera)
                return
            recording = self._recording_for(frame)
            recording.write(annotated(frame, tracks, recording.size, self.settings.min_confidence), time_ns)
        except (OSError, av.FFmpegError, EnvironmentProblem) as error:
            self._give_up(camera, error)
            self._retry_ns[camera] = time_ns + RETRY_NS
            self.context.count("dropped.write_failed", camera)

    def _recording_for(self, frame: Frame) -> Recording:
        """The camera's open file, or its next one."""
        camera = frame.stamp.camera
        size = even_size((frame.width, frame.height), self.settings.max_width)
        recording = self._recordings.get(camera)
        if recording and (recording.size != size or recording.duration_ns > self.settings.segment_minutes * 60e9):
            self._complete(camera)
            recording = None
        return recording or self._start(camera, size)

    def _start(self, camera: str, size: Size) -> Recording:
        names = self._names.setdefault(camera, [])
        target = self._target(camera, len(names) + 1)
        recording = self._recordings[camera] = Recording(target, size, self._encoding)
        names.append(str(target))
        self._keep_names()
        self.context.log.info("video_started", camera=camera, path=str(target), width=size[0], height=size[1])
        return recording

    def _complete(self, camera: str) -> None:
        recording = self._recordings.get(camera)
        if recording is None:
            return
        try:
            recording.close()
        except (OSError, av.FFmpegError) as error:
            self._give_up(camera, error)
            return
        del self._recordings[camera]
        seconds = round(recording.duration_ns / 1e9, 3)
        self.context.wrote(recording.target)
        self.context.log.info("video_done", camera=camera, path=str(recording.target), duration_s=seconds)

    def _give_up(self, camera: str, error: Exception) -> None:
        """Keep what can be kept of the camera's file, and say what that is; the rest of its frames is counted."""
        recording = self._recordings.pop(camera, None)
        if recording is None:
            self.context.log.error("video_failed", camera=camera, path="", error=_reason(error))
            return
        kept = recording.abandon()
        frames = frames_in(kept) if kept else 0
        if kept:
            self.context.wrote(kept)
        elif str(recording.target) in self._names[camera]:
            self._names[camera].remove(str(recording.target))  # free for the next one
        lost = max(0, recording.frames - frames)
        self.context.count("dropped.write_failed", camera, lost)
        self.context.log.error(
            "video_failed",
            camera=camera,
            path=str(recording.target),
            error=_reason(error),
            kept=str(kept or ""),
            kept_frames=frames,
            lost_frames=lost,
        )

    def _take_over(self) -> None:
        """Keep what the dead process had written; its files' names are taken."""
        if self._list.exists():
            self._names = json.loads(self._list.read_text())
        for camera, names in self._names.items():
            try:
                kept = rescue(Path(names[-1]))
            except OSError as error:
                part = str(part_of(Path(names[-1])))
                self.context.log.error("video_failed", camera=camera, path=names[-1], error=_reason(error), kept=part)
            else:
                self.context.log.warning("video_interrupted", camera=camera, path=names[-1], kept=kept)

    def _target(self, camera: str, number: int) -> Path:
        path = resolve_output(self.settings.path.replace("{camera}", safe_name(camera)), self.context.base_folder)
        return path if number == 1 else path.with_name(f"{path.stem}.{number}{path.suffix}")

    def _keep_names(self) -> None:
        new = self._list.with_suffix(".new")
        new.write_text(json.dumps(self._names))
        new.replace(self._list)

    @property
    def _list(self) -> Path:
        return self.context.state_folder / "videos.json"


def annotated(frame: Frame, tracks: Tracks, size: Size, min_confidence: float) -> NDArray[np.uint8]:
    """A new picture (H, W, 3) BGR of `size` (width, height) with everything drawn on it."""
    picture = _bgr(frame, size)
    scale = np.array([size[0] / frame.width, size[1] / frame.height], np.float32)
    draw_people(
        picture,
        tracks.boxes * np.tile(scale, 2),
        tracks.keypoints * np.append(scale, np.float32(1)),
        tracks.ids.tolist(),
        [f"#{track_id} {score:.2f}" for track_id, score in zip(tracks.ids, tracks.scores, strict=True)],
        skeleton=tracks.skeleton,
        min_confidence=min_confidence,
    )
    draw_caption(picture, frame.stamp.camera, clock_text(frame.stamp))
    return picture


def clock_text(stamp: Stamp) -> str:
    """UTC where the wall clock means something, else (a file without a start time) the media time as M:SS.d."""
    if stamp.wall_ns >= YEAR_2000_NS:
        return datetime.fromtimestamp(stamp.wall_ns // 10**9, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    tenths = stamp.time_ns // 100_000_000
    minutes, rest = divmod(tenths, 600)
    hours, minutes = divmod(minutes, 60)
    clock = f"{minutes:02d}:{rest // 10:02d}.{rest % 10}"
    return f"{hours}:{clock}" if hours else clock


def safe_name(camera: str) -> str:
    """A file name of a camera's name. Two names never become one: a changed one ends with its checksum."""
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", camera).lstrip(".")[:100]
    return name if name and name == camera else f"{name}-{zlib.crc32(camera.encode()):08x}"


def _bgr(frame: Frame, size: Size) -> NDArray[np.uint8]:
    """A writable picture of `size`; INTER_AREA where it gets smaller."""
    pixels: NDArray[Any] = frame.pixels
    if frame.format == "yuv420p":
        pixels = cv2.cvtColor(pixels, cv2.COLOR_YUV2BGR_I420)
    elif (frame.width, frame.height) == size:
        pixels = pixels.copy()
    if (frame.width, frame.height) != size:
        pixels = cv2.resize(pixels, size, interpolation=cv2.INTER_AREA)
    return pixels


def _check_writable(folder: Path) -> None:
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise EnvironmentProblem(
            f"{folder}: cannot write videos here: {error.strerror}; change its permissions, or set another path"
        ) from error


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
