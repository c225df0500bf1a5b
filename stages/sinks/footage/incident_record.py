"""The record of one incident beside its picture and clip: its events, and what became of the files.

    {"incident": ..., "camera": ..., "first": {event}, "last": {event}, "snapshot": {...}, "clip": {...}, "best": {...}}

A file is `{"state": "pending"}`, `{"state": "ready", "bytes": ..., "sha256": ...}` or
`{"state": "missing", "why": ...}`. The record is written whole, before the event counts as delivered: a process that
takes a killed one's place finds there what is left to do.
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
"""Those that have a file of their own; the best picture takes the place of the first."""
STATES: tuple[Kind, ...] = (*KINDS, "best")
State = Literal["pending", "ready", "missing"]
KEEP = ".keep"
"""The end of the name of an empty file beside a record that is to be kept."""
_BLOCK = 1 << 20
_LONGEST_NAME = 255
_MOST_BYTES = 16 << 20
"""Of a record: events may be of a megabyte."""
_NO_BEST = {"state": "missing"}
"""Of records that were written before there were best pictures."""


_VERSION = 1
"""Of the files; a key more is no other version."""


@dataclass(slots=True)
class FileState:
    """What became of a picture or clip."""

    state: State = "pending"
    why: str = ""
    bytes: int = 0
    sha256: str = ""
    seconds: float = 0.0
    width: int = 0
    height: int = 0
    crops: list[str] = field(default_factory=list)
    """The names of the pictures of its people, beside it."""
    grows_in: str = ""
    """Of a clip that is pending: the clip that it is part of, `day/name`, of the same camera; "" until it is known."""

    def plain(self) -> dict[str, Any]:
        """As it stands in a record or an event: without the values that are not known."""
        every = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in every.items() if value or name == "state"}


@dataclass(slots=True)
class IncidentRecord:
    """One incident. `path`: of the record itself; the other files lie beside it."""

    path: Path
    first: dict[str, Any]
    """Its first event, as sinks get it."""
    last: dict[str, Any] = field(default_factory=dict)
    """Its end, or its only event."""
    files: dict[Kind, FileState] = field(default_factory=lambda: {kind: FileState() for kind in STATES})
    begun_s: float = 0.0
    """When it was first written, in seconds since 1970; 0 if that is not known, as of older ones."""

    @property
    def data(self) -> Mapping[str, Any]:
        """The `data` of its first event."""
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
        """Whether something is still to be done for it."""
        return any(file.state == "pending" for file in self.files.values())

    def file(self, kind: Kind) -> Path:
        """The path of its picture or clip."""
        return self.path.with_suffix(".mp4" if kind == "clip" else ".jpg")

    @property
    def keep(self) -> bool:
        """Whether somebody has asked that it is never removed by itself.

        A file of its own says so, for the record is written anew by the process that makes the pictures.
        """
        return self._mark.exists()

    def mark_keep(self, keep: bool) -> None:
        """Let it never be removed by itself, or no longer. Raises OSError."""
        if keep:
            self._mark.touch()
        else:
            self._mark.unlink(missing_ok=True)

    @property
    def _mark(self) -> Path:
        return self.path.with_suffix(KEEP)

    def shared_clip(self) -> Path:
        """The path of the clip that its own is a part of. Raises ValueError if that is no clip of its camera."""
        camera = self.path.parent.parent
        clip = camera / (self.files["clip"].grows_in or self.file("clip").relative_to(camera))
        if ".." in clip.parts or clip.parent.parent != camera or clip.suffix != ".mp4":
            raise ValueError("no clip of this camera")
        return clip

    def crop(self, track_id: int) -> Path:
        """The path of the picture of one of its people."""
        return self.path.with_name(f"{self.path.stem}_person{track_id}.jpg")

    @property
    def paths(self) -> Iterator[Path]:
        """All its files that may be there, the record last."""
        yield from (self.file(kind) for kind in KINDS)
        yield part_of(self.file("clip"))  # a killed process may have left it
        names = {name for file in self.files.values() for name in file.crops}
        yield from (self.path.with_name(name) for name in sorted(names))
        yield self._mark
        yield self.path

    def write(self, *, durable: bool = False) -> None:
        """Raises OSError. `durable`: it outlives a power cut."""
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
    """The record in a file, None if it is none. Anybody may have written it: no name in it leads out of its folder.

    Older ones name no version. Of newer ones, the parts are read that are known here.
    """
    with suppress(OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        plain = json.loads(_bytes_of(path))
        files = {kind: FileState(**plain.get(kind, _NO_BEST)) for kind in STATES}
        record = IncidentRecord(path, plain["first"], plain["last"], files, float(plain.get("begun_s", 0.0)))
        if _is_name(record.incident) and record.camera and all(_is_sound(record, file) for file in files.values()):
            return record
    return None


def _bytes_of(path: Path) -> bytes:
    """Of a file of a sensible size. A pipe in its place would be waited for without end. Raises OSError, ValueError."""
    with open(open_regular(path, os.O_RDONLY), "rb") as file:  # noqa: PTH123 - it is open already
        found = file.read(_MOST_BYTES + 1)
    if len(found) > _MOST_BYTES:
        raise ValueError("no record is so large")
    return found


def _is_name(text: str) -> bool:
    """Whether a file can be called so."""
    return text not in ("", ".", "..") and not {"/", "\0"} & set(text) and len(text.encode()) <= _LONGEST_NAME


def _is_sound(record: IncidentRecord, file: FileState) -> bool:
    """Whether its values are of the right kind. Raises TypeError likewise."""
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

    Of one camera, not from before a day (in UTC), or of incidents that may begin so: their names tell, so that only
    these are read.
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
    """As `Path.glob`, without hidden files; nothing in a folder that is gone, or that this user may not read.

    Such as `lost+found`, where the folder of footage is a disk of its own.
    """
    try:
        return [path for path in folder.iterdir() if fnmatchcase(path.name, pattern) and not path.name.startswith(".")]
    except OSError:
        return []


def sha256_of(path: Path) -> str:
    """Of a file. Raises OSError."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
