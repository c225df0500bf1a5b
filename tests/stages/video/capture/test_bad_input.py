"""What capture says of bad input: what can be read is, and the rest is counted and named."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

import av
import cv2
import numpy as np
import pytest
import structlog

from camgraph.pipeline.errors import BadItem, CamgraphError, UserError
from camgraph.stages.messages import Frame
from camgraph.stages.video.capture import Camera, Capture

MakeClip = Callable[..., Path]
MakeCapture = Callable[..., Capture]
Read = Callable[..., list[Frame]]
ReadUntilError = Callable[[Capture], tuple[list[Frame], CamgraphError | None]]
Counts = Callable[[Capture], dict[tuple[str, str], int]]
Same = Callable[[Sequence[Frame], Sequence[Frame]], bool]


def test_what_is_no_video_says_so(tmp_path: Path, read: Read) -> None:
    (tmp_path / "notes.mp4").write_text("this is a text " * 50)
    (tmp_path / "empty.mp4").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    for name, text in {
        "notes.mp4": "cannot be read as a video",
        "empty.mp4": "the file is empty",
        "absent.mp4": "no such file",
        "folder": "no pictures in this folder",
    }.items():
        with pytest.raises(UserError, match=text) as caught:
            read(tmp_path / name)
        assert name in str(caught.value)
        assert Capture.slot_bytes(Camera(url=name), tmp_path) is None


def test_sound_alone_is_no_video(tmp_path: Path, read: Read) -> None:
    path = tmp_path / "sound.wav"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("pcm_s16le", rate=8000)
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 800), np.int16), format="s16", layout="mono")
        frame.sample_rate = 8000
        container.mux(stream.encode(frame))
        container.mux(stream.encode())
    with pytest.raises(UserError, match="there is no video in it"):
        read(path)


@pytest.mark.parametrize("name", ["a.mp4", "a.mkv", "a.avi"])
def test_a_cut_off_file_gives_its_frames_and_says_so(
    make_clip: MakeClip, name: str, capture: MakeCapture, read: Read, read_until_error: ReadUntilError, same: Same
) -> None:
    codec = "mpeg4" if name.endswith("avi") else "libx264"
    path = make_clip(name, size=(320, 240), codec=codec, options={"g": "8"})
    whole = read(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 6 // 10])
    frames, error = read_until_error(capture(path))
    assert isinstance(error, BadItem)
    assert error.reason == "truncated"
    assert path.name in str(error)
    assert 2 <= len(frames) < 25
    assert same(frames[:-2], whole[: len(frames) - 2])


def damaged(path: Path, part: float, length: int) -> Path:
    data = bytearray(path.read_bytes())
    begin = int(len(data) * part)
    data[begin : begin + length] = b"\x5a" * length
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("part", [0.3, 0.5, 0.7])
def test_damage_in_the_middle_is_counted_and_left_out(
    make_clip: MakeClip, part: float, capture: MakeCapture, counts: Counts, read_until_error: ReadUntilError
) -> None:
    path = make_clip("a.mp4", size=(320, 240), frames=40, options={"g": "10", "bf": "2"})
    path = damaged(path, part, path.stat().st_size // 12)
    good, bad, marked = 0, 0, 0
    with av.open(str(path)) as container:
        container.streams.video[0].thread_type = "NONE"
        for packet in container.demux(video=0):
            try:
                frames = packet.decode()
                good += len(frames)
                marked += sum(frame.is_corrupt for frame in frames)
            except av.FFmpegError:
                bad += 1
    source = capture(path)
    with structlog.testing.capture_logs() as logs:
        frames, error = read_until_error(source)
    assert error is None
    assert bad > 0
    given = {"camera": "cam", "damaged": bad + marked, "left_out": bad, "of": good + bad}
    assert logs == [{"event": "pictures_damaged", "log_level": "warning", **given}]
    assert [f.stamp.seq for f in frames] == list(range(good))
    kept = {("damaged", "cam"): marked} if marked else {}
    assert counts(source) == {("dropped.damaged", "cam"): bad, **kept}
    times = [f.stamp.time_ns for f in frames]
    assert times == sorted(times)


def scratched(path: Path, bytes_hit: int) -> Path:
    """The same file with random bytes in the first half of its media."""
    data, random = bytearray(path.read_bytes()), np.random.default_rng(7)
    begin = data.find(b"mdat") + 4 if path.suffix == ".mp4" else len(data) // 8
    for at in random.integers(begin, begin + (len(data) - begin) // 2, bytes_hit):
        data[at] = random.integers(256)
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("name", "codec"), [("a.mp4", "libx264"), ("a.avi", "mpeg4"), ("a.mkv", "libx265"), ("b.avi", "mjpeg")]
)
def test_damaged_pictures_are_given_counted_and_told(
    make_clip: MakeClip, name: str, codec: str, capture: MakeCapture, counts: Counts
) -> None:
    options = {"x265-params": "log-level=none"} if codec == "libx265" else {"g": "20"}
    pix_fmt = "yuvj420p" if codec == "mjpeg" else "yuv420p"
    path = make_clip(name, size=(320, 240), frames=60, codec=codec, pix_fmt=pix_fmt, options=options)
    with structlog.testing.capture_logs() as logs:
        whole = list(capture(path).frames(threading.Event(), None))
    assert logs == []
    source = capture(scratched(path, 40))
    with structlog.testing.capture_logs() as logs:
        frames = list(source.frames(threading.Event(), None))
    counted = counts(source)
    left_out = counted.get(("dropped.damaged", "cam"), 0)
    assert counted["damaged", "cam"] > 0
    assert len(frames) == len(whole) - left_out
    told = {"damaged": counted["damaged", "cam"] + left_out, "left_out": left_out, "of": len(whole)}
    assert logs == [{"event": "pictures_damaged", "log_level": "warning", "camera": "cam", **told}]


def test_damage_is_logged_once_for_all_loops(make_clip: MakeClip, capture: MakeCapture, read: Read) -> None:
    path = make_clip("a.mp4", size=(320, 240), frames=40, options={"g": "10", "bf": "2"})
    with structlog.testing.capture_logs() as logs:
        read(path)
    assert logs == []
    path = damaged(path, 0.5, path.stat().st_size // 12)
    with structlog.testing.capture_logs() as logs:
        frames = list(islice(capture(path, loop=True).frames(threading.Event(), None), 100))
    assert {frame.stamp.epoch for frame in frames} >= {0, 1, 2}
    assert [log["event"] for log in logs] == ["pictures_damaged"]


def test_early_end_is_reported_as_cut_off_or_damaged(
    make_clip: MakeClip, capture: MakeCapture, read_until_error: ReadUntilError
) -> None:
    path = make_clip("a.mkv", size=(320, 240), frames=40, options={"g": "10"})
    size = path.stat().st_size
    damaged(path, 0.5, size // 2)
    _, error = read_until_error(capture(path))
    assert path.stat().st_size == size
    assert isinstance(error, BadItem)
    assert "a.mkv is cut off or damaged after" in str(error)


@pytest.mark.parametrize("url", ["a.mp4", "closed/b.mp4", "closed"])
def test_what_may_not_be_read(
    tmp_path: Path, make_clip: MakeClip, url: str, request: pytest.FixtureRequest, read: Read
) -> None:
    make_clip("a.mp4", frames=1).chmod(0)
    closed = tmp_path / "closed"
    closed.mkdir(mode=0)
    request.getfixturevalue("nobody")
    [(place, text)] = Capture.check_camera(Camera(url=url), tmp_path)
    assert place == ("url",)
    assert "no permission" in text
    with pytest.raises(UserError, match="no permission"):
        read(tmp_path / url)
    os.seteuid(os.getuid())
    closed.chmod(0o700)


def test_a_video_without_a_frame_says_so(
    make_clip: MakeClip, capture: MakeCapture, read_until_error: ReadUntilError
) -> None:
    path = make_clip("a.mp4", frames=8)
    data = path.read_bytes()
    media = data.rindex(b"mdat") + 4
    path.write_bytes(data[:media] + b"\x5a" * (len(data) - media))
    frames, error = read_until_error(capture(path))
    assert frames == []
    assert isinstance(error, BadItem)
    assert "without a frame to be decoded" in str(error)


def test_ffmpeg_keeps_its_complaints_to_itself(make_clip: MakeClip) -> None:
    path = damaged(make_clip("a.mp4", options={"g": "8"}), 0.4, 3000)
    code = (
        "import sys, threading; from pathlib import Path; from camgraph.pipeline.stage import Settings;"
        "from camgraph.pipeline.testing import HandContext; from camgraph.stages.video.capture import Camera, Capture;"
        "p = Path(sys.argv[1]); c = Capture(Settings(), 'c', Camera(url=str(p)), HandContext(p.parent, p.parent));"
        "print(len(list(c.frames(threading.Event(), None))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], check=True, capture_output=True, text=True, timeout=60
    )
    assert int(done.stdout.splitlines()[-1]) > 0
    assert done.stderr == ""


def coded(width: int, height: int) -> bytes:
    """A picture as JPEG."""
    ok, found = cv2.imencode(".jpg", np.zeros((height, width, 3), np.uint8))
    assert ok
    return found.tobytes()


def test_file_ends_at_picture_too_large_for_memory_mb(
    tmp_path: Path, capture: MakeCapture, read_until_error: ReadUntilError
) -> None:
    path = tmp_path / "a.mjpeg"
    path.write_bytes(coded(96, 64) * 4 + coded(1920, 1080) * 4)
    frames, error = read_until_error(capture(path, slots=14, memory_mb=64))
    assert [(frame.width, frame.height) for frame in frames] == [(96, 64)] * 4
    assert "a.mjpeg: a picture of 1920x1080 needs 14 slots of 6.2 MB in shared memory" in str(error)
    frames, error = read_until_error(capture(path, slots=14, memory_mb=128))
    assert (len(frames), error) == (8, None)


def test_what_check_has_counted_needs_no_setting(
    tmp_path: Path, capture: MakeCapture, read_until_error: ReadUntilError
) -> None:
    """The run counts the memory for the slots of files before it starts, and does not start without it."""
    path = tmp_path / "a.mjpeg"
    path.write_bytes(coded(1920, 1080) * 2 + coded(96, 64) * 2)
    album = tmp_path / "album"
    album.mkdir()
    for name, size in (("1.jpg", (96, 64)), ("2.jpg", (1920, 1080))):
        (album / name).write_bytes(coded(*size))
    for url, count in ((path, 4), (album, 2)):
        frames, error = read_until_error(capture(url, slots=14, memory_mb=64))
        assert (len(frames), error) == (count, None)
