"""How long a camera may be silent, by the kind of its connection."""

from __future__ import annotations

from typing import NamedTuple

from camgraph.stages.video import addresses
from camgraph.stages.video.camera import Camera

AFTER_STALLED_S = 8.0
"""From stalled to given up."""
_STALLED_S = 3.0
# A playlist brings some seconds at once, and a recorder may be late with it.
_STALLED_HLS_S = 12.0
_ANSWERS_S = 2.0
"""An address of one picture takes so long to answer at most."""


class Timeouts(NamedTuple):
    """How long a camera may send no packet: it is stalled then, and later its connection is given up."""

    stalled_s: float
    give_up_s: float


def timeouts_of(camera: Camera) -> Timeouts:
    """By the camera's settings, else as usual for its kind."""
    usual_s = _STALLED_HLS_S if addresses.is_playlist(camera.url) else _STALLED_S
    stalled_s = camera.stalled_s or max(usual_s, camera.every_s + _ANSWERS_S)
    return Timeouts(stalled_s, stalled_s + AFTER_STALLED_S)
