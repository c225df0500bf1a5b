"""Events that a sink has given up, one JSON object a line, so that a person can look at them and requeue them.

    <folder>/dead_letters/<sink>.jsonl       the newest; at 64 MB, the older half of it replaces
                          <sink>.jsonl.1     the older ones

    {"sink": "crm", "id": "8c1f...", "why": "400: no such door", "at": "2026-03-01T12:30:05.250Z", "camera": "front",
     "attempts": 3, "incident": "52ab...", "phase": "start", "epoch": 0, "seq": 310, "time_ns": 12400000000,
     "event": {...}}

Such an event has left the outbox, so this file is all that is left of it: a line is on the disk before `add` returns. A
sink and the commands of a person (`camgraph outbox`) may change the file at the same time: each of them holds its lock
meanwhile, and a process that waited for the lock of a file that was replaced opens the new one.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import time_ns
from typing import Any

from camgraph.pipeline.errors import EnvironmentProblem
from camgraph.pipeline.messages import Event, Stamp
from camgraph.pipeline.system.disk import append_line, is_at, lock, open_regular, sync_data, sync_folder
from camgraph.pipeline.system.redaction import redact_urls

FOLDER = "dead_letters"
MOST_BYTES = 64 << 20
_SUFFIX = ".jsonl"
_OLDER = ".1"
_PIECE = 1 << 20
_BODY = b', "event": '
_PART = ".part"
_TYPES = [str, int, int, int, str, str, str]
"""Of camera, epoch, seq, time, id, incident, phase."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """An event that `sink` gave up at `at_ns` (UTC since 1970) after `attempts`, and the reason.

    The stamp of `event` has its camera, place and stream time alone.
    """

    sink: str
    why: str
    at_ns: int
    attempts: int
    event: Event

    @property
    def id(self) -> str:
        """As it stands in the event's body."""
        return self.event.own_id

    @property
    def key(self) -> str:
        """Tells this letter from all others, also from one about the same event."""
        return f"{self.sink} {self.id} {self.at_ns // 1_000_000} {self.attempts}"

    def line(self) -> bytes:
        """As it stands in the file. The event's body is copied as it is, byte for byte."""
        stamp = self.event.stamp
        head = {
            "sink": self.sink,
            "id": self.id,
            "why": self.why,
            "at": _utc(self.at_ns),
            "camera": stamp.camera,
            "attempts": self.attempts,
            "incident": self.event.incident,
            "phase": self.event.phase,
            "epoch": stamp.epoch,
            "seq": stamp.seq,
            "time_ns": stamp.time_ns,
        }
        return json.dumps(head).encode()[:-1] + _BODY + self.event.body + b"}\n"


