"""Files that are lists of other files: HLS playlists and ffconcat scripts. Finds them, and the files they may name.

FFmpeg opens every file that they name, and a playlist that names itself without an end.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Literal

from camgraph.pipeline.system.paths import instead_of_file
from camgraph.stages.video import playlists

ScriptKind = Literal["hls", "ffconcat"]
NAMES: dict[ScriptKind, str] = {"hls": "a playlist (HLS)", "ffconcat": "a concat script"}

_HLS, _FFCONCAT = b"#EXTM3U", b"ffconcat version"
_LOOK_BYTES = 1 << 20
"""FFmpeg skips a tag (ID3) before it looks for the beginning of a playlist, within this much of a file."""
_CONCAT_FILE = re.compile(r"\s*file\s+(.*)")
_ODD = re.compile(r"""[?#\\"'\x00-\x1f\x7f]""")
"""FFmpeg reads names as addresses, and those in concat scripts as words of a shell."""


def kind_of(path: Path) -> ScriptKind | None:
    """The kind of script that a file is, by its first bytes. Raises OSError."""
    with path.open("rb") as file:
        begins = file.read(len(_FFCONCAT))
    return "hls" if begins.startswith(_HLS) else "ffconcat" if begins.startswith(_FFCONCAT) else None


def why_not_followed(path: Path, kind: ScriptKind) -> str:
    """Why this script must not be followed although its user allows scripts; "" if it may be. Raises OSError.

    It may name files of its own folder and of folders below. A playlist may name playlists, these only segments.
    """
    return _why_not(path, kind, path.resolve().parent, may_name_playlists=True)


def _why_not(path: Path, kind: ScriptKind, root: Path, *, may_name_playlists: bool) -> str:
    with path.open("rb") as file:
        text = file.read(playlists.MOST_BYTES + 1)
    if len(text) > playlists.MOST_BYTES:
        return f"{path.name} is longer than {playlists.MOST_BYTES >> 20} MB"
    try:
        named_here = list(_references(os.fsdecode(text), kind))
    except ValueError as error:
        return f"{path.name} names {error}"
    for name, is_playlist in named_here:
        problem = _why_not_here(name, path.parent, root)
        if problem:
            return f"{path.name} names {problem}"
        named = path.parent / name
        if is_playlist and may_name_playlists and not instead_of_file(named) and kind_of(named) == "hls":
            problem = _why_not(named, "hls", root, may_name_playlists=False)
        elif _holds_script(named):
            problem = f"{path.name} names {name}, which is a playlist itself"
        if problem:
            return problem
    return ""


def _references(text: str, kind: ScriptKind) -> Iterator[tuple[str, bool]]:
    """(name, whether it should be a playlist) of each file that a script names."""
    if kind == "hls":
        for reference in playlists.references(text):
            yield reference.uri, reference.is_playlist
        return
    for line in playlists.LINE_END.split(text):
        named = _CONCAT_FILE.fullmatch(line)
        if named:
            yield _unquoted(named[1].strip()), False


def _unquoted(word: str) -> str:
    return word[1:-1] if len(word) > 1 and word[0] == word[-1] == "'" else word


def _why_not_here(name: str, folder: Path, root: Path) -> str:
    """Why this name is not that of a file below `root`; "" if it is."""
    plain = PurePosixPath(name)
    if ":" in name or plain.is_absolute() or ".." in plain.parts:
        return f"{name[:200]!r}: expected a file in its own folder, or in one below"
    odd = _ODD.search(name)
    if odd:
        return f"{name[:200]!r}: expected a name without {odd[0]!r}, which FFmpeg may read otherwise; rename the file"
    try:
        inside = (folder / plain).resolve().is_relative_to(root)
        if not (folder / plain).exists():
            return f"{name[:200]!r}, and there is no such file"
    except (OSError, ValueError, RuntimeError):
        inside = False
    if not inside:
        return f"{name[:200]!r}, which leads out of its folder"
    other = instead_of_file(folder / plain)
    return f"{name[:200]!r}, which is {other}" if other else ""


def _holds_script(path: Path) -> bool:
    with path.open("rb") as file:
        head = file.read(_LOOK_BYTES)
    return _HLS in head or _FFCONCAT in head
