"""What is live, and what is a file."""

from __future__ import annotations

import pytest

from stages.reading.addresses import file_of, is_live


@pytest.mark.parametrize("url", ["rtsp://h/1", "RTSPS://h", "http://h/x.mjpg", "udp://239.0.0.1:5000", "/dev/video0"])
def test_what_sends_by_itself_is_live(url: str) -> None:
    assert is_live(url)


@pytest.mark.parametrize("url", ["a.mp4", "/videos/a.mp4", "asset:vtest.avi", "file:///a.mp4", "folder", "C:x"])
def test_files_are_not_live(url: str) -> None:
    assert not is_live(url)


def test_a_file_may_be_given_as_a_url() -> None:
    assert file_of("file:///videos/a.mp4") == "/videos/a.mp4"
    assert file_of("videos/a.mp4") == "videos/a.mp4"
