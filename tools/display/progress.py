"""How far a run of files has come, and how long it will take: frames judged, of those that the files hold."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from camgraph.pipeline.errors import CamgraphError
from camgraph.pipeline.monitoring.run_status import CameraStatus, ProgressStatus, RunStatus
from camgraph.pipeline.plan import RunPlan
from camgraph.stages.video import addresses, examiner
from camgraph.stages.video.capture import Camera
from camgraph.stages.video.pictures import is_album, list_pictures

OVER = ("done", "stopped", "failed")
LEAST_S = 3.0
"""A shorter measurement proves nothing: stages are still getting up to speed."""


def expected_frames(plan: RunPlan) -> dict[str, int]:
    """Camera -> about how many frames it will bring; without cameras of unknown length (live, `loop`, bare streams).

    By the length and rate in the files, which need not be exact.
    """
    if plan.source != "capture":
        return {}
    known = {name: _expected(dict(values), Path(plan.base_folder)) for name, values in plan.camera_settings.items()}
    return {name: frames for name, frames in known.items() if frames}


def _expected(values: Mapping[str, Any], folder: Path) -> int | None:
    try:
        return _expected_of(Camera.model_validate(values), folder)
    except CamgraphError:  # reading the file will report it
        return None


def _expected_of(camera: Camera, folder: Path) -> int | None:
    if addresses.is_live(camera.url) or camera.loop:
        return None
    path = camera.path(folder)
    if is_album(path):
        count, film_fps = len(list_pictures(path)), camera.film_fps(path)
        if film_fps is None:  # photographs, each for itself
            return count
        length_s, fps = count / film_fps, film_fps
    else:
        found = examiner.examine(path, playlist=camera.playlist, memory_mb=camera.memory_mb)
        if found.length_s is None or found.fps is None:
            return None
        length_s, fps = found.length_s, found.fps
    seconds = max(0.0, length_s - camera.start_s)
    if camera.duration_s is not None:
        seconds = min(seconds, camera.duration_s)
    return max(1, round(seconds * min(fps, camera.max_fps or fps)))


class Pace:
    """Measures the rate of the frames of all files, and estimates when the last one will arrive."""

    def __init__(self, expected: Mapping[str, int], now_s: Callable[[], float] = time.monotonic) -> None:
        self._expected = expected
        self._now_s = now_s
        self._begun: tuple[float, int] | None = None

    def added_to(self, status: RunStatus) -> RunStatus:
        """A run's status with `done` (0 to 1) of each camera with a known length, and `progress` of the run.

        `progress` is None if a camera has no end; its `left_s` is None until the pace is known.
        """
        cameras = {
            name: replace(camera, done=self._share(name, camera)) if name in self._expected else camera
            for name, camera in status.cameras.items()
        }
        return replace(status, cameras=cameras, progress=self._progress(status.cameras))

    def _share(self, name: str, camera: CameraStatus) -> float:
        """Of a file that was judged to its end all, whatever was expected of it."""
        return 1.0 if camera.state == "done" else self._judged(name, camera) / self._expected[name]

    def _judged(self, name: str, camera: CameraStatus) -> int:
        return min(camera.finished, self._expected[name])

    def _done(self, name: str, camera: CameraStatus) -> int:
        """Frames of a camera for which nobody waits any more: of one that is over, all that were expected."""
        return self._expected[name] if camera.state in OVER else self._judged(name, camera)

    def _progress(self, cameras: Mapping[str, CameraStatus]) -> ProgressStatus | None:
        known = {name: camera for name, camera in cameras.items() if name in self._expected}
        # Nobody waits for a file that could not be read, and whose length is therefore unknown.
        if not known or any(camera.state not in OVER for name, camera in cameras.items() if name not in known):
            return None
        total = sum(self._expected[name] for name in known)
        done = sum(self._done(name, camera) for name, camera in known.items())
        return ProgressStatus(done / total, self._left_s(done, total))

    def _left_s(self, done: int, total: int) -> float | None:
        now_s = self._now_s()
        if self._begun is None and done:
            self._begun = (now_s, done)
        if self._begun is None:
            return None
        began_s, before = self._begun
        if now_s - began_s < LEAST_S or done <= before:
            return None
        return (total - done) * (now_s - began_s) / (done - before)
