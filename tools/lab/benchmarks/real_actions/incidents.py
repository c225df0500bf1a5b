"""The incidents of a clip: its people through the stages `track` and `rules`, as in a run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from camgraph.pipeline.messages import Event
from camgraph.pipeline.single_stage import feed, opened
from camgraph.stages.messages import Tracks
from camgraph.stages.people.track import Track
from camgraph.stages.rules.rules import Rules
from camgraph.stages.vision.decoding.score_ranges import ScoreRange
from camgraph.tools.lab.benchmarks.action_clips import Watched
from camgraph.tools.lab.benchmarks.real_actions.people import people_of


@dataclass(frozen=True)
class Told:
    """An incident: when it was told, and when it ended, in seconds of the clip."""

    action: str
    at_s: float
    until_s: float
    ids: tuple[int, ...]


@dataclass(frozen=True)
class Judged:
    """A clip at a frame rate, with its tracks and its incidents in the order in which they were told."""

    tracks: Sequence[Tracks]
    told: Sequence[Told]


def judged(seen: Watched, scores: ScoreRange, rules: dict[str, Any]) -> Judged:
    """`rules`: the settings of the stage, such as `{"rules": [{"use": "fall"}]}`."""
    thresholds = {f"{name}_score": getattr(scores, name) for name in ("weak", "good", "new", "sure")}
    with TemporaryDirectory() as scratch:
        with opened(Track, thresholds, folder=Path(scratch)) as stage:
            found = feed(stage, list(people_of(seen, scores.weak)))
        tracks = [one for one in found if isinstance(one, Tracks)]
        with opened(Rules, rules, folder=Path(scratch)) as stage:
            events = [one for one in feed(stage, tracks, end=True) if isinstance(one, Event)]
    return Judged(tracks, _told(events))


def _told(events: Sequence[Event]) -> list[Told]:
    bodies = [(event.stamp.time_ns / 1e9, json.loads(event.body)["data"]) for event in events]
    ends = {data["incident"]: at_s for at_s, data in bodies if data["phase"] == "end"}
    return [
        Told(
            data["action"],
            at_s,
            ends.get(data["incident"], at_s),
            tuple(person["track_id"] for person in data["people"]),
        )
        for at_s, data in bodies
        if data["phase"] in ("start", "single")
    ]
