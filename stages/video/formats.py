"""Which formats and protocols FFmpeg may use, for files and for cameras.

FFmpeg goes by content alone. Left to itself it follows playlists to other files and hosts, renders texts as pictures,
and reads hundreds of formats that no camera writes; each is a parser that a stranger can feed.
"""

from __future__ import annotations

from camgraph.stages.video.scripts import ScriptKind

_SHARED = (
    *("mov", "matroska", "webm", "avi", "mpegts", "mpeg", "mpegvideo", "flv", "live_flv", "asf", "asf_o", "ogg", "nut"),
    *("h264", "hevc", "vvc", "av1", "obu", "ivf", "m4v", "h263", "mjpeg", "mjpeg_2000", "mpjpeg", "mxf", "dv", "rm"),
)
_RECORDERS = ("dhav", "wtv", "gxf", "yuv4mpegpipe", "vc1", "gif", "apng", "webp")
_PICTURES = (
    *("image2", "jpeg_pipe", "png_pipe", "bmp_pipe", "webp_pipe", "tiff_pipe", "jpegxl_pipe", "j2k_pipe", "gif_pipe"),
    *("ppm_pipe", "pgm_pipe", "pbm_pipe", "pam_pipe"),
)
_SOUND = ("wav", "mp3", "aac", "flac")
"""Opened to say that there is no video in it."""
TEXT = "tty"
"""The format as which FFmpeg opens files such as notes.txt: it makes pictures of their letters. It is on the list of
files to be told apart, and refused.
"""

_SCRIPT_FORMATS: dict[ScriptKind, str] = {"hls": "hls", "ffconcat": "concat"}

MOST_FILE_PIXELS = 1 << 27
"""Of one picture in a file: 134 megapixels, the largest that cameras take; 0.4 GB as BGR."""


def file_options(script: ScriptKind | None) -> dict[str, str]:
    """Options to open a local file with; ``script``: the kind of playlist that it is, and that may be followed."""
    formats = (*_SHARED, *_RECORDERS, *_PICTURES, *_SOUND, TEXT)
    return {
        "format_whitelist": ",".join((*formats, _SCRIPT_FORMATS[script]) if script else formats),
        "protocol_whitelist": "file,crypto" if script else "file",
        # `%03d.png` is a name, and no pattern for other files.
        "pattern_type": "none",
        "max_pixels": str(MOST_FILE_PIXELS),
    }


LIVE_FORMATS = ",".join((*_SHARED, *_PICTURES))
"""Formats that may come over a network, by any protocol that carries a file or a stream as it is."""

DECODER_OPTIONS = {"max_pixels": str(8192 * 4352)}
"""No level of H.264 or H.265 has larger pictures. A camera that claims one is refused before any memory is taken."""
