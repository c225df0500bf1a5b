"""The counters of all cameras of a stage: kept over restarts, and set to zero once a day if that is wanted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from stages.events import digest
from stages.reading.dates import zone_of
from stages.rulebook.rule_file import RuleFile, for_camera
from stages.rulebook.schedule import minutes
from stages.vision.rules.counters import Counter, Of

_KEPT = ("forward", "backward", "inside")


class Counting:
    """Camera -> its counters. `path`: where the counts are kept, None if they need not be."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._counters: dict[str, dict[str, Counter]] = {}
        self._hashes: dict[tuple[str, str], str] = {}
        self._days: dict[tuple[str, str], str] = {}
        """(camera, counter) -> the day that it counts, from reset to reset."""
        self._kept: dict[str, Any] = {}
        """Camera -> its counts as they are written down."""

    def open(self) -> None:
        """Go on from what an earlier process of this run has kept."""
        if self._path is not None and self._path.exists():
            self._kept = json.loads(self._path.read_text())

    def of(self, camera: str, file: RuleFile) -> Mapping[str, Counter]:
        """The counters that these rules give a camera; those that are as before go on."""
        before = self._counters.get(camera, {})
        found: dict[str, Counter] = {}
        for name, definition in file.counters.items():
            kind: Of = "line" if definition.line is not None else "zone"
            shape = definition.line or definition.zone or ""
            drawn = for_camera((file.lines if kind == "line" else file.zones).get(shape, {}), camera)
            if drawn is None:
                continue
            key, own = (camera, name), digest(kind, repr(drawn), definition.model_dump(mode="json"), file.time_zone)
            if name in before and self._hashes.get(key) == own:
                found[name] = before[name]
                continue
            self._hashes[key] = own
            self._days.pop(key, None)
            found[name] = self._restored(key, own, Counter(kind, shape))
        self._counters[camera] = found
        return found

    def _restored(self, key: tuple[str, str], own: str, counter: Counter) -> Counter:
        kept = self._kept.get(key[0], {}).get(key[1], {})
        if kept.get("hash") == own:
            for name in _KEPT:
                setattr(counter, name, int(kept[name]))
            if kept["day"]:
                self._days[key] = kept["day"]
        return counter

    def begin_frame(self, camera: str, file: RuleFile, wall_ns: int | None) -> None:
        """Set those to zero whose day is over. `wall_ns`: the time of day, None if there is none."""
        for name, counter in self._counters.get(camera, {}).items() if wall_ns is not None else ():
            reset = file.counters[name].reset
            if reset is not None and file.time_zone is not None and wall_ns is not None:
                shown = datetime.fromtimestamp(wall_ns // 10**9, UTC).astimezone(zone_of(file.time_zone))
                day = (shown.replace(tzinfo=None) - timedelta(minutes=minutes(reset) % (24 * 60))).date().isoformat()
                if self._days.setdefault((camera, name), day) < day:  # a clock that is put back begins no day
                    self._days[camera, name] = day
                    counter.reset()

    def keep(self, camera: str) -> None:
        """Write the counts of a camera down if they have changed."""
        counters = self._counters.get(camera)
        if self._path is None or not counters:
            return
        now = {
            name: {
                "hash": self._hashes[camera, name],
                "day": self._days.get((camera, name), ""),
                **{kept: getattr(counter, kept) for kept in _KEPT},
            }
            for name, counter in counters.items()
        }
        if self._kept.get(camera) != now:
            self._kept[camera] = now
            self._write()

    def forget(self, camera: str) -> None:
        """The camera has ended: one of the same name that comes later begins at zero."""
        for name in self._counters.pop(camera, {}):
            self._hashes.pop((camera, name), None)
            self._days.pop((camera, name), None)
        if self._kept.pop(camera, None) is not None:
            self._write()

    def _write(self) -> None:
        if self._path is not None:
            beside = self._path.with_suffix(".new")
            beside.write_text(json.dumps(self._kept))
            beside.replace(self._path)
