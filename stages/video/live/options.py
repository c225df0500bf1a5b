"""FFmpeg's options for a camera. It ignores unknown options, so each is tested by its effect."""

from __future__ import annotations

from camgraph.stages.video import addresses
from camgraph.stages.video.camera import Camera
from camgraph.stages.video.formats import DECODER_OPTIONS, LIVE_FORMATS
from camgraph.stages.video.live.gate.web_answer import Served

# Identifying a stream takes 3.4 s by default if a client joins in the middle of a group of pictures.
_PROBING = {"probesize": "200000", "analyzeduration": "500000"}
MOST_TRACKS = 16
"""Of one camera over RTSP; each costs a request and memory, and FFmpeg would take a thousand."""
PICTURES = "mpjpeg"
"""The format of pictures as the gate sends them, each in a part of its own."""
_ALONE = {"format_whitelist": LIVE_FORMATS}
_PICTURES = {"format_whitelist": PICTURES}
_THROUGH_GATE = {
    "protocol_whitelist": "http,tcp,crypto",
    # FFmpeg would go by the proxy of the environment, even to this machine.
    "http_proxy": "",
}
_PLAYLIST = {
    "format_whitelist": f"hls,{LIVE_FORMATS}",
    # A segment must not be a playlist of its own: the list above holds for segments as well.
    "seg_format_options": f"format_whitelist={LIVE_FORMATS}",
    "http_persistent": "0",
    # The newest segment: by default three lie between a camera and the viewer.
    "live_start_index": "-1",
    # Cameras name segments as they like; their content shows their kind.
    "extension_picky": "0",
    "allowed_extensions": "ALL",
    "allowed_segment_extensions": "ALL",
}


_OF_SERVED: dict[Served, dict[str, str]] = {"playlist": _PLAYLIST, "pictures": _PICTURES, "stream": _ALONE}
_FORMATS: dict[Served, str | None] = {"playlist": "hls", "pictures": PICTURES, "stream": None}


def format_of(camera: Camera, served: Served = "stream") -> str | None:
    """The demuxer's name if the address does not show it; `served`: what the camera has answered with."""
    return "video4linux2" if addresses.is_device(camera.url) else _FORMATS[served]


def options_of(camera: Camera, served: Served = "stream") -> dict[str, str]:
    """Options of demuxer and protocol."""
    if addresses.is_device(camera.url):
        return {}
    if addresses.is_rtsp(camera.url):
        # Sound is not set up, so the camera does not send it.
        wanted = {"rtsp_transport": camera.transport, "allowed_media_types": "video", "max_streams": str(MOST_TRACKS)}
        return {**_PROBING, **DECODER_OPTIONS, **wanted}
    if addresses.is_gated(camera.url):
        return {**_PROBING, **DECODER_OPTIONS, **_THROUGH_GATE, **_OF_SERVED[served]}
    # FFmpeg itself makes a description of RTP from the packets.
    formats = f"rtp,sdp,{LIVE_FORMATS}" if addresses.scheme_of(camera.url) == "rtp" else LIVE_FORMATS
    return {**_PROBING, **DECODER_OPTIONS, "format_whitelist": formats}
