"""How long a camera may be silent, by the kind of its connection."""

from __future__ import annotations

from typing import NamedTuple

from stages.reading import addresses
from stages.reading.camera import Camera

HEARTBEAT_S = 0.5
GIVE_UP_S = 8.0
"""From stalled to given up."""
_STALLED_S = 3.0
# A playlist brings some seconds at once, and a recorder may be late with it.
_STALLED_HLS_S = 12.0


class Patience(NamedTuple):
    """`read_s` is the read time-out. Where a read that timed out can be taken up again (`resumes`) it is short, a
    heartbeat; FFmpeg's readers of files and of HTTP end with the first one."""

    read_s: float
    resumes: bool
    stalled_s: float
    give_up_s: float


def patience_with(camera: Camera) -> Patience:
    """Measured: RTSP goes on after a time-out; MJPEG over HTTP repeats it for ever, HLS ends."""
    stalled_s = camera.stalled_s or (_STALLED_HLS_S if addresses.is_playlist(camera.url) else _STALLED_S)
    give_up_s = stalled_s + GIVE_UP_S
    if addresses.is_rtsp(camera.url) or addresses.is_device(camera.url):
        return Patience(HEARTBEAT_S, True, stalled_s, give_up_s)
    return Patience(give_up_s, False, stalled_s, give_up_s)
