"""What is live, and what is a file."""

from __future__ import annotations

import pytest

from camgraph.stages.video.addresses import file_of, is_live, why_no_host


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
    "url",
    [
        "rtsp://h",
        "rtsp://u:p@h:554/x",
        "rtsp://u:p@ss@[fe80::1%eth0]:554/x",
        "udp://@239.0.0.1:5000",
        "srt://:9000?mode=listener",
        "http://h/x?mail=a@b",
        "/dev/video0",
        "a.mp4",
    ],
)
def test_where_the_host_is_is_known(url: str) -> None:
    assert why_no_host(url) == ""


@pytest.mark.parametrize("url", ["rtsp://u:ge/heim@h/x", "rtsp://u:ge#heim@h", "rtsp://u:geheim", "rtsp://h:x/y"])
def test_address_without_host_is_refused_unquoted(url: str) -> None:
    assert "percent-encoded (%2F " in why_no_host(url)
    assert "geh" not in why_no_host(url)


@pytest.mark.parametrize(
    "url", ["rtsp://", "RTSP://:554/x", "https://u:geheim@/x", "hls+http:///x.m3u8", "rtsp://u:p@:80"]
)
def test_a_camera_that_is_called_has_a_host(url: str) -> None:
    assert "address has no host" in why_no_host(url)
    assert "geh" not in why_no_host(url)


@pytest.mark.parametrize("url", ["udp://:1234", "udp://@:1234", "srt://:9000?mode=listener", "tcp://:7000?listen"])
def test_one_that_calls_us_needs_none(url: str) -> None:
    assert why_no_host(url) == ""


@pytest.mark.parametrize(
    ("port", "fits"), [("1", True), ("65535", True), ("65536", False), ("99999", False), ("0", False)]
)
def test_a_port_is_one_and_is_not_quoted_where_it_is_none(port: str, fits: bool) -> None:
    problem = why_no_host(f"rtsp://u:p@127.0.0.1:{port}/x")
    assert (problem == "") == fits
    assert fits or "out of range: expected 1 to 65535" in problem
    assert port == "0" or port not in problem.replace("65535", "")


@pytest.mark.parametrize("host", ["10.0.0.1 ", " cam", "front door", "cam\u00a0"])
def test_blank_in_a_host_is_refused(host: str) -> None:
    assert "there is a blank in the host" in why_no_host(f"rtsp://u:geheim@{host}/x")
    assert "geheim" not in why_no_host(f"rtsp://u:geheim@{host}/x")


@pytest.mark.parametrize("host", ["[fe80::1%eth0]", "[fe80::1%25eth0]:554", "[fe80::1%br-lan.7]"])
def test_zone_of_a_link_is_taken(host: str) -> None:
    assert why_no_host(f"rtsp://u:p@{host}/x") == ""


@pytest.mark.parametrize("host", ["[fe80::1]", "[fe80::1%]", "[FE80::1]:554", "[::1%]"])
def test_an_address_of_one_interface_names_it(host: str) -> None:
    assert "write [fe80::1%eth0]" in why_no_host(f"rtsp://u:geheim@{host}/x")
    assert "geheim" not in why_no_host(f"rtsp://u:geheim@{host}/x")


@pytest.mark.parametrize("host", ["[::1]", "[2001:db8::1]", "169.254.1.2", "[fe80::1%25eth0]"])
def test_other_addresses_name_no_interface(host: str) -> None:
    assert why_no_host(f"rtsp://{host}/x") == ""
