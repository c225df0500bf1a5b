"""Facts found out about a live camera, for its status."""

from __future__ import annotations

from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from stages.reading import addresses
from stages.reading.camera import Camera
from stages.reading.live.camera_reporter import CameraReporter

_CODECS = {"hevc": "h265"}


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

    def seen(self, picture: VideoFrame) -> None:
        """A picture came."""
        size = (picture.width, picture.height)
        if size != self._size:
            self._size = size
            self._reporter.shows(size=f"{size[0]}x{size[1]}")
