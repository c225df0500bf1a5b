"""Which sources are photographs, each judged by itself, and no film."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from stages.capture import Camera, Capture
from tools.commands.watching.sources import WatchedCamera


def photographs(cameras: Sequence[WatchedCamera], folder: Path) -> list[str]:
    """A line for each camera that is a folder of photographs, or one photograph."""
    files = {
        camera.name: Camera.model_validate({"url": camera.url.replace("$${", "${")})
        for camera in cameras
        if not camera.live
    }
    return [
        f"{name}: photographs, each judged by itself (to watch them as a film, number them from 1 on without a gap)"
        for name, settings in files.items()
        if Capture.frames_alone(settings, folder)
    ]
