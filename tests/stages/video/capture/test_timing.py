"""Which frames of a file are taken, and when: rates, loops, real time, signs of life."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

from camgraph.pipeline.testing import HandContext
from camgraph.stages.messages import Frame
from camgraph.stages.video.capture import Capture

MakeClip = Callable[..., Path]
MakeCapture = Callable[..., Capture]
Read = Callable[..., list[Frame]]
Counts = Callable[[Capture], dict[tuple[str, str], int]]
Same = Callable[[Sequence[Frame], Sequence[Frame]], bool]
MS = 1_000_000


def test_the_rate_is_cut_by_time(make_clip: MakeClip, read: Read) -> None:
    path = make_clip("a.mp4", frames=30)
    assert [f.stamp.seq for f in read(path, max_fps=5)] == list(range(0, 30, 2))
    assert [f.stamp.seq for f in read(path, max_fps=5, start_s=0.55)] == [6, 8, *range(10, 30, 2)]
    assert [f.stamp.seq for f in read(path, max_fps=10)] == list(range(30))
    assert [f.stamp.seq for f in read(path, max_fps=5, start_s=1, duration_s=0.9)] == [10, 12, 14, 16, 18]


def test_skipped_frames_are_not_drops(make_clip: MakeClip, capture: MakeCapture, counts: Counts) -> None:
    source = capture(make_clip("a.mp4"), max_fps=2, start_s=1)
    assert list(source.frames(threading.Event(), None))
    assert counts(source) == {}


def test_a_loop_is_a_new_epoch_each_time(make_clip: MakeClip, capture: MakeCapture, same: Same) -> None:
    path = make_clip("a.mp4", frames=3)
    frames = list(islice(capture(path, loop=True).frames(threading.Event(), None), 8))
    assert [(f.stamp.epoch, f.stamp.seq) for f in frames] == [(i // 3, i % 3) for i in range(8)]
    assert [f.stamp.time_ns for f in frames] == [i % 3 * 100 * MS for i in range(8)]
    again = list(islice(capture(path, loop=True).frames(threading.Event(), frames[4].stamp), 3))
    assert same(again, frames[5:])


def test_a_loop_over_nothing_ends(make_clip: MakeClip, read: Read) -> None:
    assert read(make_clip("a.mp4", frames=3), loop=True, start_s=60) == []


def test_realtime_is_as_slow_as_the_film(make_clip: MakeClip, read: Read) -> None:
    path = make_clip("a.mp4", frames=6)
    begun = time.monotonic_ns()
    frames = read(path, realtime=True, start_s=0.2)
    assert [f.stamp.seq for f in frames] == [2, 3, 4, 5]
    assert time.monotonic_ns() - begun >= 300 * MS


def test_a_stop_ends_the_wait(make_clip: MakeClip, capture: MakeCapture) -> None:
    stop = threading.Event()
    frames = capture(make_clip("a.mp4", fps=1, frames=2, pts=[0, 60]), realtime=True).frames(stop, None)
    next(frames)
    threading.Timer(0.1, stop.set).start()
    begun = time.monotonic()
    assert list(frames) == []
    assert time.monotonic() - begun < 30


def test_the_wall_clock_of_a_file(make_clip: MakeClip, read: Read) -> None:
    frames = read(make_clip("a.mp4", frames=2), start_at="2024-05-01T12:00:00.250Z")
    assert [f.stamp.wall_ns for f in frames] == [1714564800_250_000_000, 1714564800_350_000_000]


def listened(capture: MakeCapture, path: Path, **settings: Any) -> tuple[list[Frame], list[float]]:
    """The frames, and when signs of life came."""
    source = capture(path, **settings)
    frames = list(source.frames(threading.Event(), None))
    assert isinstance(source.context, HandContext)
    return frames, source.context.signs


def test_a_realtime_wait_gives_signs_of_life(make_clip: MakeClip, capture: MakeCapture) -> None:
    frames, signs = listened(capture, make_clip("gap.mkv", frames=2, pts=[0, 20]), realtime=True)
    assert len(frames) == 2
    assert signs[-1] - signs[0] > 1.4
    assert max(later - earlier for earlier, later in pairwise(signs)) < 1.2


def test_frames_that_are_passed_over_are_signs_of_life(make_clip: MakeClip, capture: MakeCapture) -> None:
    frames, signs = listened(capture, make_clip("long.mp4", frames=60), max_fps=0.1)
    assert len(frames) == 1
    assert len(signs) > 60
