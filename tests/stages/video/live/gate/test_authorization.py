"""Basic and Digest, against the examples of their standards."""

from __future__ import annotations

import hashlib
import re
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from camgraph.stages.video.live.gate.authorization import Authorization, why_not_answered
from camgraph.stages.video.live.gate.origins import Login

REALM = 'realm="http-auth@example.org"'
NONCE = 'nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v"'
OPAQUE = 'opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"'
CNONCE = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ"


def mufasa() -> Authorization:
    return Authorization(Login("Mufasa", "Circle of Life"), lambda: CNONCE)


@pytest.mark.parametrize(
    ("algorithm", "response"),
    [
        ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
        ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
    ],
)
def test_digest_as_in_rfc_7616(algorithm: str, response: str) -> None:
    one = mufasa()
    assert one.take([f'Digest {REALM}, qop="auth, auth-int", algorithm={algorithm}, {NONCE}, {OPAQUE}'])
    header = one.header("GET", "/dir/index.html")
    assert f'response="{response}"' in header
    for part in ('username="Mufasa"', REALM, NONCE, OPAQUE, "qop=auth", "nc=00000001", f"algorithm={algorithm}"):
        assert part in header
    assert "nc=00000002" in one.header("GET", "/dir/index.html")


def test_a_name_is_hashed_if_the_camera_wants_it() -> None:
    """RFC 7616, 3.4.4: the name itself goes into the answer. Its example 3.9.2 was computed by a hash cut short."""
    one = Authorization(Login("J\u00e4s\u00f8n Doe", "Secret, or not?"), lambda: "c")
    assert one.take(['Digest realm="api@example.org", qop="auth", algorithm=SHA-512-256, nonce="n", userhash=true'])
    header = one.header("GET", "/doe.json")

    def hashed(text: str) -> str:
        return hashlib.new("sha512_256", text.encode()).hexdigest()

    secret = hashed("J\u00e4s\u00f8n Doe:api@example.org:Secret, or not?")
    expected = hashed(f"{secret}:n:00000001:c:auth:{hashed('GET:/doe.json')}")
    assert 'username="793263caabb707a56211940d90411ea4a575adeccb7e360aeb624ed06ece9b0b"' in header
    assert f'response="{expected}"' in header
    assert header.endswith(", userhash=true")


@pytest.mark.parametrize(
    ("challenges", "named"),
    [
        (['Digest realm="r", nonce="n", algorithm=SHA-1'], "Digest by SHA-1 (qop: auth)"),
        (['Digest realm="r", nonce="n", qop="auth-int"'], "Digest by MD5 (qop: auth-int)"),
        (["Bearer", "Negotiate"], "Bearer, Negotiate"),
    ],
)
def test_a_login_that_is_not_known_is_named(challenges: list[str], named: str) -> None:
    assert f"does not know: {named}; choose one" in why_not_answered(challenges)


@pytest.mark.parametrize("challenges", [[], ['Basic realm="r"'], ["Negotiate", 'Digest realm="r", nonce="n"']])
def test_a_known_login_or_none_is_no_reason(challenges: list[str]) -> None:
    assert why_not_answered(challenges) == ""


def test_digest_as_cameras_have_it() -> None:
    """Without qop: RFC 2069."""
    one = Authorization(Login("me", "secret"))
    assert one.take(['Digest realm="cam", nonce="n"'])

    def md5(text: str) -> str:
        return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()

    expected = md5(f"{md5('me:cam:secret')}:n:{md5('DESCRIBE:rtsp://h/x')}")
    assert f'response="{expected}"' in one.header("DESCRIBE", "rtsp://h/x")


def test_basic_as_in_rfc_7617() -> None:
    one = Authorization(Login("Aladdin", "open sesame"))
    assert one.take(['Basic realm="WallyWorld"'])
    assert one.header("GET", "/") == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="


def test_digest_is_preferred_to_basic() -> None:
    for challenges in (
        ['Basic realm="r"', 'Digest realm="r", nonce="n"'],
        ['Basic realm="r", Digest realm="r", nonce="n"'],
    ):
        one = mufasa()
        assert one.take(challenges)
        assert one.header("GET", "/").startswith("Digest ")


def test_no_header_without_a_known_challenge() -> None:
    one = mufasa()
    assert one.header("GET", "/") == ""
    for challenge in (
        'Digest realm="r", nonce="n", algorithm=NEW',
        'Digest realm="r", nonce="n", qop="auth-int"',
        "Bearer",
    ):
        assert not one.take([challenge])
        assert one.header("GET", "/") == ""


def test_a_realm_ends_no_header() -> None:
    one = mufasa()
    assert one.take(['Digest realm="a\\"b\\\\", nonce="n"'])
    assert 'realm="a\\"b\\\\"' in one.header("GET", "/")
    assert one.take(['Digest realm="a\r\nX: y", nonce="n\n", opaque="\r"'])
    header = one.header("GET", "/")
    assert 'realm="aX: y"' in header
    assert "\n" not in header
    assert "\r" not in header


def count_of(header: str) -> str:
    found = re.search("nc=([0-9a-f]{8})", header)
    assert found
    return found[1]


def test_nonce_count_restarts_with_a_new_nonce() -> None:
    one = mufasa()
    for nonce, counts in (("a", ["00000001", "00000002"]), ("a", ["00000003"]), ("b", ["00000001"])):
        assert one.take([f'Digest realm="r", nonce="{nonce}", qop="auth", stale=true'])
        assert [count_of(one.header("GET", "/")) for _ in counts] == counts


def test_no_count_comes_twice_in_any_thread() -> None:
    threads, each, interval = 4, 2000, sys.getswitchinterval()
    one, headers = mufasa(), list[str]()
    challenge = 'Digest realm="r", nonce="n", qop="auth"'
    assert one.take([challenge])

    def ask() -> None:
        for _ in range(each):
            one.take([challenge])
            headers.append(one.header("GET", "/"))

    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(threads) as pool:
            for done in [pool.submit(ask) for _ in range(threads)]:
                done.result()
    finally:
        sys.setswitchinterval(interval)
    assert len({count_of(header) for header in headers}) == threads * each
