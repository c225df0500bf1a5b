"""Counters and timings of one process, as plain values for its reports to the supervisor."""

from __future__ import annotations

import math
import numbers
import operator
import threading
import time
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, get_args

from camgraph.pipeline.monitoring.camera_states import StateChange
from camgraph.pipeline.monitoring.histogram import Histogram
from camgraph.pipeline.stage import CameraState
from camgraph.pipeline.system.redaction import redacted_beginning

_KEPT = 256
_KEPT_CHANGES = 64
"""How many changes of one camera may wait to be reported, the newest: its present state is never lost."""
_LONGEST_TEXT = 300
_LONGEST_LOOKED_AT = 20_000
_MOST_FACTS = 32
_STATES = get_args(CameraState)
MOST_FILES = 1000
"""How many written files are remembered, the newest: every heartbeat carries them."""


def counter_of(rows: Iterable[tuple[str, str, int]]) -> Counter[tuple[str, str]]:
    """(name, camera) -> count, from rows of `Counters.snapshot`."""
    return Counter({(name, camera): n for name, camera, n in rows})


def forget_oldest(files: dict[str, None]) -> None:
    """Keep only the newest files."""
    while len(files) > MOST_FILES:
        del files[next(iter(files))]


def reason_line(text: str) -> str:
    """`text` on one line, without secrets, and short enough for people."""
    return " ".join(redacted_beginning(text, _LONGEST_LOOKED_AT).split())[:_LONGEST_TEXT]


Facts = dict[str, str | int | float]
"""What is known about a camera or a stage, by name."""


class Counters:
    """Named counts per camera ("" for no camera). May be used from several threads."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()
        self._files: dict[str, None] = {}
        self._camera_changes: dict[str, deque[StateChange]] = {}
        self._camera_facts: dict[str, Facts] = {}
        self._stage_facts: dict[str, Facts] = {}
        self._troubles: dict[tuple[str, str], str] = {}
        self._of_stages: dict[tuple[str, str], dict[str, dict[str, int]]] = {}
        self._lock = threading.Lock()

    def add(self, name: str, camera: str, n: int = 1) -> None:
        """Add `n`, of any integer type, to a count. Raises TypeError if it is not a whole number."""
        whole = int(operator.index(n))
        with self._lock:
            self._counts[str(name), str(camera)] += whole

    def get(self, name: str, camera: str) -> int:
        """The count so far."""
        return self._counts[name, camera]

    def trouble(self, stage: str, why: str, camera: str) -> None:
        """Record a stage's present trouble, "" when it is over; of one camera, or "" for all."""
        with self._lock:
            self._troubles.pop((stage, camera), None)
            if why:
                self._troubles[stage, camera] = reason_line(why)

    @property
    def troubles(self) -> list[tuple[str, str, str]]:
        """(stage, camera, why) of the present troubles."""
        with self._lock:
            return [(stage, camera, why) for (stage, camera), why in self._troubles.items()]

    def camera_is(self, camera: str, state: CameraState, why: str) -> None:
        """Record that a live camera is in another state. Raises ValueError for an unknown state."""
        if state not in _STATES:
            raise ValueError(f"camera {camera} is {state!r}; expected one of {', '.join(_STATES)}")
        change = StateChange(camera, state, reason_line(why), time.monotonic_ns())
        with self._lock:
            self._camera_changes.setdefault(camera, deque(maxlen=_KEPT_CHANGES)).append(change)

    def camera_changes(self) -> list[StateChange]:
        """Return each change since the last call, those of a camera in order."""
        with self._lock:
            changes = [change for of_one in self._camera_changes.values() for change in of_one]
            self._camera_changes.clear()
        return changes

    def keep_camera_changes(self, changes: Iterable[StateChange]) -> None:
        """Put back changes that could not be reported, before newer ones."""
        with self._lock:
            newer, self._camera_changes = self._camera_changes, {}
            for change in [*changes, *(change for of_one in newer.values() for change in of_one)]:
                self._camera_changes.setdefault(change.camera, deque(maxlen=_KEPT_CHANGES)).append(change)

    def camera_shows(self, camera: str, facts: Mapping[str, Any]) -> None:
        """Record facts about a camera: texts and numbers. Raises TypeError or ValueError for anything else."""
        self._note_facts(self._camera_facts, camera, facts)

    def stage_shows(self, stage: str, facts: Mapping[str, Any]) -> None:
        """As `camera_shows`, about a stage."""
        self._note_facts(self._stage_facts, stage, facts)

    def _note_facts(self, known: dict[str, Facts], of: str, facts: Mapping[str, Any]) -> None:
        plain = {str(name)[:_LONGEST_TEXT]: _plain(value) for name, value in facts.items()}
        with self._lock:
            known[of] = dict(islice({**known.get(of, {}), **plain}.items(), _MOST_FACTS))

    @property
    def camera_facts(self) -> dict[str, Facts]:
        """Camera -> the facts about it, by name."""
        with self._lock:
            return {camera: dict(facts) for camera, facts in self._camera_facts.items()}

    @property
    def stage_facts(self) -> dict[str, Facts]:
        """Stage -> the facts about it, by name."""
        with self._lock:
            return {stage: dict(facts) for stage, facts in self._stage_facts.items()}

    def counters_are(self, stage: str, camera: str, counters: Mapping[str, Mapping[str, int]]) -> None:
        """Record the counters of a stage and camera: counter -> name -> number; none of a camera that is gone."""
        plain = {counter: {name: int(n) for name, n in values.items()} for counter, values in counters.items()}
        with self._lock:
            self._of_stages.pop((stage, camera), None)
            if plain:
                self._of_stages[stage, camera] = plain

    @property
    def of_stages(self) -> dict[str, dict[str, dict[str, int]]]:
        """Camera -> the counters of the stages: counter -> name -> number."""
        found: dict[str, dict[str, dict[str, int]]] = {}
        with self._lock:
            for (_, camera), counters in self._of_stages.items():
                found.setdefault(camera, {}).update(counters)
        return found

    def wrote(self, path: str) -> None:
        """Record a file that was written; the newest are remembered."""
        self._files[path] = None
        forget_oldest(self._files)

    @property
    def files(self) -> list[str]:
        """The files that were written, in the order of their reports."""
        return list(self._files)

    def snapshot(self) -> list[tuple[str, str, int]]:
        """(name, camera, count) of all."""
        with self._lock:
            return [(name, camera, n) for (name, camera), n in self._counts.items()]


