"""What is live, and that no secret of an address is ever shown."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.reading.addresses import file_of, is_live, redact_url


@pytest.mark.parametrize("url", ["rtsp://h/1", "RTSPS://h", "http://h/x.mjpg", "udp://239.0.0.1:5000", "/dev/video0"])
def test_what_sends_by_itself_is_live(url: str) -> None:
    assert is_live(url)


@pytest.mark.parametrize("url", ["a.mp4", "/videos/a.mp4", "asset:vtest.avi", "file:///a.mp4", "folder", "C:x"])
def test_files_are_not_live(url: str) -> None:
    assert not is_live(url)


def test_a_file_may_be_given_as_a_url() -> None:
    assert file_of("file:///videos/a.mp4") == "/videos/a.mp4"
    assert file_of("videos/a.mp4") == "videos/a.mp4"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("rtsp://10.0.0.11/main", "rtsp://10.0.0.11/main"),
        ("rtsp://10.0.0.11:554/main", "rtsp://10.0.0.11:554/main"),
        ("rtsp://[fe80::1]:554/main", "rtsp://[fe80::1]:554/main"),
        ("rtsp://viewer:geheim@10.0.0.11:554/main", "rtsp://***@10.0.0.11:554/main"),
        ("rtsp://viewer@10.0.0.11/main", "rtsp://***@10.0.0.11/main"),
        ("rtsp://:geheim@10.0.0.11/main", "rtsp://***@10.0.0.11/main"),
        ("rtsp://viewer:ge@he:im@10.0.0.11/main", "rtsp://***@10.0.0.11/main"),
        ("rtsp://viewer:ge/heim@10.0.0.11/main", "rtsp://***"),
        ("rtsp://viewer:12/geheim@10.0.0.11/main", "rtsp://***"),
        ("rtsp://viewer:ge#heim@10.0.0.11/main", "rtsp://***"),
        ("rtsp://viewer:geheim", "rtsp://***"),
        ("http://cam/video?token=geheim&x=1", "http://cam/video?***"),
        ("http://cam/video?geheim", "http://cam/video?***"),
        ("http://cam/video?token=ge@heim", "http://***"),
        ("http://cam/video#geheim", "http://cam/video#***"),
        ("rtsp://cam/user=admin_password=geheim_channel=1", "rtsp://cam/user=***"),
        ("/videos/a@b.mp4", "/videos/a@b.mp4"),
    ],
)
def test_redaction(url: str, shown: str) -> None:
    assert redact_url(url) == shown


SECRET = "Zq9"


@given(st.text(max_size=8), st.text(max_size=8), st.sampled_from(["user:{}@h/p", "{}@h", "h/p?token={}", "h/?{}"]))
def test_a_secret_never_shows_whatever_is_around_it(before: str, after: str, place: str) -> None:
    assert SECRET not in redact_url("rtsp://" + place.format(before + SECRET + after))


@given(st.text(min_size=1))
def test_encoded_credentials_keep_the_host(password: str) -> None:
    shown = redact_url(f"rtsp://viewer:{quote(password, safe='')}@cam.local:554/main")
    assert shown == "rtsp://***@cam.local:554/main"
