"""Recordings that go on in another size: every frame of every part, with its pixels and its time."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

import av
import numpy as np
import pytest
from av.packet import Packet
from av.video.stream import VideoStream

from camgraph.stages.video.opening import Sequences, Signs
from camgraph.stages.video.video import Timed, frames_of

MakeClip = Callable[..., Path]
SIZES = ((96, 64), (128, 96), (98, 66))
FPS = 25
ENCODERS = {
    "libx264": {"preset": "ultrafast", "bf": "3", "b-adapt": "0", "g": "10"},
    "libx265": {"preset": "ultrafast", "x265-params": "bframes=3:b-adapt=0:keyint=10:log-level=none"},
    "mpeg1video": {"bf": "2", "g": "10"},
    "mpeg2video": {"bf": "2", "g": "10"},
    "mpeg4": {"bf": "2", "g": "10"},
}
BARE = {"libx264": "h264", "libx265": "h265", "mpeg1video": "m1v", "mpeg2video": "m2v"}


def parts(make_clip: MakeClip, codec: str, suffix: str, frames: int) -> list[Path]:
    return [
        make_clip(f"part{number}.{suffix}", frames=frames, size=size, fps=FPS, codec=codec, options=ENCODERS[codec])
        for number, size in enumerate(SIZES)
    ]


def joined(files: Iterable[Path], target: Path) -> Path:
    target.write_bytes(b"".join(path.read_bytes() for path in files))
    return target


def frames_and_refused(path: Path) -> tuple[list[Timed], int]:
    refused: list[None] = []
    return list(frames_of(path, Signs(damaged=lambda: refused.append(None)))), len(refused)


def pixels(timed: Timed) -> np.ndarray:
    assert isinstance(timed.content, av.VideoFrame)
    return timed.content.to_ndarray(format="yuv420p")


@pytest.mark.parametrize("seconds", [1, 2])
@pytest.mark.parametrize("codec", sorted(ENCODERS.keys() - {"mpeg1video"}))
def test_size_change_in_ts_loses_no_frame(make_clip: MakeClip, tmp_path: Path, codec: str, seconds: int) -> None:
    """FFmpeg loses the last frame before each change in MPEG-2 and MPEG-4."""
    made = parts(make_clip, codec, "ts", seconds * FPS)
    seen, refused = frames_and_refused(joined(made, tmp_path / "joined.ts"))
    expected = [pixels(timed) for part in made for timed in frames_and_refused(part)[0]]
    assert (len(seen), refused) == (3 * seconds * FPS, 0)
    assert all(np.array_equal(pixels(timed), frame) for timed, frame in zip(seen, expected, strict=True))
    assert [timed.time_ns for timed in seen] == pytest.approx([n * 1e9 / FPS for n in range(len(seen))], abs=1e6)


@pytest.mark.parametrize("codec", BARE)
def test_size_change_in_bare_stream_loses_no_frame(make_clip: MakeClip, tmp_path: Path, codec: str) -> None:
    made = parts(make_clip, codec, BARE[codec], 30)
    seen, refused = frames_and_refused(joined(made, tmp_path / f"joined.{BARE[codec]}"))
    sizes = [(pixels(timed).shape[1], pixels(timed).shape[0] * 2 // 3) for timed in seen]
    assert (sizes, refused) == ([size for size in SIZES for _ in range(30)], 0)


@pytest.mark.parametrize("codec", ["mpeg2video", "mpeg4"])
def test_repeated_parameters_empty_no_decoder(make_clip: MakeClip, codec: str) -> None:
    clip = make_clip("a.ts", codec=codec, options=ENCODERS[codec])
    with av.open(str(clip)) as container:
        stream = container.streams.video[0]
        sequences = Sequences(stream.codec_context.name, stream.codec_context.extradata)
        packets = [packet for packet in container.demux(stream) if packet.size]
        assert sum(packet.is_keyframe for packet in packets) > 2
        assert not any(sequences.is_new(memoryview(packet)) for packet in packets)


def test_sequences_notice_size_and_pixel_shape() -> None:
    def head(width: int, height: int, shape: int, rate: int) -> memoryview:
        return memoryview(b"\0\0\1\xb3" + (width << 20 | height << 8 | shape << 4 | rate).to_bytes(4, "big") + b"\xff")

    sequences = Sequences("mpeg2video", None)
    heads = [(720, 576, 2, 3), (720, 576, 2, 4), (720, 576, 3, 4), (544, 576, 3, 4), (544, 576, 3, 4)]
    assert [sequences.is_new(head(*one)) for one in heads] == [False, False, True, True, False]
    assert not sequences.is_new(memoryview(b"\0\0\1\0 a picture alone"))
    assert not Sequences("h264", None).is_new(head(1, 1, 1, 1))


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="no ffmpeg, the only encoder of Theora")
def test_empty_packet_of_theora_is_no_damage(tmp_path: Path) -> None:
    """Such a packet says that the picture before it stays."""
    whole, path = tmp_path / "whole.ogv", tmp_path / "a.ogv"
    made = ["-f", "lavfi", "-i", "testsrc=size=96x64:rate=10:duration=1", "-c:v", "libtheora", str(whole)]
    if subprocess.run(["ffmpeg", "-loglevel", "error", *made], check=False, timeout=120).returncode:
        pytest.skip("this ffmpeg has no encoder of Theora")
    emptied(whole, path, {3, 4})
    seen, refused = frames_and_refused(path)
    assert refused == 0
    assert [round(timed.time_ns / 1e8) for timed in seen] == [0, 1, 2, 5, 6, 7, 8, 9]


def emptied(source: Path, target: Path, numbers: set[int]) -> None:
    """The same packets, those of these numbers without data."""
    with av.open(str(source)) as old, av.open(str(target), "w") as new:
        stream = new.add_stream_from_template(old.streams.video[0], opaque=True)
        packets = [packet for packet in old.demux(old.streams.video[0]) if packet.size]
        for number, packet in enumerate(packets):
            one: Packet[VideoStream] = Packet(b"") if number in numbers else packet
            one.pts, one.dts, one.duration, one.time_base = packet.pts, packet.dts, packet.duration, packet.time_base
            one.stream = stream
            new.mux(one)
