"""What FFmpeg is told about a camera. It ignores options that it does not know, so each is tested by what it does."""

from __future__ import annotations

from stages.reading import addresses
from stages.reading.camera import Camera

# Finding out what comes takes 3.4 s by default where a client joins in the middle of a group of pictures.
_PROBING = {"probesize": "200000", "analyzeduration": "500000"}
MOST_TRACKS = 16
"""Of one camera over RTSP; each costs a request and memory, and a thousand of them is what FFmpeg would take."""
DECODER_OPTIONS = {"max_pixels": str(8192 * 4352)}
"""No level of H.264 or H.265 has larger pictures. A camera that claims one is refused before any memory is taken."""


def format_of(camera: Camera) -> str | None:
    """The demuxer's name where the address does not tell it."""
    return "video4linux2" if addresses.is_device(camera.url) else None


def options_of(camera: Camera) -> dict[str, str]:
    """Options of demuxer and protocol."""
    if addresses.is_device(camera.url):
        return {}
    if addresses.is_rtsp(camera.url):
        # Sound is not even set up: a camera sends nothing that nobody takes.
        wanted = {"rtsp_transport": camera.transport, "allowed_media_types": "video", "max_streams": str(MOST_TRACKS)}
        return {**_PROBING, **DECODER_OPTIONS, **wanted}
    if addresses.is_playlist(camera.url):
        # The newest segment: by default three are between a camera and what is seen of it.
        return {**_PROBING, "live_start_index": "-1"}
    return dict(_PROBING)
