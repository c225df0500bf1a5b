"""The call that asks the running model about pictures: one, or several in a form. Cameras come first."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from camgraph.pipeline.errors import UserError
from camgraph.stages.messages import People
from camgraph.tools.service.model.model_link import Looked, ModelLink, ModelWay, check_picture
from camgraph.tools.service.run.run_link import NO_ANSWER, RunLink
from camgraph.tools.service.web.calls import Call, Gives, bytes_of, failure
from camgraph.tools.service.web.queries import Text, query_of
from camgraph.tools.service.web.thread_pools import ThreadPool

MOST_BYTES = 32 << 20
"""Of all pictures of a request."""
MOST_PICTURES = 16
_MOST_WAITING = 4
_WITHIN_S = 60.0
_FORM = "multipart/form-data"
_QUERY = {"model": Text("The stage of the model, if the graph has several; by default the first one")}
_BODIES = ("image/jpeg", "image/png", "image/webp", _FORM)
SHARE = 0.04
"""Of the time. Cameras may lose 5 %, and what is asked for may take longer than it did before."""
_MOST_S = 0.5
"""Saved up while nobody asks."""


class SeenPerson(TypedDict):
    """`bbox`: x1, y1, x2, y2, and `keypoints`: x, y, confidence of one joint after the other, in pixels of the picture
    when it is turned upright. `class_id`: 0 for people."""

    bbox: list[float]
    score: float
    keypoints: list[float]
    class_id: int


class SeenPicture(TypedDict):
    """`name`: of the file in the form; `model_ms`: how long the model took."""

    name: str
    width: int
    height: int
    skeleton: str
    people: list[SeenPerson]
    model_ms: float


class InferAnswer(TypedDict):
    """`stage`: that of the model in the graph; `facts`: what it tells about itself."""

    stage: str
    facts: dict[str, str | int | float]
    pictures: list[SeenPicture]


def infer_calls(run: RunLink, threads: ThreadPool, spare: SpareTime | None = None) -> list[Call]:
    """See the module."""
    asking = _Asking(ModelLink(run), threads, spare or SpareTime())
    about = "Find the people in pictures by the model of the run, between the frames of the cameras."
    errors = {
        **NO_ANSWER,
        400: "what was sent is no picture, or none for the model",
        413: f"more than {MOST_BYTES >> 20} MB",
        503: "the run does not answer, or the cameras leave the model no time: `Retry-After` names seconds to wait",
    }
    return [
        Call("POST", "/api/infer", "operator", asking.answer, about, Gives(type=InferAnswer), query=_QUERY,
             errors=errors, files=_BODIES, most_body=MOST_BYTES),
    ]  # fmt: skip


class _Asking:
    """One request is answered at a time; so many wait, with their pictures."""

    def __init__(self, link: ModelLink, threads: ThreadPool, spare: SpareTime) -> None:
        self._link, self._threads, self._spare = link, threads, spare
        self._turn = asyncio.Lock()
        self._waiting = 0

    async def answer(self, request: Request) -> Response:
        if self._waiting >= _MOST_WAITING:
            return self._busy()
        self._waiting += 1
        try:
            name = query_of(request, _QUERY)["model"]
            way = await self._threads.run(self._link.way, name)
            pictures = await _pictures_of(request)
            for file_name, coded in pictures:  # what is no picture need not wait
                with _about(file_name):
                    await self._threads.run(check_picture, coded)
            until_s = time.monotonic() + _WITHIN_S
            async with asyncio.timeout(_WITHIN_S), self._turn:
                seen = [await self._seen(way, *picture, until_s) for picture in pictures]
            facts = await self._threads.run(self._link.facts, way)
            return JSONResponse({"stage": way.model, "facts": dict(facts), "pictures": seen})
        except TimeoutError:
            return self._busy()
        finally:
            self._waiting -= 1

    async def _seen(self, way: ModelWay, name: str, coded: bytes, until_s: float) -> dict[str, Any]:
        """Raises TimeoutError if it cannot be done until then."""
        needed = await self._threads.run(lambda: self._link.cameras_need_it)
        if needed:
            wait_s = self._spare.wait_s()
            if time.monotonic() + wait_s > until_s:
                raise TimeoutError
            await asyncio.sleep(wait_s)
        begun_s = time.monotonic()
        try:
            with _about(name):
                looked = await self._threads.run(self._link.find_people, way, coded)
        finally:
            if needed:
                self._spare.spend(time.monotonic() - begun_s)
        return _seen(name, looked)

    def _busy(self) -> Response:
        why = f"the cameras leave the model no time: others may take {SHARE:.0%} of it. Send fewer pictures, or later"
        wait_s = max(1, round(self._spare.wait_s()))
        return failure(503, why, {"Retry-After": str(wait_s)}, error_id="model-busy")


@contextmanager
def _about(name: str) -> Iterator[None]:
    """Put the name of the file before what is wrong with it."""
    try:
        yield
    except UserError as error:
        raise UserError(f"{name}: {error}" if name else str(error), error_id=error.error_id) from None


async def _pictures_of(request: Request) -> list[tuple[str, bytes]]:
    """(name, bytes) of each: the body itself, or the files of a form. Raises UserError."""
    body = await bytes_of(request, MOST_BYTES)
    if not request.headers.get("content-type", "").lower().startswith(_FORM):
        return [("", body)]

    async def sent() -> AsyncGenerator[bytes, None]:
        yield body

    try:
        form = await MultiPartParser(request.headers, sent(), max_files=MOST_PICTURES, max_fields=0).parse()
    except (MultiPartException, KeyError, ValueError) as error:
        why = getattr(error, "message", "") or "it cannot be read"
        raise UserError(f"expected a form with pictures as files: {why}", error_id="request-body") from None
    try:
        files = [file for _, file in form.multi_items() if isinstance(file, UploadFile)]
        pictures = [(file.filename or "", await file.read()) for file in files]
    finally:
        await form.close()
    if not pictures:
        raise UserError("expected a form with pictures as files, got none", error_id="request-body")
    return pictures


def _seen(name: str, looked: Looked) -> dict[str, Any]:
    people, (width, height) = looked.people, looked.people.frame_size
    return {
        "name": name,
        "width": width,
        "height": height,
        "skeleton": people.skeleton,
        "people": [_person(people, number) for number in range(len(people))],
        "model_ms": round(looked.seconds * 1e3, 1),
    }


def _person(people: People, number: int) -> dict[str, Any]:
    return {
        "bbox": _rounded(people.boxes[number], 2),
        "score": round(float(people.scores[number]), 3),
        "keypoints": _rounded(people.keypoints[number].ravel(), 2),
        "class_id": int(people.classes[number]),
    }


def _rounded(values: Sequence[Any], digits: int) -> list[float]:
    return [round(float(value), digits) for value in values]


class SpareTime:
    """How much of the machine's time calls to the model may take while cameras need it.

    Time is saved up, and spent by calls. After one, the next waits until it is saved again. For one thread.
    """

    def __init__(self, share: float = SHARE, clock: Callable[[], float] = time.monotonic) -> None:
        self._share, self._clock = share, clock
        self._left_s, self._at_s = _MOST_S, clock()

    def wait_s(self) -> float:
        """Seconds until there is some; 0 if there is now."""
        self._save()
        return max(0.0, -self._left_s / self._share)

    def spend(self, seconds: float) -> None:
        """It has taken so long."""
        self._save()
        self._left_s -= seconds

    def _save(self) -> None:
        now = self._clock()
        self._left_s = min(_MOST_S, self._left_s + (now - self._at_s) * self._share)
        self._at_s = now
