"""Chooses the device that decodes pictures: this processor, or a CUDA device if there is one.

`hwdevices_available()` names the devices that FFmpeg was built for, and creating a device without a driver fails even
if software may stand in: so it is tried, once for a process. Only the pictures show whether the device really decodes
this stream: they come back as nv12 or p010, from software as planes.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import av
from av.codec.context import CodecContext
from av.codec.hwaccel import HWAccel
from av.video.codeccontext import VideoCodecContext
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from camgraph.pipeline.errors import EnvironmentProblem
from camgraph.pipeline.system.disk import try_lock
from camgraph.stages.video.camera import Decode
from camgraph.stages.video.ffmpeg_errors import reason_of

_FROM_DEVICE = frozenset({"nv12", "p010le", "p016le", "cuda"})
_DRIVER, _DECODER = "libcuda.so.1", "libnvcuvid.so.1"
_BLOCKING_SYNC = 4  # CU_CTX_SCHED_BLOCKING_SYNC: FFmpeg takes a primary context with these flags alone
_WAY_OUT = "install the NVIDIA driver and give the process its device, or write `decode: auto` or `decode: cpu`"
TURN_WAIT_S = 60.0
_TURN_LOOK_S = 0.05


@cache
def why_no_cuda(device: int = 0) -> str:
    """Why this process cannot decode on this CUDA device, "" if it can."""
    why = _why_not_begun(device)
    if not why:
        try:
            CodecContext.create("h264", "r", hwaccel=_accelerator(device, software=False))
        except (av.FFmpegError, OSError, NotImplementedError, ValueError) as error:
            why = reason_of(error)
    return f"no CUDA device can be opened: {why}" if why else ""


def _why_not_begun(device: int) -> str:
    """Load the decoding library, and create the device's primary context, which all decoders of this process share.

    The driver takes up to seconds for it while other processes begin, too. FFmpeg would do it under Python's lock, and
    this process could not give signs of life meanwhile.
    """
    try:
        driver = ctypes.CDLL(_DRIVER)
    except OSError:
        return f"{_DRIVER} of NVIDIA's driver is missing"
    try:
        ctypes.CDLL(_DECODER)
    except OSError:
        return (
            f"{_DECODER}, which decodes, is missing; a container needs the capability `video` "
            "(NVIDIA_DRIVER_CAPABILITIES=compute,utility,video)"
        )
    number, context = ctypes.c_int(), ctypes.c_void_p()
    error = driver.cuInit(0) or driver.cuDeviceGet(ctypes.byref(number), device)
    if not error:
        driver.cuDevicePrimaryCtxSetFlags_v2(number, _BLOCKING_SYNC)
        error = driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), number)
    return f"CUDA error {error} on device {device}" if error else ""


def _accelerator(device: int, *, software: bool) -> HWAccel:
    return HWAccel("cuda", device=str(device), allow_software_fallback=software, options={"primary_ctx": "1"})


def context_for(stream: VideoStream, decode: Decode, device: int = 0) -> tuple[VideoCodecContext, str]:
    """A decoder for this stream, and why it is not the one that was wanted, "" if it is.

    Raises EnvironmentProblem if it must be a CUDA device and there is none.
    """
    own = stream.codec_context
    reason = "" if decode == "cpu" else why_no_cuda(device)
    if reason and decode == "cuda":
        raise EnvironmentProblem(f"decode: cuda: {reason}; {_WAY_OUT}", error_id="gpu-decoding")
    if reason or decode == "cpu":
        return own, reason
    made = CodecContext.create(own.name, "r", hwaccel=_accelerator(device, software=decode == "auto"))
    assert isinstance(made, VideoCodecContext)
    made.extradata, made.width, made.height = own.extradata, own.width, own.height
    return made, ""


def why_not_on_device(frame: VideoFrame, codec: str) -> str:
    """Why this picture, of a decoder with a device, is not from there; "" if it is."""
    name = frame.format.name
    return "" if name in _FROM_DEVICE else f"the device does not decode this {codec}: pictures come as {name}"


class Turns:
    """Processes that open decoders on a GPU take turns: the driver makes many at once wait for each other for long.

    A decoder is opened under Python's lock, by its first picture, so that its process gives no sign of life meanwhile:
    64 cameras that began at once on an H100 were all taken for hung. One after the other, each takes a fraction of a
    second.

    ``file``: the same for all that take turns; ``alive`` is called while others have theirs.
    """

    def __init__(self, file: Path, alive: Callable[[], None], wait_s: float = TURN_WAIT_S) -> None:
        self._file = file
        self._alive = alive
        self._wait_s = wait_s

    @contextmanager
    def one(self) -> Iterator[None]:
        """Hold the turn alone; after ``wait_s``, or if the lock cannot be made, begin without it."""
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            file = self._file.open("a")
        except OSError:
            yield
            return
        with file:  # closing it lets the lock go
            late = time.monotonic() + self._wait_s
            while not _taken(file.fileno()) and time.monotonic() < late:
                self._alive()
                time.sleep(_TURN_LOOK_S)
            yield


def _taken(descriptor: int) -> bool:
    try:
        return try_lock(descriptor)
    except OSError:  # a file system without locks
        return True
