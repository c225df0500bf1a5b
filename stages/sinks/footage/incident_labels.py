"""What people say of incidents: a line of JSON each, in `labels.jsonl` beside the incidents.

    {"version": 1, "incident": "52ab...", "label": "false_alarm", "note": "a coat", "by": "night",
     "time": "2026-11-22T21:14:05Z"}                                           (one line in the file)

Lines are only ever added. `acknowledged` says that somebody has seen it, `true_alarm` or `false_alarm` whether it was
real: these are two kinds, and the last line of a kind holds. The file outlives the incidents, so that models and rules
can be judged by it. Lines without a version are older ones; those of newer versions are passed over.
"""

from __future__ import annotations

import json
import os
import threading
from collections import defaultdict
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, get_args

from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.system.disk import append_line

NAME = "labels.jsonl"
Label = Literal["acknowledged", "true_alarm", "false_alarm"]
LABELS: tuple[Label, ...] = get_args(Label)
MOST_NOTE = 1000
MOST_OF_INCIDENT = 100
VERSION = 1


class TooManyLabels(UserError):
    """An incident has as many labels as anybody could read."""

    error_id = "too-many-labels"


@dataclass(frozen=True, slots=True)
class IncidentLabel:
    """One label. `by`: the name of who gave it, "" without tokens."""

    incident: str
    label: Label
    note: str
    by: str
    time: str


class GivenLabel(TypedDict):
    """A label of a known incident, as the API gives it."""

    label: Label
    note: str
    by: str
    time: str


class Labels:
    """Those of one folder. May be used from several threads."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        self._lock = threading.Lock()
        self._known: dict[str, list[IncidentLabel]] = defaultdict(list)
        self._read_bytes, self._inode = 0, 0

    def of(self, incident: str) -> list[GivenLabel]:
        """All labels of an incident, the oldest first, without its name. Raises OSError."""
        with self._lock:
            self._read()
            found = list(self._known.get(incident, ()))
        return [{"label": one.label, "note": one.note, "by": one.by, "time": one.time} for one in found]

    def add(self, incident: str, label: Label, note: str, by: str) -> None:
        """It is on the disk when this returns. Raises OSError, and TooManyLabels for one that has enough."""
        one = IncidentLabel(incident, label, note, by, f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}")
        plain = {"version": VERSION, **asdict(one)}
        line = json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode()
        with self._lock:
            self._read()
            if len(self._known.get(incident, ())) >= MOST_OF_INCIDENT:
                raise TooManyLabels(
                    f"this incident has {MOST_OF_INCIDENT} labels already: remove lines of {NAME} on the machine itself"
                )
            descriptor = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
            try:
                append_line(descriptor, line + b"\n")
            finally:
                os.close(descriptor)

    def _read(self) -> None:
        """What was added since, by anybody."""
        try:
            found = self._path.stat()
        except FileNotFoundError:
            self._known.clear()
            self._read_bytes = 0
            return
        if found.st_ino != self._inode or found.st_size < self._read_bytes:
            self._known.clear()
            self._read_bytes, self._inode = 0, found.st_ino
        if found.st_size > self._read_bytes:
            with self._path.open("rb") as file:
                file.seek(self._read_bytes)
                whole, newline, _ = file.read().rpartition(b"\n")
            self._read_bytes += len(whole) + len(newline)
            for line in whole.splitlines():
                self._take(line)

    def _take(self, line: bytes) -> None:
        """A line that is none of ours is passed over."""
        with suppress(ValueError, TypeError, RecursionError):
            plain = json.loads(line)
            if plain.pop("version", VERSION) != VERSION:
                return
            one = IncidentLabel(**plain)
            of_incident = self._known[one.incident]
            if one.label in LABELS and all(isinstance(value, str) for value in asdict(one).values()):
                of_incident.append(one)
                # Those that others have written, too: the last ones hold.
                del of_incident[:-MOST_OF_INCIDENT]
