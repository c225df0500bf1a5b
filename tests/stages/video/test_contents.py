"""Files that are no video or picture, or more than one: what people are told of them."""

from __future__ import annotations

import gzip
import io
import shutil
import struct
import subprocess
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from camgraph.pipeline.errors import BadItem, UserError
from camgraph.stages.video.contents import content_of, further_pictures, is_tiled_photograph
from camgraph.stages.video.examination import Answer, Question, answer
from camgraph.stages.video.opening import Refused, Signs
from camgraph.stages.video.pictures import read_picture
from camgraph.stages.video.pixels import upright_bgr
from camgraph.stages.video.tiff import pages, why_unread
from camgraph.stages.video.video import frames_of

MakeClip = Callable[..., Path]


def said(path: Path) -> Answer:
    """What `camgraph check` learns."""
    return answer(Question(str(path), playlist=False, memory_mb=512))[0]


def content(data: bytes) -> str:
    return content_of(lambda at, count: data[at : at + count], len(data))


def archived(name: str) -> bytes:
    out = io.BytesIO()
    if name == "tar":
        with tarfile.open(fileobj=out, mode="w") as tar:
            tar.addfile(tarfile.TarInfo("a"), None)
    else:
        with zipfile.ZipFile(out, "w") as archive:
            archive.writestr("a", "b")
    return out.getvalue()


