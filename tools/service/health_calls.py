"""The calls of monitors: `/healthz`, `/readyz` and `/metrics`, and the whole state for programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NotRequired

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from pipeline.errors import CamgraphError
from pipeline.monitoring.health import Level
from tools.service.calls import NOTHING, Call, Gives
from tools.service.gpus import Gpus
from tools.service.metrics import CONTENT_TYPE, exposition
from tools.service.run_link import NO_ANSWER, RunLink


class HealthAnswer(TypedDict):
    """`reason`: for those alone who have a token."""

    level: Level
    reason: NotRequired[str]


def health_calls(run: RunLink) -> list[Call]:
    """See the module."""

    gpus = Gpus()

    async def known(request: Request) -> tuple[Mapping[str, Any] | None, str]:
        try:
            return await run_in_threadpool(run.status), ""
        except CamgraphError as error:
            return None, str(error)

    async def health(request: Request, *, is_ready: bool) -> Response:
        status, why = await known(request)
        level: Level = status["health"]["level"] if status else "down"
        good = level != "down" and (not is_ready or (status is not None and status["phase"] == "running"))
        answer: HealthAnswer = {"level": level}
        if request.scope["camgraph.role"] != "anyone":
            answer["reason"] = status["health"]["reason"] if status else why
        return JSONResponse(answer, 200 if good else 503)

    async def healthz(request: Request) -> Response:
        return await health(request, is_ready=False)

    async def readyz(request: Request) -> Response:
        return await health(request, is_ready=True)

    async def metrics(request: Request) -> Response:
        status, _ = await known(request)
        return Response(await run_in_threadpool(lambda: exposition(status, gpus.now())), media_type=CONTENT_TYPE)

    async def whole(request: Request) -> Response:
        return JSONResponse(dict(await run_in_threadpool(run.status)))

    state = Gives("it is well", HealthAnswer, also={503: "it is not"})
    return [
        Call("GET", "/healthz", "anyone", healthz, "200 while frames of some camera go through, else 503.", state),
        Call(
            "GET", "/readyz", "anyone", readyz, "200 once the run is running and while it is not down, else 503.", state
        ),
        Call("GET", "/metrics", "viewer", metrics, "All metrics, for Prometheus.", Gives(media=CONTENT_TYPE)),
        Call(
            "GET",
            "/api/status",
            "viewer",
            whole,
            "All that is known of the run, as `camgraph status --json`.",
            Gives(type=NOTHING),
            errors=NO_ANSWER,
        ),
    ]
