"""Reports on one live camera, in the words of `pipeline.stage.Context`: its states, its drops, and facts about it."""

from __future__ import annotations

import threading
import traceback

from av.video.stream import VideoStream

from camgraph.pipeline.stage import CameraState, Context
from camgraph.stages.video import addresses
from camgraph.stages.video.camera import Camera
from camgraph.stages.video.live.hardware import Turns
from camgraph.stages.video.pixel_shape import FOR_CAMERAS, WHAT_IS_OFF, odd_pixel_shape

_CODECS = {"hevc": "h265"}


class CameraReporter:
    """The context, for one camera. A change of its state is reported once. May be used from any thread."""

    def __init__(self, camera: str, context: Context) -> None:
        self._camera = camera
        self._context = context
        self._warned: set[str] = set()
        self._bugs: set[str] = set()
        self._state: CameraState | None = None
        self._lock = threading.Lock()

    @property
    def turns(self) -> Turns:
        """Of all processes of this stage that open decoders on a GPU."""
        return Turns(self._context.state_folder / "decoders.lock", self.alive)

    def alive(self) -> None:
        """A sign of life."""
        self._context.alive()

    def count(self, name: str, n: int = 1) -> None:
        """As `Context.count`: `dropped.<reason>` or `skipped.<reason>`."""
        self._context.count(name, self._camera, n)

    def shows(self, **facts: str | float) -> None:
        """As `Context.camera_shows`."""
        self._context.camera_shows(self._camera, **facts)

    def warns_once(self, event: str, **keys: str) -> None:
        """Log it, when nothing was warned of under this name before."""
        if event not in self._warned:
            self._warned.add(event)
            self._context.log.warning(event, camera=self._camera, **keys)

    def failed(self, error: Exception) -> None:
        """Log a bug of this program with its traceback: once, however often the camera meets it."""
        place = traceback.extract_tb(error.__traceback__)[-1:]
        met = f"{type(error).__name__} {place}"
        if met not in self._bugs:
            self._bugs.add(met)
            self._context.log.exception("source_failed", camera=self._camera, exc_info=error)

    def is_now(self, state: CameraState, why: str = "") -> None:
        """As `Context.camera_is`; the same state again is not reported, even for another reason."""
        with self._lock:
            if state != self._state:
                self._state = state
                self._context.camera_is(self._camera, state, why)


class Facts:
    """Reports new facts about one camera. It outlives the connections, and counts them."""

    def __init__(self, reporter: CameraReporter) -> None:
        self._reporter = reporter
        self._connections = 0
        self._size = (0, 0)

    def connected(self, camera: Camera, stream: VideoStream) -> None:
        """A connection stands."""
        self._connections += 1
        codec = stream.codec_context.name
        self._reporter.shows(
            codec=_CODECS.get(codec, codec),
            fps_declared=round(float(stream.average_rate or 0), 3),
            transport=camera.transport if addresses.is_rtsp(camera.url) else addresses.scheme_of(camera.url),
            connections=self._connections,
        )
        shape = odd_pixel_shape(stream)
        if shape:
            self._reporter.shows(pixel_shape=shape)
            self._reporter.warns_once("pixels_not_square", pixel_shape=shape, why=f"{WHAT_IS_OFF}; {FOR_CAMERAS}")

    def seen(self, width: int, height: int) -> None:
        """An upright picture came."""
        size = (width, height)
        if size != self._size:
            self._size = size
            self._reporter.shows(size=f"{size[0]}x{size[1]}")
