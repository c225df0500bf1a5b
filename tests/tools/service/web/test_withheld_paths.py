"""Paths of the machine in texts for viewers."""

from __future__ import annotations

import pytest
from starlette.requests import Request

from camgraph.tools.service.web.withheld_paths import as_told_to, without_folders


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("/srv/cam/clips/hall.mp4: no such file", "hall.mp4: no such file"),
        ("cannot write `/var/lib/camgraph/lobby/events.jsonl`", "cannot write `events.jsonl`"),
        ("written: /a/b/, /c", "written: b, c"),
        ("(/root/.cache/x)", "(x)"),
        ("no file '/srv/my cams/hall 1.mp4'", "no file 'hall 1.mp4'"),
        (
            "rtsp://***@10.0.0.1:554/main/sub?*** and http://h/a/b",
            "rtsp://***@10.0.0.1:554/main/sub?*** and http://h/a/b",
        ),
        ("rtsp://[::1]/main", "rtsp://[::1]/main"),
        ("unix:///srv/hidden/x.sock: it refuses", "unix:x.sock: it refuses"),
        ("ipc:///srv/hidden/z, file:/srv/hall.mp4", "ipc:z, file:hall.mp4"),
        ("see /api/cameras", "see /api/cameras"),
        ("clips/hall.mp4 at 3/4", "clips/hall.mp4 at 3/4"),
    ],
)
def test_only_the_last_name_of_a_path_is_told(text: str, told: str) -> None:
    assert without_folders({"a": [text, 7, None]}) == {"a": [told, 7, None]}


@pytest.mark.parametrize(
    ("role", "told"), [("viewer", "hall.mp4"), ("operator", "/srv/cam/hall.mp4"), ("admin", "/srv/cam/hall.mp4")]
)
def test_folders_are_for_those_who_mend_what_is_wrong(role: str, told: str) -> None:
    request = Request({"type": "http", "camgraph.role": role})
    assert as_told_to(request, {"why": "/srv/cam/hall.mp4"}) == {"why": told}
