"""Counts the events of a run, of present and of removed cameras."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping

from camgraph.pipeline.monitoring.camera_states import MOST_DEPARTED
from camgraph.pipeline.monitoring.event_format import EventSummary
from camgraph.pipeline.monitoring.run_status import Totals
from camgraph.pipeline.stage import DROPPED


class Incidents:
    """`began`: the number of begun incidents. `committed`: all events, with updates and ends. Neither ever falls."""

    def __init__(self) -> None:
        self.began = 0
        self.committed = 0
        self._actions: dict[str, Counter[str]] = defaultdict(Counter)

    def note(self, event: EventSummary) -> None:
        """An event has been committed."""
        self.committed += 1
        if event.begins:
            self.began += 1
            self._actions[event.camera][event.action] += 1

    def forget_all_but(self, here: Collection[str]) -> None:
        """Keep only the last removed cameras by name, beside those that are `here`."""
        for camera in [camera for camera in self._actions if camera not in here][:-MOST_DEPARTED]:
            del self._actions[camera]

    def of(self, camera: str) -> int:
        """The number of incidents that began with this camera."""
        return self._actions[camera].total() if camera in self._actions else 0

    @property
    def actions(self) -> dict[str, dict[str, int]]:
        """Camera -> action -> number of begun incidents."""
        return {camera: dict(actions) for camera, actions in self._actions.items()}


def totals(counts: Mapping[tuple[str, str], int], incidents: Incidents) -> Totals:
    """The totals of all cameras of the run, also removed ones. `counts`: (name, camera) -> count."""
    return Totals(
        frames=sum(n for (name, _), n in counts.items() if name == "frames"),
        drops=sum(n for (name, _), n in counts.items() if name.startswith(DROPPED)),
        events=incidents.began,
        committed=incidents.committed,
    )
