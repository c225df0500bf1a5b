"""Folders of pictures and single ones."""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import cv2
import numpy as np
import pytest
import structlog
from pydantic import ValidationError

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.graph import load_graph
from camgraph.pipeline.graph.remarks import remarks_on
from camgraph.stages.messages import Frame
from camgraph.stages.video.capture import Camera, Capture
from camgraph.stages.video.pictures import count_up

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


@pytest.mark.processes
def test_a_folder_is_a_film_in_natural_order(album: Path, read: Read, same: Same) -> None:
    frames = read(album, fps=4)
    assert [int(f.pixels[0, 0, 0]) for f in frames] == [i * 20 for i in range(12)]
    assert [f.stamp.time_ns for f in frames] == [i * 250 * MS for i in range(12)]
    assert [(f.width, f.height) for f in frames] == [(10, 8 + i) for i in range(12)]
    assert [f.stamp.seq for f in read(album, fps=4, max_fps=2, start_s=1)] == [4, 6, 8, 10]
    assert same(read(album, frames[3].stamp, fps=4), frames[4:])
    assert Capture.slot_bytes(Camera(url=str(album)), album) == 19 * 10 * 3


def photographs(folder: Path, *names: str) -> Path:
    for name in names:
        cv2.imwrite(str(folder / name), np.zeros((8, 10, 3), np.uint8))
    return folder


def test_names_that_count_up_make_a_film_and_others_photographs(tmp_path: Path, read: Read) -> None:
    names = ["IMG_0007.png", "IMG_0008.png", "IMG_0010.png"]
    stamps = [frame.stamp for frame in read(photographs(tmp_path, *names))]
    assert [(s.seq, s.time_ns, s.alone) for s in stamps] == [(i, i * 1000 * MS, True) for i in range(3)]
    assert all(not frame.stamp.alone for frame in read(tmp_path, sequence=True))
    assert [frame.stamp.time_ns for frame in read(tmp_path, fps=4)] == [0, 250 * MS, 500 * MS]
    assert all(frame.stamp.alone for frame in read(photographs(tmp_path, "IMG_0009.png"), sequence=False))


@pytest.mark.parametrize(
    ("names", "film"),
    [
        (["0.png", "1.png", "2.png"], True),
        (["frame_0001.jpg", "frame_0002.jpg"], True),
        (["img9.jpg", "img10.jpg"], False),
        (["a1.png", "a2.png", "b3.png"], False),
        (["a1.png", "a3.png"], False),
        (["1.png"], False),
        (["door.png", "hall.png"], False),
        (["1.png", "hall.png"], False),
        (["2026-11-22_10-44-39.png", "2026-11-22_10-44-40.png"], False),
    ],
)
def test_which_names_count_up(names: list[str], film: bool) -> None:
    assert count_up([Path(name) for name in names]) is film


def test_each_photograph_has_its_own_time_of_day(tmp_path: Path, read: Read) -> None:
    photographs(tmp_path, "2026-11-22_10-44-39.png", "2026-12-24_18-00-00.png", "door.png")
    stamps = [frame.stamp for frame in read(tmp_path)]
    assert [stamp.clock for stamp in stamps] == ["name", "name", "file"]
    assert stamps[0].wall_ns == 1_795_344_279 * 10**9
    assert stamps[1].wall_ns - stamps[0].wall_ns == 2_790_921 * 10**9
    assert stamps[2].wall_ns == stamps[2].time_ns == 2 * 10**9
    given = [frame.stamp for frame in read(tmp_path, start_at="2026-01-01T00:00:00Z")]
    assert [stamp.clock for stamp in given] == ["start_at"] * 3
    assert given[2].wall_ns - given[0].wall_ns == 2 * 10**9


