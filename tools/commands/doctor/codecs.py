"""Checks the codecs that decode and encode video here."""

from __future__ import annotations

from collections.abc import Iterator

import av
from av.codec.codec import UnknownCodecError

from camgraph.stages.video.live.hardware import why_no_cuda
from camgraph.tools.commands.doctor.notice import Notice

_NEEDED = ("h264", "hevc", "mjpeg")
_CURE = "pip install --force-reinstall av (the packages of PyPI have all of them)"


def look_at_codecs() -> Iterator[Notice]:
    """Decoders for cameras, and an encoder for videos of a run."""
    missing = [name for name in _NEEDED if not _has(name, "r")]
    if missing:
        yield Notice("wrong", "decoders", f"this FFmpeg lacks {', '.join(missing)}", _CURE)
    else:
        yield Notice("ok", "decoders", f"{', '.join(_NEEDED)} (PyAV {av.__version__})")
    if _has("libx264", "w"):
        yield Notice("ok", "encoders", "libx264")
    else:
        yield Notice("warning", "encoders", "no libx264: `sink_video` writes MPEG-4, which is larger", _CURE)


def look_at_hardware() -> Iterator[Notice]:
    """Whether `decode: cuda` works."""
    why = why_no_cuda()
    if why:
        yield Notice("ok", "decode: cuda", f"not available here ({why}); the CPU decodes")
    else:
        yield Notice("ok", "decode: cuda", "a device can be opened")


def _has(name: str, mode: str) -> bool:
    try:
        av.Codec(name, mode)  # type: ignore[arg-type]
    except UnknownCodecError:
        return False
    return True
