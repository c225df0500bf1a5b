"""Counts the frames that came out of all stages, in the sink's file: an event for each frame."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from camgraph.tools.lab.proofs.trials.tail import Tail


@dataclass(frozen=True, slots=True)
class Seen:
    """A frame that came out at the sink ``at_s``; ``filmed_s`` is its own time. All on the same monotonic clock."""

    at_s: float
    filmed_s: float
    epoch: int
    seq: int


def seen_in(event: Mapping[str, Any], at_s: float, wall_s: float) -> tuple[str, Seen] | None:
    """The camera and the frame of an event that tells of one; ``wall_s``: wall clock less monotonic clock. Pure."""
    data = event["data"]
    if data.get("phase") not in ("start", "update") or "frame" not in data:
        return None
    filmed_s = datetime.fromisoformat(event["time"]).timestamp() - wall_s
    return str(data["camera"]), Seen(at_s, filmed_s, data["frame"]["epoch"], data["frame"]["seq"])


class FrameLog:
    """Reads the sink's file as it grows. ``frames``: camera -> its frames as they came; one that comes again, because
    events are delivered at least once, is not noted again."""

    def __init__(self, events: Path, wall_s: float) -> None:
        self.frames: dict[str, list[Seen]] = defaultdict(list)
        self._tail = Tail(events)
        self._wall_s = wall_s
        self._known: set[tuple[str, int, int]] = set()

    def read(self, now_s: float) -> None:
        """Note what is new."""
        for line in self._tail.lines():
            found = seen_in(json.loads(line), now_s, self._wall_s)
            if found and (key := (found[0], found[1].epoch, found[1].seq)) not in self._known:
                self._known.add(key)
                self.frames[found[0]].append(found[1])

    def newest_epoch(self, camera: str) -> int:
        """The highest that a frame had; -1 if none came."""
        return max((seen.epoch for seen in self.frames[camera][-1:]), default=-1)


def longest_gap_s(frames: Sequence[Seen], begin_s: float, end_s: float) -> float:
    """The longest time between these moments in which no frame came out; ``frames`` in the order in which they came."""
    inside = [seen.at_s for seen in frames if begin_s < seen.at_s < end_s]
    return max(after - before for before, after in pairwise([begin_s, *inside, end_s]))
