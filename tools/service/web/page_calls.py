"""The page, and logging in to it. Anybody may have its files: what they show comes from the API."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import ClassVar

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from camgraph.tools.service.web.access import TOO_MANY_WRONG, Access, TooManyWrong
from camgraph.tools.service.web.calls import NOT_MODIFIED, NOTHING, Body, Call, Gives, Role, body_of, failure
from camgraph.tools.service.web.quotas import client_of

_FOLDER = Path(__file__).parents[1] / "page"
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_YEAR_S = 365 * 86_400


class Login(Body):
    """Somebody who wants a cookie."""

    words: ClassVar = '{"token": TOKEN}'

    token: str


class Person(TypedDict):
    """`name`: of the token; "" without one."""

    name: str
    role: Role


def page_calls(access: Access) -> list[Call]:
    """See the module."""
    # Read once: who installs another version starts the run anew.
    files = {path.name: _PageFile(path) for path in sorted(_FOLDER.iterdir()) if path.suffix in _TYPES}

    def file(request: Request, name: str) -> Response:
        found = files.get(name)
        return found.answer(request) if found else failure(404, "the page has no such file", error_id="call-unknown")

    async def index(request: Request) -> Response:
        return file(request, "index.html")

    async def part(request: Request) -> Response:
        return file(request, request.path_params["file"])

    async def login(request: Request) -> Response:
        token = (await body_of(request, Login)).token
        try:
            who = None if access.is_open else access.authenticated(client_of(request.scope), "bearer", token.strip())
        except TooManyWrong:
            return TOO_MANY_WRONG.answer()
        if who is None:
            return failure(401, "this token is not known", error_id="token-unknown")
        answer = JSONResponse({"name": who.name, "role": who.role})
        is_tls = request.url.scheme == "https"
        # Without a path, a browser sends the cookie to the folder of this call alone: below a path of a proxy, too.
        answer.set_cookie(
            access.cookie,
            access.session_of(token.strip()),
            _YEAR_S,
            path=None,
            httponly=True,
            samesite="strict",
            secure=is_tls,
        )
        return answer

    async def logout(request: Request) -> Response:
        answer = JSONResponse({})
        answer.set_cookie(access.cookie, "", 0, path=None, httponly=True, samesite="strict")
        return answer

    async def me(request: Request) -> Response:
        return JSONResponse({"name": request.scope["camgraph.name"], "role": request.scope["camgraph.role"]})

    part_of_it = Gives(media="*/*", also=NOT_MODIFIED)
    return [
        Call("GET", "/", "anyone", index, "The page.", Gives(media="text/html", also=NOT_MODIFIED)),
        Call("GET", "/page/{file}", "anyone", part, "A part of the page.", part_of_it),
        Call("POST", "/login", "anyone", login, "Get a cookie for a token.", Gives(type=Person), body=Login),
        Call("POST", "/logout", "anyone", logout, "Give the cookie back.", Gives(type=NOTHING)),
        Call("GET", "/api/me", "anyone", me, "Whose token this is, and the role it has.", Gives(type=Person)),
    ]


class _PageFile:
    def __init__(self, path: Path) -> None:
        self._bytes = path.read_bytes()
        self._type = _TYPES[path.suffix]
        self._tag = f'"{hashlib.sha256(self._bytes).hexdigest()[:16]}"'

    def answer(self, request: Request) -> Response:
        headers = {"ETag": self._tag, "Cache-Control": "no-cache"}
        if request.headers.get("if-none-match") == self._tag:
            return Response(status_code=304, headers=headers)
        return Response(self._bytes, media_type=self._type, headers=headers)
