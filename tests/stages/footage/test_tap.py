"""A listener that never reads costs packets, and never the time of the camera's reader."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from pathlib import Path

import av
import pytest

from pipeline.system.local_socket import short_address
from stages.footage.tap import MOST_WAITING, PacketTap


@pytest.mark.slow
def test_a_listener_that_never_reads_is_left_behind(make_clip: Callable[..., Path], tmp_path: Path) -> None:
    clip = make_clip("a.mp4", frames=60, size=(640, 480), options={"g": "10", "crf": "1"})
    tap = PacketTap(tmp_path / "cam.packets", patient=False)
    longest_s = 0.0
    with av.open(str(clip)) as container, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as silent:
        packets = [packet for packet in container.demux(video=0) if packet.size]
        tap.offer(packets[0], 0)
        with short_address(tmp_path / "cam.packets") as address:
            silent.connect(address)
        rounds = 2 + 2 * MOST_WAITING // sum(packet.size for packet in packets)
        for packet in packets * rounds:
            begun_s = time.monotonic()
            tap.offer(packet, 0)
            longest_s = max(longest_s, time.monotonic() - begun_s)
    tap.close()
    assert tap.left_out > 0
    assert longest_s < 20.0, "no packet waited for it"
