"""The record of one incident, beside the picture and the clip: the events, and the state of each file.

    {"incident": ..., "camera": ..., "first": {event}, "last": {event}, "snapshot": {...}, "clip": {...}, "best": {...}}

The state of a file is `{"state": "pending"}`, `{"state": "ready", "bytes": ..., "sha256": ...}` or
`{"state": "missing", "why": ...}`. The whole record is written before the event counts as delivered, so the successor
of a killed process finds in the record what is left to do.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, get_args

from camgraph.pipeline.system.disk import open_regular, write_with_folder
from camgraph.pipeline.system.names import ascii_form, is_camera_name
from camgraph.stages.rules.footage_names import INCIDENT_DIGITS
from camgraph.stages.sinks.writing.output_names import part_of

Kind = Literal["snapshot", "clip", "best"]
KINDS: tuple[Kind, ...] = ("snapshot", "clip")
"""The kinds with a file of their own. The best picture replaces the file of the first picture."""
STATES: tuple[Kind, ...] = (*KINDS, "best")
State = Literal["pending", "ready", "missing"]
KEEP = ".keep"
"""Suffix of the empty file that says that a record is never removed automatically."""
_BLOCK = 1 << 20
_LONGEST_NAME = 255
_MOST_BYTES = 16 << 20
"""The largest record: an event in a record may have some megabytes."""
_NO_BEST = {"state": "missing"}
"""For records that an earlier version, without best pictures, has written."""


_VERSION = 1
"""The version of the format. A new key does not make a new version."""


@dataclass(slots=True)
class FileState:
    """The state of a picture or a clip."""

    state: State = "pending"
    why: str = ""
    bytes: int = 0
    sha256: str = ""
    seconds: float = 0.0
    width: int = 0
    height: int = 0
    crops: list[str] = field(default_factory=list)
    """For a picture: the file names of the pictures that show one person each, in the same folder."""
    grows_in: str = ""
    """For a pending clip: the shared clip of the same camera that contains this one, as `day/name`; "" until known."""

    def plain(self) -> dict[str, Any]:
        """The state as records and events have it: unknown values are left out."""
        every = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in every.items() if value or name == "state"}


@dataclass(slots=True)
class IncidentRecord:
    """One incident. `path`: of the record's own file; the other files of the incident are in the same folder."""

    path: Path
    first: dict[str, Any]
    """The first event of the incident, as sinks get it."""
    last: dict[str, Any] = field(default_factory=dict)
    """The event that ended the incident, or its only event."""
    files: dict[Kind, FileState] = field(default_factory=lambda: {kind: FileState() for kind in STATES})
    begun_s: float = 0.0
    """When the record was first written, in seconds since 1970; 0 in records of an earlier version."""

    @property
    def data(self) -> Mapping[str, Any]:
        """The `data` of the first event."""
        data: Mapping[str, Any] = self.first["data"]
        return data

    @property
    def incident(self) -> str:
        return str(self.data["incident"])

    @property
    def camera(self) -> str:
        return str(self.data["camera"])

    @property
    def is_pending(self) -> bool:
        """Whether a picture or clip of the incident is still to be made."""
        return any(file.state == "pending" for file in self.files.values())

    def file(self, kind: Kind) -> Path:
        """The path of the picture or clip of this kind."""
        return self.path.with_suffix(".mp4" if kind == "clip" else ".jpg")

    @property
    def keep(self) -> bool:
        """Whether a person has asked that the incident is never removed automatically.

        A separate file says so, because the process that makes the pictures writes the record anew.
        """
        return self._mark.exists()

    def mark_keep(self, keep: bool) -> None:
        """Forbid that the incident is removed automatically, or allow it again. Raises OSError."""
        if keep:
            self._mark.touch()
        else:
            self._mark.unlink(missing_ok=True)

    @property
    def _mark(self) -> Path:
        return self.path.with_suffix(KEEP)

    def shared_clip(self) -> Path:
        """The path of the clip that contains this incident's clip. Raises ValueError if the camera has no such clip."""
        camera = self.path.parent.parent
        clip = camera / (self.files["clip"].grows_in or self.file("clip").relative_to(camera))
        if ".." in clip.parts or clip.parent.parent != camera or clip.suffix != ".mp4":
            raise ValueError("no clip of this camera")
        return clip

    def crop(self, track_id: int) -> Path:
        """The path of the picture of one person of the incident."""
        return self.path.with_name(f"{self.path.stem}_person{track_id}.jpg")

    @property
    def paths(self) -> Iterator[Path]:
        """All files that the incident may have, the record last."""
        yield from (self.file(kind) for kind in KINDS)
        yield part_of(self.file("clip"))  # a killed process may have left this file
        names = {name for file in self.files.values() for name in file.crops}
        yield from (self.path.with_name(name) for name in sorted(names))
        yield self._mark
        yield self.path

    def write(self, *, durable: bool = False) -> None:
        """Write the record. With `durable`, the written record outlives a power cut. Raises OSError."""
        plain: dict[str, Any] = {
            "version": _VERSION,
            "incident": self.incident,
            "camera": self.camera,
            "begun_s": self.begun_s,
            "first": self.first,
            "last": self.last,
        }
        plain |= {kind: file.plain() for kind, file in self.files.items()}
        write_with_folder(self.path, json.dumps(plain, ensure_ascii=False, indent=1).encode(), durable=durable)


