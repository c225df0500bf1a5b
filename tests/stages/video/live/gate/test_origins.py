from __future__ import annotations

import pytest

from camgraph.pipeline.system.redaction import redact_url
from camgraph.stages.video.live.gate.origins import Login, Origin, login_of, may_be_reached, target_from, target_of


def test_what_an_address_says() -> None:
    target = target_of("RTSPS://me:p%40ss@CAM:8554/a/b?x=1")
    assert target is not None
    assert target.origin == Origin("rtsps", "cam", 8554)
    assert target.path == "/a/b?x=1"
    assert target.url == "rtsps://cam:8554/a/b?x=1"
    assert login_of("rtsp://me:p%40ss@cam/x") == Login("me", "p@ss")
    assert login_of("rtsp://cam/x") is None


@pytest.mark.parametrize("user", ["me:p[ss", "me:p@ss:w", "me@x:p%2Fss", "m\\e:p'ss"])
def test_a_password_may_hold_what_no_other_part_may(user: str) -> None:
    target = target_of(f"rtsp://{user}@cam/a#1?x")
    assert target is not None
    assert target == (Origin("rtsp", "cam", 554), "/a#1?x")
    login = login_of(f"rtsp://{user}@cam/a#1?x")
    assert login is not None
    assert f"{login.user}:{login.password}" == user.replace("%2F", "/")


def test_a_page_has_no_part_to_be_asked_for() -> None:
    target = target_of("http://cam#part")
    assert target is not None
    assert (target.path, target.url) == ("", "http://cam:80")


@pytest.mark.parametrize("url", ["file:///etc/hostname", "rtmp://h/x", "http://", "http://h:99999/", "x", "//h/x"])
def test_what_no_camera_may_lead_to(url: str) -> None:
    assert target_of(url) is None


def test_origin_includes_scheme_and_port() -> None:
    plain, secure, other = (target_of(url) for url in ("http://h/", "https://h/", "http://h:81/"))
    assert plain
    assert secure
    assert other
    assert len({plain.origin, secure.origin, other.origin}) == 3
    assert plain.origin == Origin("http", "h", 80)
    v6 = target_of("rtsp://[fe80::1]/x")
    assert v6 is not None
    assert v6.origin.authority == "[fe80::1]:554"


@pytest.mark.parametrize("url", ["rtsp://me:p@[FE80::1%Eth0.7]:8554/x", "rtsp://me:p@[fe80::1%25Eth0.7]:8554/x"])
def test_a_zone_is_for_this_machine_alone(url: str) -> None:
    target = target_of(url)
    assert target is not None
    assert target.origin == Origin("rtsp", "fe80::1%Eth0.7", 8554)
    assert target.origin.named == "[fe80::1]:8554"
    assert target_of(target.url) == target
    assert redact_url(url).partition("@")[2] == url.partition("@")[2]


@pytest.mark.parametrize(
    ("address", "own", "may"),
    [
        ("10.0.0.2", "10.0.0.1", True),
        ("93.184.216.34", "10.0.0.1", True),
        ("127.0.0.1", "10.0.0.1", False),
        ("::1", "10.0.0.1", False),
        ("::ffff:127.0.0.1", "10.0.0.1", False),
        ("0.0.0.0", "10.0.0.1", False),
        ("169.254.169.254", "10.0.0.1", False),
        ("fe80::1%eth0", "10.0.0.1", False),
        ("224.0.0.1", "10.0.0.1", False),
        ("127.0.0.1", "127.0.0.2", True),
        ("169.254.1.2", "169.254.1.1", True),
    ],
)
def test_where_one_that_is_followed_may_lead(address: str, own: str, *, may: bool) -> None:
    assert may_be_reached(address, frozenset({own})) is may


@pytest.mark.parametrize(
    ("reference", "leads"),
    [
        ("b.ts?x=1", "http://h:81/a/b.ts?x=1"),
        ("/b.ts", "http://h:81/b.ts"),
        ("//other/b.ts", "http://other:80/b.ts"),
        ("https://other/b.ts", "https://other:443/b.ts"),
        ("", "http://h:81/a/list.m3u8"),
        ("http://[x/b.ts", None),
        ("http://me:secret@ho\N{ACCOUNT OF}st/b.ts", None),
        ("file:///b.ts", None),
    ],
)
def test_what_a_reference_means(reference: str, leads: str | None) -> None:
    base = target_of("http://h:81/a/list.m3u8")
    assert base is not None
    target = target_from(base, reference)
    assert (target and target.url) == leads
