"""Folders of pictures and single ones."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import cv2
import numpy as np
import pytest

from pipeline.errors import UserError
from stages.capture import Camera, Capture
from stages.messages import Frame

MakeCapture = Callable[..., Capture]
Read = Callable[..., list[Frame]]
Counts = Callable[[Capture], dict[tuple[str, str], int]]
Same = Callable[[Sequence[Frame], Sequence[Frame]], bool]
MS = 1_000_000


@pytest.fixture
def album(tmp_path: Path) -> Path:
    folder = tmp_path / "album"
    folder.mkdir()
    for index in range(12):
        cv2.imwrite(str(folder / f"img{index}.png"), np.full((8 + index, 10, 3), index * 20, np.uint8))
    (folder / "notes.txt").write_text("no picture")
    return folder


def test_a_folder_is_a_film_in_natural_order(album: Path, read: Read, same: Same) -> None:
    frames = read(album, fps=4)
    assert [int(f.pixels[0, 0, 0]) for f in frames] == [i * 20 for i in range(12)]
    assert [f.stamp.time_ns for f in frames] == [i * 250 * MS for i in range(12)]
    assert [(f.width, f.height) for f in frames] == [(10, 8 + i) for i in range(12)]
    assert [f.stamp.seq for f in read(album, fps=4, max_fps=2, start_s=1)] == [4, 6, 8, 10]
    assert same(read(album, frames[3].stamp, fps=4), frames[4:])
    assert Capture.slot_bytes(Camera(url=str(album)), album) == 19 * 10 * 3


def test_a_damaged_picture_is_counted_and_left_out(album: Path, capture: MakeCapture, counts: Counts) -> None:
    (album / "img3.png").write_bytes(b"nothing of the kind")
    (album / "img5.png").write_bytes(b"")
    source = capture(album)
    assert [f.stamp.seq for f in source.frames(threading.Event(), None)] == [0, 1, 2, 4, *range(6, 12)]
    assert counts(source) == {("dropped.damaged", "cam"): 2}


def test_one_picture_is_one_frame(album: Path, read: Read) -> None:
    [frame] = read(album / "img2.png")
    assert np.array_equal(frame.pixels, cv2.imread(str(album / "img2.png")))


def test_a_photo_stands_as_its_exif_says(tmp_path: Path, read: Read) -> None:
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


def test_a_lone_picture_must_be_one(tmp_path: Path, read: Read) -> None:
    (tmp_path / "a.jpg").write_bytes(b"nothing of the kind")
    for name in ("a.jpg", "absent.jpg"):
        with pytest.raises(UserError, match="cannot be read as a picture"):
            read(tmp_path / name)