CONTENTS = {
    "empty": (b"", "is empty"),
    "zeros": (bytes(10_000), "zeros alone"),
    "page": (b"\n<!DOCTYPE html>\n<html><body>Sign in", "a web page"),
    "page with a remark": (b"<!-- 1 --> <HTML><body>", "a web page"),
    "drawing": (b'<?xml version="1.0"?>\n<svg width="3"/>', "a drawing"),
    "text": ("{'error': 'für'}\n".encode() * 300, "is a text"),
    "utf-16": ("a text".encode("utf-16"), "is a text"),
    "pointer": (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d\nsize 12\n", "git lfs pull"),
    "zip": (archived("zip"), "ZIP"),
    "tar": (archived("tar"), "tar"),
    "gzip": (gzip.compress(b"a" * 100), "gzip"),
    "pdf": (b"%PDF-1.7\n\xff\x00", "PDF"),
    "salted": (b"Salted__\x01\x02\xff\xfe", "decrypt it first"),
    "fragment": (struct.pack(">I4s", 16, b"styp") + b"msdh\0\0\0\0" + struct.pack(">I4s", 8, b"moof"), "init.mp4"),
    "big index": (
        struct.pack(">I4s", 8, b"free") + struct.pack(">I4s", 500, b"moov"),
        "ends at byte 508, expected at most 16",
    ),
    "nothing known": (bytes(range(255, 0, -1)) * 20, ""),
}


@pytest.mark.parametrize("name", CONTENTS)
def test_content_of_file_is_known(name: str) -> None:
    data, expected = CONTENTS[name]
    found = content(data)
    assert expected in found
    assert bool(found) == bool(expected)


@given(st.binary(max_size=5000), st.sampled_from([data[:40] for data, _ in CONTENTS.values()] + [b"II*\0", b"MM\0*"]))
def test_any_bytes_are_looked_at_without_error(data: bytes, begin: bytes) -> None:
    whole = begin + data

    def read(at: int, count: int) -> bytes:
        return whole[at : at + count]

    for look in (why_unread, pages, further_pictures, is_tiled_photograph):
        look(read)
    content_of(read, len(whole))


@pytest.mark.parametrize("name", ["a.mp4", "a.jpg"])
def test_check_and_run_say_what_a_file_is(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(CONTENTS["page"][0] * 100)
    assert "is a web page (HTML)" in said(path).unreadable


def test_cut_download_says_that_its_index_is_missing(make_clip: MakeClip) -> None:
    path = make_clip("a.mov")
    path.write_bytes(path.read_bytes()[:-500])
    with pytest.raises(UserError, match=r"a.mov: cannot be read as a video: it is cut off \(MP4\): its index \(moov\)"):
        next(frames_of(path, Signs()))


@pytest.mark.parametrize(
    ("name", "old", "new", "shown"),
    [("a.mp4", b"avc1", b"zzzz", "zzzz"), ("a.mkv", b"V_MPEG4/ISO/AVC", b"V_MPEG4/ISO/ZZZ", "V_MPEG4/ISO/ZZZ")],
)
def test_unknown_codec_is_named(make_clip: MakeClip, name: str, old: bytes, new: bytes, shown: str) -> None:
    path = make_clip(name)
    path.write_bytes(path.read_bytes().replace(old, new))
    with pytest.raises(UserError, match=f"its video is of the format `{shown}`, which"):
        next(frames_of(path, Signs()))
    assert f"`{shown}`" in said(path).unreadable


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="no ffmpeg to encrypt with")
def test_encrypted_video_is_named_as_such(make_clip: MakeClip, tmp_path: Path) -> None:
    key, path = "0123456789abcdef" * 2, tmp_path / "encrypted.mp4"
    encrypt = ["-encryption_scheme", "cenc-aes-ctr", "-encryption_key", key, "-encryption_kid", key]
    plain = make_clip("a.mp4")
    command = ["ffmpeg", "-loglevel", "error", "-i", str(plain), "-c", "copy", *encrypt, str(path)]
    subprocess.run(command, check=True, timeout=120)
    assert "is encrypted (DRM)" in said(path).unreadable
    with pytest.raises(BadItem, match="is encrypted"):
        list(frames_of(path, Signs()))
    assert said(plain).unreadable == ""


def test_video_with_name_of_picture_is_refused(make_clip: MakeClip) -> None:
    path = make_clip("a.mp4").rename(make_clip("b.mp4").with_name("a.jpg"))
    assert "is a video with the name of a picture" in said(path).refused
    with pytest.raises(Refused, match=r"such as \.mp4"):
        read_picture(path)


# --- pictures


def colourful(width: int = 160, height: int = 120) -> np.ndarray:
    y, x = np.mgrid[:height, :width]
    return np.stack([x * 255 // width, y * 255 // height, np.full_like(x, 90)], -1).astype(np.uint8)


@pytest.mark.parametrize("compression", ["raw", "tiff_lzw", "tiff_adobe_deflate", "packbits", "group4", "group3"])
def test_usual_tiff_is_read_with_its_pixels(tmp_path: Path, compression: str) -> None:
    image = Image.fromarray(colourful())
    image = image.convert("1") if "group" in compression else image
    image.save(tmp_path / "a.tif", compression=compression)
    seen = read_picture(tmp_path / "a.tif").to_ndarray(format="rgb24")
    assert np.array_equal(seen, np.asarray(image.convert("RGB")))


def test_tiff_of_luma_and_chroma_has_its_contrast(tmp_path: Path) -> None:
    Image.fromarray(colourful()).convert("YCbCr").save(tmp_path / "a.tif")
    seen = upright_bgr(read_picture(tmp_path / "a.tif"))[:, :, ::-1].astype(int)
    assert np.abs(seen - colourful()).mean() < 2


def test_tiff_with_jpeg_inside_is_refused(tmp_path: Path) -> None:
    """FFmpeg makes a black picture of it, without a word."""
    path = tmp_path / "a.tif"
    Image.fromarray(colourful()).save(path, compression="jpeg")
    with pytest.raises(Refused, match="is a TIFF that is compressed as JPEG, which FFmpeg does not read; save it"):
        read_picture(path)
    assert "compressed as JPEG" in said(path).refused


def tiff(order: str, tags: Sequence[tuple[int, int, int]], following: int = 0) -> bytes:
    """A list of single values behind its header."""
    rows = [struct.pack(f"{order}HHII" if kind == 4 else f"{order}HHIHxx", tag, kind, 1, to) for tag, kind, to in tags]
    header = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(f"{order}IH", 8, len(tags))
    return header + b"".join(rows) + struct.pack(f"{order}I", following)


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ([(259, 3, 1)], ""),
        ([(259, 3, 34925)], "compressed as LZMA"),
        ([(259, 3, 60000)], "compressed as number 60000"),
        ([(259, 3, 5), (322, 4, 64)], "lie in tiles"),
        ([(259, 3, 1), (339, 3, 2)], "negative values"),
        ([(259, 3, 7), (50706, 4, 1)], ""),  # a DNG, which FFmpeg reads
    ],
)
def test_why_a_tiff_is_not_read(order: str, tags: Sequence[tuple[int, int, int]], expected: str) -> None:
    data = tiff(order, tags)
    found = why_unread(lambda at, count: data[at : at + count])
    assert expected in found
    assert bool(found) == bool(expected)


def test_list_that_leads_to_itself_ends() -> None:
    data = tiff("<", [(259, 3, 1)], following=8)
    assert pages(lambda at, count: data[at : at + count]) == 1


def test_further_pages_and_pictures_are_reported(tmp_path: Path) -> None:
    first, other = Image.fromarray(colourful()), Image.new("RGB", (160, 120), "red")
    for name, expected in {
        "a.tif": "has 2 pages, and the first one is judged",
        "a.png": "moves (2 pictures), and the first one is judged; to judge all, let its name end in .apng",
        "a.gif": "is a GIF, of which the first picture is judged",
    }.items():
        first.save(tmp_path / name, save_all=True, append_images=[other])
        path = tmp_path / name
        if path.suffix == ".gif":
            path = path.rename(tmp_path / "gif.jpg")
        assert expected in said(path).unjudged
    first.save(tmp_path / "one.tif")
    assert said(tmp_path / "one.tif").unjudged == ""


def test_animated_webp_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.webp"
    frames = [Image.fromarray(colourful()), Image.new("RGB", (160, 120), "red")]
    frames[0].save(path, save_all=True, append_images=frames[1:])
    assert "it is an animated WebP, which FFmpeg does not read" in said(path).unreadable
    frames[0].save(path)
    assert said(path).unreadable == ""


def test_tiled_photograph_is_known() -> None:
    head = struct.pack(">I4s4s", 16, b"ftyp", b"heic") + b"\0\0\0\0" + b"meta ... infe\2\0\0\0\0\1\0\0grid"
    assert is_tiled_photograph(lambda at, count: head[at : at + count])
    assert not is_tiled_photograph(lambda at, count: head.replace(b"grid", b"hvc1")[at : at + count])


def test_picture_with_name_of_video_is_reported(tmp_path: Path, make_clip: MakeClip) -> None:
    path = tmp_path / "a.mp4"
    Image.fromarray(colourful()).save(path, format="JPEG")
    assert "is a picture with the name of a video" in said(path).unjudged
    assert said(make_clip("b.mp4")).unjudged == ""
