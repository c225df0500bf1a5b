"""What is wrong with the address of a camera, told without what may be its password."""

from __future__ import annotations

from pathlib import Path

import pytest

from camgraph.pipeline.errors import GraphError, UserError
from camgraph.pipeline.graph import parse_graph
from camgraph.stages.video.addresses import PROTOCOLS
from camgraph.stages.video.capture import Camera, Capture
from camgraph.stages.video.inspection import path_of, what_is_wrong, what_was_meant, why_mistyped


@pytest.mark.parametrize("protocol", [*PROTOCOLS, "RTSP"])
def test_what_ffmpeg_may_open_is_not_refused(protocol: str, tmp_path: Path) -> None:
    assert what_is_wrong(f"{protocol}://h/x", tmp_path) == ""


def test_an_unknown_protocol_is_refused_with_what_was_meant(tmp_path: Path) -> None:
    reported = what_is_wrong("rstp://v:geheim@h/x", tmp_path)
    assert reported.startswith("unknown protocol `rstp`")
    assert reported.endswith("; did you mean `rtsp`?")
    assert "geheim" not in reported


@pytest.mark.parametrize(
    ("url", "way_out"),
    [
        ("0", "; if a camera of this machine is meant, write /dev/video0"),
        (
            "clips/*.mp4",
            "; a graph names each file, `camgraph watch` takes patterns (--print-graph shows its graph)",
        ),
        ("no.mp4", ""),
    ],
)
def test_what_watch_takes_and_a_graph_does_not_has_a_way_out(tmp_path: Path, url: str, way_out: str) -> None:
    assert what_was_meant(url, tmp_path) == way_out
    [(where, reported)] = Capture.check_camera(Camera(url=url), tmp_path)
    assert (where, reported) == (("url",), f"no such file or folder: {tmp_path}/{url}{way_out}")
    assert what_is_wrong(url, tmp_path) == f"no such file or folder: {tmp_path}/{url}"


@pytest.mark.parametrize(
    "protocol",
    [
        *("data", "concat", "subfile", "pipe", "fd", "crypto", "cache", "async", "unix", "httpproxy", "mmsh", "ipfs"),
        *("hls+file", "hls+http", "rtsp+file", "file+http"),
    ],
)
def test_what_leads_elsewhere_is_no_protocol_of_a_camera(protocol: str, tmp_path: Path) -> None:
    assert what_is_wrong(f"{protocol}://h/x", tmp_path).startswith(f"unknown protocol `{protocol}`")


def test_a_folder_of_videos_is_no_camera_and_has_a_way_out(tmp_path: Path) -> None:
    for name in ("b.mkv", "a.MP4", ".hidden.mp4"):
        (tmp_path / name).touch()
    assert what_is_wrong(str(tmp_path), tmp_path) == (
        f"{tmp_path}: no pictures in this folder, but videos: each is a camera of its own: name it (a.MP4), or watch "
        "all of them with `camgraph watch FOLDER` (--print-graph shows its graph)"
    )


@pytest.mark.parametrize("at", ["yesterday", "2026-13-40", "[]", "10:44", "{}"])
def test_a_date_is_asked_for_by_an_example(at: str) -> None:
    text = f"""
        version: 1
        cameras: {{a: {{url: a.mp4, start_at: "{at}"}}}}
        stages: {{capture: {{use: capture}}}}
    """
    with pytest.raises(GraphError) as error:
        parse_graph(text, "g.yaml", base_folder=Path())
    expected = f"cameras.a.start_at: expected a date and time such as 2026-11-22T10:44:39+01:00, got '{at}'"
    assert expected in str(error.value)


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
    reported = what_is_wrong(url, tmp_path)
    assert reported == why_mistyped(url, tmp_path)
    assert "an address has two slashes after the colon: rtsp://..." in reported
    assert "geheim" not in reported


@pytest.mark.parametrize(
    "url", ["absent.mp4", "a@b.mp4", "10:30.mp4", "videos//a.mp4", "asset:no-such.avi", "C:/a.mp4"]
)
def test_what_may_be_a_path_is_quoted(url: str, tmp_path: Path) -> None:
    assert why_mistyped(url, tmp_path) == ""
    assert url.removeprefix("asset:").replace("//", "/") in what_is_wrong(url, tmp_path)


@pytest.mark.processes
def test_a_file_may_be_called_like_an_address(tmp_path: Path) -> None:
    (tmp_path / "12:30 me@home.txt").write_text("dear diary\n" * 50)
    assert why_mistyped("12:30 me@home.txt", tmp_path) == ""
    assert what_is_wrong("12:30 me@home.txt", tmp_path).endswith("is a text, expected a video")


def test_a_home_that_nobody_has(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no user of this machine"):
        path_of("~no-such-user/a.mp4", tmp_path)
    assert "no user of this machine" in what_is_wrong("~no-such-user/a.mp4", tmp_path)
