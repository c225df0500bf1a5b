"""The times of frames: containers, codecs, and files whose timestamps are missing, repeated, out of order or cut.

Clips are made here, so their times are known; FFmpeg's own reader is asked as well where it is installed.
"""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import av
import pytest
from av.packet import Packet
from av.video.frame import PictureType
from av.video.stream import VideoStream

from camgraph.pipeline.errors import BadItem
from camgraph.stages.video.opening import Signs
from camgraph.stages.video.video import frames_of

MakeClip = Callable[..., Path]

FPS = 25
STEADY = list(range(24))
UNEVEN = [0, 1, 2, 5, 6, 9, 10, 11, 20, 21, 22, 23, 30, 31, 32, 33, 40, 41, 50, 51, 52, 53, 54, 55]
CODECS = {
    "H.264": ("libx264", {"preset": "ultrafast", "bf": "0"}),
    "H.264 with B-frames": ("libx264", {"preset": "ultrafast", "bf": "3", "b-adapt": "0", "g": "12"}),
    "H.265": ("libx265", {"preset": "ultrafast", "x265-params": "bframes=0:log-level=none"}),
    "H.265 with B-frames": ("libx265", {"preset": "ultrafast", "x265-params": "bframes=3:b-adapt=0:log-level=none"}),
    "MPEG-4": ("mpeg4", {"bf": "0"}),
    "MPEG-4 with B-frames": ("mpeg4", {"bf": "2"}),
    "VP9": ("libvpx-vp9", {"deadline": "realtime", "cpu-used": "8"}),
    "MJPEG": ("mjpeg", {}),
}
CONTAINERS = {
    ".mp4": CODECS.keys(),
    ".mov": CODECS.keys() - {"VP9"},
    ".mkv": CODECS.keys(),
    ".webm": {"VP9"},
    ".avi": CODECS.keys() - {"H.265", "H.265 with B-frames"},
    ".ts": CODECS.keys() - {"VP9", "MJPEG"},
    ".flv": {"H.264", "H.264 with B-frames"},
}
COMBINATIONS = [(suffix, codec) for suffix, codecs in CONTAINERS.items() for codec in CODECS if codec in codecs]


def times_s(path: Path) -> list[float]:
    """Ours, from the first frame on; a file that ends too early gives those that it has."""
    times: list[float] = []
    try:
        for seq, timed in enumerate(frames_of(path, Signs())):
            assert timed.seq == seq
            times.append(timed.time_ns / 1e9)
    except BadItem:
        assert times
    return times


def ffprobe_times_s(path: Path) -> list[float | None]:
    """What ffprobe says of each frame, from the first one on; None where it says nothing, or what was before."""
    entries = "frame=best_effort_timestamp_time"
    command = ["ffprobe", "-v", "error", "-threads", "1", "-select_streams", "v:0", "-show_entries", entries]
    run = subprocess.run([*command, "-of", "json", str(path)], capture_output=True, check=True, timeout=60)
    output = [frame.get("best_effort_timestamp_time", "N/A") for frame in json.loads(run.stdout)["frames"]]
    times = [None if text == "N/A" else float(text) - float(output[0]) for text in output]
    return [None if t is None or any(t <= e for e in times[:i] if e is not None) else t for i, t in enumerate(times)]


def check_against_ffprobe(path: Path) -> None:
    """Where ffprobe is installed and reads this file: as many frames, and its times wherever these go forward."""
    if shutil.which("ffprobe") is None:
        return
    for ours, theirs in zip(times_s(path), ffprobe_times_s(path), strict=True):
        assert theirs is None or ours == pytest.approx(theirs, abs=2e-6)


def remuxed(source: Path, target: Path, change: Callable[[int, Packet[VideoStream]], None]) -> Path:
    """The same packets with other timestamps; `change` gets each with its number in order of decoding."""
    with av.open(str(source)) as old, av.open(str(target), "w") as new:
        stream = new.add_stream_from_template(old.streams.video[0])
        packets = [packet for packet in old.demux(old.streams.video[0]) if packet.size]
        for number, packet in enumerate(packets):
            change(number, packet)
            packet.stream = stream
            new.mux(packet)
    return target


