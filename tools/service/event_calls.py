"""The calls about events: those of the last weeks by pages, and new ones as they come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from pipeline.errors import EnvironmentProblem
from tools.service.calls import Call, failure
from tools.service.event_history import EventFilter, EventHistory, KeptEvent
from tools.service.queries import moment, number, query_of

_USUAL, _MOST = 50, 500
_MOST_NUMBER = (1 << 63) - 1
_MOST_STREAMS = 64
_AT_ONCE = 200
_HEARTBEAT_S = 15.0
_LIST = {
    "camera": "Of this camera alone.",
    "rule": "Of this rule, or of this action, alone.",
    "type": "Of this type alone, such as camgraph.incident.start.",
    "phase": "start, update, end or single.",
    "since": "Not older than this time.",
    "until": "Older than this time.",
    "before": "The number behind which the page begins: the last one of the page before.",
    "limit": f"So many at most; {_USUAL} if left out, {_MOST} at most.",
}
_STREAM = {"after": "Begin behind this number; without it, with what comes from now on. `Last-Event-ID` says the same."}


def event_calls(history: EventHistory) -> list[Call]:
    """See the module."""
    streams = _Streams(history)

    async def events(request: Request) -> Response:
        query = query_of(request, _LIST)
        limit = number(query, "limit", usual=_USUAL, most=_MOST)
        before = number(query, "before", usual=0, most=_MOST_NUMBER) or None
        since, until = moment(query, "since"), moment(query, "until")
        camera, rule, type_, phase = (query.get(name) for name in ("camera", "rule", "type", "phase"))
        wanted = EventFilter(camera, rule, type_, phase, since, until, before)
        found = await run_in_threadpool(history.page, wanted, limit + 1)
        return Response(_page(found[:limit], more=len(found) > limit), media_type="application/json")

    return [
        Call("GET", "/api/events", "viewer", events, "The events of the last weeks, the newest first.", _LIST),
        Call("GET", "/api/events/stream", "viewer", streams.answer, "New events, as they come (SSE).", _STREAM),
    ]


class _Streams:
    def __init__(self, history: EventHistory) -> None:
        self._history = history
        self._open = 0

    async def answer(self, request: Request) -> Response:
        query = query_of(request, _STREAM)
        text = request.headers.get("last-event-id", query.get("after"))
        newest = await run_in_threadpool(self._history.newest)
        asked = {} if text in (None, "0") else {"after": str(text)}
        # A history that was begun anew has lower numbers.
        after = min(newest, number(asked, "after", usual=0 if text else newest, most=_MOST_NUMBER))
        if self._open >= _MOST_STREAMS:
            return failure(503, f"{_MOST_STREAMS} others read the stream already")
        if self._history.is_over:
            return failure(503, "the run is stopping")
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        if request.method == "HEAD":  # its answer would never end
            return Response(media_type="text/event-stream", headers=headers)
        return StreamingResponse(self._pieces(after), media_type="text/event-stream", headers=headers)

    async def _pieces(self, at: int) -> AsyncIterator[bytes]:
        """Each piece waits until the reader has taken the one before: who reads nothing costs no memory."""
        loop, come = asyncio.get_running_loop(), asyncio.Event()

        def tell() -> None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(come.set)

        self._open += 1
        try:
            with self._history.telling(tell):
                yield b"retry: 2000\n\n"
                while not self._history.is_over:
                    come.clear()
                    found = await self._next_ones(at)
                    for one in found:
                        yield _piece(one)
                        at = one.number
                    if not found and not await _within(come, _HEARTBEAT_S):
                        yield b": still here\n\n"
        finally:
            self._open -= 1

    async def _next_ones(self, at: int) -> list[KeptEvent]:
        """From memory, if they are new; none while the disk fails: then the stream waits."""
        known = self._history.recent(at, _AT_ONCE)
        if known is not None:
            return known
        with suppress(EnvironmentProblem):
            return await run_in_threadpool(self._history.after, at, _AT_ONCE)
        return []


def _page(events: Sequence[KeptEvent], *, more: bool) -> bytes:
    """With the bytes of each event: it may hold what Python reads and cannot write, as half a character."""
    listed = b",".join(b'{"number":%d,"event":%b}' % one for one in events)
    return b'{"events":[%b],"more":%b}' % (listed, b"true" if more else b"false")


def _piece(one: KeptEvent) -> bytes:
    """The outbox has made sure that an event is one line."""
    return b"id: %d\ndata: %b\n\n" % one


async def _within(come: asyncio.Event, seconds: float) -> bool:
    try:
        await asyncio.wait_for(come.wait(), seconds)
    except TimeoutError:
        return False
    return True
