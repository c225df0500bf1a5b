"""The sockets of this process by who is at their other end, also of those that are still connecting.

Only the kernel knows the owner of a socket, because FFmpeg hands none out. `shutdown` ends a wait for it within a
millisecond and leaves closing to its owner: a socket that was closed under it could be another one's by then.
"""

from __future__ import annotations

import os
import socket
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

_TABLES = (Path("/proc/self/net/tcp"), Path("/proc/self/net/tcp6"))


class Peer(NamedTuple):
    """The other end of a connection."""

    address: str
    port: int


def connections(table: str) -> Iterator[tuple[int, Peer]]:
    """(inode, other end) of each line of /proc/net/tcp or tcp6. Source: Documentation/networking/proc_net_tcp.rst.

    An address is hexadecimal, in words of 32 bits that are each in the byte order of the machine.
    """
    for line in table.splitlines()[1:]:
        columns = line.split()
        address, _, port = columns[2].partition(":")
        yield int(columns[9]), Peer(_address(address), int(port, 16))


def _address(text: str) -> str:
    words = [int(text[at : at + 8], 16).to_bytes(4, sys.byteorder) for at in range(0, len(text), 8)]
    return socket.inet_ntop(socket.AF_INET if len(words) == 1 else socket.AF_INET6, b"".join(words))


def shut_down(peers: Iterable[Peer]) -> int:
    """Shut down the TCP sockets of this process with one of these at their other end; how many there were."""
    wanted = _plain(peers)
    inodes = {inode for table in _tables() for inode, peer in connections(table) if peer in wanted} - {0}
    return sum(_shut_down(fd, inodes) for fd in _descriptors()) if inodes else 0


def _plain(peers: Iterable[Peer]) -> set[Peer]:
    """Without the zone of a link-local address, which the kernel keeps elsewhere."""
    return {Peer(peer.address.partition("%")[0], peer.port) for peer in peers}


def _tables() -> Iterator[str]:
    for path in _TABLES:
        try:
            yield path.read_text()
        except OSError:  # a machine without IPv6
            continue


def _descriptors() -> list[int]:
    return [int(name) for name in os.listdir("/proc/self/fd")]  # noqa: PTH208 - names alone are wanted


def _shut_down(fd: int, inodes: set[int]) -> bool:
    """By a copy: its owner may close it at any time, and another one may get its number."""
    try:
        copy = os.dup(fd)
    except OSError:
        return False
    status = os.fstat(copy)
    if not stat.S_ISSOCK(status.st_mode) or status.st_ino not in inodes:
        os.close(copy)
        return False
    with socket.socket(fileno=copy) as found:
        try:
            found.shutdown(socket.SHUT_RDWR)
        except OSError:  # it ended by itself meanwhile
            return False
    return True
