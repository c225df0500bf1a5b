"""The incidents of a folder of footage as the service gives them: pages of them, one, and its files."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple, NotRequired, cast
from urllib.parse import quote

from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from camgraph.pipeline.foreign_text import shown
from camgraph.pipeline.system.disk import open_regular
from camgraph.stages.sinks.delivery.event_view import because
from camgraph.stages.sinks.delivery.event_words import reason
from camgraph.stages.sinks.delivery.measured_words import reasons
from camgraph.stages.sinks.footage.clip import PART
from camgraph.stages.sinks.footage.incident_index import (
    IncidentFilter,
    IncidentSummary,
    Phase,
    incidents_in,
    summary_of,
)
from camgraph.stages.sinks.footage.incident_labels import GivenLabel, Labels
from camgraph.stages.sinks.footage.incident_record import IncidentRecord, Kind, State, read_record
from camgraph.tools.service.web.calls import NotThere

_NO_FILE = "the incident has no such file"


class IncidentFile(TypedDict):
    """A picture or clip. `url`: null if it is not there (yet); `why`: for what reason."""

    state: State | Literal["none"]
    url: str | None
    why: NotRequired[str]
    width: NotRequired[int]
    height: NotRequired[int]
    seconds: NotRequired[float]
    bytes: NotRequired[int]


class IncidentFacts(TypedDict):
    """What the events of an incident tell. `end_time`, `duration_s`: null while it goes on; a `phase` that is `lost`:
    its end was not reported, for the run died. `unseen`: its people were out of sight, so how it ended is not known.
    `because`: the conditions that held, as the rule has them, with their values; `measured`: those of them that can be
    said to people who do not know the rule; `labels`: the oldest first.
    """

    incident: str
    camera: str
    rule: str
    action: str
    severity: str
    about: str
    start_time: str
    end_time: str | None
    duration_s: float | None
    unseen: bool
    phase: Phase | Literal["lost"]
    reason: str
    people: int
    zones: list[str]
    because: list[str]
    measured: list[str]
    labels: list[GivenLabel]


class Incident(IncidentFacts):
    """An incident with its files. `keep`: it is never removed by itself; `crops`: addresses of pictures of people."""

    keep: bool
    snapshot: IncidentFile
    clip: IncidentFile
    crops: list[str]


class NotFound(NotThere):
    """There is no such incident, or no such file of it."""

    error_id = "incident-missing"

    @classmethod
    def of(cls, incident: str) -> NotFound:
        """There is no such incident."""
        return cls(f"no incident that is kept is called {shown(incident)[:60]}")


class KeptIncidents:
    """The incidents of one folder of footage. All methods raise OSError if the disk does. `begun_s`: see `in_plain`."""

    def __init__(self, folder: Path, begun_s: Callable[[], float]) -> None:
        self._folder, self._begun_s = folder, begun_s
        self.labels = Labels(folder)

    def page(self, wanted: IncidentFilter) -> list[Row]:
        """Those that fit, the newest first."""
        listed = incidents_in(self._folder, wanted) if self._folder.is_dir() else []
        return [Row(one, self, one.path(self._folder)) for one in reversed(listed)]

    def summary(self, incident: str) -> IncidentSummary | None:
        """Of the incident of this whole name."""
        listed = incidents_in(self._folder, IncidentFilter(incident=incident)) if self._folder.is_dir() else []
        return next((one for one in listed if one.incident == incident), None)

    def record(self, incident: str) -> IncidentRecord | None:
        """That of this whole name."""
        one = self.summary(incident)
        return read_record(one.path(self._folder)) if one else None

    def keep(self, record: IncidentRecord, *, wanted: bool) -> None:
        """For ever, or no longer."""
        record.mark_keep(wanted)

    def plain(self, record: IncidentRecord) -> Incident:
        """See `in_plain`."""
        return in_plain(record, self.labels, self._begun_s())

    def open_file(self, record: IncidentRecord, name: str) -> int:
        """A descriptor of `snapshot`, `clip` or a crop. Raises NotFound if it is not there, or leads elsewhere."""
        for path in self._places(record, name):
            try:
                place = Path(os.path.realpath(path, strict=True))
            except OSError:
                continue
            if not place.is_relative_to(os.path.realpath(self._folder)):
                raise NotFound(_NO_FILE)
            try:
                return open_regular(place, os.O_RDONLY)
            except FileNotFoundError:
                continue
            except OSError as error:
                if error.errno in (errno.EINVAL, errno.EACCES):
                    raise NotFound(_NO_FILE) from None
                raise
        raise NotFound(f"there is no {name}: it is not finished, or was never made, or was removed")

    def _places(self, record: IncidentRecord, name: str) -> list[Path]:
        """Where it may be. A clip that grows gets its name between two looks."""
        if name == "snapshot":
            return [record.file("snapshot")]
        if name == "clip":
            return [record.file("clip"), *growing_clip(record), record.file("clip")]
        if any(name in state.crops for state in record.files.values()):
            return [record.path.with_name(name)]
        raise NotFound(_NO_FILE)


def growing_clip(record: IncidentRecord) -> list[Path]:
    """The file that it grows in, as far as it is; none if it does not grow."""
    with suppress(ValueError):
        clip = record.shared_clip()
        part = clip.with_name(clip.name + PART)
        if record.files["clip"].state == "pending" and part.exists():
            return [part]
    return []


class Row(NamedTuple):
    """One of a list. `path`: of its record."""

    summary: IncidentSummary
    place: KeptIncidents
    path: Path


def read_each(rows: Iterable[Row]) -> Iterator[tuple[Row, IncidentRecord]]:
    """Their records, without those that were removed a moment ago."""
    for row in rows:
        record = read_record(row.path)
        if record is not None and summary_of(record) is not None:
            yield row, record


def in_plain(record: IncidentRecord, labels: Labels, begun_s: float) -> Incident:
    """An incident with its files, as the API gives it (docs/service.md). `begun_s`: see `facts_of`."""
    url = f"/api/incidents/{quote(record.incident, safe='')}"
    crops = sorted({name for state in record.files.values() for name in state.crops})
    return {
        **facts_of(record, labels, _written_s(record), begun_s),
        "keep": record.keep,
        "snapshot": _file(record, "snapshot", f"{url}/snapshot.jpg"),
        "clip": _file(record, "clip", f"{url}/clip.mp4"),
        "crops": [f"{url}/crops/{quote(name)}" for name in crops],
    }


def facts_of(record: IncidentRecord, labels: Labels, written_s: float, begun_s: float) -> IncidentFacts:
    """What its events tell. Those of stages of others may have anything in the places of lists and objects.

    `written_s`: when its record was written; `begun_s`: when the run began, both in seconds since 1970. One without an
    end that is older than the run does not go on: an earlier run died before it could report the end.
    """
    one, data, last = summary_of(record), record.data, _object(record.last)
    assert one is not None, "it was found by its summary"
    end = _object(last.get("data"))
    # Nobody saw its end if the run, or the stage that judged, has died: then the end has the values of the last event.
    is_lost = end.get("reason") == "lost" or (one.phase == "running" and written_s < begun_s)
    over = str(end.get("end_time") or last.get("time") or "") or None
    conditions = [one for one in _list(_object(data.get("evidence")).get("conditions")) if _object(one)]
    return {
        "incident": record.incident,
        "camera": record.camera,
        "rule": one.rule,
        "action": one.action,
        "severity": one.severity,
        "about": str(_object(data["rule"]).get("about") or ""),
        "start_time": one.start_time,
        "end_time": None if is_lost else {"over": over, "single": one.start_time, "running": None}[one.phase],
        "duration_s": None if is_lost or one.phase == "running" else one.duration_s,
        "phase": "lost" if is_lost else one.phase,
        "unseen": one.phase == "over" and end.get("reason") == "unseen",
        "reason": reason(end.get("reason")) if one.phase == "over" and not is_lost else "",
        "people": len(_list(data.get("people"))),
        "zones": list(map(str, _list(data.get("zones")))),
        "because": [because(condition) for condition in conditions],
        "measured": reasons(conditions),
        "labels": labels.of(record.incident),
    }


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else []


def _written_s(record: IncidentRecord) -> float:
    """The next run finishes the files of one that has died, and writes its record anew."""
    if record.begun_s > 0:
        return record.begun_s
    try:
        return record.path.stat().st_mtime
    except OSError:
        return 0.0


def _file(record: IncidentRecord, kind: Kind, url: str) -> IncidentFile:
    """A clip that grows can be seen as far as it is."""
    plain = record.files[kind].plain()
    known = {key: plain[key] for key in IncidentFile.__annotations__ if key in plain}
    is_there = record.file(kind).exists() or (kind == "clip" and growing_clip(record))
    return cast(IncidentFile, {**known, "url": url if is_there else None})
