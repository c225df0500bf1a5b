"""Frames of a live camera as they come, with a time-out: without a picture for so long it is given up."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import cast

from pipeline.errors import EnvironmentProblem
from pipeline.single_stage import HandContext
from pipeline.stage import Settings
from pipeline.system.redaction import redact_url
from stages.capture import Camera, Capture
from stages.messages import Frame

MOST_WAIT_S = 30.0
"""The limit for the next picture: allows several tries to connect, and a camera with few keyframes."""


class Patience:
    """A stop (`pipeline.stage.Stop`) that comes by itself, so many seconds after it was last `renewed`."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.renew()

    def renew(self) -> None:
        """Start the time again."""
        self._until_s = time.monotonic() + self._seconds

    def is_set(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() >= self._until_s

    def wait(self, timeout: float) -> bool:
        """Sleep at most ``timeout`` seconds, and not beyond the end; whether it is over then."""
        time.sleep(max(0.0, min(timeout, self._until_s - time.monotonic())))
        return self.is_set()


def live_frames(camera: Camera, count: int) -> Iterator[Frame]:
    """``count`` frames. Raises EnvironmentProblem if none comes for `MOST_WAIT_S`."""
    patience = Patience(MOST_WAIT_S)
    with tempfile.TemporaryDirectory() as folder:
        context = HandContext(Path.cwd(), Path(folder))
        taken = Capture(Settings(), "frames", camera, context).frames(patience, None)
        with closing(cast("Generator[Frame]", taken)) as frames:
            for _ in range(count):
                frame = next(frames, None)
                if frame is None:
                    raise EnvironmentProblem(_gone(camera, context), error_id="camera-lost")
                yield frame
                patience.renew()


def _gone(camera: Camera, context: HandContext) -> str:
    shown = redact_url(camera.url)
    _, state, why = context.camera_states[-1]
    reason = why.removeprefix(f"{shown}: ")
    return (
        f"{shown}: no picture came within {MOST_WAIT_S:g} s; the camera is {state}{f' ({reason})' if reason else ''}. "
        "Expected one that sends pictures now and is reached from this machine: look at the address, user and "
        "password, and at the network; or give a recorded video"
    )
