"""How packets of a viewer travel: inside its RTSP connection, or as UDP datagrams."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Protocol

from camgraph.pipeline.errors import EnvironmentProblem
from camgraph.tools.scenes.simulator.outflow import Outflow
from camgraph.tools.scenes.simulator.rtp import interleaved

HOST = "127.0.0.1"

_CONGESTED_BYTES = 1 << 20
_PAIR_TRIES = 50


class Carrier(Protocol):
    """The interface of a viewer's way to the client."""

    loses: bool
    """Whether packets can get lost or change places on the way."""

    @property
    def congested(self) -> bool:
        """Whether the client does not take its data."""
        ...

    def send(self, packets: Sequence[bytes]) -> None:
        """RTP packets, in order."""
        ...

    def report(self, packet: bytes) -> None:
        """One RTCP packet."""
        ...

    def close(self) -> None:
        """Free the resources of this way alone."""
        ...


class TcpCarrier:
    """Packets between the answers of an RTSP connection."""

    loses = False

    def __init__(self, outflow: Outflow, channels: tuple[int, int]) -> None:
        self._outflow = outflow
        self._channels = channels

    @property
    def congested(self) -> bool:
        return self._outflow.waiting_bytes > _CONGESTED_BYTES

    def send(self, packets: Sequence[bytes]) -> None:
        if packets:
            self._outflow.write(interleaved(packets, self._channels[0]))

    def report(self, packet: bytes) -> None:
        self._outflow.write(interleaved((packet,), self._channels[1]))

    def close(self) -> None:
        """The connection belongs to another object."""


class UdpCarrier:
    """Packets from a pair of ports here to a pair of ports of the client."""

    loses = True

    def __init__(self, client_ports: tuple[int, int]) -> None:
        self._rtp, self._rtcp = _pair()
        self._client = [(HOST, port) for port in client_ports]

    @property
    def ports(self) -> tuple[int, int]:
        """Those here, for RTP and for RTCP."""
        return self._rtp.getsockname()[1], self._rtcp.getsockname()[1]

    @property
    def congested(self) -> bool:
        return False

    def send(self, packets: Sequence[bytes]) -> None:
        for packet in packets:
            _send(self._rtp, packet, self._client[0])

    def report(self, packet: bytes) -> None:
        _send(self._rtcp, packet, self._client[1])

    def close(self) -> None:
        self._rtp.close()
        self._rtcp.close()


def _send(sender: socket.socket, packet: bytes, address: tuple[str, int]) -> None:
    try:
        sender.sendto(packet, address)
    except OSError:
        return  # A full buffer, or a client that is gone: the datagram is lost, as networks lose them.


def _pair() -> tuple[socket.socket, socket.socket]:
    """Two sockets on neighbouring ports: clients take the one for RTCP to be the next."""
    for _ in range(_PAIR_TRIES):
        first = _bound(0)
        try:
            return first, _bound(first.getsockname()[1] + 1)
        except (OSError, OverflowError):
            first.close()
    raise EnvironmentProblem(
        f"farm: found no two neighbouring free UDP ports in {_PAIR_TRIES} tries", error_id="port-taken"
    )


def _bound(port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        made.setblocking(False)
        made.bind((HOST, port))
    except BaseException:
        made.close()
        raise
    return made
