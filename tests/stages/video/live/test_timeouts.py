"""How long a camera may be silent."""

from __future__ import annotations

from typing import Any

import pytest

from camgraph.stages.video.camera import Camera
from camgraph.stages.video.live.timeouts import Timeouts, timeouts_of


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"url": "rtsp://h/x"}, Timeouts(3, 11)),
        ({"url": "https://h/x.m3u8"}, Timeouts(12, 20)),
        ({"url": "https://h/x.m3u8", "stalled_s": 60}, Timeouts(60, 68)),
        ({"url": "rtsp://h/x", "stalled_s": 1}, Timeouts(1, 9)),
        ({"url": "http://h/x.jpg"}, Timeouts(3, 11)),
        ({"url": "http://h/x.jpg", "every_s": 60}, Timeouts(62, 70)),
        ({"url": "http://h/x.jpg", "every_s": 60, "stalled_s": 100}, Timeouts(100, 108)),
    ],
)
def test_playlists_may_be_silent_for_longer_and_settings_decide(settings: dict[str, Any], expected: Timeouts) -> None:
    assert timeouts_of(Camera.model_validate(settings)) == expected
