"""Incidents as the history of events tells of them: without pictures and clips, which only `sink_footage` keeps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Never

from camgraph.pipeline.errors import UserError
from camgraph.stages.sinks.footage.incident_index import summary_of
from camgraph.stages.sinks.footage.incident_labels import Labels
from camgraph.stages.sinks.footage.incident_record import IncidentRecord
from camgraph.tools.service.history.event_history import EventFilter, EventHistory, KeptIncident
from camgraph.tools.service.history.kept_incidents import Incident, IncidentFile, NotFound, facts_of

NO_PICTURES = (
    "the run keeps no pictures and clips of incidents: give its graph a stage "
    "`footage: {use: sink_footage, from: actions}`"
)
_NONE_KEPT = "its pictures and clips were not kept, or are removed"
_NO_PATH = Path("none/none/none.json")


@dataclass
class RememberedRecord(IncidentRecord):
    """It has no file, and is never written. `kept_s`: when its first event was kept, in seconds since 1970."""

    kept_s: float = 0.0


class RememberedIncidents:
    """As `KeptIncidents`. All methods raise EnvironmentProblem if the history cannot be read.

    `labels`: those of the footage, if the run keeps some; by default they lie beside the history.
    """

    def __init__(self, history: EventHistory, begun_s: Callable[[], float], labels: Labels | None = None) -> None:
        self._history, self._begun_s = history, begun_s
        self.labels = labels or Labels(history.path.parent)
        self._why = _NONE_KEPT if labels else NO_PICTURES
        short = _NONE_KEPT if labels else "the graph has no stage `sink_footage`"
        self._no_file: IncidentFile = {"state": "none", "url": None, "why": short}

    def page(
        self, wanted: EventFilter, before: str | None, most: int, *, going_on: bool = False
    ) -> tuple[list[RememberedRecord], bool]:
        """Those that fit, the newest first, and whether there are more."""
        rows = self._history.incidents(wanted, most + 1, before=before, going_on=going_on)
        return list(filter(summary_of, map(_record, rows[:most]))), len(rows) > most

    def record(self, incident: str) -> RememberedRecord | None:
        """That of this whole name."""
        found = [_record(row) for row in self._history.incidents(EventFilter(), 1, incident=incident)]
        return next(filter(summary_of, found), None)

    def open_file(self, record: IncidentRecord, name: str) -> Never:
        """Raises NotFound."""
        raise NotFound(self._why)

    def keep(self, record: IncidentRecord, *, wanted: bool) -> Never:
        """Raises UserError: all events of the history go in their turn."""
        raise UserError(self._why, error_id="pictures-not-kept")

    def plain(self, record: IncidentRecord) -> Incident:
        """As the API gives it (docs/service.md)."""
        assert isinstance(record, RememberedRecord)
        facts = facts_of(record, self.labels, record.kept_s, self._begun_s())
        return {**facts, "keep": False, "snapshot": self._no_file, "clip": self._no_file, "crops": []}


def _record(row: KeptIncident) -> RememberedRecord:
    last = row.last.event if row.last else {}
    return RememberedRecord(_NO_PATH, row.first.event, last, kept_s=row.kept_s)
