"""Expands arguments for several sources, such as quoted patterns and folders of videos, to one for each camera.

'clips/*.mkv'  ->  clips/a.mkv, clips/b.mkv          a shell fills in a pattern without quotes itself
clips          ->  clips/a.mkv, clips/b.mkv          a folder with pictures alone stays one camera
0              ->  /dev/video0
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.system.paths import ASSET_PREFIX, resolve
from camgraph.stages.video import examiner
from camgraph.stages.video.addresses import file_of, is_device, is_live
from camgraph.stages.video.inspection import MEMORY_MB, what_is_wrong
from camgraph.stages.video.pictures import VIDEO_SUFFIXES, is_picture, natural_key

MOST = 64
"""Videos of one folder or pattern: each has a process of its own."""
_SHOWN = 5
_MAGIC = re.compile(r"[*?]|\[.+\]")
_DEVICES = Path("/dev")


@dataclass(frozen=True, slots=True)
class Several:
    """A source for each camera, and remarks for the user on how they were found."""

    sources: tuple[str, ...]
    remarks: tuple[str, ...] = ()


def one_each(sources: Sequence[str], folder: Path, devices: Path = _DEVICES) -> Several:
    """Fill in patterns and folders of videos; relative paths start at `folder`. Anything else stays as it is.

    Raises UserError for a camera number without a camera, and if a folder holds neither videos nor pictures.
    """
    found: list[str] = []
    remarks: list[str] = []
    for source in sources:
        several = _of_one(source, folder, devices)
        found += several.sources
        remarks += several.remarks
    return Several(tuple(found), tuple(remarks))


def _of_one(source: str, folder: Path, devices: Path) -> Several:
    if is_device(source):
        absent = "" if Path(source).exists() else f"{source}: no such camera now; it is waited for, until Ctrl-C"
        return Several((source,), (absent,) if absent else ())
    if not source.strip() or is_live(source) or source.startswith(ASSET_PREFIX):
        return Several((source,))
    path = _path(source, folder)
    if path is None:
        return Several((source,))
    there = os.path.lexists(path)
    if source.isascii() and source.isdigit() and not there:
        return Several((_device(source, devices),))
    matches = [] if there or not _MAGIC.search(source) else _matching(path)
    if matches:
        _not_too_many(source, matches)
        return Several(tuple(matches))
    return _of_folder(source, path) if _is_folder(path) else Several((source,))


def _path(source: str, folder: Path) -> Path | None:
    """None if it is no path at all; the check of each source reports the mistake."""
    try:
        return resolve(file_of(source), folder)
    except (UserError, OSError, ValueError, RuntimeError):
        return None


def _device(number: str, devices: Path) -> str:
    name = f"video{int(number)}"
    if (devices / name).exists():
        return f"/dev/{name}"
    there = sorted((entry.name for entry in devices.glob("video[0-9]*")), key=natural_key)
    which = f"there are {', '.join(f'{devices}/{one}' for one in there)}" if there else "this machine has none"
    raise UserError(
        f"{number}: the camera /dev/{name} is meant, and there is no such device ({which}): plug it in, let it into "
        f"the container (docker: --device /dev/{name}), or name a video or an address",
        error_id="camera-address",
    )


def _matching(pattern: Path) -> list[str]:
    return sorted(glob.glob(str(pattern), recursive=True), key=natural_key)  # noqa: PTH207 - of an absolute pattern, too


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False


def _of_folder(source: str, path: Path) -> Several:
    """Each video of the folder; the folder itself if it holds none, but pictures."""
    try:
        entries = sorted((e for e in path.iterdir() if not e.name.startswith(".")), key=lambda e: natural_key(e.name))
    except OSError:
        return Several((source,))
    videos = [entry for entry in entries if entry.is_file() and entry.suffix.lower() in VIDEO_SUFFIXES]
    pictures = [entry for entry in entries if entry.is_file() and is_picture(entry)]
    if not videos:
        if pictures:
            return Several((source,))
        raise UserError(_nothing_in(path, entries), error_id="option-value")
    _not_too_many(source, videos)
    broken = {video: why for video in videos if (why := _why_unreadable(video))}
    watched = [video for video in videos if video not in broken]
    if not watched:
        raise UserError("\n".join(broken.values()), error_id="option-value")
    rest = [entry for entry in entries if entry not in watched]
    remark = f"{source}: {len(watched)} of its files are watched, a camera each; left out: {', '.join(_in_words(rest))}"
    return Several(tuple(map(str, watched)), (*([remark] if rest else []), *broken.values()))


def _why_unreadable(video: Path) -> str:
    try:
        problem = what_is_wrong(str(video), video.parent)
        if problem:
            return problem
        found = examiner.examine(video, playlist=False, memory_mb=MEMORY_MB)
    except UserError as error:
        return str(error)
    return found.refused or found.unreadable


def _in_words(rest: Sequence[Path]) -> Iterator[str]:
    """Names of the first files that are left out, folders with a slash."""
    for entry in rest[:_SHOWN]:
        yield entry.name + ("/" if entry.is_dir() else "")
    if len(rest) > _SHOWN:
        yield f"and {len(rest) - _SHOWN} more"


def _nothing_in(path: Path, entries: Sequence[Path]) -> str:
    folders = [entry for entry in entries if entry.is_dir()]
    inside = f"; its folders ({', '.join(_in_words(folders))}) are not looked into: name one of them" if folders else ""
    there = "is empty" if not entries else "holds neither videos nor pictures"
    return f"{path}: this folder {there}{inside}"


def _not_too_many(source: str, found: Sequence[object]) -> None:
    if len(found) > MOST:
        raise UserError(
            f"{source}: {len(found)} files, and each would be a camera with a process of its own: name at most {MOST} "
            "at once, such as those that fit 'a*.mp4', and watch them in several runs",
            error_id="option-value",
        )
