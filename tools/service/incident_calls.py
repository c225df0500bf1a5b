"""The calls about incidents that `sink_footage` keeps: lists, one with its reasons, its files, and labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from pipeline.errors import EnvironmentProblem, UserError
from pipeline.foreign_text import shown
from pipeline.system.names import A_CAMERA_NAME, is_camera_name
from stages.footage.incident_index import IncidentFilter
from stages.footage.incident_record import IncidentRecord
from tools.service.calls import Call, failure, json_body
from tools.service.file_answer import FileAnswer
from tools.service.kept_incidents import KeptIncidents, NotFound, in_plain, read_each
from tools.service.labels import LABELS, MOST_NOTE, Label
from tools.service.queries import moment, number, query_of

_USUAL, _MOST = 50, 200
_QUERY = {
    "camera": "Of this camera alone.",
    "rule": "Of this rule, or of this action, alone.",
    "since": "Not older than this time.",
    "before": "The incident behind which the page begins: the last one of the page before.",
    "limit": f"So many at most; {_USUAL} if left out, {_MOST} at most.",
}
_NONE_KEPT = "the run keeps no incidents: give its graph a stage `footage: {use: sink_footage, from: actions}`"


def incident_calls(folders: Sequence[Path]) -> list[Call]:
    """`folders`: of footage; without any, no incidents are kept."""
    calls, one = _Incidents(folders), "/api/incidents/{incident}"
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
    def __init__(self, folders: Sequence[Path]) -> None:
        self._kept = [KeptIncidents(folder) for folder in folders]

    async def list(self, request: Request) -> Response:
        query = query_of(request, _QUERY)
        limit = number(query, "limit", usual=_USUAL, most=_MOST)
        if not is_camera_name(query.get("camera", "a")):
            raise UserError(f"camera: expected {A_CAMERA_NAME}")
        wanted = IncidentFilter(query.get("camera"), moment(query, "since"), query.get("rule"), newest=limit + 1)

        def listed() -> dict[str, Any]:
            rows = [row for one in self._kept for row in one.page(wanted, query.get("before"))]
            rows.sort(key=lambda row: row.summary.start_s, reverse=True)
            plain = [in_plain(record, row.place.labels) for row, record in read_each(rows[:limit])]
            return {"incidents": plain, "more": len(rows) > limit, **({} if self._kept else {"why": _NONE_KEPT})}

        return await _as_json(listed)

    async def one(self, request: Request) -> Response:
        def plain() -> dict[str, Any]:
            place, record = self._found(request)
            return in_plain(record, place.labels)

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
        if not isinstance(note, str) or len(note) > MOST_NOTE:
            raise UserError(f"expected a `note` of at most {MOST_NOTE} letters")

        def add() -> dict[str, Any]:
            place, record = self._found(request)
            place.labels.add(record.incident, label, note, request.scope["camgraph.name"])
            return in_plain(record, place.labels)

        return await _as_json(add)

    async def keep(self, request: Request) -> Response:
        wanted = (await json_body(request)).get("keep")
        if not isinstance(wanted, bool):
            raise UserError('expected {"keep": true} or {"keep": false}')

        def change() -> dict[str, Any]:
            place, record = self._found(request)
            record.keep = wanted
            record.write()
            return in_plain(record, place.labels)

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

    def _found(self, request: Request) -> tuple[KeptIncidents, IncidentRecord]:
        incident = request.path_params["incident"]
        for one in self._kept:
            record = one.record(incident)
            if record is not None:
                return one, record
        raise NotFound(f"no incident that is kept is called {shown(incident)[:60]}" if self._kept else _NONE_KEPT)


async def _as_json(work: Callable[[], dict[str, Any]]) -> Response:
    try:
        return JSONResponse(await run_in_threadpool(work))
    except NotFound as error:
        return failure(404, str(error))
    except OSError as error:
        raise EnvironmentProblem(f"the incidents cannot be read or changed now: {error.strerror}") from None


def _label(given: object) -> Label:
    for label in LABELS:
        if given == label:
            return label
    raise UserError(f"expected a `label`, one of {', '.join(LABELS)}")
