"""All incidents of a run: those of its history, the newest first, and behind them what only its footage still has.

The history has each incident at once, whatever becomes of its pictures: the disk may be full, or the stage
`sink_footage` may not read the rule. The folders have the files, and the incidents that the history no longer has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Literal

from camgraph.stages.sinks.footage.incident_index import IncidentFilter, IncidentSummary
from camgraph.stages.sinks.footage.incident_record import IncidentRecord, read_record
from camgraph.tools.service.history.event_history import EventFilter, EventHistory
from camgraph.tools.service.history.kept_incidents import Incident, KeptIncidents, NotFound, Row, read_each
from camgraph.tools.service.history.remembered_incidents import RememberedIncidents, RememberedRecord

_CHUNK = 500
"""Of footage that are looked at together: most of them may be in the history as well."""
Place = KeptIncidents | RememberedIncidents


@dataclass(frozen=True, slots=True)
class WantedIncidents:
    """Which incidents are asked for. `before`: the last one of the page before; `most`: so many at most."""

    camera: str | None
    rule: str | None
    since: datetime | None
    phase: Literal["running"] | None
    before: str | None
    most: int

    @property
    def of_events(self) -> EventFilter:
        """Of the history."""
        return EventFilter(camera=self.camera, rule=self.rule, since=self.since)

    @property
    def of_footage(self) -> IncidentFilter:
        """Of a folder."""
        return IncidentFilter(camera=self.camera, since=self.since, rule=self.rule, phase=self.phase)


class AllIncidents:
    """See the module. All methods raise OSError if a disk does, and EnvironmentProblem if the history cannot be read.

    `begun_s`: when the run began, in seconds since 1970.
    """

    def __init__(self, folders: Sequence[Path], history: EventHistory, begun_s: Callable[[], float]) -> None:
        self._history = history
        self._kept = [KeptIncidents(folder, begun_s) for folder in folders]
        labels = self._kept[0].labels if self._kept else None
        self._remembered = RememberedIncidents(history, begun_s, labels)

    def page(self, wanted: WantedIncidents) -> tuple[list[Incident], bool]:
        """Those that fit, and whether there are more. Raises NotFound if nobody has the one of `before`."""
        before, last, more = wanted.before, None, False
        remembered: list[RememberedRecord] = []
        if before is not None and not self._history.has_incidents([before]):
            last = self._summary(before)
        else:
            going_on = wanted.phase == "running"
            remembered, more = self._remembered.page(wanted.of_events, before, wanted.most, going_on=going_on)
        room = wanted.most - len(remembered)
        older = [] if more else self._older(wanted.of_footage, last, room + 1)
        listed = self._with_files(remembered)
        listed += [row.place.plain(record) for row, record in read_each(older[:room])]
        return [one for one in listed if wanted.phase in (None, one["phase"])], more or len(older) > room

    def one(self, incident: str) -> tuple[Place, IncidentRecord]:
        """That of this whole name, and where it is. Raises NotFound."""
        places: list[Place] = [*self._kept, self._remembered]
        for place in places:
            record = place.record(incident)
            if record is not None:
                return place, record
        raise NotFound.of(incident)

    def _summary(self, incident: str) -> IncidentSummary:
        found = next(filter(None, (place.summary(incident) for place in self._kept)), None)
        if found is None:
            raise NotFound.of(incident)
        return found

    def _with_files(self, records: Sequence[RememberedRecord]) -> list[Incident]:
        """Those that footage is kept of have their files, and others say that they have none."""
        names = tuple(record.incident for record in records)
        rows = chain.from_iterable(place.page(IncidentFilter(among=names)) for place in self._kept) if names else ()
        kept = {row.summary.incident: row for row in rows}
        return [self._plain(one, kept.get(one.incident)) for one in records]

    def _plain(self, remembered: RememberedRecord, row: Row | None) -> Incident:
        record = read_record(row.path) if row else None
        if row is None or record is None:
            return self._remembered.plain(remembered)
        record.last = record.last or remembered.last  # the sink may be behind, or hang
        return row.place.plain(record)

    def _older(self, wanted: IncidentFilter, last: IncidentSummary | None, most: int) -> list[Row]:
        """Those that the history does not have, the newest first, behind `last`."""
        found: list[Row] = []
        while len(found) < most:
            chunk = replace(wanted, newest=_CHUNK, before=last)
            rows = sorted(chain.from_iterable(one.page(chunk) for one in self._kept), key=_in_pages, reverse=True)
            known = self._history.has_incidents([row.summary.incident for row in rows[:_CHUNK]])
            found += [row for row in rows[:_CHUNK] if row.summary.incident not in known]
            if len(rows) < _CHUNK:
                break
            last = rows[_CHUNK - 1].summary
        return found[:most]


def _in_pages(row: Row) -> tuple[str, str, str]:
    """The order in which folders page.

    By their milliseconds, incidents of one second have another one: at the border of two pages some would be left out.
    """
    return row.summary.day, row.summary.name, row.summary.place