def b_frames(make_clip: MakeClip, name: str, pts: Sequence[int] = STEADY) -> Path:
    codec, options = CODECS["H.264 with B-frames"]
    return make_clip(name, frames=len(pts), fps=FPS, pts=pts, codec=codec, options=options)


@pytest.mark.parametrize("pts", [STEADY, UNEVEN], ids=["steady", "uneven"])
@pytest.mark.parametrize(("suffix", "codec"), COMBINATIONS)
def test_times_are_right_in_every_container(make_clip: MakeClip, suffix: str, codec: str, pts: list[int]) -> None:
    encoder, options = CODECS[codec]
    pix_fmt = "yuvj420p" if codec == "MJPEG" else "yuv420p"
    path = make_clip(
        f"a{suffix}", frames=len(pts), fps=FPS, pts=pts, codec=encoder, options=options, pix_fmt=pix_fmt, size=(64, 48)
    )
    assert times_s(path) == pytest.approx([number / FPS for number in pts], abs=0.001)
    check_against_ffprobe(path)


def test_h264_with_b_frames_in_avi_really_has_them(make_clip: MakeClip) -> None:
    with av.open(str(b_frames(make_clip, "a.avi"))) as container:
        assert PictureType.B in {frame.pict_type for frame in container.decode(video=0)}


@pytest.mark.parametrize("suffix", [".mp4", ".mov"])
def test_an_edit_list_cuts_frames_off(make_clip: MakeClip, tmp_path: Path, suffix: str) -> None:
    def earlier(number: int, packet: Packet[VideoStream]) -> None:
        assert packet.pts is not None
        assert packet.dts is not None
        assert packet.time_base is not None
        by = round(0.2 / packet.time_base)
        packet.pts, packet.dts = packet.pts - by, packet.dts - by

    path = remuxed(b_frames(make_clip, "whole.mp4"), tmp_path / f"cut{suffix}", earlier)
    assert times_s(path) == pytest.approx([number / FPS for number in range(len(STEADY) - 5)], abs=0.001)
    check_against_ffprobe(path)


@pytest.mark.parametrize("suffix", [".mkv", ".mp4", ".ts", ".flv"])
def test_repeated_times_are_shared_out(make_clip: MakeClip, tmp_path: Path, suffix: str) -> None:
    def repeat(number: int, packet: Packet[VideoStream]) -> None:
        assert packet.pts is not None
        assert packet.dts is not None
        assert packet.time_base is not None
        before = packet.pts - round(1 / FPS / packet.time_base)
        if number % 3 == 2 and before >= packet.dts:
            packet.pts = before

    path = remuxed(b_frames(make_clip, "whole.mp4"), tmp_path / f"repeated{suffix}", repeat)
    with av.open(str(path)) as container:
        declared = [frame.pts for frame in container.decode(video=0)]
    assert len(set(declared)) < len(declared)
    times = times_s(path)
    assert all(earlier < later for earlier, later in pairwise(times))
    assert times == pytest.approx([number / FPS for number in range(24)], abs=1.1 / FPS)


@pytest.mark.parametrize("suffix", [".mkv", ".mp4"])
def test_presentation_times_that_are_decoding_times(make_clip: MakeClip, tmp_path: Path, suffix: str) -> None:
    """As old writers of MP4 leave them: no frame is shown at its own time."""

    def forget(number: int, packet: Packet[VideoStream]) -> None:
        packet.pts = packet.dts

    path = remuxed(b_frames(make_clip, "whole.mp4"), tmp_path / f"forgot{suffix}", forget)
    times = times_s(path)
    assert all(earlier < later for earlier, later in pairwise(times))
    assert times == pytest.approx([number / FPS for number in range(len(times))], abs=3 / FPS)


