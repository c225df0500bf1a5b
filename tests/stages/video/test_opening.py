"""Which files FFmpeg is let at, and by which formats."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import av
import cv2
import numpy as np
import pytest

from camgraph.stages.video import formats
from camgraph.stages.video.opening import Refused, open_file, open_video
from camgraph.stages.video.pictures import read_picture

MakeClip = Callable[..., Path]


@pytest.mark.parametrize(
    "name", ["a.mp4", "a.mkv", "a.avi", "a.ts", "a.mpg", "a.h264", "a.mjpeg", "a.flv", "a.mov", "a.webm"]
)
def test_usual_formats_are_read(make_clip: MakeClip, name: str) -> None:
    codec = {"avi": "mpeg4", "mpg": "mpeg2video", "mjpeg": "mjpeg", "webm": "libvpx"}.get(name[2:], "libx264")
    clip = make_clip(name, codec=codec, fps=25, pix_fmt="yuvj420p" if codec == "mjpeg" else "yuv420p")
    with open_video(clip) as (container, stream):
        assert next(container.decode(stream)).width == 96


@pytest.mark.parametrize("suffix", ["jpg", "png", "bmp", "webp", "tif"])
def test_usual_pictures_are_read(tmp_path: Path, suffix: str) -> None:
    cv2.imwrite(str(tmp_path / f"a.{suffix}"), np.full((20, 30, 3), 100, np.uint8))
    assert read_picture(tmp_path / f"a.{suffix}").width == 30


def test_a_playlist_may_be_asked_for(make_clip: MakeClip, tmp_path: Path) -> None:
    make_clip("1.ts", fps=25)
    for name, text in {
        "a.m3u8": "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:1.2,\n1.ts\n#EXT-X-ENDLIST\n",
        "a.ffconcat": "ffconcat version 1.0\nfile 1.ts\nfile 1.ts\n",
    }.items():
        (tmp_path / name).write_text(text)
        with pytest.raises(Refused, match="write `playlist: true`"):
            open_file(tmp_path / name)
        with open_video(tmp_path / name, playlist=True) as (container, stream):
            assert sum(1 for _ in container.decode(stream)) == (60 if "concat" in name else 30)


def test_a_playlist_in_disguise_is_no_video(tmp_path: Path) -> None:
    """FFmpeg skips a tag at the beginning before it looks at what comes."""
    tag = b"ID3\x04\x00\x00\x00\x00\x00\x0a" + bytes(10)
    (tmp_path / "a.mp4").write_bytes(tag + b"#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\na.mp4\n" * 2)
    for playlist in (True, False):
        with pytest.raises(av.FFmpegError):
            open_file(tmp_path / "a.mp4", playlist=playlist)


def test_a_name_is_no_pattern_and_no_protocol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for index, name in enumerate(["001.png", "%03d.png", "*.png", "concat:001.png"]):
        ok, coded = cv2.imencode(".png", np.full((20, 20 + index, 3), 100, np.uint8))
        assert ok
        Path(name).write_bytes(coded.tobytes())
    assert [read_picture(Path(name)).width for name in ("%03d.png", "*.png", "concat:001.png")] == [21, 22, 23]


def chunk(kind: bytes, data: bytes) -> bytes:
    """Of a PNG."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def test_a_picture_of_absurd_dimensions_is_refused(tmp_path: Path) -> None:
    """A good one: 18 kB that are 144 megapixels."""
    side = 12_000
    head = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    rows = zlib.compress(bytes((1 + side // 8) * side), 9)
    parts = (b"\x89PNG\r\n\x1a\n", chunk(b"IHDR", head), chunk(b"IDAT", rows), chunk(b"IEND", b""))
    (tmp_path / "bomb.png").write_bytes(b"".join(parts))
    with pytest.raises(Refused, match="its picture is 12000x12000, expected at most 134 megapixels"):
        read_picture(tmp_path / "bomb.png")


@pytest.mark.parametrize("name", ["a.mp4", "a.ts", "a.h264"])
def test_decoder_enforces_max_pixels(make_clip: MakeClip, name: str) -> None:
    """Whatever its container says, the decoder keeps the bound."""
    clip = make_clip(name, size=(320, 240), fps=25)
    with open_video(clip) as (container, stream):
        context = stream.codec_context
        assert context.options == {"max_pixels": str(formats.MOST_FILE_PIXELS)}
        context.options = {"max_pixels": str(320 * 240 - 1)}
        with pytest.raises(av.FFmpegError):
            next(container.decode(stream))


def test_no_video_is_a_file_of_the_kernel() -> None:
    with pytest.raises(Refused, match="is a file of the kernel, expected a video file"):
        open_file(Path("/proc/self/status"))
