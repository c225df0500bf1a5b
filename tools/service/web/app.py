"""The ASGI application: all calls, behind the layer that knows who asks."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp

from camgraph.pipeline.stage import Logger
from camgraph.tools.service.web.access import Access, AccessLayer
from camgraph.tools.service.web.calls import NOTHING, Call, Gives, failure, routes_of
from camgraph.tools.service.web.openapi import openapi_of

_LOG_EVERY_S = 60.0


def build_app(calls: Sequence[Call], access: Access, log: Logger) -> ASGIApp:
    """`calls`: all but that of the OpenAPI document, which is made of them."""

    async def openapi(request: Request) -> Response:
        return JSONResponse(document)

    every = [*calls, Call("GET", "/openapi.json", "anyone", openapi, "This document.", Gives(type=NOTHING))]
    document = openapi_of(every)

    async def not_found(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        kind = "call-unknown" if error.status_code in (404, 405) else "request-value"
        return failure(error.status_code, error.detail, error.headers, error_id=kind)

    limit = _LogLimit()

    async def bug(request: Request, error: Exception) -> Response:
        if limit.is_due():
            log.error("request_failed", path=request.url.path[:200], failed=limit.failures, exc_info=error)
        return failure(500, "a bug of camgraph: the log of the run has the details", error_id="bug")

    handlers: Any = {HTTPException: not_found, Exception: bug}
    bodies = {call.path: call.most_body for call in calls}
    application = Starlette(routes=routes_of(every), exception_handlers=handlers)
    # A redirect goes to whatever host the request names.
    application.router.redirect_slashes = False
    return AccessLayer(application, access, bodies)


class _LogLimit:
    """One failure a minute is logged: who finds a bug must not be able to fill the disk by it."""

    def __init__(self) -> None:
        self.failures = 0
        self._next_s = 0.0

    def is_due(self) -> bool:
        self.failures += 1
        if time.monotonic() < self._next_s:
            return False
        self._next_s = time.monotonic() + _LOG_EVERY_S
        return True
