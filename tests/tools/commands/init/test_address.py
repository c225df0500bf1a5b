from __future__ import annotations

from pathlib import Path

import pytest

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.graph.variables import substitute
from camgraph.tools.commands.init.address import address_of, variable


@pytest.mark.parametrize(
    ("typed", "place", "user", "password"),
    [
        ("10.0.0.11", "rtsp://10.0.0.11", "", ""),
        (" 10.0.0.11:8554/main ", "rtsp://10.0.0.11:8554/main", "", ""),
        ("cam.local/a.b/c", "rtsp://cam.local/a.b/c", "", ""),
        ("[2001:db8::1]/main", "rtsp://[2001:db8::1]/main", "", ""),
        ("v:pw@10.0.0.11/main", "rtsp://10.0.0.11/main", "v", "pw"),
        ("0", "/dev/video0", "", ""),
        ("rtsp://10.0.0.11/", "rtsp://10.0.0.11", "", ""),
        ("rtsp://10.0.0.11/main/", "rtsp://10.0.0.11/main/", "", ""),
        ("rtsp://v:a%23b@10.0.0.11/main", "rtsp://10.0.0.11/main", "v", "a#b"),
        ("rtsp://v:p@ss@10.0.0.11/main", "rtsp://10.0.0.11/main", "v", "p@ss"),
        ("rtsp://v:${PW}@10.0.0.11/main", "rtsp://10.0.0.11/main", "v", "%41 #/"),
        ("${CAM}", "http://10.0.0.12/video.mjpg", "me", "secret-1"),
        ("http://10.0.0.12/a?b=c", "http://10.0.0.12/a?b=c", "", ""),
    ],
)
def test_what_people_type(tmp_path: Path, typed: str, place: str, user: str, password: str) -> None:
    environ = {"PW": "%41 #/", "CAM": "http://me:secret-1@10.0.0.12/video.mjpg"}
    found = address_of(typed, tmp_path, environ)
    assert (found.place, found.user, found.password) == (place, user, password)
    url, secrets = found.in_graph("CAM_1")
    assert substitute(url, secrets).text == found.url, "the graph leads to what was tried"
    assert not password or f":{password}@" not in url


def test_a_file_comes_before_a_host(tmp_path: Path) -> None:
    (tmp_path / "cam.local").touch()
    assert address_of("cam.local", tmp_path, {}).place == str(tmp_path / "cam.local")


@pytest.mark.parametrize(
    "typed",
    ["", "\x1b[31m", "10.0.0.", "clip.mp4", "rtps://10.0.0.11/a", "rtsp://", "rtsp://v:a/b@10.0.0.11/main", "${NONE}"],
)
def test_what_is_none_says_what_would_be(tmp_path: Path, typed: str) -> None:
    with pytest.raises(UserError) as raised:
        address_of(typed, tmp_path, {})
    assert "a/b" not in str(raised.value)
    assert "\x1b" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "expected"), [("room-3", "ROOM_3"), ("Süd", "SUD"), ("3", "CAMERA_3"), ("入口", "CAMERA")]
)
def test_names_of_variables(name: str, expected: str) -> None:
    assert variable(name) == expected
