"""The calls of monitors: `/healthz`, `/readyz` and `/metrics`, and the whole state for programs."""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NotRequired

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from camgraph.pipeline.errors import CamgraphError
from camgraph.pipeline.monitoring.health import Level
from camgraph.pipeline.monitoring.run_status import RunStatus
from camgraph.tools.measuring.nvidia_smi import LOADS, GpuLoad, loads_of
from camgraph.tools.service.run.metrics import CONTENT_TYPE, exposition
from camgraph.tools.service.run.run_link import FRESH_S, NO_ANSWER, RunLink
from camgraph.tools.service.web.calls import Call, Gives
from camgraph.tools.service.web.thread_pools import ThreadPools
from camgraph.tools.service.web.withheld_paths import as_told_to, sees_paths, without_folders

_FRESH_S = 5.0
"""For so long an answer is given to all who ask: nvidia-smi takes processor time, up to a second of it."""
_OLD_S = 60.0
"""An answer is given for so long while a newer one is awaited: without its persistence mode, the driver may take
seconds for each, and a scrape every quarter of a minute would never see one."""


class Rendered:
    """What was made of a state of the run, for all who ask while it is the same. May be used from several threads."""

    def __init__(self, make: Callable[..., bytes]) -> None:
        self._make = make
        self._making = threading.Lock()
        self._of: object = self
        self._made = b""
        self._until_s = 0.0

    def of(self, status: object, *more: object) -> bytes:
        """Only the first one who asks waits for it to be made."""
        with self._making:
            if status is not self._of or time.monotonic() > self._until_s:
                self._made, self._of = self._make(status, *more), status
                self._until_s = time.monotonic() + FRESH_S
            return self._made


def _exposed(status: RunStatus | None, gpus: Callable[[], Sequence[GpuLoad]]) -> bytes:
    return exposition(status, gpus())


def _as_json(status: Mapping[str, Any]) -> bytes:
    return bytes(JSONResponse(dict(status)).body)


def _for_viewers(status: Mapping[str, Any]) -> bytes:
    return _as_json(without_folders(status))


class HealthAnswer(TypedDict):
    """`reason`: for those alone who have a token."""

    level: Level
    reason: NotRequired[str]


def health_calls(run: RunLink, threads: ThreadPools) -> list[Call]:
    """See the module."""
    calls = _HealthCalls(run, threads)
    state = Gives("it is well", HealthAnswer, also={503: "it is not"})
    return [
        Call("GET", "/healthz", "anyone", calls.healthz, "200 unless the run is down or does not answer, else 503.",
             state),
        Call("GET", "/readyz", "anyone", calls.readyz, "200 while the run is running and not down, else 503.", state),
        Call("GET", "/metrics", "viewer", calls.metrics, "All metrics, for Prometheus.",
             Gives(media=CONTENT_TYPE), errors=NO_ANSWER),
        Call("GET", "/api/status", "viewer", calls.whole,
             "All that is known of the run, as `camgraph status --json`; viewers see paths without folders.",
             Gives(type=RunStatus), errors=NO_ANSWER),
    ]  # fmt: skip


class _HealthCalls:
    def __init__(self, run: RunLink, threads: ThreadPools) -> None:
        self._run, self._threads, self._gpus = run, threads, Gpus()
        self._text, self._plain, self._viewed = Rendered(_exposed), Rendered(_as_json), Rendered(_for_viewers)

    async def healthz(self, request: Request) -> Response:
        return await self._health(request, is_ready=False)

    async def readyz(self, request: Request) -> Response:
        return await self._health(request, is_ready=True)

    async def _health(self, request: Request, *, is_ready: bool) -> Response:
        status, why = await self._known()
        level = status.health.level if status else "down"
        good = level != "down" and (not is_ready or (status is not None and status.phase == "running"))
        answer = {"level": level}
        if request.scope["camgraph.role"] != "anyone":
            answer["reason"] = as_told_to(request, status.health.reason if status else why)
        return JSONResponse(answer, 200 if good else 503)

    async def _known(self) -> tuple[RunStatus | None, str]:
        try:
            return await self._threads.health.run(self._run.status), ""
        except CamgraphError as error:
            return None, str(error)

    # One way to a thread and back for each answer: on a full machine, each waits for a core.
    async def metrics(self, _: Request) -> Response:
        return Response(await self._threads.health.run(self._exposed), media_type=CONTENT_TYPE)

    def _exposed(self) -> bytes:
        try:
            status = self._run.status()
        except CamgraphError:
            status = None
        return self._text.of(status, self._gpus.now)

    async def whole(self, request: Request) -> Response:
        rendered = self._plain if sees_paths(request) else self._viewed
        return Response(await self._threads.health.run(self._whole, rendered), media_type="application/json")

    def _whole(self, rendered: Rendered) -> bytes:
        return rendered.of(self._run.answer())


class Gpus:
    """The GPUs of this machine, as nvidia-smi tells them. May be used from several threads.

    nvidia-smi may hang for ever if the driver is ill, and then not even a kill ends it. So one thread at a time asks,
    and nobody waits for nvidia-smi longer than `within_s`; nvidia-smi itself is given up after `given_up_s`.
    """

    def __init__(self, program: str = "nvidia-smi", *, within_s: float = 2.0, given_up_s: float = 20.0) -> None:
        self._program = program
        self._within_s = within_s
        self._given_up_s = given_up_s
        self._asking = threading.Lock()
        self._answered = threading.Event()
        self._answered.set()
        self._known: tuple[GpuLoad, ...] = ()
        self._fresh_until_s = self._known_until_s = 0.0

    def now(self) -> Sequence[GpuLoad]:
        """All GPUs; none if there is no driver of NVIDIA, or if it does not answer."""
        with self._asking:
            if self._answered.is_set() and time.monotonic() >= self._fresh_until_s:
                self._ask()
        if time.monotonic() >= self._known_until_s:  # otherwise those of a moment ago are given at once
            self._answered.wait(self._within_s)
        return self._known if time.monotonic() < self._known_until_s else ()

    def _ask(self) -> None:
        program = shutil.which(self._program)
        if program is None:
            self._note(())
            return
        self._answered.clear()
        try:
            threading.Thread(target=self._run, args=(program,), name="nvidia-smi", daemon=True).start()
        except RuntimeError:  # the machine gives no thread now: who asks next tries again
            self._answered.set()

    def _run(self, program: str) -> None:
        try:
            self._note(tuple(loads_of(self._output(program))))
        finally:
            self._answered.set()

    def _note(self, gpus: tuple[GpuLoad, ...]) -> None:
        now_s = time.monotonic()
        self._known, self._fresh_until_s, self._known_until_s = gpus, now_s + _FRESH_S, now_s + _OLD_S

    def _output(self, program: str) -> str:
        try:
            done = subprocess.run(  # noqa: S603 - as found on PATH
                (program, *LOADS), stdin=subprocess.DEVNULL, capture_output=True, timeout=self._given_up_s, check=True
            )
        except (OSError, subprocess.SubprocessError):
            return ""
        return done.stdout.decode(errors="replace")
