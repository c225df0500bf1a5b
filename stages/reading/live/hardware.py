"""Where pictures are decoded: on this processor, or on a CUDA device where there is one.

`hwdevices_available()` says for what FFmpeg was built, and creating a device without a driver fails even where software
may stand in: so it is tried, once for a process. Whether the device really decodes this stream only its pictures say:
they come back as nv12 or p010, from software as planes.
"""

from __future__ import annotations

from functools import cache

import av
from av.codec.context import CodecContext
from av.codec.hwaccel import HWAccel
from av.video.codeccontext import VideoCodecContext
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from pipeline.errors import EnvironmentProblem
from stages.reading.camera import Decode
from stages.reading.ffmpeg_errors import reason_of

_FROM_DEVICE = frozenset({"nv12", "p010le", "p016le", "cuda"})
_WAY_OUT = "install the NVIDIA driver and give the process its device, or write `decode: auto` or `decode: cpu`"


@cache
def why_no_cuda() -> str:
    """Why this process cannot decode on a CUDA device, "" where it can."""
    try:
        CodecContext.create("h264", "r", hwaccel=HWAccel("cuda", allow_software_fallback=False))
    except (av.FFmpegError, OSError, NotImplementedError, ValueError) as error:
        return f"no CUDA device can be opened: {reason_of(error)}"
    return ""


def context_for(stream: VideoStream, decode: Decode) -> tuple[VideoCodecContext, str]:
    """A decoder for this stream, and why it is not the one that was wanted, "" where it is.

    Raises EnvironmentProblem where it must be a CUDA device and there is none.
    """
    own = stream.codec_context
    reason = "" if decode == "cpu" else why_no_cuda()
    if reason and decode == "cuda":
        raise EnvironmentProblem(f"decode: cuda: {reason}; {_WAY_OUT}")
    if reason or decode == "cpu":
        return own, reason
    made = CodecContext.create(own.name, "r", hwaccel=HWAccel("cuda", allow_software_fallback=decode == "auto"))
    assert isinstance(made, VideoCodecContext)
    made.extradata, made.width, made.height = own.extradata, own.width, own.height
    return made, ""


def why_not_on_device(frame: VideoFrame, codec: str) -> str:
    """Why this picture, of a decoder with a device, is not from there; "" where it is."""
    name = frame.format.name
    return "" if name in _FROM_DEVICE else f"the device does not decode this {codec}: pictures come as {name}"
