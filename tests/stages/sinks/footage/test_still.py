from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from camgraph.stages.sinks.footage.still import drawn, for_crops, why_not_shown
from camgraph.stages.video.dates import zone_of
from camgraph.stages.vision.drawing import draw_caption, draw_reasons


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


def test_a_picture_says_what_its_rule_is_about() -> None:
    data = {"camera": "a", "action": "fall", "rule": {"about": "Somebody falls."}, "people": []}
    expected = np.zeros((240, 640, 3), np.uint8)
    draw_caption(expected, "a", "")
    draw_reasons(expected, ["fall: Somebody falls."])
    assert np.array_equal(drawn(np.zeros((240, 640, 3), np.uint8), data, "annotated", zone_of("UTC")), expected)


UTC = zone_of("UTC")


def noise() -> np.ndarray:
    return np.random.default_rng(1).integers(0, 255, (240, 320, 3)).astype(np.uint8)


def told(*heads: tuple[int, int, int, int]) -> dict[str, Any]:
    """Of a frame that was half as large as the picture."""
    return {"people": [], "frame": {"width": 160, "height": 120}, "heads": [list(area) for area in heads]}


@pytest.mark.parametrize(
    ("head", "place", "colours"),
    [
        ((100, 40, 120, 60), (200, 80, 240, 120), 4),
        ((100, 40, 120, 80), (200, 80, 240, 160), 8),
        ((-15, 60, 5, 80), (0, 120, 10, 160), 2),
        ((150, 110, 400, 400), (300, 220, 320, 240), 1),
    ],
    ids=["inside", "long", "at the border", "in the corner"],
)
def test_heads_are_unrecognisable_and_nothing_else_is(
    head: tuple[int, int, int, int], place: tuple[int, int, int, int], colours: int
) -> None:
    shown, expected = for_crops(noise(), told(head), "blurred_faces", UTC), noise()
    left, top, right, bottom = place
    part = shown[top:bottom, left:right]
    assert len(np.unique(part.reshape(-1, 3), axis=0)) == colours
    assert np.abs(part.mean(axis=(0, 1)) - expected[top:bottom, left:right].mean(axis=(0, 1))).max() < 2
    expected[top:bottom, left:right] = part
    assert np.array_equal(shown, expected)


def test_heads_outside_of_the_picture_hide_nothing() -> None:
    data = told((900, 900, 950, 950), (-50, -50, -10, -10), (10, 10, 10, 10))
    assert np.array_equal(for_crops(noise(), data, "blurred_faces", UTC), noise())


def test_heads_are_hidden_before_people_are_drawn() -> None:
    shown = drawn(noise(), told((100, 40, 120, 60)), "blurred_faces", UTC)
    assert len(np.unique(shown[80:120, 200:240].reshape(-1, 3), axis=0)) == 4
    assert np.array_equal(shown[80:120, 260:300], noise()[80:120, 260:300])


@pytest.mark.parametrize(("look", "is_shown"), [("blurred_faces", False), ("annotated", True), ("skeleton_only", True)])
def test_no_picture_without_the_heads_that_are_to_be_hidden(look: Any, is_shown: bool) -> None:
    assert (why_not_shown({"people": []}, look) == "") is is_shown
    assert why_not_shown(told(), look) == ""


STILL = """
import resource, sys
from camgraph.tools.lab.benchmarks.live_pictures import packets_of
from camgraph.stages.sinks.footage.still import decode_last
from pathlib import Path

def peak_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

packets = packets_of(Path(sys.argv[1]))
assert sum(packet.is_key for packet in packets) == 1
assert decode_last(packets[:5]) is not None
before = peak_mb()
picture = decode_last(packets)
print(picture.shape, len(packets), peak_mb() - before)
"""


def test_a_picture_long_after_a_keyframe_takes_no_more_memory(tmp_path: Path, make_clip: Any) -> None:
    """300 pictures of 640 x 480 take 138 MB."""
    clip = make_clip(
        "long.mp4",
        frames=300,
        size=(640, 480),
        options={"g": "1000", "bf": "0", "sc_threshold": "0", "preset": "ultrafast"},
    )
    done = subprocess.run(
        [sys.executable, "-c", STILL, str(clip)], check=True, capture_output=True, text=True, timeout=600
    )
    *shape, count, grown_mb = done.stdout.replace("(", "").replace(")", "").replace(",", "").split()
    assert (shape, count) == (["480", "640", "3"], "300")
    assert float(grown_mb) < 40
