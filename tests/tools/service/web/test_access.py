"""Who may ask: tokens, cookies, names of hosts, and pages of others."""

from __future__ import annotations

import asyncio
import base64
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from camgraph.tools.service.web.access import Access, AccessLayer, Identity, Token, TooManyWrong

COOKIE = Access().cookie
TOKENS = [Token("ward", "w" * 20, "viewer"), Token("boss", "b" * 20, "admin")]


async def who(request: Request) -> Response:
    await request.body()
    return PlainTextResponse(f"{request.scope['camgraph.role']} {request.scope['camgraph.name']}")


class Caller:
    """Asks an application, which sees requests as uvicorn hands them on."""

    def __init__(self, access: Access) -> None:
        app = Starlette(routes=[Route("/", who, methods=["GET", "POST"])])
        self._transport = httpx.ASGITransport(AccessLayer(app, access))

    def call(self, method: str, **more: Any) -> httpx.Response:
        async def calling() -> httpx.Response:
            async with httpx.AsyncClient(transport=self._transport, base_url="http://localhost") as client:
                return await client.request(method, "/", **more)

        return asyncio.run(calling())

    def get(self, headers: Any = None) -> httpx.Response:
        return self.call("GET", headers=headers)

    def post(self, headers: Any = None, content: bytes = b"") -> httpx.Response:
        return self.call("POST", headers=headers, content=content)


def test_a_token_has_a_role_and_a_name() -> None:
    access = Access(TOKENS)
    assert access.of_token("b" * 20) == Identity("boss", "admin")
    assert Caller(access).get({"Authorization": "bearer " + "w" * 20}).text == "viewer ward"
    assert Caller(access).get().text == "anyone "


def basic(text: str) -> str:
    return f"Basic {base64.b64encode(text.encode()).decode()}"


def test_as_a_password_a_token_lets_nobody_change_anything() -> None:
    """Browsers keep passwords, and send them from the pages of others."""
    assert Caller(Access(TOKENS)).get({"Authorization": basic("anybody:" + "w" * 20)}).text == "viewer ward"
    assert Caller(Access(TOKENS)).get({"Authorization": basic(":" + "b" * 20)}).text == "viewer boss"
    refused = Caller(Access(TOKENS)).get({"Authorization": basic("boss:wrong")})
    assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer"), "no browser asks for one"


@pytest.mark.parametrize(
    "header",
    ["Bearer x", "Basic " + "w" * 20, "Bearer " + "w" * 19, "Bearer \xff", basic("w" * 20), basic("w" * 20 + ":"),
     "Basic \xff", "Basic /w=="],
)  # fmt: skip
def test_a_wrong_token_is_nobody(header: str) -> None:
    assert Caller(Access(TOKENS)).get({"Authorization": header.encode("latin-1")}).status_code == 401


@pytest.mark.parametrize(
    "other", ['prefs={"theme":"dark"}', "a[b]=1", "x=a b", "flag", "name=Jürgen", "=", "camgraph_session=old", "; ;"]
)
def test_cookies_of_other_programs_hide_none(other: str) -> None:
    """Browsers send those of all ports of a host."""
    session = Access(TOKENS).session_of("w" * 20)
    ours = f"{COOKIE}={session}"
    for cookies in (f"{other}; {ours}", f"{ours}; {other}", f"{COOKIE}=old; {ours}"):
        assert Caller(Access(TOKENS)).get({"Cookie": cookies.encode()}).text == "viewer ward"


def test_two_services_of_one_host_have_two_cookies() -> None:
    assert Access(TOKENS, service="ward").cookie != Access(TOKENS, service="lobby").cookie


def test_a_cookie_stands_for_its_token_and_dies_with_it() -> None:
    cookie = {"Cookie": f"{COOKIE}={Access(TOKENS).session_of('w' * 20)}"}
    assert "w" * 20 not in cookie["Cookie"]
    assert Caller(Access(TOKENS)).get(cookie).text == "viewer ward"
    changed = Access([Token("ward", "another token!!!", "viewer")])
    assert Caller(changed).get(cookie).text == "anyone "


@pytest.mark.parametrize("cookie", ["x", "é", "a" * 5000, '"', f"{COOKIE}=x; {COOKIE}=y"])
def test_any_other_cookie_is_nobodys(cookie: str) -> None:
    headers = {"Cookie": f"{COOKIE}={cookie}".encode()}
    assert Caller(Access(TOKENS)).get(headers).text == "anyone "


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8350", "[::1]:8350", "LOCALHOST", "cams.lan"])
def test_without_tokens_names_of_this_machine_are_believed(host: str) -> None:
    assert Caller(Access(hosts=["Cams.lan"])).get({"Host": host}).text == "admin "


