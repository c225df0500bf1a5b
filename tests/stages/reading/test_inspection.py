"""What is wrong with the address of a camera, told without what may be its password."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.errors import UserError
from stages.reading.addresses import PROTOCOLS
from stages.reading.inspection import path_of, what_is_wrong, why_mistyped


@pytest.mark.parametrize("protocol", [*PROTOCOLS, "RTSP", "hls+http"])
def test_what_ffmpeg_may_open_is_not_refused(protocol: str, tmp_path: Path) -> None:
    assert what_is_wrong(f"{protocol}://h/x", tmp_path) == ""


def test_an_unknown_protocol_is_refused_with_what_was_meant(tmp_path: Path) -> None:
    told = what_is_wrong("rstp://v:geheim@h/x", tmp_path)
    assert told.startswith("unknown protocol `rstp`")
    assert "did you mean `rtsp`?" in told or "did you mean `rtp`?" in told
    assert "geheim" not in told


MISTYPED = [
    "rtsp:/v:geheim@h/x",
    "rtsp:/h/geheim",
    "rtsp//v:geheim@h",
    "rtsp//h/geheim",
    "rtsp;//v:geheim@h",
    "rtsp;//v;geheim@h",
    "http:\\\\v:geheim@h",
    " rtsp://v:geheim@h",
    "v:geheim@h/x",
    "geheim@http://h",
    "file://v:geheim@h/x",
    "asset:v:geheim@h/x",
    "~v:geheim@h/x",
    "cam/video?token=geheim",
    "rtsp:/v:geheim@h/" + "x" * 300,
]


@pytest.mark.parametrize("url", MISTYPED)
def test_what_was_meant_as_an_address_is_not_quoted(url: str, tmp_path: Path) -> None:
    told = what_is_wrong(url, tmp_path)
    assert told == why_mistyped(url, tmp_path)
    assert "an address has two slashes after the colon: rtsp://..." in told
    assert "geheim" not in told


@pytest.mark.parametrize(
    "url", ["absent.mp4", "a@b.mp4", "10:30.mp4", "videos//a.mp4", "asset:no-such.avi", "C:/a.mp4"]
)
def test_what_may_be_a_path_is_quoted(url: str, tmp_path: Path) -> None:
    assert why_mistyped(url, tmp_path) == ""
    assert url.removeprefix("asset:").replace("//", "/") in what_is_wrong(url, tmp_path)


def test_a_file_may_be_called_like_an_address(tmp_path: Path) -> None:
    (tmp_path / "12:30 me@home.txt").write_text("dear diary\n" * 50)
    assert why_mistyped("12:30 me@home.txt", tmp_path) == ""
    assert what_is_wrong("12:30 me@home.txt", tmp_path).endswith("is a text, expected a video")


def test_a_home_that_nobody_has(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nobody of this machine"):
        path_of("~no-such-user/a.mp4", tmp_path)
    assert "nobody of this machine" in what_is_wrong("~no-such-user/a.mp4", tmp_path)
