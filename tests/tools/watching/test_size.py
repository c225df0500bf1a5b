from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.watching.size import SIDES, best_side, choose, middles, some_frames


@pytest.mark.parametrize(
    ("sums", "side"),
    [
        ([5.8, 5.2, 1.1], 256),
        ([4.2, 4.7, 4.4, 2.0], 384),
        ([4.3, 9.8, 14.8, 17.8, 20.8], 768),
        ([9.6, 10.0, 9.0], 256),
        ([0.0] * 5, 768),
    ],
)
def test_the_smallest_that_is_nearly_as_good(sums: list[float], side: int) -> None:
    assert choose(dict(zip(SIDES, sums, strict=False))) == side


@given(st.integers(0, 10**9), st.integers(1, 50))
def test_middles_lie_evenly_inside(length: int, count: int) -> None:
    found = middles(length, count)
    assert len(found) == count
    assert all(0 <= at < max(length, 1) for at in found)
    assert found == sorted(found)


def test_frames_come_from_all_over_a_video(tmp_path: Path, make_clip: Callable[..., Path]) -> None:
    clip = make_clip(tmp_path / "a.mp4", frames=10)
    greys = [int(frame.mean()) for frame in some_frames(clip, 3)]
    assert len(greys) == 3
    assert greys == sorted(greys)
    assert greys[-1] - greys[0] > 80


def test_pictures_come_from_all_over_a_folder(tmp_path: Path) -> None:
    for number in range(10):
        cv2.imwrite(str(tmp_path / f"{number}.png"), np.full((20, 30, 3), number * 20, np.uint8))
    assert [int(frame[0, 0, 0]) for frame in some_frames(tmp_path, 2)] == [40, 140]
    assert len(list(some_frames(tmp_path, 50))) == 10


def test_what_is_damaged_is_left_to_its_run(tmp_path: Path) -> None:
    (tmp_path / "a.mp4").write_bytes(b"\x01\x02" * 500)
    assert list(some_frames(tmp_path / "a.mp4", 3)) == []
    (tmp_path / "b.png").write_bytes(b"\x01\x02" * 500)
    assert list(some_frames(tmp_path / "b.png", 3)) == []


def test_small_people_want_a_large_picture(pulled_model: Path, short_clip: Path) -> None:
    assert best_side(pulled_model, [short_clip]) == 768


def test_large_people_want_a_small_picture(pulled_model: Path, test_data: Path) -> None:
    assert best_side(pulled_model, [test_data / "videos" / "intel_asl_yes.mkv"]) == 256


def test_nobody_to_be_seen_is_no_reason_to_look_less_closely(
    pulled_model: Path, tmp_path: Path, make_clip: Callable[..., Path]
) -> None:
    assert best_side(pulled_model, [make_clip(tmp_path / "a.mp4"), make_clip(tmp_path / "b.mp4")]) == 768
