from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import av
import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from camgraph.stages.video.examination import middles, some_frames
from camgraph.stages.video.opening import length_of, open_video


@given(st.integers(0, 10**9), st.integers(1, 50))
def test_middles_lie_evenly_inside(length: int, count: int) -> None:
    found = middles(length, count)
    assert len(found) == count
    assert all(0 <= at < max(length, 1) for at in found)
    assert found == sorted(found)


def test_frames_come_from_all_over_a_video(tmp_path: Path) -> None:
    shades(tmp_path / "a.mp4")
    greys = [int(frame.mean()) for frame in some_frames(tmp_path / "a.mp4", 3)]
    assert len(greys) == 3
    assert greys == sorted(greys)
    assert greys[-1] - greys[0] > 80


@pytest.mark.parametrize("name", ["a.ts", "a.mkv", "a.mp4"])
def test_moments_count_from_where_the_video_begins(tmp_path: Path, name: str) -> None:
    path, later = tmp_path / name, tmp_path / f"later_{name}"
    shades(path)
    shades(later, begin_s=36_000)
    one, other = ([int(frame.mean()) for frame in some_frames(file, 5)] for file in (path, later))
    assert one == other
    assert len(one) == 5
    with open_video(later) as opened:
        assert length_of(*opened) == pytest.approx((1.0, 10.0), abs=0.15)


def shades(path: Path, begin_s: int = 0) -> None:
    """Ten frames, each of them a keyframe and lighter than the one before."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=10, options={"g": "1"})
        stream.width, stream.height, stream.pix_fmt = 64, 64, "yuv420p"
        for index in range(10):
            frame = av.VideoFrame.from_ndarray(np.full((64, 64, 3), 20 * index, np.uint8), format="rgb24")
            frame.pts, frame.time_base = begin_s * 10 + index, Fraction(1, 10)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())


def test_pictures_come_from_all_over_a_folder(tmp_path: Path) -> None:
    for number in range(10):
        cv2.imwrite(str(tmp_path / f"{number}.png"), np.full((20, 30, 3), number * 20, np.uint8))
    assert [int(frame[0, 0, 0]) for frame in some_frames(tmp_path, 2)] == [40, 140]
    assert len(list(some_frames(tmp_path, 50))) == 10


def test_frames_of_a_mirrored_film_are_mirrored(make_clip: Callable[..., Path]) -> None:
    [plain] = some_frames(make_clip("a.mp4", frames=1), 1)
    [mirrored] = some_frames(make_clip("b.mp4", frames=1, mirrored=True), 1)
    np.testing.assert_array_equal(mirrored, plain[:, ::-1])


def test_what_is_damaged_is_left_to_its_run(tmp_path: Path) -> None:
    for name in ("a.mp4", "b.png"):
        (tmp_path / name).write_bytes(b"\x01\x02" * 500)
        assert list(some_frames(tmp_path / name, 3)) == []