def read_record(path: Path) -> IncidentRecord | None:
    """The record in a file; None if the file holds no sound record.

    Anybody may have written the file, so a record whose names lead out of its folder is not sound. Records of earlier
    versions name no version. Of a record of a later version, this version reads the parts that it knows.
    """
    with suppress(OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        plain = json.loads(_bytes_of(path))
        files = {kind: FileState(**plain.get(kind, _NO_BEST)) for kind in STATES}
        record = IncidentRecord(path, plain["first"], plain["last"], files, float(plain.get("begun_s", 0.0)))
        if _is_name(record.incident) and record.camera and all(_is_sound(record, file) for file in files.values()):
            return record
    return None


def _bytes_of(path: Path) -> bytes:
    """The bytes of a regular file of a sensible size: a read of a pipe might never end. Raises OSError, ValueError."""
    with open(open_regular(path, os.O_RDONLY), "rb") as file:  # noqa: PTH123 - it is open already
        found = file.read(_MOST_BYTES + 1)
    if len(found) > _MOST_BYTES:
        raise ValueError("no record is so large")
    return found


def _is_name(text: str) -> bool:
    """Whether a file can have this name."""
    return text not in ("", ".", "..") and not {"/", "\0"} & set(text) and len(text.encode()) <= _LONGEST_NAME


def _is_sound(record: IncidentRecord, file: FileState) -> bool:
    """Whether the values of the file's state are of the right types. Raises TypeError if they are not."""
    of_people = re.compile(rf"{re.escape(record.path.stem)}_person\d+\.jpg")
    texts, numbers = (file.why, file.grows_in), (file.bytes, file.seconds, file.width, file.height)
    return (
        file.state in get_args(State)
        and all(isinstance(text, str) for text in texts)
        and all(math.isfinite(number) for number in numbers)
        and all(of_people.fullmatch(name) for name in file.crops)
    )


def records_in(
    folder: Path,
    *,
    camera: str | None = None,
    since: date | None = None,
    incident: str = "",
    newest_first: bool = False,
) -> Iterator[IncidentRecord]:
    """The records of a folder of footage, the oldest first.

    `camera`, `since` (a day in UTC) and `incident` (the first digits of an id) choose records by their file names, so
    the other records are not read.
    """
    first_day = since.isoformat() if since else ""
    begin = incident[:INCIDENT_DIGITS] if re.fullmatch("[0-9a-f]*", incident) else "?"
    if camera and not is_camera_name(camera):
        return
    cameras = [folder / ascii_form(camera)] if camera else _inside(folder, "*")
    days = [day for one in cameras for day in _inside(one, "????-??-??") if day.name >= first_day]
    paths = (path for day in days for path in _inside(day, f"*_{begin}*.json"))
    for path in sorted(paths, key=lambda path: (path.parent.name, path.name), reverse=newest_first):
        record = read_record(path)
        if record is not None:
            yield record


def _inside(folder: Path, pattern: str) -> list[Path]:
    """As `Path.glob`, without hidden files. Empty for a folder that is gone, or that this user may not read.

    `lost+found` is such a folder if the footage has a disk of its own.
    """
    try:
        return [path for path in folder.iterdir() if fnmatchcase(path.name, pattern) and not path.name.startswith(".")]
    except OSError:
        return []


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits. Raises OSError."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