@pytest.mark.parametrize("host", ["evil.example", "", "localhost.evil.example", "127.0.0.1.evil.com", "[::1", "a:b:c"])
def test_and_no_others(host: str) -> None:
    assert Caller(Access()).get({"Host": host}).status_code == 421
    assert Caller(Access(TOKENS)).get({"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://["},
        {"Origin": ""},
        {"Origin": "http://localhost:9999"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_pages_of_others_change_nothing(headers: dict[str, str]) -> None:
    assert Caller(Access()).post(headers).status_code == 403
    assert Caller(Access()).get(headers).status_code == 200


def test_own_pages_and_programs_may() -> None:
    assert Caller(Access()).post({"Origin": "http://localhost"}).status_code == 200
    assert Caller(Access()).post({"Origin": "http://localhost:8350", "Host": "localhost:8350"}).status_code == 200
    assert Caller(Access()).post().status_code == 200


@pytest.mark.parametrize(
    ("hosts", "origin", "host", "status"),
    [
        (["cams.lan"], "https://Cams.lan", "localhost:8350", 200),
        (["cams.lan:8443"], "https://cams.lan:8443", "localhost:8350", 200),
        ([], "https://cams.lan", "localhost:8350", 403),
        # Another program at the same name is another page.
        (["cams.lan"], "https://cams.lan:9000", "localhost:8350", 403),
        (["cams.lan:8443"], "https://cams.lan", "localhost:8350", 403),
        (["cams.lan"], "http://cams.lan:9000", "cams.lan", 403),
        (["cams.lan"], "ftp://cams.lan", "cams.lan", 403),
        # A proxy that ends TLS hands on the name, and nothing about the port of the scheme.
        (["cams.lan"], "https://cams.lan", "cams.lan", 200),
        (["cams.lan"], "https://cams.lan:8443", "cams.lan:8443", 200),
    ],
)
def test_behind_a_proxy_pages_of_its_names_and_ports_may(hosts: list[str], origin: str, host: str, status: int) -> None:
    """Without a believed proxy the request looks like one without TLS."""
    assert Caller(Access(TOKENS, hosts=hosts)).post({"Origin": origin, "Host": host}).status_code == status


def test_a_page_without_tls_changes_nothing_of_a_service_with_it() -> None:
    assert not Access(TOKENS).is_own_page({"origin": "http://cams.lan"}, "cams.lan", "https")
    assert Access(TOKENS).is_own_page({"origin": "https://cams.lan"}, "cams.lan", "https")
    assert Access(TOKENS).is_own_page({"origin": "https://cams.lan:443"}, "cams.lan", "https")


def test_a_token_that_is_no_text_is_nobodys() -> None:
    assert Access(TOKENS).of_token("\ud800" + "a" * 20) is None


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_guesses_are_bounded_and_neighbours_do_not_suffer() -> None:
    caller = Caller(Access(TOKENS))
    assert caller.get(bearer("w" * 20)).text == "viewer ward"
    tries = [caller.get(bearer(str(n))).status_code for n in range(20)]
    assert tries == [401] * 10 + [429] * 10
    refused = caller.get(bearer("b" * 20))
    assert refused.status_code == 429, "the right one would be found out"
    assert refused.json()["id"] == "too-many-requests"
    assert caller.get(bearer("w" * 20)).text == "viewer ward", "it has come from here before"
    assert caller.get().status_code == 200
    cookie = {"Cookie": f"{COOKIE}={Access(TOKENS).session_of('b' * 20)}"}
    assert caller.get(cookie).text == "admin boss", "nobody can guess a cookie"
    assert caller.get({"Authorization": basic("x:" + "b" * 20)}).status_code == 429


def test_others_try_as_before() -> None:
    access = Access(TOKENS)
    for n in range(20):
        with suppress(TooManyWrong):
            access.authenticated("2001:db8::", "bearer", str(n))
    with pytest.raises(TooManyWrong):
        access.authenticated("2001:db8::", "bearer", "b" * 20)
    assert access.authenticated("192.0.2.1", "bearer", "b" * 20) == Identity("boss", "admin")


def test_a_guesser_logs_nobody_out() -> None:
    """Who has logged in from that address goes on by cookie, and by the same token however it is sent."""
    access = Access(TOKENS)
    assert access.authenticated("home", "bearer", "w" * 20) == Identity("ward", "viewer")
    for n in range(11):
        with suppress(TooManyWrong):
            access.authenticated("home", "bearer", f"guess {n}")
    password = base64.b64encode(f"any:{'w' * 20}".encode()).decode()
    for kind, value in (("cookie", access.session_of("b" * 20)), ("bearer", "w" * 20), ("basic", password)):
        assert access.authenticated("home", kind, value), kind
    with pytest.raises(TooManyWrong):
        access.authenticated("home", "bearer", "b" * 20)


def test_the_same_wrong_token_counts_once() -> None:
    """A program with an old token, and the page with an old cookie, ask again and again."""
    caller = Caller(Access(TOKENS))
    for _ in range(30):
        assert caller.get(bearer("of yesterday")).status_code == 401
        assert caller.get({"Cookie": f"{COOKIE}=old"}).text == "anyone "
    assert caller.get(bearer("b" * 20)).text == "admin boss"


def test_after_a_while_one_may_try_again(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("camgraph.tools.service.web.access.time.monotonic", lambda: now[0])
    access = Access(TOKENS)
    for n in range(10):
        assert access.authenticated("a", "bearer", str(n)) is None
    with pytest.raises(TooManyWrong):
        access.authenticated("a", "bearer", "b" * 20)
    now[0] += 5.1
    assert access.authenticated("a", "bearer", "b" * 20) == Identity("boss", "admin")


def test_so_many_tokens_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("camgraph.tools.service.web.access._MOST_CACHED", 3)
    access = Access(TOKENS)
    for n in range(50):
        access.authenticated(f"client {n}", "bearer", "w" * 20)
        access.authenticated(f"client {n}", "bearer", "wrong")
    assert len(access._right_ones._known) == len(access._wrong_ones._known) == 3


def test_a_flood_is_slowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("camgraph.tools.service.web.access.time", SimpleNamespace(monotonic=lambda: 0.0))
    caller = Caller(Access())
    codes = [caller.get().status_code for _ in range(310)]
    assert codes == [200] * 300 + [429] * 10


def test_answers_forbid_browsers_what_they_need_not() -> None:
    headers = Caller(Access()).get().headers
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "default-src 'self'" in headers["Content-Security-Policy"]
    assert Caller(Access()).post(content=bytes(100_000)).headers["X-Frame-Options"] == "DENY"
