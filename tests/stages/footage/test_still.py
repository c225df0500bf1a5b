from __future__ import annotations

import numpy as np
import pytest

from stages.footage.still import drawn
from stages.reading.dates import zone_of
from stages.vision.drawing import draw_caption, draw_reasons


@pytest.mark.parametrize(
    ("time", "zone", "told"),
    [
        ("2026-11-23T12:00:00.250Z", "UTC", "2026-11-23 12:00:00 UTC"),
        ("2026-11-23T23:30:00.250Z", "Europe/Berlin", "2026-11-24 00:30:00 CET"),
        ("2026-06-23T12:00:00.250Z", "Europe/Berlin", "2026-06-23 14:00:00 CEST"),
        ("nonsense", "UTC", ""),
        (None, "UTC", ""),
    ],
)
def test_a_picture_tells_the_time_of_its_place(time: str | None, zone: str, told: str) -> None:
    data = {"camera": "room 3", "action": "fall", "start_time": time, "people": []}
    expected = np.zeros((240, 640, 3), np.uint8)
    draw_caption(expected, "room 3", told)
    draw_reasons(expected, ["fall"])
    assert np.array_equal(drawn(np.zeros((240, 640, 3), np.uint8), data, "annotated", zone_of(zone)), expected)
