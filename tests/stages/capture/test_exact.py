"""Capture: the frames of PyAV, exactly, from any point on; and what it says of bad input."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
import pytest
import structlog
from pydantic import ValidationError

from pipeline.errors import BadItem, CamgraphError, UserError
from pipeline.messages import Stamp
from pipeline.stage import Settings
from pipeline.testing import HandContext
from stages.capture import Camera, Capture
from stages.messages import Frame
from stages.reading import video
from stages.reading.opening import Signs

MakeClip = Callable[..., Path]
MS = 1_000_000


def capture(path: Path | str, **settings: Any) -> Capture:
    folder = path.parent if isinstance(path, Path) else Path.cwd()
    camera = Camera.model_validate({"url": str(path), **settings})
    return Capture(Settings(), "cam", camera, HandContext(folder, folder))


def counts(source: Capture) -> dict[tuple[str, str], int]:
    assert isinstance(source.context, HandContext)
    return dict(source.context.counts)


def read(path: Path | str, resume: Stamp | None = None, **settings: Any) -> list[Frame]:
    return list(capture(path, **settings).frames(threading.Event(), resume))


def read_until_error(source: Capture) -> tuple[list[Frame], CamgraphError | None]:
    frames: list[Frame] = []
    try:
        for frame in source.frames(threading.Event(), None):
            frames.append(frame)
    except CamgraphError as error:
        return frames, error
    return frames, None


def bare(path: Path) -> list[av.VideoFrame]:
    with av.open(str(path)) as container:
        return list(container.decode(video=0))


def same(one: Sequence[Frame], other: Sequence[Frame]) -> bool:
    """Equal stamps (but for the time of capture, which is of this run) and equal pixels."""
    stamps = [[f.stamp._replace(captured_ns=0) for f in frames] for frames in (one, other)]
    return stamps[0] == stamps[1] and all(
        a.format == b.format and np.array_equal(a.pixels, b.pixels) for a, b in zip(one, other, strict=True)
    )


B_FRAMES = {"g": "8", "bf": "3"}
CLIPS: dict[str, dict[str, Any]] = {
    "b_frames.mp4": {"options": B_FRAMES},
    "b_frames.mkv": {"options": B_FRAMES},
    "open_gop.mkv": {"options": {**B_FRAMES, "x264-params": "open-gop=1:scenecut=0"}},
    "b_frames.ts": {"options": B_FRAMES},
    "xvid.avi": {"codec": "mpeg4", "options": {"g": "8", "bf": "2"}},
    "no_times.h264": {"options": B_FRAMES},
    "motion.avi": {"codec": "mjpeg", "pix_fmt": "yuvj420p"},
    "odd.mp4": {"size": (97, 63), "pix_fmt": "yuv444p", "options": B_FRAMES},
    "ten_bit.mp4": {"pix_fmt": "yuv420p10le", "options": B_FRAMES},
    "variable.mkv": {"pts": [i * 2 + i % 2 for i in range(30)], "options": B_FRAMES},
    "twice.mkv": {"pts": [i // 3 * 3 + i % 3 // 2 for i in range(30)], "options": B_FRAMES},
    "late.mkv": {"pts": [100 + i for i in range(30)], "options": B_FRAMES},
    "vp8.webm": {"codec": "libvpx", "options": {"auto-alt-ref": "1", "lag-in-frames": "8", "g": "10"}},
    "hevc.mp4": {"codec": "libx265", "options": {"x265-params": "keyint=8:bframes=3:log-level=none"}},
}


@pytest.fixture(params=CLIPS)
def clip(request: pytest.FixtureRequest, make_clip: MakeClip) -> Path:
    return make_clip(request.param, **CLIPS[request.param])


def test_every_frame_that_pyav_counts_in_order(clip: Path) -> None:
    frames, expected = read(clip), bare(clip)
    assert [f.stamp.seq for f in frames] == list(range(len(expected)))
    assert [f.stamp.pts for f in frames] == [f.pts for f in expected]
    for frame, reference in zip(frames, expected, strict=True):
        form = "yuv420p" if frame.format == "yuv420p" else "bgr24"
        assert np.array_equal(frame.pixels, reference.to_ndarray(format=form))


def test_times_are_those_of_the_file(clip: Path) -> None:
    frames = read(clip)
    assert frames[0].stamp.time_ns == 0
    if frames[0].stamp.pts is None:
        assert [f.stamp.time_ns for f in frames[:3]] == [0, 100 * MS, 200 * MS]
        return
    first = frames[0].stamp.pts
    for stamp in (f.stamp for f in frames):
        assert stamp.pts is not None
        assert stamp.time_ns == pytest.approx(
            (stamp.pts - first) * 1e9 * stamp.time_base[0] / stamp.time_base[1], abs=1
        )
        assert stamp.wall_ns == stamp.time_ns


def test_a_restart_goes_on_as_if_nothing_had_happened(clip: Path) -> None:
    frames = read(clip)
    for at in (0, 1, 6, 7, 8, 9, 15, 22, 28, 29):
        assert same(read(clip, frames[at].stamp), frames[at + 1 :]), f"after frame {at}"


@pytest.mark.parametrize("near_packets", [0, video.NEAR_PACKETS])
def test_a_late_start_is_the_same_film_without_its_beginning(
    clip: Path, near_packets: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(video, "NEAR_PACKETS", near_packets)
    frames = read(clip)
    for start_s in (0.05, 0.7, 0.8, 1.33, 2.9):
        expected = [f for f in frames if f.stamp.time_ns >= start_s * 1e9]
        assert same(read(clip, start_s=start_s), expected), f"from {start_s} s"


@pytest.mark.parametrize("name", ["b_frames.mp4", "b_frames.mkv", "late.mkv", "hevc.mp4"])
def test_far_starts_seek(make_clip: MakeClip, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(video, "NEAR_PACKETS", 0)
    begun = next(video.frames_from(make_clip(name, **CLIPS[name]), 1_950 * MS, Signs()))
    assert (begun.seq, begun.time_ns) == (20, 2_000 * MS)


def test_a_restart_seeks_where_the_container_has_times(make_clip: MakeClip, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make_clip("a.mp4", options=B_FRAMES)
    frames = read(path)
    monkeypatch.delattr(video, "frames_of")
    for at in (1, 7, 8, 9, 20):
        assert same(read(path, frames[at].stamp), frames[at + 1 :])


def test_the_form_is_the_cheapest_that_loses_nothing(make_clip: MakeClip) -> None:
    # libx265 makes time stamps up for streams shorter than its reordering: eight frames, not two.
    forms = {name: read(make_clip(name, frames=8, **CLIPS[name]))[0].format for name in CLIPS}
    expected = dict.fromkeys(CLIPS, "yuv420p") | dict.fromkeys(("odd.mp4", "ten_bit.mp4", "motion.avi"), "bgr24")
    assert forms == expected


def test_full_range_is_not_taken_for_limited_range(make_clip: MakeClip) -> None:
    limited = read(make_clip("limited.mp4", frames=1))[0]
    full = read(make_clip("full.mp4", frames=1, full_range=True))[0]
    assert (limited.format, full.format) == ("yuv420p", "bgr24")
    assert full.pixels.min() < limited.pixels.min() or full.pixels.shape != limited.pixels.shape


@pytest.mark.parametrize("rotation", [90, -90, 180])
@pytest.mark.parametrize("pix_fmt", ["yuv420p", "yuv444p"])
def test_pictures_stand_upright(make_clip: MakeClip, rotation: int, pix_fmt: str) -> None:
    path = make_clip("phone.mp4", frames=1, rotation=rotation, pix_fmt=pix_fmt, options={"crf": "5"})
    [frame] = read(path)
    reader = cv2.VideoCapture(str(path))
    ok, upright = reader.read()
    assert ok
    pixels = cv2.cvtColor(frame.pixels, cv2.COLOR_YUV2BGR_I420) if frame.format == "yuv420p" else frame.pixels
    assert (frame.width, frame.height) == upright.shape[1::-1]
    # Chroma is interpolated differently; a picture the other way round differs by more than 50.
    assert np.abs(pixels.astype(int) - upright).mean() < 8


def test_the_rate_is_cut_by_time(make_clip: MakeClip) -> None:
    path = make_clip("a.mp4", frames=30)
    assert [f.stamp.seq for f in read(path, max_fps=5)] == list(range(0, 30, 2))
    assert [f.stamp.seq for f in read(path, max_fps=5, start_s=0.55)] == [6, 8, *range(10, 30, 2)]
    assert [f.stamp.seq for f in read(path, max_fps=10)] == list(range(30))
    assert [f.stamp.seq for f in read(path, max_fps=5, start_s=1, duration_s=0.9)] == [10, 12, 14, 16, 18]


def test_a_restart_keeps_the_choice_of_frames(clip: Path) -> None:
    settings = {"max_fps": 3.7, "start_s": 0.3, "duration_s": 2.2}
    frames = read(clip, **settings)
    assert len(frames) > 3
    for at, frame in enumerate(frames):
        assert same(read(clip, frame.stamp, **settings), frames[at + 1 :])


def test_skipped_frames_are_not_drops(make_clip: MakeClip) -> None:
    source = capture(make_clip("a.mp4"), max_fps=2, start_s=1)
    assert list(source.frames(threading.Event(), None))
    assert counts(source) == {}


def test_a_loop_is_a_new_epoch_each_time(make_clip: MakeClip) -> None:
    path = make_clip("a.mp4", frames=3)
    frames = list(islice(capture(path, loop=True).frames(threading.Event(), None), 8))
    assert [(f.stamp.epoch, f.stamp.seq) for f in frames] == [(i // 3, i % 3) for i in range(8)]
    assert [f.stamp.time_ns for f in frames] == [i % 3 * 100 * MS for i in range(8)]
    again = list(islice(capture(path, loop=True).frames(threading.Event(), frames[4].stamp), 3))
    assert same(again, frames[5:])


def test_a_loop_over_nothing_ends(make_clip: MakeClip) -> None:
    assert read(make_clip("a.mp4", frames=3), loop=True, start_s=60) == []


def test_realtime_is_as_slow_as_the_film(make_clip: MakeClip) -> None:
    path = make_clip("a.mp4", frames=6)
    begun = time.monotonic_ns()
    frames = read(path, realtime=True, start_s=0.2)
    assert [f.stamp.seq for f in frames] == [2, 3, 4, 5]
    assert time.monotonic_ns() - begun >= 300 * MS


def test_a_stop_ends_the_wait(make_clip: MakeClip) -> None:
    stop = threading.Event()
    frames = capture(make_clip("a.mp4", fps=1), realtime=True).frames(stop, None)
    next(frames)
    threading.Timer(0.1, stop.set).start()
    begun = time.monotonic()
    assert list(frames) == []
    assert time.monotonic() - begun < 0.9


def test_the_wall_clock_of_a_file(make_clip: MakeClip) -> None:
    frames = read(make_clip("a.mp4", frames=2), start_at="2024-05-01T12:00:00.250Z")
    assert [f.stamp.wall_ns for f in frames] == [1714564800_250_000_000, 1714564800_350_000_000]


def test_slot_bytes_are_those_of_a_frame(clip: Path) -> None:
    camera = Camera(url=str(clip))
    assert Capture.slot_bytes(camera, clip.parent) == read(clip)[0].pixels.nbytes


def test_a_sideways_film_needs_the_same_slot(make_clip: MakeClip) -> None:
    path = make_clip("phone.mp4", frames=1, rotation=90)
    assert Capture.slot_bytes(Camera(url="phone.mp4"), path.parent) == read(path)[0].pixels.nbytes


# --- pictures


@pytest.fixture
def album(tmp_path: Path) -> Path:
    folder = tmp_path / "album"
    folder.mkdir()
    for index in range(12):
        cv2.imwrite(str(folder / f"img{index}.png"), np.full((8 + index, 10, 3), index * 20, np.uint8))
    (folder / "notes.txt").write_text("no picture")
    return folder


def test_a_folder_is_a_film_in_natural_order(album: Path) -> None:
    frames = read(album, fps=4)
    assert [int(f.pixels[0, 0, 0]) for f in frames] == [i * 20 for i in range(12)]
    assert [f.stamp.time_ns for f in frames] == [i * 250 * MS for i in range(12)]
    assert [(f.width, f.height) for f in frames] == [(10, 8 + i) for i in range(12)]
    assert [f.stamp.seq for f in read(album, fps=4, max_fps=2, start_s=1)] == [4, 6, 8, 10]
    assert same(read(album, frames[3].stamp, fps=4), frames[4:])
    assert Capture.slot_bytes(Camera(url=str(album)), album) == 19 * 10 * 3


def test_a_damaged_picture_is_counted_and_left_out(album: Path) -> None:
    (album / "img3.png").write_bytes(b"nothing of the kind")
    (album / "img5.png").write_bytes(b"")
    source = capture(album)
    assert [f.stamp.seq for f in source.frames(threading.Event(), None)] == [0, 1, 2, 4, *range(6, 12)]
    assert counts(source) == {("dropped.damaged", "cam"): 2}


def test_one_picture_is_one_frame(album: Path) -> None:
    [frame] = read(album / "img2.png")
    assert np.array_equal(frame.pixels, cv2.imread(str(album / "img2.png")))


def test_a_photo_stands_as_its_exif_says(tmp_path: Path) -> None:
    ok, jpeg = cv2.imencode(".jpg", np.indices((32, 64)).sum(0).astype(np.uint8) * 2)
    assert ok
    # Orientation 6 (turn clockwise), the one entry of a little-endian TIFF directory.
    exif = b"Exif\0\0II*\0\x08\0\0\0\x01\0" + b"\x12\x01\x03\0\x01\0\0\0\x06\0\0\0" + b"\0\0\0\0"
    path = tmp_path / "phone.jpg"
    path.write_bytes(bytes(jpeg[:2]) + b"\xff\xe1" + (len(exif) + 2).to_bytes(2, "big") + exif + bytes(jpeg[2:]))
    [frame] = read(path)
    reference = cv2.imread(str(path))
    assert frame.pixels.shape == reference.shape == (64, 32, 3)
    assert np.abs(frame.pixels.astype(int) - reference).mean() < 2


# --- bad input


def test_what_is_no_video_says_so(tmp_path: Path) -> None:
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


def test_sound_alone_is_no_video(tmp_path: Path) -> None:
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
def test_a_cut_off_file_gives_its_frames_and_says_so(make_clip: MakeClip, name: str) -> None:
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
def test_damage_in_the_middle_is_counted_and_left_out(make_clip: MakeClip, part: float) -> None:
    path = make_clip("a.mp4", size=(320, 240), frames=40, options={"g": "10", "bf": "2"})
    path = damaged(path, part, path.stat().st_size // 12)
    good, bad = 0, 0
    with av.open(str(path)) as container:
        for packet in container.demux(video=0):
            try:
                good += len(packet.decode())
            except av.FFmpegError:
                bad += 1
    source = capture(path)
    with structlog.testing.capture_logs() as logs:
        frames, error = read_until_error(source)
    assert error is None
    assert bad > 0
    said = {"event": "pictures_damaged", "log_level": "warning", "camera": "cam", "damaged": bad, "of": good + bad}
    assert logs == [said]
    assert [f.stamp.seq for f in frames] == list(range(good))
    assert counts(source) == {("dropped.damaged", "cam"): bad}
    times = [f.stamp.time_ns for f in frames]
    assert times == sorted(times)


def test_what_is_damaged_is_told_once_for_all_rounds_and_not_of_a_whole_file(make_clip: MakeClip) -> None:
    path = make_clip("a.mp4", size=(320, 240), frames=40, options={"g": "10", "bf": "2"})
    with structlog.testing.capture_logs() as logs:
        read(path)
    assert logs == []
    path = damaged(path, 0.5, path.stat().st_size // 12)
    with structlog.testing.capture_logs() as logs:
        frames = list(islice(capture(path, loop=True).frames(threading.Event(), None), 100))
    assert {frame.stamp.epoch for frame in frames} >= {0, 1, 2}
    assert [log["event"] for log in logs] == ["pictures_damaged"]


def test_a_file_that_ends_early_for_damage_is_not_called_cut_off_alone(make_clip: MakeClip) -> None:
    path = make_clip("a.mkv", size=(320, 240), frames=40, options={"g": "10"})
    size = path.stat().st_size
    damaged(path, 0.5, size // 2)
    _, error = read_until_error(capture(path))
    assert path.stat().st_size == size
    assert isinstance(error, BadItem)
    assert "a.mkv is cut off or damaged after" in str(error)


def test_checking_finds_missing_files(tmp_path: Path, make_clip: MakeClip) -> None:
    make_clip("a.mp4", frames=1)

    def problems(url: str) -> list[tuple[tuple[str, ...], str]]:
        return list(Capture.check_camera(Camera(url=url), tmp_path))

    assert problems("a.mp4") == []
    assert problems("rtsp://10.0.0.1/absent") == []
    [(place, text)] = problems("absent.mp4")
    assert place == ("url",)
    assert "absent.mp4" in text
    [(_, text)] = problems("asset:no-such-clip.avi")
    assert "camgraph assets pull" in text
    [(place, text)] = problems("rtspt://v:geheim@10.0.0.1/x")
    assert place == ("url",)
    assert text.startswith("unknown protocol `rtspt`")
    assert "geheim" not in text


def test_an_address_that_was_mistyped_is_not_shown_as_a_path(tmp_path: Path) -> None:
    [(place, text)] = Capture.check_camera(Camera(url="rtsp:/v:geheim@10.0.0.1/x"), tmp_path)
    assert place == ("url",)
    assert "two slashes after the colon: rtsp://..." in text
    with pytest.raises(UserError, match="two slashes after the colon") as caught:
        read("rtsp:/v:geheim@10.0.0.1/x")
    assert "geheim" not in text + str(caught.value)


@pytest.fixture
def nobody() -> Iterator[None]:
    """Root may read everything: for the test, be somebody who may not."""
    mine = os.geteuid()
    if mine == 0:
        os.seteuid(65534)
    yield
    os.seteuid(mine)


@pytest.mark.parametrize("url", ["a.mp4", "closed/b.mp4", "closed"])
def test_what_may_not_be_read(tmp_path: Path, make_clip: MakeClip, url: str, request: pytest.FixtureRequest) -> None:
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


def test_a_lone_picture_must_be_one(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(b"nothing of the kind")
    for name in ("a.jpg", "absent.jpg"):
        with pytest.raises(UserError, match="cannot be read as a picture"):
            read(tmp_path / name)


def test_a_video_without_a_frame_says_so(make_clip: MakeClip) -> None:
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
        "import sys, threading; from pathlib import Path; from pipeline.stage import Settings;"
        "from pipeline.testing import HandContext; from stages.capture import Camera, Capture;"
        "p = Path(sys.argv[1]); c = Capture(Settings(), 'c', Camera(url=str(p)), HandContext(p.parent, p.parent));"
        "print(len(list(c.frames(threading.Event(), None))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], check=True, capture_output=True, text=True, timeout=60
    )
    assert int(done.stdout.splitlines()[-1]) > 0
    assert done.stderr == ""


# --- settings


def test_live_cameras_have_no_beginning() -> None:
    with pytest.raises(ValidationError, match="start_s is for files"):
        Camera(url="rtsp://u:geheim@h/1", start_s=2)


@pytest.mark.parametrize("name", ["max_fps", "start_s", "duration_s", "fps"])
@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_times_and_rates_are_finite(name: str, value: float) -> None:
    with pytest.raises(ValidationError, match=name):
        Camera.model_validate({"url": "a.mp4", name: value})


def test_an_error_in_the_settings_does_not_quote_the_address() -> None:
    with pytest.raises(ValidationError) as caught:
        Camera.model_validate({"url": "rtsp://u:geheim@h/1", "max_fps": -1, "loop": True})
    assert "geheim" not in str(caught.value)
    assert "geheim" not in repr(Camera(url="rtsp://u:geheim@h/1"))


def test_every_setting_is_described() -> None:
    own = {k: v for k, v in Camera.model_fields.items() if k != "priority"}
    assert all(field.description for field in own.values())


def test_what_is_live() -> None:
    assert Capture.is_live(Camera(url="rtsp://h/1"))
    assert not Capture.is_live(Camera(url="asset:vtest.avi"))


# --- real clips


@pytest.mark.slow
def test_real_clips_are_exact(test_data: Path, tmp_path: Path) -> None:
    for path in sorted((test_data / "videos").iterdir()):
        local = Path(shutil.copy(path, tmp_path))
        frames = [f.stamp for f in capture(local, max_fps=1).frames(threading.Event(), None)]
        whole = [(f.pts, i) for i, f in enumerate(bare(local))]
        assert all((s.pts, s.seq) in whole for s in frames)
        middle = frames[len(frames) // 2]
        [after] = islice(capture(local, max_fps=1).frames(threading.Event(), middle), 1)
        assert after.stamp._replace(captured_ns=0) == frames[len(frames) // 2 + 1]._replace(captured_ns=0)


def listened(path: Path, **settings: Any) -> tuple[list[Frame], list[float]]:
    """The frames, and when signs of life came."""
    source = capture(path, **settings)
    frames = list(source.frames(threading.Event(), None))
    assert isinstance(source.context, HandContext)
    return frames, source.context.signs


def test_a_realtime_wait_gives_signs_of_life(make_clip: MakeClip) -> None:
    frames, signs = listened(make_clip("gap.mkv", frames=2, pts=[0, 20]), realtime=True)
    assert len(frames) == 2
    assert signs[-1] - signs[0] > 1.4
    assert max(later - earlier for earlier, later in pairwise(signs)) < 1.2


def test_frames_that_are_passed_over_are_signs_of_life(make_clip: MakeClip) -> None:
    frames, signs = listened(make_clip("long.mp4", frames=60), max_fps=0.1)
    assert len(frames) == 1
    assert len(signs) > 60
