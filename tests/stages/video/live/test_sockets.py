"""Sockets by who is at their other end."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from camgraph.stages.video.live.sockets import Peer, connections, shut_down


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


TABLE = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1111 1 0 100 0 0 10 0
   1: 0100007F:C350 0B00000A:022A 02 00000000:00000000 00:00000000 00000000     0        0 2222 1 0 100 0 0 10 0
"""
TABLE6 = """\
  sl  local_address                         remote_address                        st ...
   0: 00000000000000000000000001000000:C350 000080FE000000000000000001000000:022A 01 0:0 0:0 0 0 0 3333 1 0
"""


@pytest.mark.skipif(sys.byteorder != "little", reason="the samples are of a little-endian machine")
def test_the_kernels_tables_are_read() -> None:
    assert list(connections(TABLE)) == [(1111, Peer("0.0.0.0", 0)), (2222, Peer("10.0.0.11", 554))]
    assert list(connections(TABLE6)) == [(3333, Peer("fe80::1", 554))]


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_only_those_of_the_peer_are_shut_down(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        servers = [socket.create_server((host, 0), family=family) for _ in range(2)]
    except OSError:
        pytest.skip("this machine has no IPv6")
    ports = [server.getsockname()[1] for server in servers]
    clients = [socket.create_connection((host, port), 5) for port in ports]
    before = descriptors()
    assert shut_down({Peer(host, ports[0])}) == 1
    assert clients[0].recv(1) == b""
    others, _ = servers[1].accept()
    others.sendall(b"x")
    assert clients[1].recv(1) == b"x"
    assert clients[0].fileno() != -1
    assert descriptors() == before + 1
    for one in (*servers, *clients, others):
        one.close()


def test_nobody_there_is_nothing_done() -> None:
    assert shut_down({Peer("192.0.2.1", 554)}) == 0
    assert shut_down(()) == 0
