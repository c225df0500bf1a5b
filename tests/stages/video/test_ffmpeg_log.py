"""What FFmpeg complains of, kept apart by thread."""

from __future__ import annotations

import io
import logging
import threading

import av.logging
import pytest

from camgraph.stages.video.ffmpeg_log import LogLine, kind_of, listening

ERROR, WARNING = av.logging.ERROR, av.logging.WARNING


@pytest.mark.parametrize(
    ("source", "text", "kind"),
    [
        ("rtsp", "RTP: missed 3 packets\n", "loss"),
        ("rtsp", "max delay reached. need to consume packet\n", "loss"),
        ("h264", "error while decoding MB 32 15, bytestream -9\n", "damage"),
        ("hevc", "Could not find ref with POC 4\n", "damage"),
        ("hevc", "Skipping invalid undecodable NALU: 1\n", "damage"),
        ("h264", "hardware accelerator failed to decode picture\n", "damage"),
        ("vc1", "Hardware accelerator failed to decode picture\n", "damage"),
        ("hevc", "No decoder surfaces left\n", "damage"),
        ("mjpeg", "EOI missing, emulating\n", None),
        ("swscaler", "deprecated pixel format used, make sure you did set range correctly\n", None),
        ("h264", "Increasing reorder buffer to 1\n", None),
        ("rtsp", "method DESCRIBE failed: 404 Not Found\n", None),
    ],
)
def test_lines_are_understood(source: str, text: str, kind: str | None) -> None:
    assert kind_of(LogLine(WARNING, source, text)) == kind


def test_the_same_line_counts_each_time() -> None:
    with listening() as received:
        for _ in range(3):
            av.logging.log(WARNING, "rtsp", "RTP: missed 1 packets")
            assert received.take() == {"loss"}
            assert received.take() == set()


def test_lines_that_are_forgotten_still_count() -> None:
    """A camera that makes FFmpeg complain without an end, and gives no packet meanwhile, costs no memory."""
    with listening() as received:
        for text in ("RTP: missed 1 packets", "method DESCRIBE failed: 404 Not Found"):
            av.logging.log(WARNING, "rtsp", text)
        shortening = threading.Thread(target=received.shorten)
        shortening.start()
        shortening.join(20)
        assert received.lines == 0
        assert received.take() == {"loss"}
        assert received.take() == set()


def test_each_thread_hears_its_own(caplog: pytest.LogCaptureFixture) -> None:
    taken: dict[str, set[str]] = {}
    both = threading.Barrier(2)

    def listen(name: str, source: str, text: str) -> None:
        with listening() as received:
            both.wait(20)
            for _ in range(200):
                av.logging.log(ERROR, source, text)
            both.wait(20)
            taken[name] = set(received.take())

    threads = [
        threading.Thread(target=listen, args=("a", "rtsp", "RTP: missed 1 packets")),
        threading.Thread(target=listen, args=("b", "h264", "concealing 1 DC errors")),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert taken == {"a": {"loss"}, "b": {"damage"}}


def test_lines_of_threads_that_do_not_listen_are_seen_by_nobody(capfd: pytest.CaptureFixture[str]) -> None:
    with listening():
        pass
    kept = io.StringIO()
    handler = logging.StreamHandler(kept)
    logging.getLogger().addHandler(handler)
    try:
        av.logging.log(ERROR, "rtsp", "rtsp://viewer:geheim@camera/: refused")
    finally:
        logging.getLogger().removeHandler(handler)
    assert not kept.getvalue()
    assert "geheim" not in "".join(capfd.readouterr())
