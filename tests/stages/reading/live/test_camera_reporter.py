"""What is said of one live camera, and how often."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from pipeline.testing import HandContext
from stages.reading.live.camera_reporter import CameraReporter


@pytest.fixture
def context(tmp_path: Path) -> HandContext:
    return HandContext(tmp_path, tmp_path)


def test_the_same_state_is_told_once(context: HandContext) -> None:
    reporter = CameraReporter("cam", context)
    for why in ("no answer", "refused"):
        reporter.is_now("lost", why)
    reporter.is_now("live")
    assert context.camera_states == [("cam", "lost", "no answer"), ("cam", "live", "")]


def test_a_bug_is_logged_with_its_traceback_and_once(context: HandContext) -> None:
    reporter = CameraReporter("cam", context)
    with capture_logs() as said:
        for divisor in (0, 0, ""):
            try:
                1 // divisor  # type: ignore[operator]
            except (ZeroDivisionError, TypeError) as error:
                reporter.failed(error)
    assert [(line["event"], line["camera"], type(line["exc_info"])) for line in said] == [
        ("source_failed", "cam", ZeroDivisionError),
        ("source_failed", "cam", TypeError),
    ]
