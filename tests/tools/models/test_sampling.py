"""Which frames stand for all, and that they are read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import av
import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from camgraph.pipeline.errors import UserError
from camgraph.tools.models.frames import frames_of, places, shares


def test_short_sources_are_made_up_for() -> None:
    assert shares([5, 100, 100], 25) == [5, 10, 10]
    assert shares([100, 100, 100], 5) == [2, 2, 1]
    assert shares([3, 4], 500) == [3, 4]
    assert shares([0, 7], 5) == [0, 5]


@given(st.lists(st.integers(0, 50), max_size=8), st.integers(0, 300))
def test_shares_are_exact_and_even(there: list[int], count: int) -> None:
    found = shares(there, count)
    assert sum(found) == min(count, sum(there))
    assert all(share <= has for share, has in zip(found, there, strict=True))
    whole = [share for share, has in zip(found, there, strict=True) if share < has]
    assert max(whole, default=0) - min(whole, default=0) <= 1


def test_places_are_spread_from_beginning_to_end() -> None:
    assert places(100, 10) == [5, 15, 25, 35, 45, 55, 65, 75, 85, 95]
    assert places(5, 5) == [0, 1, 2, 3, 4]
    assert places(3, 1) == [1]


@given(st.integers(1, 10_000), st.integers(1, 200))
def test_places_are_there_and_none_twice(there: int, count: int) -> None:
    found = places(there, min(there, count))
    assert all(0 <= place < there for place in found)
    assert found == sorted(set(found))


def video(path: Path, frames: int, codec: str = "libx264") -> str:
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=10)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for number in range(frames):
            picture = np.full((48, 64, 3), number, np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="bgr24")))
        container.mux(stream.encode())
    return str(path)


def taken(sources: Sequence[str], count: int) -> list[int]:
    return [frame.stamp.seq for frame in frames_of(sources, count)]


@pytest.mark.parametrize(("name", "codec"), [("a.mp4", "libx264"), ("a.webm", "libvpx"), ("a.avi", "mpeg4")])
@pytest.mark.processes
def test_frames_of_a_video_are_spread_over_it(tmp_path: Path, name: str, codec: str) -> None:
    """As packets count where each is a frame, by decoding where one may be none, as in VP8."""
    clip = video(tmp_path / name, 40, codec)
    assert taken([clip], 4) == taken([clip], 4) == [5, 15, 25, 35]
    assert taken([clip], 40) == list(range(40))
    assert len(taken([clip], 500)) == 40


def test_sources_give_so_many_frames_together(tmp_path: Path) -> None:
    clips = [video(tmp_path / f"{number}.mp4", frames) for number, frames in enumerate((2, 20, 20))]
    assert taken(clips, 10) == [0, 1, 2, 7, 12, 17, 2, 7, 12, 17]
    assert len(taken(clips, 5)) == 5


def test_pictures_of_a_folder_that_are_damaged_are_made_up_for(tmp_path: Path) -> None:
    for number in range(10):
        cv2.imwrite(str(tmp_path / f"{number}.png"), np.zeros((8, 8, 3), np.uint8))
    (tmp_path / "2.png").write_bytes(b"no picture")
    assert taken([str(tmp_path)], 2) == [3, 7]


def test_what_is_no_source_is_named_before_anything_is_read(tmp_path: Path) -> None:
    clip = video(tmp_path / "a.mp4", 3)
    with pytest.raises(UserError, match=r"absent\.mp4: no such file"):
        next(frames_of([clip, str(tmp_path / "absent.mp4")], 3))
    with pytest.raises(UserError, match="it may hold a password"):
        next(frames_of(["rtsp:/user:secret@host"], 3))
