"""Checks the places for events, videos and tracks before anything starts: no run of hours ends in a missing folder."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path, PurePath

from camgraph.pipeline.errors import EnvironmentProblem, UserError
from camgraph.pipeline.system.paths import resolve_output
from camgraph.stages.sinks.writing.output_names import OutputNames, taken, what_is_wrong
from camgraph.stages.sinks.writing.track_files import SUFFIXES

STANDARD_OUTPUT = "-"


def ready_events(text: str, folder: Path) -> bool:
    """Check that events can be written there; True if the file has some already. Raises UserError."""
    if text == STANDARD_OUTPUT:
        return False
    path = _ready(text, folder, "--events")
    try:
        return path.is_file() and path.stat().st_size > 0
    except OSError as error:
        raise UserError(f"--events {text}: {error.strerror}; name another file", error_id="option-value") from None


def ready_videos(text: str, folder: Path) -> bool:
    """Check that videos can be written into this folder; True if it has some already. Raises UserError."""
    if "{" in text or "}" in text:
        raise UserError(
            f"--video {text}: a folder's name cannot hold braces here; name another", error_id="option-value"
        )
    if os.path.isfile(folder / text):  # noqa: PTH113 - Path.is_file raises where a folder may not be entered
        raise UserError(
            f"--video {text}: is a file, expected a folder; each camera gets a video in it", error_id="option-value"
        )
    return any(_ready(f"{text}/camera.mp4", folder, "--video").parent.glob("*.mp4"))


def ready_tracks(text: str, folder: Path, run: str, cameras: Sequence[str]) -> bool:
    """Check that tracks can be written there; True if a camera has a file there already. Raises UserError."""
    suffix = PurePath(text).suffix
    if suffix not in SUFFIXES.values():
        known = ", ".join(f"{end} ({form})" for form, end in SUFFIXES.items())
        raise UserError(f"--tracks {text}: its end names no format; expected one of {known}", error_id="option-value")
    example = f"{text.removesuffix(suffix)}.{{camera}}{suffix}"
    if len(cameras) > 1 and "{camera}" not in text:
        raise UserError(
            f"--tracks {text}: there are {len(cameras)} cameras, and each needs a file of its own: "
            f"--tracks '{example}'",
            error_id="option-value",
        )
    problem = what_is_wrong(text, example, names_camera=False)
    if problem:
        raise UserError(f"--tracks {text}: {problem}", error_id="option-value")
    names, now = OutputNames(text, run, folder), datetime.now(UTC)
    why = names.why_not_writable()
    if why:
        raise UserError(f"--tracks: {why}", error_id="option-value")
    return any(taken(names.first(camera, now)) for camera in cameras)


def _ready(text: str, folder: Path, option: str) -> Path:
    try:
        path = resolve_output(text, folder)
    except (UserError, EnvironmentProblem) as error:
        raise UserError(f"{option}: {error}", error_id="option-value") from None
    tried = path if path.exists() else path.parent
    if not os.access(tried, os.W_OK, effective_ids=True):
        raise UserError(
            f"{option}: {tried}: no permission to write there; name another place", error_id="file-permission"
        )
    return path
