"""When a file was recorded: what its frames, the log and `camgraph check` say of it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import structlog
from pydantic import ValidationError

from camgraph.pipeline.graph import load_graph
from camgraph.pipeline.graph.remarks import remarks_on
from camgraph.pipeline.testing import HandContext
from camgraph.stages.messages import Frame
from camgraph.stages.video.capture import Camera, Capture

MakeClip = Callable[..., Path]
MakeCapture = Callable[..., Capture]
Read = Callable[..., list[Frame]]

AT_NS = 1_795_344_279 * 10**9
CREATED = {"creation_time": "2026-11-22T10:44:39.000000Z"}
NAME = "2026-11-22_10-44-39.mp4"


def time_of(read: Read, path: Path, **settings: Any) -> tuple[int, str]:
    """Of the first of two frames: the time of day and whose it is. The second is 100 ms later."""
    first, second = (frame.stamp for frame in read(path, **settings))
    assert second.wall_ns - first.wall_ns == 100_000_000
    assert second.clock == first.clock
    return first.wall_ns, first.clock


@pytest.mark.parametrize("name", ["a.mp4", "a.mov", "a.mkv"])
def test_a_file_begins_as_its_metadata_says(make_clip: MakeClip, read: Read, name: str) -> None:
    assert time_of(read, make_clip(name, frames=2, metadata=CREATED)) == (AT_NS, "metadata")


def test_a_file_begins_as_its_name_says(make_clip: MakeClip, read: Read) -> None:
    path = make_clip(NAME, frames=2)
    assert time_of(read, path) == (AT_NS, "name")
    assert time_of(read, path, time_zone="+01:00") == (AT_NS - 3600 * 10**9, "name")
    assert time_of(read, path, time_zone="Europe/Berlin") == (AT_NS - 3600 * 10**9, "name")


def test_start_at_precedes_metadata_precedes_name(make_clip: MakeClip, read: Read) -> None:
    path = make_clip("2020-01-02_03-04-05.mp4", frames=2, metadata=CREATED)
    assert time_of(read, path) == (AT_NS, "metadata")
    assert time_of(read, path, start_at="2024-05-01T12:00:00+00:00") == (1_714_564_800 * 10**9, "start_at")


@pytest.mark.parametrize("text", ["2026-11-22T11:44:39", "2026-11-22 11:44:39"])
def test_a_start_without_a_zone_is_in_that_of_the_camera(make_clip: MakeClip, read: Read, text: str) -> None:
    path = make_clip("a.mp4", frames=2)
    assert time_of(read, path, start_at=text, time_zone="Europe/Berlin") == (AT_NS, "start_at")
    assert time_of(read, path, start_at=text) == (AT_NS + 3600 * 10**9, "start_at")


def test_modification_time_is_ignored(make_clip: MakeClip, read: Read) -> None:
    path = make_clip("a.mp4", frames=2)
    os.utime(path, (1_700_000_000, 1_700_000_000))
    assert time_of(read, path) == (0, "file")


def test_a_later_part_of_a_file_has_its_time(make_clip: MakeClip, read: Read) -> None:
    path = make_clip(NAME, frames=30)
    frames = read(path, start_s=2)
    assert frames[0].stamp.wall_ns == AT_NS + 2 * 10**9
    assert read(path, frames[3].stamp)[0].stamp.wall_ns == AT_NS + 2_400_000_000


def test_pictures_begin_as_the_first_of_them_says(tmp_path: Path, read: Read) -> None:
    for second in (39, 40):
        cv2.imwrite(str(tmp_path / f"2026-11-22_10-44-{second}.png"), np.zeros((8, 8, 3), np.uint8))
    assert read(tmp_path, fps=1)[0].stamp.wall_ns == AT_NS


def test_status_and_log_say_whose_the_times_are(make_clip: MakeClip, capture: MakeCapture) -> None:
    source = capture(make_clip(NAME, frames=2))
    assert list(source.frames(threading.Event(), None))
    assert isinstance(source.context, HandContext)
    assert source.context.camera_facts == {"cam": {"clock": "name"}}


def test_run_says_once_why_its_events_have_a_date(make_clip: MakeClip, read: Read) -> None:
    with structlog.testing.capture_logs() as logs:
        read(make_clip("a.mp4", frames=2, metadata=CREATED))
    (said,) = [log for log in logs if log["event"] == "file_begins"]
    assert said["at"] == "2026-11-22T10:44:39Z"
    assert said["why"].startswith("the creation time in its metadata; if that is when it was copied or exported")


@pytest.mark.processes
def test_check_says_when_each_file_was_recorded(make_clip: MakeClip, tmp_path: Path) -> None:
    make_clip(NAME, frames=2)
    make_clip("created.mp4", frames=2, metadata=CREATED)
    make_clip("plain.mp4", frames=2)
    (tmp_path / "graph.yaml").write_text(
        "version: 1\ncameras:\n"
        f"  named: {{url: {NAME}, time_zone: Europe/Berlin}}\n"
        "  created: {url: created.mp4}\n"
        "  plain: {url: plain.mp4}\n"
        "  same: {url: plain.mp4}\n"
        "  given: {url: plain.mp4, start_at: 2026-11-22T11:44:39+01:00}\n"
        "stages:\n  capture: {use: capture}\n  out: {use: sink_null, from: capture}\n"
    )
    assert list(remarks_on(load_graph(tmp_path / "graph.yaml"))) == [
        "named: its events are of 2026-11-22T09:44:39Z and later: the date in its name, in Europe/Berlin",
        "created: its events are of 2026-11-22T10:44:39Z and later: the creation time in its metadata; if that is when "
        "it was copied or exported, set start_at",
        "plain, same: neither metadata nor name tell when it was recorded: times count from 1970; set start_at",
        "given: its events are of 2026-11-22T10:44:39Z and later: start_at says so",
    ]


def test_settings() -> None:
    assert Camera(url="a.mp4", start_at=datetime(2026, 1, 1, tzinfo=UTC)).start_at
    for year in (1, 1969, 2200, 9999):
        with pytest.raises(ValidationError, match="expected a date from 1970 to 2199"):
            Camera.model_validate({"url": "a.mp4", "start_at": f"{year:04d}-01-02T00:00:00"})
    with pytest.raises(ValidationError, match="there is no time zone 'Berlin'; did you mean `Europe/Berlin`"):
        Camera(url="a.mp4", time_zone="Berlin")
    with pytest.raises(ValidationError, match="start_at is for files, and this camera is live"):
        Camera.model_validate({"url": "rtsp://h/x", "start_at": "2026-01-01T00:00:00Z"})