@pytest.mark.processes
def test_check_says_for_what_pictures_are_taken(tmp_path: Path) -> None:
    (tmp_path / "film").mkdir()
    photographs(tmp_path / "film", "1.png", "2.png")
    (tmp_path / "photos").mkdir()
    photographs(tmp_path / "photos", "door.png", "hall.png")
    (tmp_path / "graph.yaml").write_text(
        "version: 1\ncameras: {film: {url: film}, photos: {url: photos}, one: {url: photos/door.png}}\n"
        "stages: {capture: {use: capture}, out: {use: sink_null, from: capture}}\n"
    )
    assert list(remarks_on(load_graph(tmp_path / "graph.yaml"))) == [
        "film: 2 pictures, a film of 10 frames a second (if they are photographs: sequence: false)",
        "film: neither metadata nor name tell when it was recorded: times count from 1970; set start_at",
        "photos: 2 photographs, each judged by itself (if they are a film, say its rate, as fps: 10)",
        "one: a photograph",
    ]


def test_photographs_have_no_rate() -> None:
    with pytest.raises(ValidationError, match="fps is for pictures that follow each other"):
        Camera(url="a", fps=5, sequence=False)


def test_a_damaged_picture_is_counted_and_left_out(album: Path, capture: MakeCapture, counts: Counts) -> None:
    (album / "img3.png").write_bytes(b"nothing of the kind")
    (album / "img5.png").write_bytes(b"")
    source = capture(album)
    assert [f.stamp.seq for f in source.frames(threading.Event(), None)] == [0, 1, 2, 4, *range(6, 12)]
    assert counts(source) == {("dropped.damaged", "cam"): 2}


def cut_off(path: Path, part: float) -> Path:
    """A JPEG of noise without its end."""
    noise = np.random.default_rng(5).integers(0, 255, (240, 320, 3), np.uint8)
    cv2.imwrite(str(path), noise)
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * part)])
    return path


def test_a_photograph_that_is_cut_off_is_judged_and_told(tmp_path: Path, capture: MakeCapture, counts: Counts) -> None:
    path = cut_off(tmp_path / "a.jpg", 0.1)
    source = capture(path)
    with structlog.testing.capture_logs() as logs:
        [frame] = source.frames(threading.Event(), None)
    assert (frame.width, frame.height) == (320, 240)
    assert counts(source) == {("damaged", "cam"): 1}
    why = "it is cut off or damaged: its end is missing"
    assert logs == [
        {"event": "picture_damaged", "log_level": "warning", "camera": "cam", "path": str(path), "why": why}
    ]


def test_a_film_of_pictures_tells_of_the_damaged_ones(album: Path, capture: MakeCapture, counts: Counts) -> None:
    cut_off(album / "img3.jpg", 0.5)
    noise = cut_off(album / "img5.jpg", 1)
    data = bytearray(noise.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 200] = bytes(200)
    noise.write_bytes(data)
    source = capture(album)
    with structlog.testing.capture_logs() as logs:
        assert len(list(source.frames(threading.Event(), None))) == 14
    assert counts(source) == {("damaged", "cam"): 2}
    assert [(Path(log["path"]).name, log["event"]) for log in logs] == [
        ("img3.jpg", "picture_damaged"),
        ("img5.jpg", "picture_damaged"),
    ]


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


def with_exif(path: Path, taken: bytes) -> Path:
    """A JPEG whose EXIF has one entry: when it was taken."""
    ok, jpeg = cv2.imencode(".jpg", np.zeros((32, 48, 3), np.uint8))
    assert ok
    pointer = struct.pack("<HHHIII", 1, 0x8769, 4, 1, 26, 0)
    entry = struct.pack("<HHHIII", 1, 0x9003, 2, len(taken), 44, 0)
    exif = b"Exif\0\0II*\0\x08\0\0\0" + pointer + entry + taken
    path.write_bytes(bytes(jpeg[:2]) + b"\xff\xe1" + (len(exif) + 2).to_bytes(2, "big") + exif + bytes(jpeg[2:]))
    return path


def test_a_photograph_was_taken_when_its_exif_says(tmp_path: Path, read: Read) -> None:
    [frame] = read(with_exif(tmp_path / "IMG_0815.jpg", b"2026:11:22 10:44:39\0"))
    assert (frame.stamp.wall_ns, frame.stamp.clock) == (1_795_344_279 * 10**9, "metadata")
    [frame] = read(with_exif(tmp_path / "2026-11-22_10-44-39.jpg", b"0000:00:00 00:00:00\0"))
    assert (frame.stamp.wall_ns, frame.stamp.clock) == (1_795_344_279 * 10**9, "name")
