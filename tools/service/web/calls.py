"""A call of the service: a method, a path, the role that may make it, and the function that answers.

The routes, the OpenAPI document and the test of all roles are made from the table of calls.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from camgraph.pipeline.errors import CamgraphError, EnvironmentProblem, Unavailable, UserError
from camgraph.pipeline.foreign_text import shown
from camgraph.pipeline.system.redaction import redact_urls
from camgraph.tools.service.web.queries import Parameter
from camgraph.tools.service.web.quotas import QuotaExceeded
from camgraph.tools.service.web.withheld_paths import as_told_to

Role = Literal["anyone", "viewer", "operator", "admin"]
"""Each may do what those before it may. `anyone` needs no token: probes, and the page without its data."""
ROLES: tuple[Role, ...] = get_args(Role)

_BODY_S, _FILES_S = 10.0, 60.0
MOST_BODY = 64 << 10
"""Bytes of a body."""
Answer = Callable[[Request], Awaitable[Response]]


_MOST_SHOWN = 60


class NotThere(UserError):
    """There is no such thing, or it has nothing to give now."""


class Conflict(UserError):
    """It cannot be done as things are."""


class TooLarge(UserError):
    """The body of a request is larger than any call needs."""

    error_id = "too-large"


class Body(BaseModel):
    """The body that a call expects, as a JSON object. `words`: the same in words, for errors."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)
    words: ClassVar[str]


B = TypeVar("B", bound=Body)


@dataclass(frozen=True, slots=True)
class Gives:
    """The answer of a call that succeeds. `type`: the type of the object in JSON; None for any other content."""

    about: str = "done"
    type: Any = None
    media: str = "application/json"
    status: int = 200
    also: Mapping[int, str] = field(default_factory=dict)
    """Other codes that are no errors, of the same kind or without a body -> when."""


NOTHING: Any = dict[str, Any]
"""`Gives.type` of an object without anything that would be promised."""
NOT_MODIFIED = {304: "it is still what `If-None-Match` names"}


@dataclass(frozen=True, slots=True)
class Call:
    """A call of the service. `about`: one sentence for the OpenAPI document."""

    method: Literal["GET", "POST", "DELETE"]
    path: str
    role: Role
    answer: Answer
    about: str
    gives: Gives
    query: Mapping[str, Parameter] = field(default_factory=dict)
    body: type[Body] | None = None
    files: tuple[str, ...] = ()
    """The kinds of a body that is no JSON."""
    most_body: int = MOST_BODY
    errors: Mapping[int, str] = field(default_factory=dict)
    """Code -> when: those alone that do not follow from the rest (tools/service/web/openapi.py)."""

    async def guarded(self, request: Request) -> Response:
        """Answer the call, but refuse it if the role of the client is too low."""
        refused = _refusal(self.role, request.scope.get("camgraph.role", "anyone"))
        if refused is not None:
            return refused
        try:
            return await self.answer(request)
        except (CamgraphError, ClientDisconnect) as error:
            why = as_told_to(request, str(error) or "the rest of the request did not come")
            return failure(_status_of(error), why, error_id=_id_of(error))


def routes_of(calls: Sequence[Call]) -> list[Route]:
    """A route for each path, which knows all its methods: the answer to another one names them (`Allow`)."""
    paths: dict[str, dict[str, Call]] = {}
    for call in calls:
        paths.setdefault(call.path, {})[call.method] = call
    return [Route(path, _one_of(methods), methods=list(methods)) for path, methods in paths.items()]


def _one_of(methods: Mapping[str, Call]) -> Answer:
    async def answer(request: Request) -> Response:
        return await methods["GET" if request.method == "HEAD" else request.method].guarded(request)

    return answer


def _status_of(error: Exception) -> int:
    if isinstance(error, QuotaExceeded):
        return 429
    if isinstance(error, EnvironmentProblem | Unavailable):
        return 503
    if isinstance(error, TooLarge):
        return 413
    if isinstance(error, NotThere):
        return 404
    if isinstance(error, Conflict):
        return 409
    return 400 if isinstance(error, UserError | ClientDisconnect) else 500


def _id_of(error: Exception) -> str:
    if isinstance(error, ClientDisconnect):
        return "request-value"
    return getattr(error, "error_id", "") or "bug"  # without one, it was meant for the run and not for people


def _refusal(needed: Role, has: Role) -> Response | None:
    if ROLES.index(has) >= ROLES.index(needed):
        return None
    if has == "anyone":
        why = "a token is needed: send it as `Authorization: Bearer TOKEN`, or log in on the page"
        return failure(401, why, error_id="token-missing")
    why = f"the role {needed} is needed, and this token has the role {has}"
    return failure(403, why, error_id="role-too-low")


class Failure(TypedDict):
    """The reason why a call failed, for people. `id`: the kind of error, for `camgraph explain`."""

    error: str
    id: str


def failure(status: int, why: str, headers: Mapping[str, str] | None = None, *, error_id: str) -> JSONResponse:
    """An error, without secrets."""
    answer: Failure = {"error": redact_urls(why), "id": error_id}
    more = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    return JSONResponse(answer, status, {**(headers or {}), **more})


async def json_body(request: Request) -> dict[str, object]:
    """The body of the request as an object. Raises UserError if it is none."""
    text = await bytes_of(request, MOST_BODY)
    try:
        sent = json.loads(text)
        json.dumps(sent, ensure_ascii=False).encode()  # half a character is none
    except (ValueError, RecursionError):
        sent = None
    if not isinstance(sent, dict):
        raise UserError("expected a JSON object as the body of the request", error_id="request-value")
    return sent


async def body_of(request: Request, kind: type[B]) -> B:
    """The body of the request in this form. Raises UserError if it has another form."""
    sent = await json_body(request)
    try:
        return kind.model_validate(sent)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = shown(".".join(map(str, first["loc"])))[:_MOST_SHOWN]
        raise UserError(f"expected {kind.words} ({where}: {first['msg']})", error_id="request-value") from None


async def bytes_of(request: Request, most: int) -> bytes:
    """The bytes of the body. Raises UserError if there are more than the limit, or if they take too long."""
    within_s = _BODY_S if most <= MOST_BODY else _FILES_S
    try:
        async with asyncio.timeout(within_s):
            return await _body(request, most)
    except TimeoutError:
        raise UserError(f"expected the body of the request within {within_s:g} s", error_id="request-value") from None


async def _body(request: Request, most: int) -> bytes:
    text = bytearray()
    async for piece in request.stream():
        text += piece
        if len(text) > most:
            raise TooLarge(f"expected a body of at most {most} bytes")
    return bytes(text)
