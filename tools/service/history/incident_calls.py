"""The calls about incidents: lists, one with its reasons, its files, and labels."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar, NotRequired

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from camgraph.pipeline.errors import EnvironmentProblem
from camgraph.stages.sinks.footage.incident_labels import LABELS, MOST_NOTE, MOST_OF_INCIDENT, Label, TooManyLabels
from camgraph.stages.sinks.footage.incident_record import IncidentRecord
from camgraph.tools.service.history.all_incidents import AllIncidents, Place, WantedIncidents
from camgraph.tools.service.history.event_history import EventHistory
from camgraph.tools.service.history.kept_incidents import Incident
from camgraph.tools.service.history.remembered_incidents import NO_PICTURES
from camgraph.tools.service.web.calls import Body, Call, Conflict, Gives, body_of
from camgraph.tools.service.web.file_answer import OF_FILE, FileAnswer, OpenFile
from camgraph.tools.service.web.queries import CameraName, Moment, Number, OneOf, Parameter, Text, query_of
from camgraph.tools.service.web.thread_pools import ThreadPool, ThreadPools

_USUAL, _MOST = 50, 200
_QUERY: dict[str, Parameter] = {
    "camera": CameraName("Of this camera alone."),
    "rule": Text("Of this rule, or of this action, alone."),
    "since": Moment("Not older than this time."),
    "phase": OneOf("Those alone that go on.", ("running",)),
    "before": Text("The incident behind which the page begins: the last one of the page before."),
    "limit": Number("So many at most.", _MOST, usual=_USUAL),
}
_NOT_READ = {503: "the incidents cannot be read or changed now"}
_OF_FILE = {416: "the file ends before the range begins", **_NOT_READ}


class IncidentsPage(TypedDict):
    """`more`: whether there are older ones; `why`, if none is listed: for what reason it would have no picture."""

    incidents: list[Incident]
    more: bool
    why: NotRequired[str]


class NewLabel(Body):
    """What somebody says of an incident."""

    words: ClassVar = f'{{"label": {" | ".join(LABELS)}, "note": TEXT}}'

    label: Label
    note: str = Field("", max_length=MOST_NOTE)


class Keep(Body):
    """Whether an incident is never removed by itself."""

    words: ClassVar = '{"keep": true} or {"keep": false}'

    keep: bool


def incident_calls(
    folders: Sequence[Path], history: EventHistory, threads: ThreadPools, begun_s: Callable[[], float]
) -> list[Call]:
    """`folders`: of footage; without any, incidents have no pictures and clips.

    `begun_s`: when the run began, in seconds since 1970.
    """
    calls, one = _Incidents(folders, history, threads, begun_s), "/api/incidents/{incident}"
    an_incident = Gives(type=Incident)
    picture = Gives(media="image/jpeg", also=OF_FILE)
    return [
        Call("GET", "/api/incidents", "viewer", calls.list, "The incidents that are kept, the newest first.",
             Gives("a page of them", IncidentsPage), _QUERY,
             errors=_NOT_READ | {404: "the one of `before` is no longer kept: begin anew"}),
        Call("GET", one, "viewer", calls.one, "One incident: why it fired, its files, and its labels.", an_incident,
             errors=_NOT_READ),
        Call("GET", f"{one}/snapshot.jpg", "viewer", calls.snapshot, "Its picture.", picture, errors=_OF_FILE),
        Call("GET", f"{one}/clip.mp4", "viewer", calls.clip, "Its clip; ranges are answered.",
             Gives(media="video/mp4", also=OF_FILE), errors=_OF_FILE),
        Call("GET", f"{one}/crops/{{file}}", "viewer", calls.crop, "The picture of one of its people.", picture,
             errors=_OF_FILE),
        Call("POST", f"{one}/labels", "operator", calls.label, "Say what it was.", an_incident, body=NewLabel,
             errors=_NOT_READ | {409: f"it has {MOST_OF_INCIDENT} labels already"}),
        Call("POST", f"{one}/keep", "operator", calls.keep, "Keep it for ever, or no longer.", an_incident, body=Keep,
             errors=_NOT_READ),
    ]  # fmt: skip


class _Incidents:
    def __init__(
        self, folders: Sequence[Path], history: EventHistory, threads: ThreadPools, begun_s: Callable[[], float]
    ) -> None:
        self._all, self._has_footage = AllIncidents(folders, history, begun_s), bool(folders)
        self._threads: ThreadPool = threads.footage if folders else threads.history

    async def list(self, request: Request) -> Response:
        query = query_of(request, _QUERY)

        def page() -> IncidentsPage:
            listed, more = self._all.page(WantedIncidents(*(query[name] for name in _QUERY)))
            found: IncidentsPage = {"incidents": listed, "more": more}
            return found if listed or self._has_footage else {**found, "why": NO_PICTURES}

        return await self._as_json(page)

    async def one(self, request: Request) -> Response:
        def plain() -> Incident:
            place, record = self._found(request)
            return place.plain(record)

        return await self._as_json(plain)

    async def snapshot(self, request: Request) -> Response:
        return await self._file(request, "snapshot", "image/jpeg")

    async def clip(self, request: Request) -> Response:
        return await self._file(request, "clip", "video/mp4")

    async def crop(self, request: Request) -> Response:
        return await self._file(request, request.path_params["file"], "image/jpeg")

    async def label(self, request: Request) -> Response:
        given = await body_of(request, NewLabel)

        def add() -> Incident:
            place, record = self._found(request)
            try:
                place.labels.add(record.incident, given.label, given.note, request.scope["camgraph.name"])
            except TooManyLabels as error:
                raise Conflict(str(error), error_id=error.error_id) from None
            return place.plain(record)

        return await self._as_json(add)

    async def keep(self, request: Request) -> Response:
        wanted = (await body_of(request, Keep)).keep

        def change() -> Incident:
            place, record = self._found(request)
            place.keep(record, wanted=wanted)
            return place.plain(record)

        return await self._as_json(change)

    async def _file(self, request: Request, name: str, media_type: str) -> Response:
        def opened() -> OpenFile:
            place, record = self._found(request)
            return OpenFile.of(place.open_file(record, name))

        try:
            file = await self._threads.run(opened)
        except OSError as error:
            raise EnvironmentProblem(f"the file cannot be read now: {error.strerror}", error_id="cannot-read") from None
        return FileAnswer(request, file, media_type, self._threads)

    def _found(self, request: Request) -> tuple[Place, IncidentRecord]:
        return self._all.one(request.path_params["incident"])

    async def _as_json(self, work: Callable[[], Incident | IncidentsPage]) -> Response:
        try:
            # In ASCII, and for records may hold half a character, at which JSONResponse fails.
            text = json.dumps(await self._threads.run(work), separators=(",", ":"), allow_nan=False)
            return Response(text, media_type="application/json")
        except OSError as error:
            raise EnvironmentProblem(
                f"the incidents cannot be read or changed now: {error.strerror}", error_id="cannot-read"
            ) from None
