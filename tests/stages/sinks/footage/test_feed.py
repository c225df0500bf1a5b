"""The packets of all cameras: errors of a receiver cost no connection, and cameras that are gone are forgotten."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import av
import pytest
import structlog
from camgraph_test_stages.waiting import until
from structlog.testing import capture_logs

from camgraph.pipeline.system.local_socket import listening
from camgraph.stages.sinks.footage.feed import PacketFeed
from camgraph.stages.video.packets import Packet
from camgraph.stages.video.tap import PacketTap

LOG = structlog.get_logger()


def feed_of(folder: Path, packet: Callable[[str, Packet], object]) -> PacketFeed:
    return PacketFeed(folder, LOG, packet, lambda _: None, lambda *_: None)


def test_an_error_of_the_receiver_costs_no_connection(make_clip: Callable[..., Path], tmp_path: Path) -> None:
    got: list[Packet] = []

    def receive(_: str, packet: Packet) -> None:
        got.append(packet)
        if len(got) == 2:
            raise ValueError("a bug of the receiver")

    (tmp_path / "capture").mkdir()
    tap = PacketTap(tmp_path / "capture" / "cam.packets", LOG, patient=False)
    with av.open(str(make_clip("a.mp4", options={"g": "5"}))) as container, closing(feed_of(tmp_path, receive)) as feed:
        packets = [packet for packet in container.demux(video=0) if packet.size]
        tap.offer(packets[0], 0)
        feed.turn(0.1)
        connected = dict(feed._selector.get_map())
        for packet in packets[:2]:
            tap.offer(packet, 0)
        with pytest.raises(ValueError, match="a bug of the receiver"):
            until(lambda: feed.turn(0.1))
        for packet in packets[2:]:
            tap.offer(packet, 0)
        until(lambda: feed.turn(0.1) or len(got) >= 20)
        assert dict(feed._selector.get_map()) == connected, "by the same socket"
    tap.close()


def test_cameras_that_are_gone_are_forgotten(make_clip: Callable[..., Path], tmp_path: Path) -> None:
    with (
        av.open(str(make_clip("a.mp4"))) as container,
        closing(feed_of(tmp_path, lambda *_: None)) as feed,
    ):
        first = next(container.demux(video=0))
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            tap = PacketTap(tmp_path / name / "cam.packets", LOG, patient=False)
            tap.offer(first, 0)
            until(lambda: feed.turn(0.1) or feed._connections)
            tap.close()
            until(lambda: feed.turn(0.1) or not feed._connections)


def test_nonsense_is_logged_once(tmp_path: Path) -> None:
    (tmp_path / "capture").mkdir()
    with (
        listening(tmp_path / "capture" / "cam.packets", 4) as server,
        closing(feed_of(tmp_path, lambda *_: None)) as feed,
        capture_logs() as logged,
    ):
        for _ in range(3):
            until(lambda: feed.turn(0.1) or feed._selector.get_map())
            client = until(lambda: accepted(server))
            client.sendall(b"\xff" * 100)
            until(lambda: feed.turn(0.1) or not feed._selector.get_map())
            client.close()
    assert [(line["event"], line["camera"]) for line in logged] == [("packets_not_understood", "cam")]


def accepted(server: socket.socket) -> socket.socket | None:
    try:
        return server.accept()[0]
    except BlockingIOError:
        return None
