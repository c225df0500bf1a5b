"""The pictures that are cut out of the bytes of an HTTP camera, however it frames them and however the bytes come."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from camgraph.stages.video.live.gate import mjpeg_stream
from camgraph.stages.video.live.gate.mjpeg_stream import EMPTY, PictureCutter, PictureTooLarge


def jpeg(index: int, *, progressive: bool = False, restarts: int = 0) -> bytes:
    """A picture with noise, so that its coded data has many FF."""
    noise = np.random.default_rng(index).integers(0, 256, (40, 56, 3), np.uint8)
    options = [cv2.IMWRITE_JPEG_PROGRESSIVE, int(progressive), cv2.IMWRITE_JPEG_RST_INTERVAL, restarts]
    ok, coded = cv2.imencode(".jpg", noise, options)
    assert ok
    return coded.tobytes()


def with_thumbnail(picture: bytes, thumbnail: bytes) -> bytes:
    """As a camera with EXIF sends it."""
    segment = b"Exif\0\0" + thumbnail
    return picture[:2] + b"\xff\xe1" + (len(segment) + 2).to_bytes(2, "big") + segment + picture[2:]


PLAIN = [jpeg(0), jpeg(1), jpeg(2)]
PICTURES = [
    *PLAIN,
    jpeg(3, progressive=True),
    jpeg(4, restarts=2),
    with_thumbnail(jpeg(5), jpeg(6)),
    jpeg(7)[:-2] + b"\xff\xff\xff\xd9",  # filled up before its end
    jpeg(8)[:2] + b"\xff\xff" + jpeg(8)[2:],  # and before a marker
]


def part(picture: bytes, kind: str = "image/jpeg", length: int | None = None, boundary: str = "--b") -> bytes:
    head = f"{boundary}\r\nContent-Type: {kind}\r\n"
    head += f"Content-Length: {len(picture) if length is None else length}\r\n" if length != 0 else ""
    return f"{head}\r\n".encode() + picture + b"\r\n"


def cut(*chunks: bytes) -> list[bytes]:
    cutter = PictureCutter()
    return [picture for chunk in chunks for picture in cutter.feed(chunk)]


@pytest.mark.parametrize(
    "stream",
    [
        b"".join(map(part, PICTURES)),
        b"".join(part(one, kind="image/jpg") for one in PICTURES),
        b"".join(part(one, boundary="b") for one in PICTURES),
        b"".join(part(one, length=7) for one in PICTURES),
        b"".join(part(one, length=len(one) + 1000) for one in PICTURES),
        b"".join(part(one, length=0) for one in PICTURES),
        b"".join(PICTURES),
        b"\r\n".join(PICTURES),
        b"This is a camera.\r\n" + b"".join(map(part, PICTURES)),
        b"".join(part(b"temperature: 21", kind="text/plain") + part(one) + part(b"") for one in PICTURES),
        b"".join(part(one).replace(b"\r\n\r\n", b"\n\n", 1) for one in PICTURES),
        PICTURES[0] + b"\r\n" + b"".join(map(part, PICTURES[1:])) + b"--b--\r\n",
        b"".join(part(one + bytes(100)) for one in PICTURES),
    ],
    ids=[
        *("right", "image-jpg", "boundary-without-dashes", "short-length", "long-length", "no-length"),
        *("no-parts", "lines", "preamble", "texts-and-empty-parts", "line-feeds", "late-boundary", "filled-up"),
    ],
)
def test_every_picture_is_found_however_its_part_is_written(stream: bytes) -> None:
    assert cut(stream) == PICTURES


def test_a_picture_is_there_with_its_last_byte() -> None:
    stream = part(PLAIN[0]).removesuffix(b"\r\n")
    assert cut(stream[:-1]) == []
    assert cut(stream[:-1], stream[-1:]) == [PLAIN[0]]


def test_picture_without_end_is_cut_before_the_next_part() -> None:
    bare = [picture.removesuffix(b"\xff\xd9") for picture in PLAIN]
    cutter = PictureCutter()
    assert [*cutter.feed(b"".join(map(part, bare))), *cutter.finish()][:2] == PLAIN[:2]
    assert cutter.pictures == 3


def test_a_picture_that_breaks_off_costs_itself_alone() -> None:
    assert cut(part(PLAIN[0]) + part(PLAIN[1][:-200]) + part(PLAIN[2])) == [PLAIN[0], EMPTY, PLAIN[2]]


@pytest.mark.parametrize("size", [2, 3, 4, 5, 20, 30])
def test_broken_head_costs_no_more_than_a_segment(size: int) -> None:
    """What follows is taken for a segment, of at most 64 KB."""
    found = cut(PLAIN[0][:size] + b"".join(PLAIN * 20))
    assert found[-20:] == (PLAIN * 20)[-20:]


JUNK = st.binary(max_size=40).map(lambda data: data.replace(b"\xff", b""))
STREAMS = st.lists(st.one_of(JUNK, st.sampled_from(PICTURES)), max_size=8)


@given(STREAMS, st.lists(st.integers(0, 20_000), max_size=30))
def test_the_pictures_are_the_same_whatever_the_chunks(pieces: Sequence[bytes], cuts: Sequence[int]) -> None:
    stream = b"".join(pieces)
    places = [0, *sorted(min(one, len(stream)) for one in cuts), len(stream)]
    chunks = [stream[begin:end] for begin, end in pairwise(places)]
    assert cut(*chunks) == [one for one in pieces if one in PICTURES]


@given(st.lists(st.one_of(st.binary(max_size=60), st.sampled_from([*PLAIN, PLAIN[0][:300]])), max_size=8), st.data())
def test_rubbish_is_cut_in_the_same_way_byte_by_byte(pieces: Sequence[bytes], data: st.DataObject) -> None:
    stream = b"\xff\xd8\xff" + b"".join(pieces)
    size = data.draw(st.integers(1, 50))
    assert cut(stream) == cut(*(stream[at : at + size] for at in range(0, len(stream), size)))


def test_what_is_no_picture_is_not_kept() -> None:
    cutter = PictureCutter()
    for _ in range(100):
        assert not list(cutter.feed(b"no picture, and no end" * 1000))
    assert len(cutter._held) < 10
    assert not cutter.is_in_picture


def test_a_picture_without_end_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mjpeg_stream, "MOST_PICTURE", 10_000)
    cutter = PictureCutter()
    assert not list(cutter.feed(PLAIN[0][:-2]))
    for _ in range(5):
        assert not list(cutter.feed(bytes(800)))
    endless = cutter.feed(bytes(10_000))
    with pytest.raises(PictureTooLarge):
        next(endless)
