"""Reads one camera: a video file, a folder of pictures, a picture, or a live stream, with honest times.

Files are exact: `seq` is the index of the decoded frame in the file and `time_ns` its time since the file's first
frame, also with `start_s` and after a restart (`stages.reading.recording`). A live camera that drops is opened again
(`stages.reading.live.live_camera`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

from av.video.reformatter import VideoReformatter

from pipeline.errors import UserError
from pipeline.messages import Stamp
from pipeline.stage import Context, Settings, Source, Stop
from stages.messages import Frame
from stages.reading import addresses, inspection, pixels
from stages.reading.camera import Camera
from stages.reading.live.live_camera import LiveCamera
from stages.reading.live.timeouts import timeouts_of
from stages.reading.probe import frame_bytes
from stages.reading.recording import Recording
from stages.reading.shots import Shot, Shots

__all__ = ["Camera", "Capture"]

_ON_THE_WAY_S = 2.0
"""So long a frame may take from the camera until it is counted."""


class Capture(Source[Settings]):
    """See the module's docstring."""

    camera_type = Camera
    outputs = (Frame,)

    def __init__(self, settings: Settings, camera: str, camera_settings: Camera, context: Context) -> None:
        super().__init__(settings, camera, camera_settings, context)
        self._reformatter = VideoReformatter()
        self._live_camera: LiveCamera | None = None

    @classmethod
    def is_live(cls, camera_settings: Camera) -> bool:
        return addresses.is_live(camera_settings.url)

    @classmethod
    def still_s(cls, camera_settings: Camera) -> float:
        every_s = 1 / camera_settings.max_fps if camera_settings.max_fps else 0.0
        return timeouts_of(camera_settings).stalled_s + every_s + _ON_THE_WAY_S

    @classmethod
    def check_camera(cls, camera_settings: Camera, base_folder: Path) -> Iterable[tuple[tuple[str, ...], str]]:
        problem = inspection.what_is_wrong(camera_settings.url, base_folder)
        if problem:
            yield ("url",), problem
        for name, why in camera_settings.idle_settings():
            yield (name,), why

    @classmethod
    def slot_bytes(cls, camera_settings: Camera, base_folder: Path) -> int | None:
        if addresses.is_live(camera_settings.url):
            return None
        path = camera_settings.path(base_folder)
        return frame_bytes(path) if path.is_file() or path.is_dir() else None

    def frames(self, stop: Stop, resume: Stamp | None) -> Iterator[Frame]:
        if not addresses.is_live(self.camera_settings.url):
            return self._developed(self._recording().shots(stop, resume))
        if self._live_camera is None:
            self._live_camera = LiveCamera(self.camera, self.camera_settings, self.context, self._frame)
        return self._live_camera.frames(stop, resume)

    def _recording(self) -> Recording:
        mistyped = inspection.why_mistyped(self.camera_settings.url, self.context.base_folder)
        if mistyped:
            raise UserError(mistyped)
        return Recording(self.camera, self.camera_settings, self.context)

    def _developed(self, shots: Shots) -> Iterator[Frame]:
        # Closed here, in this thread: what reads a file must never be touched by two.
        with closing(shots):
            for shot in shots:
                yield self._frame(shot)

    def _frame(self, shot: Shot) -> Frame:
        picture = pixels.picture_of(shot.content)
        # What may fail comes first: memory that is taken for a frame goes with it, and is not given back before.
        planes = pixels.planes_of(shot.content, picture, self._reformatter)
        if picture.format == "yuv420p" and not self.context.outputs_leave:
            return Frame.of_planes(shot.stamp, planes, picture.width, picture.height)
        out = self.context.new_arrays({"pixels": (picture.shape, "uint8")})["pixels"]
        pixels.fill(out, planes)
        return Frame(shot.stamp, out, picture.width, picture.height, picture.format)
