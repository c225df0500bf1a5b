"""What a look at a camera's address, and at the disk, shows is wrong, before anything is opened for good."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from pipeline.errors import CamgraphError, UserError
from pipeline.paths import ASSET_PREFIX, resolve
from stages.assets import CLIPS, how_to_get
from stages.reading import addresses, pictures
from stages.reading.opening import is_text


def what_is_wrong(url: str, base_folder: Path) -> str:
    """Why a camera with this address cannot be read, "" where nothing shows. A live camera is not connected to."""
    if addresses.is_live(url):
        return addresses.why_no_protocol(url) or addresses.why_no_host(url)
    mistyped = why_mistyped(url, base_folder)
    if mistyped:
        return mistyped
    try:
        problem = _why_not_readable(path_of(url, base_folder))
    except UserError as error:
        return str(error)
    if problem and url.startswith(ASSET_PREFIX):
        problem += f"; {how_to_get(addresses.file_of(url), CLIPS)}"
    return problem


def why_mistyped(url: str, base_folder: Path) -> str:
    """Why the address of what should be a file, and is none, must not even be shown as a path; "" where it may be."""
    if addresses.is_live(url):
        return ""
    problem = addresses.why_no_path(addresses.file_of(url).removeprefix(ASSET_PREFIX))
    return problem if problem and not _exists(url, base_folder) else ""


def path_of(url: str, base_folder: Path) -> Path:
    """Where the file or folder of this address lies. Raises UserError for the `~home` of nobody known."""
    text = addresses.file_of(url)
    try:
        return resolve(text, base_folder)
    except RuntimeError:
        raise UserError(f"no such file or folder: {text}: nobody of this machine has the name behind `~`") from None


def _exists(url: str, base_folder: Path) -> bool:
    """Whether anything is known to be there."""
    try:
        return path_of(url, base_folder).exists()
    except (OSError, UserError):
        return False


def _why_not_readable(path: Path) -> str:
    """What the disk says of a file or folder."""
    try:
        mode = path.stat().st_mode
    except PermissionError:
        return f"no permission to look at {path}"
    except OSError:
        return f"no such file or folder: {path}"
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        return f"{path} is neither a file nor a folder: expected a video, a picture or a folder of pictures"
    if not os.access(path, os.R_OK, effective_ids=True):
        return f"no permission to read {path}"
    try:
        pictures.list_pictures(path)
    except CamgraphError as error:
        return str(error)
    return f"{path}: is a text, expected a video" if stat.S_ISREG(mode) and is_text(path) else ""
