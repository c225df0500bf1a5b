"""A camera's description of its stream (RFC 4566; parameters of H.264 in RFC 6184 8.2.1, of H.265 in RFC 7798
7.2.1).
"""

from __future__ import annotations

import base64

from tools.simulator.clip import Clip
from tools.simulator.nal import nal_type
from tools.simulator.rtp import CLOCK_HZ, PAYLOAD_TYPE

TRACK = "track0"


def session_description(clip: Clip, name: str, fps: float) -> str:
    """The SDP of one video track with the rate ``fps``, whatever the clip has."""
    lines = [
        "v=0",
        "o=- 1 1 IN IP4 127.0.0.1",
        f"s={name}",
        "c=IN IP4 0.0.0.0",
        "t=0 0",
        "a=control:*",
        "a=range:npt=now-",
        f"m=video 0 RTP/AVP {PAYLOAD_TYPE}",
        f"a=rtpmap:{PAYLOAD_TYPE} {clip.codec.upper()}/{CLOCK_HZ}",
        f"a=fmtp:{PAYLOAD_TYPE} {_parameters(clip)}",
        f"a=framerate:{fps:g}",
        f"a=control:{TRACK}",
    ]
    return "\r\n".join([*lines, ""])


def _parameters(clip: Clip) -> str:
    if clip.codec == "h264":
        profile = next(nal for nal in clip.parameter_sets if nal_type("h264", nal) == 7)[1:4].hex()
        sets = ",".join(_base64(nal) for nal in clip.parameter_sets)
        return f"packetization-mode=1; profile-level-id={profile}; sprop-parameter-sets={sets}"
    names = {32: "sprop-vps", 33: "sprop-sps", 34: "sprop-pps"}
    return "; ".join(
        f"{name}={','.join(_base64(nal) for nal in clip.parameter_sets if nal_type('h265', nal) == kind)}"
        for kind, name in names.items()
    )


def _base64(nal: bytes) -> str:
    return base64.b64encode(nal).decode()
