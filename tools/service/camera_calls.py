"""The calls about cameras: list, add, remove, pause, resume, and the newest picture of one."""

from __future__ import annotations

import json
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from pipeline.errors import UserError
from pipeline.foreign_text import shown
from pipeline.system.names import nfc
from tools.service.calls import Call, failure, json_body
from tools.service.run_link import RunLink

_SHOWN = ("state", "why", "since_s", "losses", "fps", "frames", "drops", "drops_by_reason", "age_ms", "events", "error",
          "facts")  # fmt: skip


def checked_camera(run: RunLink, name: str) -> str:
    """Its name in normal form. Raises LookupError if the run has no such camera."""
    if nfc(name) not in run.status()["cameras"]:
        raise LookupError(f"the run has no camera {shown(name)[:60]}")
    return nfc(name)


def camera_calls(run: RunLink) -> list[Call]:
    """See the module."""

    def listed() -> list[dict[str, Any]]:
        return [{"name": name, **{key: one[key] for key in _SHOWN}} for name, one in run.status()["cameras"].items()]

    async def cameras(request: Request) -> Response:
        return JSONResponse({"cameras": await run_in_threadpool(listed)})

    async def add(request: Request) -> Response:
        body = await json_body(request)
        name, settings = body.get("name"), body.get("settings")
        if not isinstance(name, str) or not isinstance(settings, dict):
            raise UserError('expected {"name": NAME, "settings": {"url": ...}}, with the settings of a graph file')
        if "${" in json.dumps(settings):
            # Otherwise a camera at an address of theirs would be sent the secrets and files of the run.
            raise UserError("variables cannot be used here: write the values, or add the camera to the graph file")
        if _is_file(settings.get("url")):
            # It would tell which files there are on the machine, and show the films among them.
            raise UserError("a file can only be added on the machine itself: `camgraph cameras add`")
        answer = await run_in_threadpool(run.ask, "add", camera=name, given=settings)
        return JSONResponse({"remarks": list(answer.get("remarks", ()))}, 202)

    async def change(request: Request, op: str) -> Response:
        try:
            name = await run_in_threadpool(checked_camera, run, request.path_params["name"])
        except LookupError as error:
            return failure(404, str(error))
        await run_in_threadpool(run.ask, op, camera=name)
        return JSONResponse({}, 202)

    async def remove(request: Request) -> Response:
        return await change(request, "remove")

    async def pause(request: Request) -> Response:
        return await change(request, "pause")

    async def resume(request: Request) -> Response:
        return await change(request, "resume")

    async def picture(request: Request) -> Response:
        try:
            name = await run_in_threadpool(checked_camera, run, request.path_params["name"])
        except LookupError as error:
            return failure(404, str(error))
        try:
            served = await run_in_threadpool(run.picture, name)
        except UserError as error:
            return failure(404, str(error))
        if served is None:
            return failure(404, "the run keeps no pictures: give its graph a stage `sink_footage`")
        tag = f'"{served.facts.get("epoch")}-{served.facts.get("pts")}"'
        headers = {"ETag": tag, "Cache-Control": "no-cache, private"}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(served.jpeg, media_type="image/jpeg", headers=headers)

    one = "/api/cameras/{name}"
    return [
        Call("GET", "/api/cameras", "viewer", cameras, "The cameras: state, rates, drops."),
        Call(
            "POST",
            "/api/cameras",
            "admin",
            add,
            "Take one more camera into the run.",
            body='{"name": NAME, "settings": {"url": ...}}, the settings as in a graph file',
        ),
        Call("DELETE", one, "admin", remove, "End a camera: its frames on the way still arrive."),
        Call("POST", f"{one}/pause", "operator", pause, "Let a camera rest."),
        Call("POST", f"{one}/resume", "operator", resume, "Let a camera that rests go on."),
        Call("GET", f"{one}/picture.jpg", "viewer", picture, "The newest picture, without anything drawn on it."),
    ]


def _is_file(url: object) -> bool:
    """Whether an address is none of the network; settings without an address are those of other sources."""
    return url is not None and ("://" not in str(url) or str(url).lower().startswith("file:"))
