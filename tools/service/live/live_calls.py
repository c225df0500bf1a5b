"""The calls that show a camera as it is now: its video, its pictures, and the people in it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from camgraph.pipeline.errors import Unavailable, UserError, WireError
from camgraph.pipeline.system.names import ascii_form
from camgraph.pipeline.system.side_link import follow
from camgraph.stages.rules.people_tap import SUFFIX as PEOPLE
from camgraph.stages.video.packets import SUFFIX as PACKETS
from camgraph.tools.service.live.live_pictures import BOUNDARY, MOST_CAMERAS, PictureFilm, PictureViewer
from camgraph.tools.service.live.live_video import Film, FilmViewer
from camgraph.tools.service.live.picture_link import PictureProcess
from camgraph.tools.service.live.watching import MOST_VIEWERS, Showing, Watching
from camgraph.tools.service.run.camera_calls import checked_camera
from camgraph.tools.service.run.run_link import RunLink
from camgraph.tools.service.web.calls import Call, Gives, NotThere
from camgraph.tools.service.web.queries import OneOf, query_of
from camgraph.tools.service.web.quotas import Quota, QuotaResponse, requester_of
from camgraph.tools.service.web.thread_pools import ThreadPools

_NO_VIDEO = "live video is off: set `video: true` at the stage `serve`, unless another stage lets no picture leave"
_TOO_MANY = {429: "you look at too many things at once", 503: "the run does not answer, or too many look already"}
_NO_FILM = {400: "the camera cannot be watched live, and why", **_TOO_MANY}
_PARTS = f"multipart/x-mixed-replace; boundary={BOUNDARY}"
_MJPEG = {"draw": OneOf("Whether people and zones are drawn on the pictures; by default they are.", ("yes", "no"))}
_NOT_KEPT = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_MOST_PEOPLE = 64
"""Streams of people at once."""
_MOST_LINE = 4 << 20
_MOST_WAITING = 16
"""Lines of one who looks; the stage parts with those who are far behind."""
_HEARTBEAT_S = 15.0
_AGAIN_S = 3.0


def live_calls(run: RunLink, threads: ThreadPools, pictures: PictureProcess, *, video: bool) -> list[Call]:
    """`video`: whether pictures may leave."""
    calls, one = _LiveCalls(run, threads, pictures, video=video), "/api/cameras/{name}"
    return [
        Call("GET", f"{one}/live.mp4", "viewer", calls.live, "The video as it comes: an MP4 without an end.",
             Gives(media="video/mp4"), errors=_NO_FILM),
        Call("GET", f"{one}/mjpeg", "viewer", calls.mjpeg, "Pictures as they come, people and zones drawn on them.",
             Gives(media=_PARTS), _MJPEG, errors=_NO_FILM),
        Call("GET", f"{one}/people", "viewer", calls.people, "The people in each frame, and what the rules say (SSE).",
             Gives(media="text/event-stream"), errors=_TOO_MANY),
    ]  # fmt: skip


class _LiveCalls:
    """What is shown at present, and how much of it anybody may have."""

    def __init__(self, run: RunLink, threads: ThreadPools, pictures: PictureProcess, *, video: bool) -> None:
        self._run, self._threads, self._pictures, self._video = run, threads, pictures, video
        self._seen = LivePeople()
        watched = Quota("live videos and pictures", MOST_VIEWERS, of_client=8, of_name=16)
        self._films = Watching[Film](watched)
        # Of what costs the most: a client alone has half of the cameras, as many as a browser can show at a time.
        rows = Quota("rows of pictures", MOST_VIEWERS, of_client=MOST_CAMERAS // 2, of_name=MOST_CAMERAS * 3 // 4)
        self._rows = Watching[PictureFilm](watched, rows, most=MOST_CAMERAS)
        # The others are for those whose pictures people are drawn on.
        self._streams = Quota("streams of people", _MOST_PEOPLE - MOST_CAMERAS, of_client=16, of_name=28)

    async def _camera(self, request: Request) -> str:
        return await self._threads.run.run(checked_camera, self._run, request.path_params["name"])

    async def _packets(self, request: Request) -> tuple[str, Path]:
        """The camera and its socket. Raises UserError if it may not be shown, NotThere if it cannot be."""
        if not self._video:
            raise UserError(_NO_VIDEO, error_id="video-off")
        name = await self._camera(request)
        path = await self._threads.run.run(self._run.sockets, f"{ascii_form(name)}{PACKETS}")
        if not path:
            raise NotThere(
                "the camera sends no video now; live video needs a stage `sink_footage` in the graph",
                error_id="no-picture",
            )
        return name, path[0]

    async def live(self, request: Request) -> Response:
        _, path = await self._packets(request)
        if request.method == "HEAD":  # its answer would never end
            return Response(media_type="video/mp4", headers=_NOT_KEPT)
        showing = self._films.show(path, lambda ended: Film(path, ended), FilmViewer(), requester_of(request))
        with _left_if_failed(showing):
            facts = (await showing.begin()).facts
        start = f"{float(facts.start):.6f}"
        headers = _NOT_KEPT | {"X-Camgraph-Epoch": str(facts.epoch), "X-Camgraph-Start": start}
        return QuotaResponse(showing.pieces(), showing.leave, facts.content_type, headers)

    async def mjpeg(self, request: Request) -> Response:
        drawn = query_of(request, _MJPEG)["draw"] != "no"
        name, path = await self._packets(request)
        if request.method == "HEAD":
            return Response(media_type=_PARTS, headers=_NOT_KEPT)

        def make(ended: Callable[[], object]) -> PictureFilm:
            people = self._seen.for_ever(self._stages, name)
            return PictureFilm(path, ended, people, self._pictures, self._threads.decoder)

        showing = self._rows.show(path, make, PictureViewer(drawn=drawn), requester_of(request))
        with _left_if_failed(showing):
            (await showing.begin()).begin_check()
        return QuotaResponse(showing.pieces(), showing.leave, _PARTS, _NOT_KEPT)

    async def _stages(self) -> Sequence[Path]:
        try:
            return await self._threads.run.run(self._run.sockets, f"*{PEOPLE}")
        except Unavailable:  # the pictures go on, and the stages are looked for again a little later
            return ()

    async def people(self, request: Request) -> Response:
        name = await self._camera(request)
        paths = await self._threads.run.run(self._run.sockets, f"*{PEOPLE}")
        if not paths:
            why = "the run judges nobody: its graph has no stage `rules`, or that is being started"
            raise NotThere(why, error_id="nothing-to-read")
        self._streams.check(requester_of(request))
        if request.method == "HEAD":
            return Response(media_type="text/event-stream", headers=_NOT_KEPT)
        release = self._streams.acquire(requester_of(request))
        return QuotaResponse(_as_events(self._seen.lines(paths, name)), release, "text/event-stream", _NOT_KEPT)


@contextmanager
def _left_if_failed(showing: Showing[Any]) -> Iterator[None]:
    try:
        yield
    except BaseException:
        showing.leave()
        raise


async def _as_events(lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield b"retry: 2000\n\n"
    async for line in lines:
        yield b"data: %b\n\n" % line if line else b": still here\n\n"


class LivePeople:
    """The people of a camera as they are seen, for those who look: lines from all stages `rules` of the run.

    To each line its stage is added: `{"stage": "actions", "epoch": ...}`. For one loop.
    """

    def __init__(self) -> None:
        self.viewers = 0

    async def lines(self, paths: Sequence[Path], camera: str) -> AsyncGenerator[bytes]:
        """Lines of JSON without their ends, until all stages have ended; empty ones while nothing comes."""
        lines: asyncio.Queue[bytes | None] = asyncio.Queue(_MOST_WAITING)
        tasks = [asyncio.ensure_future(_read(path, camera, lines)) for path in paths]
        self.viewers += 1
        try:
            left = len(tasks)
            while left:
                try:
                    async with asyncio.timeout(_HEARTBEAT_S):
                        line = await lines.get()
                except TimeoutError:
                    line = b""
                if line is None:
                    left -= 1
                else:
                    yield line
        finally:
            self.viewers -= 1
            for task in tasks:
                task.cancel()

    async def for_ever(self, find: Callable[[], Awaitable[Sequence[Path]]], camera: str) -> AsyncIterator[bytes]:
        """As `lines`, but when the stages have ended, those that `find` finds then; nothing while too many look."""
        while True:
            paths = await find()
            if paths and self.viewers < _MOST_PEOPLE:
                async with aclosing(self.lines(paths, camera)) as lines:
                    async for line in lines:
                        yield line
            await asyncio.sleep(_AGAIN_S)


async def _read(path: Path, camera: str, lines: asyncio.Queue[bytes | None]) -> None:
    """All lines of one stage, then None."""
    stage = b'{"stage":%b,' % json.dumps(path.parent.name).encode()
    with suppress(OSError, WireError), closing(follow(path, camera, most=_MOST_LINE)) as link:
        while True:
            for line in await link.arrive():
                if not isinstance(line, bytes):  # it says why it tells nothing
                    raise WireError("expected a line of JSON")
                await lines.put(stage + line[1:])
    await lines.put(None)
