"""Finds mistakes in a camera's address by looking at it and at the disk, before anything is opened for good."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from camgraph.pipeline.errors import CamgraphError, ProblemText, UserError
from camgraph.pipeline.system.paths import ASSET_PREFIX, resolve
from camgraph.stages.assets import CLIPS, how_to_get
from camgraph.stages.video import addresses, examiner, pictures

MEMORY_MB = 1024
"""The memory that FFmpeg may take for one file or camera by default: 8K in 8 bits takes 0.9 GB, 4K 0.2."""


def what_is_wrong(url: str, base_folder: Path, *, playlist: bool = False, memory_mb: int = MEMORY_MB) -> str:
    """Why a camera with this address cannot be read, "" if nothing shows. A live camera is not connected to.

    FFmpeg looks at a file in another process; damage that it finds there is reported when the file is read.
    """
    if addresses.is_live(url):
        return _of_address(addresses.why_no_protocol(url) or addresses.why_no_host(url))
    mistyped = why_mistyped(url, base_folder)
    if mistyped:
        return _of_address(mistyped)
    try:
        path = path_of(url, base_folder)
    except UserError as error:
        return ProblemText.of(error)
    problem = _why_not_readable(path, playlist=playlist, memory_mb=memory_mb)
    if problem and url.startswith(ASSET_PREFIX):
        text = f"{problem}; {how_to_get(addresses.file_of(url), CLIPS)}"
        return ProblemText(text, error_id="asset-missing")
    return problem


def _of_address(problem: str) -> str:
    return ProblemText(problem, error_id="camera-address")


def what_was_meant(url: str, base_folder: Path) -> str:
    """Advice for addresses that `camgraph watch` takes and a graph does not: a number, a pattern; "" for all others."""
    if _exists(url, base_folder):
        return ""
    if url.isascii() and url.isdigit():
        return f"; if a camera of this machine is meant, write /dev/video{int(url)}"
    if re.search(r"[*?]", url):
        return "; a graph names each file, `camgraph watch` takes patterns (--print-graph shows its graph)"
    return ""


def why_mistyped(url: str, base_folder: Path) -> str:
    """Why an address in the place of a file's must not even be shown as a path; "" if it may be."""
    if addresses.is_live(url):
        return ""
    problem = addresses.why_no_path(addresses.file_of(url).removeprefix(ASSET_PREFIX))
    return problem if problem and not _exists(url, base_folder) else ""


def path_of(url: str, base_folder: Path) -> Path:
    """The path of the file or folder of this address. Raises UserError as `resolve`."""
    return resolve(addresses.file_of(url), base_folder)


def _exists(url: str, base_folder: Path) -> bool:
    """Whether anything is known to be there."""
    try:
        return path_of(url, base_folder).exists()
    except (OSError, UserError):
        return False


def _why_not_readable(path: Path, *, playlist: bool, memory_mb: int) -> str:
    """The disk's answer about a file or folder."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return ProblemText(f"no such file or folder: {path}", error_id="file-missing")
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        text = f"{path} is neither a file nor a folder: expected a video, a picture or a folder of pictures"
        return ProblemText(text, error_id="file-kind")
    if not os.access(path, os.R_OK, effective_ids=True):
        return ProblemText(f"no permission to read {path}", error_id="file-permission")
    try:
        pictures.list_pictures(path)
    except CamgraphError as error:
        return ProblemText.of(error)
    refused = examiner.examine(path, playlist=playlist, memory_mb=memory_mb).refused
    return ProblemText(refused, error_id="video-unreadable")
