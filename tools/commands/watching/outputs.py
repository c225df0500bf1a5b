"""Checks the places for events and videos before anything starts: a run of hours must not end in a missing folder."""

from __future__ import annotations

import os
from pathlib import Path

from pipeline.errors import EnvironmentProblem, UserError
from pipeline.system.paths import resolve_output

STANDARD_OUTPUT = "-"


def ready_events(text: str, folder: Path) -> bool:
    """Check that events can be written there; True if the file has some already. Raises UserError."""
    if text == STANDARD_OUTPUT:
        return False
    path = _ready(text, folder, "--events")
    try:
        return path.is_file() and path.stat().st_size > 0
    except OSError as error:
        raise UserError(f"--events {text}: {error.strerror}; name another file") from None


def ready_videos(text: str, folder: Path) -> bool:
    """Check that videos can be written into this folder; True if it has some already. Raises UserError."""
    if "{" in text or "}" in text:
        raise UserError(f"--video {text}: a folder's name cannot hold braces here; name another")
    if os.path.isfile(folder / text):  # noqa: PTH113 - Path.is_file raises where a folder may not be entered
        raise UserError(f"--video {text}: is a file, expected a folder; each camera gets a video in it")
    return any(_ready(f"{text}/camera.mp4", folder, "--video").parent.glob("*.mp4"))


def _ready(text: str, folder: Path, option: str) -> Path:
    try:
        path = resolve_output(text, folder)
    except (UserError, EnvironmentProblem) as error:
        raise UserError(f"{option}: {error}") from None
    tried = path if path.exists() else path.parent
    if not os.access(tried, os.W_OK, effective_ids=True):
        raise UserError(f"{option}: {tried}: no permission to write there; name another place")
    return path
