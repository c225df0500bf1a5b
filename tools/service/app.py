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

from pipeline.stage import Logger
from tools.service.access import Access, AccessLayer
from tools.service.calls import Call, failure

_TOLD_S = 60.0


def build_app(calls: Sequence[Call], access: Access, log: Logger) -> ASGIApp:
    """`calls`: all but that of the OpenAPI document, which is made of them."""

    async def openapi(request: Request) -> Response:
        return JSONResponse(document)

    every = [*calls, Call("GET", "/openapi.json", "anyone", openapi, "This document.")]
    document = openapi_of(every)

    async def not_found(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return failure(error.status_code, error.detail)

    told = _Told()

    async def bug(request: Request, error: Exception) -> Response:
        if told.is_due():
            log.error("request_failed", path=request.url.path[:200], failed=told.count, exc_info=error)
        return failure(500, "a bug of camgraph: the log of the run has the details")

    handlers: Any = {HTTPException: not_found, Exception: bug}
    return AccessLayer(Starlette(routes=[call.route() for call in every], exception_handlers=handlers), access)


class _Told:
    """One failure a minute is logged: who finds a bug must not be able to fill the disk by it."""

    def __init__(self) -> None:
        self.count = 0
        self._next_s = 0.0

    def is_due(self) -> bool:
        self.count += 1
        if time.monotonic() < self._next_s:
            return False
        self._next_s = time.monotonic() + _TOLD_S
        return True


def openapi_of(calls: Sequence[Call]) -> dict[str, Any]:
    """An OpenAPI 3.1 document of these calls."""
    paths: dict[str, dict[str, Any]] = {}
    for call in calls:
        path, names = _plain(call.path)
        parameters = [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names]
        parameters += [
            {"name": name, "in": "query", "description": about, "schema": {"type": "string"}}
            for name, about in call.query.items()
        ]
        operation: dict[str, Any] = {
            "summary": call.about,
            "parameters": parameters,
            "responses": {"200": {"description": "done"}, "default": {"description": 'an error: {"error": why}'}},
            "security": [] if call.role == "anyone" else [{"token": []}],
            "x-role": call.role,
        }
        if call.body:
            content = {"application/json": {"schema": {"type": "object"}}}
            operation["requestBody"] = {"description": call.body, "required": True, "content": content}
        paths.setdefault(path, {})[call.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "camgraph", "version": "1", "description": "The service of a camgraph run."},
        "paths": paths,
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


def _plain(path: str) -> tuple[str, list[str]]:
    """`/a/{b:path}` -> `/a/{b}` and the names."""
    names, plain = [], []
    for part in path.split("/"):
        if part.startswith("{"):
            names.append(part.strip("{}").partition(":")[0])
            plain.append("{" + names[-1] + "}")
        else:
            plain.append(part)
    return "/".join(plain), names
