"""The calls about incidents: lists, one with its reasons, its files, and labels."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from pipeline.errors import EnvironmentProblem, UserError
from pipeline.foreign_text import shown
from pipeline.system.names import A_CAMERA_NAME, is_camera_name
from stages.footage.incident_index import IncidentFilter, Phase
from stages.footage.incident_record import IncidentRecord
from tools.service.calls import Call, failure, json_body
from tools.service.event_history import EventFilter, EventHistory
from tools.service.file_answer import FileAnswer
from tools.service.kept_incidents import KeptIncidents, NotFound, read_each
from tools.service.labels import LABELS, MOST_NOTE, Label
from tools.service.queries import moment, number, query_of
from tools.service.remembered_incidents import NO_PICTURES, RememberedIncidents

_USUAL, _MOST = 50, 200
_QUERY = {
    "camera": "Of this camera alone.",
    "rule": "Of this rule, or of this action, alone.",
    "since": "Not older than this time.",
    "phase": "running: those alone that go on.",
    "before": "The incident behind which the page begins: the last one of the page before.",
    "limit": f"So many at most; {_USUAL} if left out, {_MOST} at most.",
}


def incident_calls(folders: Sequence[Path], history: EventHistory, begun_s: Callable[[], float]) -> list[Call]:
    """`folders`: of footage; without any, the history tells of incidents, without pictures and clips.

    `begun_s`: when the run began, in seconds since 1970.
    """
    calls, one = _Incidents(folders, history, begun_s), "/api/incidents/{incident}"
    label = f'{{"label": {" | ".join(LABELS)}, "note": TEXT}}'
    keep = '{"keep": BOOLEAN}'
    return [
        Call("GET", "/api/incidents", "viewer", calls.list, "The incidents that are kept, the newest first.", _QUERY),
        Call("GET", one, "viewer", calls.one, "One incident: why it fired, its files, and its labels."),
        Call("GET", f"{one}/snapshot.jpg", "viewer", calls.snapshot, "Its picture."),
        Call("GET", f"{one}/clip.mp4", "viewer", calls.clip, "Its clip; ranges are answered."),
        Call("GET", f"{one}/crops/{{file}}", "viewer", calls.crop, "The picture of one of its people."),
        Call("POST", f"{one}/labels", "operator", calls.label, "Say what it was.", body=label),
        Call("POST", f"{one}/keep", "operator", calls.keep, "Keep it for ever, or no longer.", body=keep),
    ]


class _Incidents:
    def __init__(self, folders: Sequence[Path], history: EventHistory, begun_s: Callable[[], float]) -> None:
        self._kept = [KeptIncidents(folder, begun_s) for folder in folders]
        self._remembered = RememberedIncidents(history)

    async def list(self, request: Request) -> Response:
        query = query_of(request, _QUERY)
        limit = number(query, "limit", usual=_USUAL, most=_MOST)
        if not is_camera_name(query.get("camera", "a")):
            raise UserError(f"camera: expected {A_CAMERA_NAME}")
        if query.get("phase", "running") != "running":
            raise UserError("phase: expected running")
        phase: Phase | None = "running" if "phase" in query else None
        camera, rule, since = query.get("camera"), query.get("rule"), moment(query, "since")
        before = query.get("before")

        def kept() -> dict[str, Any]:
            wanted = IncidentFilter(camera, since, rule, "", phase, limit + 1)
            last = next(filter(None, (one.summary(before) for one in self._kept)), None) if before else None
            pages = [one.page(replace(wanted, before=last)) for one in self._kept] if last or not before else []
            rows = sorted(chain.from_iterable(pages), key=lambda row: row.summary.start_s, reverse=True)
            listed = [row.place.plain(record) for row, record in read_each(rows[:limit])]
            return {"incidents": _fitting(listed, phase), "more": len(rows) > limit}

        def remembered() -> dict[str, Any]:
            wanted = EventFilter(camera=camera, rule=rule, since=since)
            listed, more = self._remembered.page(wanted, before, limit)
            return {"incidents": _fitting(listed, phase), "more": more, **({} if listed else {"why": NO_PICTURES})}

        return await _as_json(kept if self._kept else remembered)

    async def one(self, request: Request) -> Response:
        def plain() -> dict[str, Any]:
            place, record = self._found(request)
            return place.plain(record)

        return await _as_json(plain)

    async def snapshot(self, request: Request) -> Response:
        return await self._file(request, "snapshot", "image/jpeg")

    async def clip(self, request: Request) -> Response:
        return await self._file(request, "clip", "video/mp4")

    async def crop(self, request: Request) -> Response:
        return await self._file(request, request.path_params["file"], "image/jpeg")

    async def label(self, request: Request) -> Response:
        body = await json_body(request)
        label, note = _label(body.get("label")), body.get("note", "")
        if not isinstance(note, str) or len(note) > MOST_NOTE or not _is_text(note):
            raise UserError(f"expected a `note` of at most {MOST_NOTE} letters")

        def add() -> dict[str, Any]:
            place, record = self._found(request)
            place.labels.add(record.incident, label, note, request.scope["camgraph.name"])
            return place.plain(record)

        return await _as_json(add)

    async def keep(self, request: Request) -> Response:
        wanted = (await json_body(request)).get("keep")
        if not isinstance(wanted, bool):
            raise UserError('expected {"keep": true} or {"keep": false}')

        def change() -> dict[str, Any]:
            place, record = self._found(request)
            place.keep(record, wanted=wanted)
            return place.plain(record)

        return await _as_json(change)

    async def _file(self, request: Request, name: str, media_type: str) -> Response:
        def opened() -> int:
            place, record = self._found(request)
            return place.open_file(record, name)

        try:
            descriptor = await run_in_threadpool(opened)
        except NotFound as error:
            return failure(404, str(error))
        except OSError as error:
            raise EnvironmentProblem(f"the file cannot be read now: {error.strerror}") from None
        return FileAnswer(request, descriptor, media_type)

    def _found(self, request: Request) -> tuple[KeptIncidents | RememberedIncidents, IncidentRecord]:
        incident = request.path_params["incident"]
        places: Sequence[KeptIncidents | RememberedIncidents] = self._kept or [self._remembered]
        for one in places:
            record = one.record(incident)
            if record is not None:
                return one, record
        raise NotFound(f"no incident that is kept is called {shown(incident)[:60]}")


async def _as_json(work: Callable[[], dict[str, Any]]) -> Response:
    try:
        # In ASCII, and for records may hold half a character, at which JSONResponse fails.
        text = json.dumps(await run_in_threadpool(work), separators=(",", ":"), allow_nan=False)
        return Response(text, media_type="application/json")
    except NotFound as error:
        return failure(404, str(error))
    except OSError as error:
        raise EnvironmentProblem(f"the incidents cannot be read or changed now: {error.strerror}") from None


def _fitting(listed: Sequence[dict[str, Any]], phase: Phase | None) -> Sequence[dict[str, Any]]:
    return [one for one in listed if phase in (None, one["phase"])]


def _label(given: object) -> Label:
    for label in LABELS:
        if given == label:
            return label
    raise UserError(f"expected a `label`, one of {', '.join(LABELS)}")


def _is_text(given: str) -> bool:
    """Half a character is none."""
    try:
        given.encode()
    except UnicodeEncodeError:
        return False
    return True