def _plain(value: Any) -> str | int | float:
    """Convert to a value that msgpack and JSON can hold."""
    if isinstance(value, str):
        return reason_line(value)
    if isinstance(value, numbers.Integral):
        return int(value)
    number = float(value)
    return number if math.isfinite(number) else str(number)


class StageTimes:
    """The durations of the calls of one stage, their numbers of items, and the share of time in which it works. Safe to
    use from several threads."""

    def __init__(self) -> None:
        self._calls: deque[tuple[int, int]] = deque(maxlen=_KEPT)
        self._durations = Histogram()
        self._lock = threading.Lock()
        self._snapshot: dict[str, Any] | None = None
        self.items = 0
        self.busy_ns = 0

    def add(self, duration_ns: int, items: int) -> None:
        """One call of `process` with `items` items took `duration_ns`."""
        with self._lock:
            self._calls.append((duration_ns, items))
            self._durations.add(duration_ns)
            self.items += items
            self.busy_ns += duration_ns
            self._snapshot = None

    def take_durations(self) -> Histogram:
        """The calls since the last time that somebody took them."""
        with self._lock:
            taken, self._durations = self._durations, Histogram()
        return taken

    def snapshot(self) -> dict[str, Any]:
        """Items and busy time so far; median, 99th percentile (ms) and mean batch of the last calls."""
        with self._lock:
            if self._snapshot is None:
                self._snapshot = self._made()
            return self._snapshot

    def _made(self) -> dict[str, Any]:
        durations = sorted(duration for duration, _ in self._calls)
        count = len(durations)
        return {
            "items": self.items,
            "busy_ns": self.busy_ns,
            "batch": sum(items for _, items in self._calls) / count if count else None,
            "latency_ms_p50": durations[count // 2] / 1e6 if count else None,
            "latency_ms_p99": durations[min(count - 1, count * 99 // 100)] / 1e6 if count else None,
        }
