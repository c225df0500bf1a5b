"""Reads one camera: a video file, a folder of pictures, a picture, or a live stream, with honest times.

Files are exact: `seq` is the index of the decoded frame in the file and `time_ns` its time since the file's first
frame, also with `start_s` and after a restart (`stages.video.recording`). A live camera that drops is opened again
(`stages.video.live.live_camera`).
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import ClassVar

from av.video.reformatter import VideoReformatter

from camgraph.pipeline.errors import BadItem, ProblemText, UserError, id_of
from camgraph.pipeline.messages import Stamp
from camgraph.pipeline.stage import Context, Counts, FrameSize, Settings, Source, Stop
from camgraph.stages.messages import Frame
from camgraph.stages.video import addresses, examiner, inspection, pictures, pixels
from camgraph.stages.video.camera import Camera
from camgraph.stages.video.examination import Answer
from camgraph.stages.video.live.camera_problems import Dropped
from camgraph.stages.video.live.live_camera import LiveCamera
from camgraph.stages.video.live.timeouts import timeouts_of
from camgraph.stages.video.packets import socket_path
from camgraph.stages.video.pixel_shape import remark_on_pixels
from camgraph.stages.video.probe import largest_frame
from camgraph.stages.video.recording import DAMAGED, Recording
from camgraph.stages.video.shots import Shot, Shots
from camgraph.stages.video.slot_memory import SlotMemory
from camgraph.stages.video.tap import PacketTap

__all__ = ["Camera", "Capture"]

_ON_THE_WAY_S = 2.0
"""So long a frame may take from the camera until it is counted."""


class Capture(Source[Settings]):
    """See the module's docstring."""

    camera_type = Camera
    outputs = (Frame,)
    counts: ClassVar[Counts] = {
        "dropped.damaged": "The picture could not be decoded, or only with parts that were lost before it. Look at the "
        "network.",
        DAMAGED: "Pictures of a file that are judged although a part of them is damaged or missing.",
        "skipped.rate": "The camera brings more frames than its `max_fps`.",
    }

    def __init__(self, settings: Settings, camera: str, camera_settings: Camera, context: Context) -> None:
        super().__init__(settings, camera, camera_settings, context)
        self._reformatter = VideoReformatter()
        self._live_camera: LiveCamera | None = None
        self._tap: PacketTap | None = None
        self._slot_memory = SlotMemory(camera_settings.memory_mb, context.slots, self._declared_bytes)

    @classmethod
    def environment(cls, settings: Settings) -> Iterable[str]:
        """Of FFmpeg, for protocols on TLS or HTTP that have no gate, such as rtmps. The gates use no proxy."""
        return ("http_proxy", "no_proxy")

    @classmethod
    def is_live(cls, camera_settings: Camera) -> bool:
        return addresses.is_live(camera_settings.url)

    @classmethod
    def takes_turns(cls, camera_settings: Camera) -> bool:
        """A file that begins again has no end, and one in real time stands for a camera of now."""
        return not (cls.is_live(camera_settings) or camera_settings.loop or camera_settings.realtime)

    @classmethod
    def still_s(cls, camera_settings: Camera) -> float:
        every_s = 1 / camera_settings.max_fps if camera_settings.max_fps else 0.0
        return timeouts_of(camera_settings).stalled_s + every_s + _ON_THE_WAY_S

    @classmethod
    def check_camera(cls, camera_settings: Camera, base_folder: Path) -> Iterable[tuple[tuple[str, ...], str]]:
        problem = inspection.what_is_wrong(
            camera_settings.url,
            base_folder,
            playlist=camera_settings.playlist,
            memory_mb=camera_settings.memory_mb,
        )
        if problem:
            text = problem + inspection.what_was_meant(camera_settings.url, base_folder)
            yield ("url",), ProblemText(text, error_id=id_of(problem))
        for name, why in camera_settings.idle_settings():
            yield (name,), why

    @classmethod
    def unreadable(cls, camera_settings: Camera, base_folder: Path) -> Iterable[tuple[tuple[str, ...], str]]:
        found = None if addresses.is_live(camera_settings.url) else _examined(camera_settings, base_folder)
        if found and found.unreadable and not found.refused:
            yield ("url",), ProblemText(found.unreadable, error_id="video-unreadable")

    @classmethod
    def frames_alone(cls, camera_settings: Camera, base_folder: Path) -> bool:
        if addresses.is_live(camera_settings.url):
            return False
        path = camera_settings.path(base_folder)
        return pictures.is_album(path) and camera_settings.film_fps(path) is None

    @classmethod
    def camera_remarks(cls, camera_settings: Camera, base_folder: Path) -> Iterable[str]:
        if addresses.is_live(camera_settings.url):
            return
        found = _examined(camera_settings, base_folder)
        if found and not found.refused and not found.unreadable:
            path = camera_settings.path(base_folder)
            if found.unjudged:
                yield found.unjudged
            if pictures.is_album(path):
                yield _of_pictures(camera_settings, path)
                if camera_settings.film_fps(path) is None and camera_settings.start_at is None:
                    return  # each has a date of its own, or none
            if found.pixel_shape:
                yield remark_on_pixels(found.pixel_shape)
            name = pictures.first_name(path)
            yield camera_settings.beginning(name, found.metadata).sentence(camera_settings.time_zone)

    @classmethod
    def frame_size(cls, camera_settings: Camera, base_folder: Path) -> FrameSize | None:
        if addresses.is_live(camera_settings.url):
            return None
        found = _examined(camera_settings, base_folder)
        return found.frame_size if found else None

    @classmethod
    def most_fps(cls, camera_settings: Camera) -> float | None:
        return camera_settings.max_fps

    @classmethod
    def slot_bytes(cls, camera_settings: Camera, base_folder: Path) -> int | None:
        if addresses.is_live(camera_settings.url):
            return None
        found = _examined(camera_settings, base_folder)
        return found.frame_bytes if found else None

    def frames(self, stop: Stop, resume: Stamp | None) -> Iterator[Frame]:
        live = addresses.is_live(self.camera_settings.url)
        if self._tap is None:
            path, paced = socket_path(self.context.state_folder, self.camera), live or self.camera_settings.realtime
            self._tap = PacketTap(path, self.context.log, patient=not live, paced=paced)
        if not live:
            return self._tapped(self._developed(self._recording(self._tap).shots(stop, resume)))
        if self._live_camera is None:
            self._live_camera = LiveCamera(self.camera, self.camera_settings, self.context, self._frame, self._tap)
        return self._tapped(self._live_camera.frames(stop, resume))

    def _tapped(self, frames: Generator[Frame, None, None]) -> Iterator[Frame]:
        """The frames; at their end those who keep the packets learn that no more come."""
        try:
            with closing(frames):
                yield from frames
        finally:
            if self._tap is not None:
                self._tap.close()
                self._tap = None

    def _recording(self, tap: PacketTap) -> Recording:
        mistyped = inspection.why_mistyped(self.camera_settings.url, self.context.base_folder)
        if mistyped:
            raise UserError(mistyped, error_id="camera-address")
        return Recording(self.camera, self.camera_settings, self.context, tap)

    def _developed(self, shots: Shots) -> Generator[Frame, None, None]:
        # Closed here, in this thread: a file's reader must never be touched by two.
        with closing(shots):
            for shot in shots:
                yield self._frame(shot)

    def _frame(self, shot: Shot) -> Frame:
        picture = pixels.picture_of(shot.content)
        self._require_room(picture)
        # Steps that may fail come first: if one fails, memory taken for a frame would not be given back.
        planes = pixels.planes_of(shot.content, picture, self._reformatter)
        if picture.format == "yuv420p" and not self.context.outputs_leave:
            return Frame.of_planes(shot.stamp, planes, picture.width, picture.height)
        out = self.context.new_arrays({"pixels": (picture.shape, "uint8")})["pixels"]
        pixels.fill(out, planes)
        return Frame(shot.stamp, out, picture.width, picture.height, picture.format)

    def _require_room(self, picture: pixels.Picture) -> None:
        """Raises Dropped, or BadItem for a file, if this camera may not have the memory."""
        why = self._slot_memory.why_too_large(picture)
        if why and addresses.is_live(self.camera_settings.url):
            raise Dropped(f"too much memory: {why}")
        if why:
            raise BadItem("too_much_memory", f"{addresses.file_of(self.camera_settings.url)}: {why}")

    def _declared_bytes(self) -> int:
        camera = self.camera_settings
        if addresses.is_live(camera.url):
            return 0
        largest = largest_frame(camera.path(self.context.base_folder), playlist=camera.playlist)
        return largest.frame_bytes if largest else 0


def _of_pictures(camera: Camera, path: Path) -> str:
    count, fps = len(pictures.list_pictures(path)), camera.film_fps(path)
    if fps is not None:
        return f"{count} pictures, a film of {fps:g} frames a second (if they are photographs: sequence: false)"
    if count == 1:
        return "a photograph"
    return f"{count} photographs, each judged by itself (if they are a film, say its rate, as fps: 10)"


def _examined(camera: Camera, base_folder: Path) -> Answer | None:
    """The findings of another process on its file or folder; None if there is none."""
    path = camera.path(base_folder)
    if not path.is_file() and not path.is_dir():
        return None
    return examiner.examine(path, playlist=camera.playlist, memory_mb=camera.memory_mb)
