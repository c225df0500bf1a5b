"""Video files, exactly: the frames of PyAV, from any point on."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
import pytest

from camgraph.pipeline.single_stage import HandContext
from camgraph.pipeline.stage import Settings
from camgraph.stages.messages import Frame
from camgraph.stages.video import video
from camgraph.stages.video.capture import Camera, Capture
from camgraph.stages.video.opening import Signs

pytestmark = pytest.mark.slow

MakeClip = Callable[..., Path]
MakeCapture = Callable[..., Capture]
Read = Callable[..., list[Frame]]
Bare = Callable[[Path], list[av.VideoFrame]]
Same = Callable[[Sequence[Frame], Sequence[Frame]], bool]
MS = 1_000_000


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


def test_every_frame_that_pyav_counts_in_order(clip: Path, read: Read, bare: Bare) -> None:
    frames, expected = read(clip), bare(clip)
    assert [f.stamp.seq for f in frames] == list(range(len(expected)))
    if clip.suffix not in (".avi", ".h264"):  # PyAV alone invents those of an AVI, and we those of a bare stream
        assert [f.stamp.pts for f in frames] == [f.pts for f in expected]
    for frame, reference in zip(frames, expected, strict=True):
        form = "yuv420p" if frame.format == "yuv420p" else "bgr24"
        assert np.array_equal(frame.pixels, reference.to_ndarray(format=form))


def test_times_are_those_of_the_file(clip: Path, read: Read) -> None:
    frames = read(clip)
    assert frames[0].stamp.time_ns == 0
    if frames[0].stamp.pts is None:
        assert [f.stamp.time_ns for f in frames[:3]] == [0, 100 * MS, 200 * MS]
        return
    first, before = frames[0].stamp.pts, None
    for stamp in (f.stamp for f in frames):
        assert stamp.pts is not None
        declared_ns = (stamp.pts - first) * 1e9 * stamp.time_base[0] / stamp.time_base[1]
        if stamp.pts == before:
            assert declared_ns < stamp.time_ns < declared_ns + 100 * MS
        else:
            assert stamp.time_ns == pytest.approx(declared_ns, abs=1)
        assert stamp.wall_ns == stamp.time_ns
        before = stamp.pts


def test_a_restart_goes_on_as_if_nothing_had_happened(clip: Path, read: Read, same: Same) -> None:
    frames = read(clip)
    for at in (0, 1, 6, 7, 8, 9, 15, 22, 28, 29):
        assert same(read(clip, frames[at].stamp), frames[at + 1 :]), f"after frame {at}"


@pytest.mark.parametrize("near_packets", [0, video.NEAR_PACKETS])
def test_a_late_start_is_the_same_film_without_its_beginning(
    clip: Path, near_packets: int, monkeypatch: pytest.MonkeyPatch, read: Read, same: Same
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


def test_a_restart_seeks_where_the_container_has_times(
    make_clip: MakeClip, monkeypatch: pytest.MonkeyPatch, read: Read, same: Same
) -> None:
    path = make_clip("a.mp4", options=B_FRAMES)
    frames = read(path)
    monkeypatch.delattr(video, "frames_of")
    for at in (1, 7, 8, 9, 20):
        assert same(read(path, frames[at].stamp), frames[at + 1 :])


def test_the_form_is_the_cheapest_that_loses_nothing(make_clip: MakeClip, read: Read) -> None:
    # libx265 makes time stamps up for streams shorter than its reordering: eight frames, not two.
    forms = {name: read(make_clip(name, frames=8, **CLIPS[name]))[0].format for name in CLIPS}
    expected = dict.fromkeys(CLIPS, "yuv420p") | dict.fromkeys(("odd.mp4", "ten_bit.mp4", "motion.avi"), "bgr24")
    assert forms == expected


def test_a_frame_for_the_same_process_is_the_decoders_own_memory(make_clip: MakeClip, tmp_path: Path) -> None:
    camera = Camera(url=str(make_clip("a.mp4", frames=12)))
    stays, leaves = (HandContext(tmp_path, tmp_path, outputs_leave=leave) for leave in (False, True))
    own, copied = (list(Capture(Settings(), "cam", camera, c).frames(threading.Event(), None)) for c in (stays, leaves))
    assert len(own) == len(copied) == 12
    for frame, copy in zip(own, copied, strict=True):
        apart, together = frame.planes, copy.planes
        assert np.shares_memory(together[0], copy.pixels)
        # The decoder may look at it again: nobody may write there.
        assert not any(plane.flags.writeable for plane in apart)
        for plane, same in zip(apart, together, strict=True):
            np.testing.assert_array_equal(plane, same)
        np.testing.assert_array_equal(frame.pixels, copy.pixels)
        assert frame.pixels is frame.pixels


def test_full_range_is_not_taken_for_limited_range(make_clip: MakeClip, read: Read) -> None:
    limited = read(make_clip("limited.mp4", frames=1))[0]
    full = read(make_clip("full.mp4", frames=1, full_range=True))[0]
    assert (limited.format, full.format) == ("yuv420p", "bgr24")
    assert full.pixels.min() < limited.pixels.min() or full.pixels.shape != limited.pixels.shape


@pytest.mark.parametrize("rotation", [90, -90, 180])
@pytest.mark.parametrize("pix_fmt", ["yuv420p", "yuv444p"])
def test_pictures_stand_upright(make_clip: MakeClip, rotation: int, pix_fmt: str, read: Read) -> None:
    path = make_clip("phone.mp4", frames=1, rotation=rotation, pix_fmt=pix_fmt, options={"crf": "5"})
    [frame] = read(path)
    reader = cv2.VideoCapture(str(path))
    ok, upright = reader.read()
    assert ok
    assert (frame.width, frame.height) == upright.shape[1::-1]
    # Chroma is interpolated differently; a picture the other way round differs by more than 50.
    assert np.abs(frame.bgr().astype(int) - upright).mean() < 8


def test_a_restart_keeps_the_choice_of_frames(clip: Path, read: Read, same: Same) -> None:
    settings = {"max_fps": 3.7, "start_s": 0.3, "duration_s": 2.2}
    frames = read(clip, **settings)
    assert len(frames) > 3
    for at, frame in enumerate(frames):
        assert same(read(clip, frame.stamp, **settings), frames[at + 1 :])


@pytest.mark.processes
def test_slot_bytes_are_those_of_a_frame(clip: Path, read: Read) -> None:
    camera = Camera(url=str(clip))
    assert Capture.slot_bytes(camera, clip.parent) == read(clip)[0].pixels.nbytes


def test_a_sideways_film_needs_the_same_slot(make_clip: MakeClip, read: Read) -> None:
    path = make_clip("phone.mp4", frames=1, rotation=90)
    assert Capture.slot_bytes(Camera(url="phone.mp4"), path.parent) == read(path)[0].pixels.nbytes


@pytest.mark.slow
def test_real_clips_are_exact(test_data: Path, tmp_path: Path, capture: MakeCapture, bare: Bare) -> None:
    for path in sorted((test_data / "videos").iterdir()):
        local = Path(shutil.copy(path, tmp_path))
        frames = [f.stamp for f in capture(local, max_fps=1).frames(threading.Event(), None)]
        whole = [(f.pts, i) for i, f in enumerate(bare(local))]
        assert all((s.pts, s.seq) in whole for s in frames)
        middle = frames[len(frames) // 2]
        [after] = islice(capture(local, max_fps=1).frames(threading.Event(), middle), 1)
        assert after.stamp._replace(captured_ns=0) == frames[len(frames) // 2 + 1]._replace(captured_ns=0)
