"""The settings of a camera, and what `camgraph check` says of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import ValidationError

from camgraph.pipeline.errors import GraphError, UserError
from camgraph.pipeline.graph import parse_graph
from camgraph.stages.messages import Frame
from camgraph.stages.video.capture import Camera, Capture

MakeClip = Callable[..., Path]
Read = Callable[..., list[Frame]]


def test_checking_finds_missing_files(tmp_path: Path, make_clip: MakeClip) -> None:
    make_clip("a.mp4", frames=1)

    def problems(url: str) -> list[tuple[tuple[str, ...], str]]:
        return list(Capture.check_camera(Camera(url=url), tmp_path))

    assert problems("a.mp4") == []
    assert problems("rtsp://10.0.0.1/absent") == []
    [(place, text)] = problems("absent.mp4")
    assert place == ("url",)
    assert "absent.mp4" in text
    [(_, text)] = problems("asset:no-such-clip.avi")
    assert "camgraph assets pull" in text
    [(place, text)] = problems("rtspt://v:geheim@10.0.0.1/x")
    assert place == ("url",)
    assert text.startswith("unknown protocol `rtspt`")
    assert "geheim" not in text


def test_an_address_that_was_mistyped_is_not_shown_as_a_path(tmp_path: Path, read: Read) -> None:
    [(place, text)] = Capture.check_camera(Camera(url="rtsp:/v:geheim@10.0.0.1/x"), tmp_path)
    assert place == ("url",)
    assert "two slashes after the colon: rtsp://..." in text
    with pytest.raises(UserError, match="two slashes after the colon") as caught:
        read("rtsp:/v:geheim@10.0.0.1/x")
    assert "geheim" not in text + str(caught.value)


def test_live_cameras_have_no_beginning() -> None:
    with pytest.raises(ValidationError, match="start_s is for files"):
        Camera(url="rtsp://u:geheim@h/1", start_s=2)


@pytest.mark.parametrize("name", ["max_fps", "start_s", "duration_s", "fps"])
@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_times_and_rates_are_finite(name: str, value: float) -> None:
    with pytest.raises(ValidationError, match=name):
        Camera.model_validate({"url": "a.mp4", name: value})


def test_an_error_in_the_settings_does_not_quote_the_address() -> None:
    with pytest.raises(ValidationError) as caught:
        Camera.model_validate({"url": "rtsp://u:geheim@h/1", "max_fps": -1, "loop": True})
    assert "geheim" not in str(caught.value)
    assert "geheim" not in repr(Camera(url="rtsp://u:geheim@h/1"))


def test_every_setting_is_described() -> None:
    own = {k: v for k, v in Camera.model_fields.items() if k != "priority"}
    assert all(field.description for field in own.values())


def test_what_is_live() -> None:
    assert Capture.is_live(Camera(url="rtsp://h/1"))
    assert not Capture.is_live(Camera(url="asset:vtest.avi"))


GRAPH = """\
version: 1
cameras:
  front:
    url: {url}
    {setting}
stages:
  capture: {{use: capture}}
  sink: {{use: sink_null, from: capture}}
"""

NONSENSE = [
    ("http://v:geheim@h/a.mjpg", "transport: tcp", "transport is for rtsp cameras"),
    ("/dev/video0", "transport: udp", "transport is for rtsp cameras"),
    ("a.mp4", "transport: udp", "transport is for rtsp cameras"),
    ("rtsps://v:geheim@h/a", "transport: udp", "expected tcp, got udp"),
    ("rtsp://v:geheim@h/a", "transport: quic", "tcp"),
    ("a.mp4", "connect_s: 5", "connect_s is for live cameras"),
    ("a.mp4", "stalled_s: 5", "stalled_s is for live cameras"),
    ("a.mp4", "decode: cuda", "decode is for live cameras"),
    ("rtsp://v:geheim@h/a", "connect_s: 0", "0.5"),
    ("rtsp://v:geheim@h/a", "stalled_s: 500", "300"),
    ("rtsp://v:geheim@h/a", "every_s: 5", "every_s is for cameras with an http address"),
    ("a.mp4", "every_s: 5", "every_s is for cameras with an http address"),
    ("http://v:geheim@h/a.jpg", "every_s: 0", "0.1"),
    ("http://v:geheim@h/a.jpg", "stalled_s: 9\n    every_s: 9", "expected more than every_s (9), got 9"),
]


@pytest.mark.parametrize(("url", "setting", "words"), NONSENSE)
def test_what_makes_no_sense_is_told_with_its_place(
    tmp_path: Path, make_clip: MakeClip, url: str, setting: str, words: str
) -> None:
    make_clip("a.mp4", frames=1)
    with pytest.raises(GraphError) as caught:
        parse_graph(GRAPH.format(url=url, setting=setting), "g.yaml", base_folder=tmp_path)
    [problem] = caught.value.problems
    assert words in problem.text
    assert problem.line == 5
    assert problem.column >= 5
    assert "geheim" not in str(caught.value)


@pytest.mark.parametrize("setting", ["transport: udp", "connect_s: 10", "stalled_s: 20"])
def test_what_makes_sense_passes(tmp_path: Path, setting: str) -> None:
    graph = parse_graph(GRAPH.format(url="rtsp://h/a", setting=setting), "g.yaml", base_folder=tmp_path)
    assert graph.cameras["front"].live


@pytest.mark.parametrize(
    ("own", "limit_s"), [({}, 5), ({"max_fps": 0.1}, 15), ({"stalled_s": 60}, 62), ({"url": "http://h/a.m3u8"}, 14)]
)
def test_slow_camera_may_be_silent_longer(own: dict[str, object], limit_s: float) -> None:
    assert Capture.still_s(Camera.model_validate({"url": "rtsp://h/x", **own})) == limit_s
