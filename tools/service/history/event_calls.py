"""The calls about events: those of the last weeks by pages, and new ones as they come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from camgraph.pipeline.errors import EnvironmentProblem, Unavailable
from camgraph.tools.service.history.event_history import EventFilter, EventHistory, KeptEvent
from camgraph.tools.service.web.calls import Call, Gives, failure
from camgraph.tools.service.web.queries import Moment, Number, Parameter, Text, query_of
from camgraph.tools.service.web.quotas import Quota, QuotaResponse, requester_of
from camgraph.tools.service.web.thread_pools import ThreadPool

_USUAL, _MOST = 50, 500
_MOST_NUMBER = (1 << 63) - 1
_MOST_STREAMS = 64
_OF_CLIENT, _OF_NAME = 16, 32
_AT_ONCE = 200
_HEARTBEAT_S = 15.0
_TOO_MANY = {429: "you read too many streams at once"}
_NOT_READ = {503: "the history cannot be read now, or the run is stopping, or too many read the stream"}
_LIST: dict[str, Parameter] = {
    "camera": Text("Of this camera alone."),
    "rule": Text("Of this rule, or of this action, alone."),
    "type": Text("Of this type alone, such as camgraph.incident.start."),
    "phase": Text("start, update, end or single; events of stages of others may have phases of their own."),
    "since": Moment("Not older than this time."),
    "until": Moment("Older than this time."),
    "before": Number("The number behind which the page begins: the last one of the page before.", _MOST_NUMBER),
    "limit": Number("So many at most.", _MOST, usual=_USUAL),
}
_STREAM = {
    "after": Number(
        "Begin behind this number; without it, with what comes from now on. `Last-Event-ID` says the same.",
        _MOST_NUMBER,
        least=0,
    )
}


class NumberedEvent(TypedDict):
    """`event`: a CloudEvent, as the sinks get it (docs/rules.md, Events)."""

    number: int
    event: dict[str, Any]


class EventsPage(TypedDict):
    """`more`: whether there are older ones."""

    events: list[NumberedEvent]
    more: bool


def event_calls(history: EventHistory, threads: ThreadPool) -> list[Call]:
    """See the module."""
    streams = _Streams(history, threads)

    async def events(request: Request) -> Response:
        query = query_of(request, _LIST)
        limit = query.pop("limit")
        wanted = EventFilter(**query)
        found = await threads.run(history.page, wanted, limit + 1)
        return Response(_page(found[:limit], more=len(found) > limit), media_type="application/json")

    return [
        Call(
            "GET",
            "/api/events",
            "viewer",
            events,
            "The events of the last weeks, the newest first.",
            Gives("a page of them", EventsPage),
            _LIST,
            errors=_NOT_READ,
        ),
        Call(
            "GET",
            "/api/events/stream",
            "viewer",
            streams.answer,
            "New events, as they come (SSE).",
            Gives("`id` is the number of an event, `data` the event", media="text/event-stream"),
            _STREAM,
            errors=_NOT_READ | _TOO_MANY,
        ),
    ]


class _Streams:
    def __init__(self, history: EventHistory, threads: ThreadPool) -> None:
        self._history, self._threads = history, threads
        self._quota = Quota("streams of events", _MOST_STREAMS, of_client=_OF_CLIENT, of_name=_OF_NAME)

    async def answer(self, request: Request) -> Response:
        query = query_of(request, _STREAM)
        last = request.headers.get("last-event-id")
        asked = query["after"] if last is None else _STREAM["after"].read("Last-Event-ID", last or "0")
        newest = await self._threads.run(self._history.newest)
        # A history that was begun anew has lower numbers.
        after = newest if asked is None else min(newest, asked)
        if self._history.is_over:
            return failure(503, "the run is stopping", error_id="run-over")
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        if request.method == "HEAD":  # its answer would never end
            return Response(media_type="text/event-stream", headers=headers)
        release = self._quota.acquire(requester_of(request))
        return QuotaResponse(self._pieces(after), release, "text/event-stream", headers)

    async def _pieces(self, at: int) -> AsyncIterator[bytes]:
        """Each piece waits until the reader has taken the one before: who reads nothing costs no memory."""
        loop, come = asyncio.get_running_loop(), asyncio.Event()

        def notify() -> None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(come.set)

        with self._history.listening(notify):
            yield b"retry: 2000\n\n"
            while not self._history.is_over:
                come.clear()
                found = await self._next_ones(at)
                for one in found:
                    yield _piece(one)
                    at = one.number
                if not found and not await _within(come, _HEARTBEAT_S):
                    yield b": still here\n\n"

    async def _next_ones(self, at: int) -> list[KeptEvent]:
        """From memory, if they are new; none while the disk fails or hangs: then the stream waits."""
        known = self._history.recent(at, _AT_ONCE)
        if known is not None:
            return known
        with suppress(EnvironmentProblem, Unavailable):
            return await self._threads.run(self._history.after, at, _AT_ONCE)
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
        async with asyncio.timeout(seconds):
            await come.wait()
    except TimeoutError:
        return False
    return True
