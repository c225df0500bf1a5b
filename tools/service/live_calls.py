"""The calls that show a camera as it is now: its video, and the people in it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from pipeline.system.names import ascii_form
from stages.footage.packets import SUFFIX as PACKETS
from stages.rulebook.people_tap import SUFFIX as PEOPLE
from tools.service.calls import Call, Gives, failure
from tools.service.camera_calls import checked_camera
from tools.service.live_people import MOST_VIEWERS, LivePeople
from tools.service.live_video import FilmFacts, LiveVideo, Showing
from tools.service.run_link import RunLink

_NO_VIDEO = "live video is off: set `video: true` at the stage `serve`, unless another stage lets no picture leave"
_TOO_MANY = {503: "the run does not answer, or too many look already"}
_NO_FILM = {400: "the camera cannot be watched live, and why", **_TOO_MANY}
_NOT_KEPT = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


def live_calls(run: RunLink, *, video: bool) -> list[Call]:
    """`video`: whether pictures may leave."""
    films, seen = LiveVideo(), LivePeople()

    async def live(request: Request) -> Response:
        if not video:
            return failure(400, _NO_VIDEO)
        try:
            name = await run_in_threadpool(checked_camera, run, request.path_params["name"])
        except LookupError as error:
            return failure(404, str(error))
        path = await run_in_threadpool(run.sockets, f"{ascii_form(name)}{PACKETS}")
        if not path:
            return failure(404, "the camera sends no video now")
        if request.method == "HEAD":  # its answer would never end
            return Response(media_type="video/mp4", headers=_NOT_KEPT)
        showing = films.show(path[0])
        try:
            facts = await showing.begin()
        except BaseException:
            showing.leave()
            raise
        return _FilmResponse(showing, facts)

    async def people(request: Request) -> Response:
        try:
            name = await run_in_threadpool(checked_camera, run, request.path_params["name"])
        except LookupError as error:
            return failure(404, str(error))
        paths = await run_in_threadpool(run.sockets, f"*{PEOPLE}")
        if not paths:
            return failure(404, "the run judges nobody: its graph has no stage `rules`, or that is being started")
        if seen.viewers >= MOST_VIEWERS:
            return failure(503, f"{MOST_VIEWERS} others look already")
        if request.method == "HEAD":
            return Response(media_type="text/event-stream", headers=_NOT_KEPT)
        pieces = _as_events(seen.lines(paths, name))
        return StreamingResponse(pieces, media_type="text/event-stream", headers=_NOT_KEPT)

    one = "/api/cameras/{name}"
    return [
        Call("GET", f"{one}/live.mp4", "viewer", live, "The video as it comes: an MP4 without an end.",
             Gives(media="video/mp4"), errors=_NO_FILM),
        Call("GET", f"{one}/people", "viewer", people, "The people in each frame, and what the rules say (SSE).",
             Gives(media="text/event-stream"), errors=_TOO_MANY),
    ]  # fmt: skip


class _FilmResponse(StreamingResponse):
    """`X-Camgraph-Epoch` and `X-Camgraph-Start` name the frame at 0, as `frame` in events and `at` of people do."""

    def __init__(self, showing: Showing, facts: FilmFacts) -> None:
        headers = _NOT_KEPT | {"X-Camgraph-Epoch": str(facts.epoch), "X-Camgraph-Start": f"{float(facts.start):.6f}"}
        super().__init__(showing.pieces(), media_type=facts.content_type, headers=headers)
        self._showing = showing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> Any:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._showing.leave()


async def _as_events(lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield b"retry: 2000\n\n"
    async for line in lines:
        yield b"data: %b\n\n" % line if line else b": still here\n\n"
