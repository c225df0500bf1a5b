"""The events of a run as it counts and shows them: of cameras that are there, and of those that went."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from typing import Any

from pipeline.monitoring.camera_states import MOST_DEPARTED
from pipeline.stage import DROPPED


class Incidents:
    """`began`: so many have begun. `committed`: events in all, so also their updates and ends. Neither ever falls."""

    def __init__(self) -> None:
        self.began = 0
        self.committed = 0
        self._actions: dict[str, Counter[str]] = defaultdict(Counter)

    def note(self, event: Mapping[str, Any]) -> None:
        """An event has been committed; its `data` is an object."""
        self.committed += 1
        data = event["data"]
        if data.get("phase") not in ("update", "end"):
            self.began += 1
            camera = str(data.get("camera", event.get("subject", "")))
            self._actions[camera][str(data.get("action", event.get("type", "")))] += 1

    def forget_all_but(self, here: Collection[str]) -> None:
        """Of cameras that are not here only the last ones are known by name."""
        for camera in [camera for camera in self._actions if camera not in here][:-MOST_DEPARTED]:
            del self._actions[camera]

    def of(self, camera: str) -> int:
        """How many began with this camera."""
        return self._actions[camera].total() if camera in self._actions else 0

    @property
    def actions(self) -> dict[str, dict[str, int]]:
        """Camera -> action -> how many began."""
        return {camera: dict(actions) for camera, actions in self._actions.items()}


def totals(counts: Mapping[tuple[str, str], int], incidents: Incidents) -> dict[str, int]:
    """Of all cameras of the run, also those that went. `counts`: (name, camera) -> count."""
    return {
        "frames": sum(n for (name, _), n in counts.items() if name == "frames"),
        "drops": sum(n for (name, _), n in counts.items() if name.startswith(DROPPED)),
        "events": incidents.began,
        "committed": incidents.committed,
    }


def in_short(event: dict[str, Any]) -> dict[str, Any]:
    """What is shown of an event; what stages of others put into theirs is shown as far as it has our form."""
    data = event["data"]
    people = data.get("people")
    known = [one.get("track_id") for one in people if isinstance(one, dict)] if isinstance(people, list) else []
    return {
        "time": str(event.get("time", "")),
        "camera": str(data.get("camera", "")),
        "action": str(data.get("action", event.get("type", ""))),
        "phase": str(data.get("phase", "")),
        "people": [track_id for track_id in known if isinstance(track_id, int)],
    }
