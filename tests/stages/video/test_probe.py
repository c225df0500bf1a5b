"""The size that `check` knows is that of the frames that the run will have."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.stages.video.photographs import photograph

from camgraph.stages.video.pictures import read_picture
from camgraph.stages.video.pixels import picture_of
from camgraph.stages.video.probe import largest_frame, lies_sideways

PICTURE = np.full((48, 80, 3), 90, np.uint8)


@pytest.mark.parametrize("suffix", [".jpg", ".png", ".webp", ".tif"])
@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("orientation", range(1, 9))
def test_photographs_have_the_size_of_their_frames(tmp_path: Path, suffix: str, order: str, orientation: int) -> None:
    path = photograph(tmp_path / f"a{suffix}", PICTURE, orientation, order)
    frame = picture_of(read_picture(path))
    assert (frame.width, frame.height) == ((48, 80) if orientation > 4 else (80, 48)), "as FFmpeg turns it"
    found = largest_frame(path)
    assert found is not None
    assert found.size == (frame.width, frame.height)


def test_folders_of_one_size_have_it_upright(tmp_path: Path) -> None:
    for orientation in (5, 6):
        photograph(tmp_path / f"{orientation}.jpg", PICTURE, orientation)
    assert largest_frame(tmp_path) == (48 * 80 * 3, (48, 80))
    photograph(tmp_path / "1.jpg", PICTURE, 1)
    assert largest_frame(tmp_path) == (48 * 80 * 3, None)


@pytest.mark.parametrize("suffix", [".jpg", ".png", ".webp", ".tif"])
def test_damaged_exif_turns_nothing(tmp_path: Path, suffix: str) -> None:
    whole = photograph(tmp_path / f"a{suffix}", PICTURE, 6).read_bytes()
    assert lies_sideways(whole)
    for end in range(0, len(whole), 7):
        lies_sideways(whole[:end])  # says something, and raises nothing
    assert not lies_sideways(b"Exif\0\0II*\0\xff\xff\xff\xff")