@pytest.mark.parametrize("name", ["bare.h264", "bare.hevc", "bare.m4v", "bare.mjpeg"])
def test_a_bare_stream_has_the_times_of_its_rate(make_clip: MakeClip, name: str) -> None:
    codec = {"h264": "H.264 with B-frames", "hevc": "H.265 with B-frames", "m4v": "MPEG-4", "mjpeg": "MJPEG"}
    encoder, options = CODECS[codec[name.partition(".")[2]]]
    pix_fmt = "yuvj420p" if name.endswith("mjpeg") else "yuv420p"
    path = make_clip(name, frames=24, fps=FPS, codec=encoder, options=options, pix_fmt=pix_fmt)
    assert times_s(path) == pytest.approx([number / FPS for number in range(24)], abs=0.001)


def test_a_matroska_file_that_states_decoding_times(make_clip: MakeClip, tmp_path: Path) -> None:
    """As programs for AVI files wrote it ("VFW compatible"): no presentation times, and that is no sign of damage."""
    bare, path = b_frames(make_clip, "bare.h264", list(range(50))), tmp_path / "vfw.mkv"
    header = struct.pack("<IiiHH4sIiiII", 40, 96, 64, 1, 24, b"H264", 0, 0, 0, 0, 0)  # BITMAPINFOHEADER
    with av.open(str(bare)) as old, av.open(str(path), "w") as new:
        stream = new.add_stream_from_template(old.streams.video[0])
        stream.codec_context.extradata = header
        packets = [packet for packet in old.demux(old.streams.video[0]) if packet.size]
        for number, packet in enumerate(packets):
            packet.pts = packet.dts = number
            packet.duration, packet.time_base, packet.stream = 1, Fraction(1, FPS), stream
            new.mux(packet)
    data = path.read_bytes()
    assert data.count(b"V_MPEG4/ISO/AVC") == 1
    path.write_bytes(data.replace(b"V_MPEG4/ISO/AVC", b"V_MS/VFW/FOURCC"))
    times = [timed.time_ns / 1e9 for timed in frames_of(path, Signs())]
    assert times == pytest.approx([number / FPS for number in range(50)], abs=0.001)


def test_a_time_line_that_starts_over_goes_on(make_clip: MakeClip, tmp_path: Path) -> None:
    one = b_frames(make_clip, "one.ts", list(range(0, 60, 2)))
    both = tmp_path / "both.ts"
    both.write_bytes(one.read_bytes() * 2)
    times = times_s(both)
    assert len(times) == 60
    assert all(0 < later - earlier < 0.2 for earlier, later in pairwise(times))


@pytest.mark.parametrize(
    "text", ["1e9999999:00:00", "inf:00:00", "-1:00:00", "00:00:nan", "00:00:01.5", "999999:59:59"]
)
def test_odd_duration_of_matroska_is_no_error(make_clip: MakeClip, text: str) -> None:
    path = make_clip("a.mkv", metadata={"comment": text})
    data = path.read_bytes()
    at = data.index(b"00:00:03.000000000")
    path.write_bytes(data[:at] + text.encode().ljust(18, b"\0") + data[at + 18 :])
    assert len(times_s(path)) == 30


def test_timestamps_a_century_away_fit_into_64_bits(make_clip: MakeClip, tmp_path: Path) -> None:
    def leap(number: int, packet: Packet[VideoStream]) -> None:
        assert packet.pts is not None
        assert packet.dts is not None
        away = 10**14 if number > 11 else 0
        packet.pts, packet.dts = packet.pts + away, packet.dts + away

    source = make_clip("a.mkv", fps=FPS, frames=24, options={"bf": "0"})
    path = remuxed(source, tmp_path / "b.mkv", leap)
    assert times_s(path) == pytest.approx([number / FPS for number in range(24)], abs=0.002)
