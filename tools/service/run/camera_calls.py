"""The calls about cameras: list, add, remove, pause, resume, and the newest picture of one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar, get_type_hints

from pydantic import Field, JsonValue
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.foreign_text import shown
from camgraph.pipeline.monitoring.run_status import CameraStatus
from camgraph.pipeline.system.names import nfc
from camgraph.tools.service.run.run_link import NO_ANSWER, RunLink
from camgraph.tools.service.web.calls import NOT_MODIFIED, NOTHING, Body, Call, Gives, NotThere, body_of
from camgraph.tools.service.web.thread_pools import ThreadPools
from camgraph.tools.service.web.withheld_paths import as_told_to

_SCHEMES = ("rtsp", "rtsps", "http", "https", "rtmp", "rtmps", "srt", "udp", "rtp")
_REFUSED = {400: "the run refuses it, and says why", **NO_ANSWER}
_LISTED = ("state", "why", "error_id", "since_s", "losses", "fps", "frames", "drops", "drops_by_reason", "age_ms",
           "events", "error", "facts")  # fmt: skip
"""The fields of a `CameraStatus` that the list of cameras has."""
_TYPES = {**{key: get_type_hints(CameraStatus)[key] for key in _LISTED}, "name": str}
ListedCamera = TypedDict("ListedCamera", _TYPES)  # type: ignore[misc]  # of the types that the status has
ListedCamera.__doc__ = "One camera of the run."


class CameraList(TypedDict):
    """All of them."""

    cameras: list[ListedCamera]


class Remarks(TypedDict):
    """What is worth knowing about the new camera."""

    remarks: list[str]


class NewCamera(Body):
    """A camera as in the graph file."""

    words: ClassVar = '{"name": NAME, "settings": {"url": ...}}, with the settings of a graph file'

    name: str = Field(min_length=1)
    settings: dict[str, JsonValue]


def checked_camera(run: RunLink, name: str) -> str:
    """Its name in normal form. Raises NotThere if the run has no such camera."""
    if nfc(name) not in run.status().cameras:
        raise NotThere(f"the run has no camera {shown(name)[:60]}", error_id="name-unknown")
    return nfc(name)


def camera_calls(run: RunLink, threads: ThreadPools) -> list[Call]:
    """See the module."""
    calls, one = _CameraCalls(run, threads), "/api/cameras/{name}"
    changed = Gives("the run has taken it up", NOTHING, status=202)
    return [
        Call("GET", "/api/cameras", "viewer", calls.cameras, "The cameras: state, rates, drops.",
             Gives(type=CameraList), errors=NO_ANSWER),
        Call("POST", "/api/cameras", "admin", calls.add, "Take one more camera into the run.",
             Gives("the run has taken it up", Remarks, status=202), body=NewCamera, errors=NO_ANSWER),
        Call("DELETE", one, "admin", calls.remove, "End a camera: its frames on the way still arrive.", changed,
             errors=_REFUSED),
        Call("POST", f"{one}/pause", "operator", calls.pause, "Let a camera rest.", changed, errors=_REFUSED),
        Call("POST", f"{one}/resume", "operator", calls.resume, "Let a camera that rests go on.", changed,
             errors=_REFUSED),
        Call("GET", f"{one}/picture.jpg", "viewer", calls.picture,
             "The newest picture, without anything drawn on it.",
             Gives(media="image/jpeg", also=NOT_MODIFIED), errors=NO_ANSWER),
    ]  # fmt: skip


class _CameraCalls:
    def __init__(self, run: RunLink, threads: ThreadPools) -> None:
        self._run, self._threads = run, threads

    async def cameras(self, request: Request) -> Response:
        return JSONResponse({"cameras": as_told_to(request, await self._threads.run.run(self._listed))})

    def _listed(self) -> list[dict[str, Any]]:
        return [
            {"name": name, **{key: getattr(one, key) for key in _LISTED}}
            for name, one in self._run.status().cameras.items()
        ]

    async def add(self, request: Request) -> Response:
        body = await body_of(request, NewCamera)
        _check_new(body.settings)
        answer = await self._threads.changes.run(self._run.ask, "add", camera=body.name, given=body.settings)
        return JSONResponse({"remarks": list(answer.get("remarks", ()))}, 202)

    async def remove(self, request: Request) -> Response:
        return await self._change(request, "remove")

    async def pause(self, request: Request) -> Response:
        return await self._change(request, "pause")

    async def resume(self, request: Request) -> Response:
        return await self._change(request, "resume")

    async def _change(self, request: Request, op: str) -> Response:
        await self._threads.changes.run(self._run.ask, op, camera=await self._camera(request))
        return JSONResponse({}, 202)

    async def _camera(self, request: Request) -> str:
        return await self._threads.run.run(checked_camera, self._run, request.path_params["name"])

    async def picture(self, request: Request) -> Response:
        name = await self._camera(request)
        try:
            served = await self._threads.pictures.run(self._run.picture, name)
        except UserError as error:
            raise NotThere(str(error), error_id=error.error_id) from None
        if served is None:
            why = "the run keeps no pictures: give its graph a stage `sink_footage`"
            raise NotThere(why, error_id="pictures-not-kept")
        tag = f'"{served.facts.get("epoch")}-{served.facts.get("pts")}"'
        headers = {"ETag": tag, "Cache-Control": "no-cache, private"}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(served.jpeg, media_type="image/jpeg", headers=headers)


def _check_new(settings: Mapping[str, JsonValue]) -> None:
    """Raises UserError for what nobody may say from afar."""
    if "${" in json.dumps(settings):
        # Otherwise a camera at an address of theirs would be sent the secrets and files of the run.
        raise UserError(
            "variables cannot be used here: write the values, or add the camera to the graph file",
            error_id="camera-change",
        )
    if _is_file(settings.get("url")):
        # It would tell which files there are on the machine, and show the films among them.
        raise UserError(
            "a file can only be added on the machine itself: `camgraph cameras add`", error_id="camera-change"
        )
    _check_scheme(settings.get("url"))


def _check_scheme(url: object) -> None:
    """FFmpeg knows many more, some of which read files. Raises UserError."""
    scheme = "" if url is None else str(url).partition("://")[0].lower()
    if scheme and scheme not in _SCHEMES:
        raise UserError(
            f"{shown(scheme)[:20]}:// cannot be added here: expected {', '.join(_SCHEMES)}. On the machine itself, "
            "`camgraph cameras add` adds any",
            error_id="camera-change",
        )


def _is_file(url: object) -> bool:
    """Whether an address is none of the network; settings without an address are those of other sources."""
    return url is not None and ("://" not in str(url) or str(url).lower().startswith("file:"))
