"""Checks that every committed event was delivered: compares the outbox's own file with the sink's."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Delivered:
    """`lost`: ids that were committed and are not in the file. `repeated`: lines beyond the first of an id, all alike;
    `contradicting`: ids with two different texts; `broken`: lines that are no event."""

    committed: int = 0
    lost: tuple[str, ...] = ()
    repeated: int = 0
    contradicting: tuple[str, ...] = ()
    broken: int = 0

    @property
    def good(self) -> bool:
        """At least once, and one id is one event. Nothing is proven if nothing was committed."""
        return self.committed > 0 and not (self.lost or self.contradicting or self.broken)

    def __str__(self) -> str:
        return (
            f"{self.committed} committed, {len(self.lost)} lost, {self.repeated} delivered more than once, "
            f"{len(self.contradicting)} ids with two contents, {self.broken} lines that are no event"
        )


@dataclass(slots=True)
class Ledger:
    """The ids that were ever seen committed. To be read now and then: the outbox keeps only the last thousands.

    The outbox puts the life of a stage before an id, and `before` if an earlier run has left the event.
    """

    outbox: Path
    ids: set[str] = field(default_factory=set)
    _row: int = 0
    _file: int = 0

    def read(self) -> None:
        """Read the newly committed events; a file that is locked or away is read the next time."""
        if not self.outbox.exists():
            return
        if self._file != (file := self.outbox.stat().st_ino):  # a run that has delivered all removes it
            self._file, self._row = file, 0
        with suppress(sqlite3.Error), closing(sqlite3.connect(f"file:{self.outbox}?mode=ro", uri=True)) as db:
            for row, text in db.execute("SELECT row, id FROM events WHERE row > ? ORDER BY row", (self._row,)):
                self._row = row
                self.ids.add(text.rpartition(" ")[2])

    def against(self, events: Path) -> Delivered:
        """Compare it with a sink's file."""
        lines = events.read_bytes().splitlines() if events.exists() else []
        return compare(self.ids, lines)


def compare(committed: Iterable[str], lines: Iterable[bytes]) -> Delivered:
    """The committed ids against the lines of a file of events."""
    texts, broken, count = _texts(lines)
    ids = set(committed)
    return Delivered(
        committed=len(ids),
        lost=tuple(sorted(ids - texts.keys())),
        repeated=count - len(texts),
        contradicting=tuple(sorted(key for key, found in texts.items() if len(found) > 1)),
        broken=broken,
    )


def by_type(lines: Iterable[bytes]) -> Mapping[str, int]:
    """How many different events of each type a file has."""
    texts, _, _ = _texts(lines)
    return Counter(json.loads(next(iter(found)))["type"] for found in texts.values())


def _texts(lines: Iterable[bytes]) -> tuple[dict[str, set[bytes]], int, int]:
    """id -> the different texts with it; how many lines are no event; how many are."""
    texts: dict[str, set[bytes]] = {}
    broken = count = 0
    for line in lines:
        try:
            key = str(json.loads(line)["id"])
        except (ValueError, KeyError, TypeError):
            broken += 1
            continue
        texts.setdefault(key, set()).add(line)
        count += 1
    return texts, broken, count