class DeadLetters:
    """The dead letters of one sink. `folder`: that of the run's outbox. `wall_ns`: the clock.

    `discarded(camera, n)` is called for letters that give way to newer ones.
    """

    def __init__(
        self,
        folder: Path,
        sink: str,
        *,
        wall_ns: Callable[[], int] = time_ns,
        discarded: Callable[[str, int], object] = lambda camera, n: None,
    ) -> None:
        self.sink = sink
        self._discarded = discarded
        self.path = folder / FOLDER / f"{sink}{_SUFFIX}"
        self._wall_ns = wall_ns

    @property
    def paths(self) -> tuple[Path, Path]:
        """The two files, the one with the older letters first."""
        return self.path.with_name(self.path.name + _OLDER), self.path

    def add(self, event: Event, why: str, *, attempts: int = 1) -> None:
        """Keep an event that can never be delivered: it is on the disk when this returns.

        `why` is for people, without secrets; addresses in it are redacted. After that the sink may count the event as
        delivered. Raises EnvironmentProblem if the disk does not take it now: then it is not kept.
        """
        letter = DeadLetter(self.sink, redact_urls(why), self._wall_ns(), attempts, event)
        try:
            self._append(letter.line())
        except OSError as error:
            raise EnvironmentProblem(
                f"the dead letter cannot be written to {self.path}: {error.strerror or error}: free some disk space, "
                "and check that this user may write there",
                error_id="cannot-write",
            ) from None

    def _append(self, line: bytes) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._locked() as descriptor:
            size = os.fstat(descriptor).st_size
            full = size + len(line) > MOST_BYTES and size > 0
            if not full:
                append_line(descriptor, line)
                if not size:
                    sync_folder(self.path.parent)
                return
            self._split(descriptor, size)
        self._append(line)

    def _split(self, descriptor: int, size: int) -> None:
        """Move the older half out of the way. A process that dies in between leaves some letters in both files."""
        cut = _next_line(descriptor, size // 2)
        older, newer = self.paths
        oldest = Counter(letter.event.stamp.camera for letter in map(read_letter, _lines(older)) if letter)
        _copy(descriptor, (0, cut), older)
        for camera, n in oldest.items():
            self._discarded(camera, n)
        _copy(descriptor, (cut, size), newer)

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """The newer file, made if there is none, with its lock."""
        while True:
            descriptor = open_regular(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                lock(descriptor)
                if is_at(descriptor, self.path):
                    yield descriptor
                    return
            finally:
                os.close(descriptor)

    def __iter__(self) -> Iterator[DeadLetter]:
        """The letters, the oldest first. Lines that are none are left out. Raises OSError."""
        for path in self.paths:
            for line in _lines(path):
                letter = read_letter(line)
                if letter:
                    yield letter

    def remove(self, chosen: Callable[[DeadLetter], bool]) -> int:
        """Take the chosen letters out; returns how many they were. All else in the files stays. Raises OSError."""
        if not self.path.parent.is_dir():
            return 0
        removed = 0
        with self._locked():
            for path in self.paths:
                removed += _remove(path, chosen)
            with suppress(OSError):
                self.path.parent.rmdir()  # if it is empty
        return removed


class LetterCount:
    """Counts the letters of a sink again and again at the cost of what has been added. Not exact for torn lines."""

    def __init__(self, letters: DeadLetters) -> None:
        self._counts = [_LineCount(path) for path in letters.paths]

    def now(self) -> int:
        """How many there are; 0 if they cannot be read."""
        return sum(count.now() for count in self._counts)


class _LineCount:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._known = (0, 0)
        """The file's number, and how much of it has been counted."""
        self._lines = 0

    def now(self) -> int:
        try:
            found = self._path.stat()
        except OSError:
            self._known, self._lines = (0, 0), 0
            return 0
        inode, read = self._known
        if found.st_ino != inode or found.st_size < read:
            read, self._lines = 0, 0
        if found.st_size > read:
            read = self._count_from(read)
        self._known = found.st_ino, read
        return self._lines

    def _count_from(self, start: int) -> int:
        with suppress(OSError), _open(self._path) as file:
            file.seek(start)
            while piece := file.read(_PIECE):
                self._lines += piece.count(b"\n")
                start += len(piece)
        return start


def sinks_with_letters(folder: Path) -> list[str]:
    """The sinks of this outbox that have dead letters, by name."""
    with suppress(OSError):
        files = (folder / FOLDER).iterdir()
        names = {path.name.removesuffix(_OLDER) for path in files if path.is_file() and path.stat().st_size}
        return sorted(name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX))
    return []


def read_letter(line: bytes) -> DeadLetter | None:
    """The letter in a line; None if it is none, as a torn line of a power cut."""
    try:
        values = json.loads(line)
        stamp = Stamp(values["camera"], values["epoch"], values["seq"], values["time_ns"], 0, 0)
        event = Event(stamp, values["id"], values["incident"], values["phase"], _body_in(line, values["event"]))
        at = datetime.fromisoformat(values["at"])
        at_ns = round(at.timestamp() * 1000) * 1_000_000
        if list(map(type, (*stamp[:4], event.id, event.incident, event.phase))) != _TYPES:
            return None
        return DeadLetter(values["sink"], str(values["why"]), at_ns, int(values["attempts"]), event)
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


def _body_in(line: bytes, event: Any) -> bytes:
    """The body as the outbox had it. If another program has written the line, the order of its keys may differ."""
    _, _, rest = line.rstrip().partition(_BODY)
    body = rest[:-1]
    with suppress(ValueError, RecursionError):
        if body and json.loads(body) == event:
            return body
    return json.dumps(event, separators=(",", ":")).encode()


# ---- files


def _utc(at_ns: int) -> str:
    at = datetime.fromtimestamp(at_ns // 1_000_000 / 1000, UTC)
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at_ns // 1_000_000 % 1000:03d}Z"


def _next_line(descriptor: int, start: int) -> int:
    """Where the first line after `start` begins."""
    while piece := os.pread(descriptor, _PIECE, start):
        if (at := piece.find(b"\n")) >= 0:
            return start + at + 1
        start += len(piece)
    return start


def _copy(descriptor: int, part: tuple[int, int], target: Path) -> None:
    """Replace the target by this part of a file."""
    at, end = part
    with _replacing(target) as file:
        while at < end and (piece := os.pread(descriptor, min(_PIECE, end - at), at)):
            file.write(piece)
            at += len(piece)


@contextmanager
def _replacing(target: Path) -> Iterator[Any]:
    """A new file that takes the target's place, durably, when the block is left without an exception."""
    part = target.with_name(target.name + _PART)
    part.unlink(missing_ok=True)  # of a process that died: the lock is held while one is written
    try:
        with open(open_regular(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:  # noqa: PTH123
            yield file
            file.flush()
            sync_data(file.fileno())
        part.replace(target)
        sync_folder(target.parent)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise


def _remove(path: Path, chosen: Callable[[DeadLetter], bool]) -> int:
    def stays(line: bytes) -> bool:
        letter = read_letter(line)
        return letter is None or not chosen(letter)

    before = after = 0
    if not path.exists():
        return 0
    with _replacing(path) as file:
        for line in _lines(path):
            before += 1
            if stays(line):
                after += 1
                file.write(line)
    if not after:
        path.unlink()
    return before - after


def _open(path: Path) -> Any:
    return open(open_regular(path, os.O_RDONLY), "rb")  # noqa: PTH123 - it is open already


def _lines(path: Path) -> Iterator[bytes]:
    try:
        file = _open(path)
    except FileNotFoundError:
        return
    with file:
        yield from file
