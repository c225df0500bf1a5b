"""A simulator for all tests of a file, and two clients: FFmpeg by PyAV, and bare sockets that see every packet."""

from __future__ import annotations

import socket
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, NamedTuple

import av
import pytest

from camgraph.tools.scenes.simulator import CameraHandle, CameraSettings, ClipSettings, RtspSimulator
from camgraph.tools.scenes.simulator.pattern import number_of

WITHIN_S = 60.0
ROUND = 25
"""Frames of the clips here: half a second, one group of pictures, so that every client begins at picture 0."""


class Packet(NamedTuple):
    """One RTP packet, apart; or one RTCP packet, whose payload is all of it."""

    channel: int
    marker: bool
    sequence: int
    stamp: int
    ssrc: int
    payload: bytes


def packet_of(data: bytes, channel: int) -> Packet:
    _, second, sequence, stamp, ssrc = struct.unpack_from("!BBHII", data)
    if channel:
        return Packet(channel, False, 0, 0, 0, data)
    return Packet(channel, bool(second >> 7), sequence, stamp, ssrc, data[12:])


class BareClient:
    """RTSP over a socket, by hand. All waits are bounded; packets are kept apart from answers."""

    def __init__(self, camera: CameraHandle, udp: bool = False) -> None:
        self._url = f"rtsp://127.0.0.1:{camera.port}/{camera.name}"
        self._socket = socket.create_connection(("127.0.0.1", camera.port), WITHIN_S)
        self._file = self._socket.makefile("rb")
        self._cseq = 0
        self.session = ""
        self._udp = self._pair() if udp else ()

    def ask(self, method: str, path: str = "", **headers: str) -> tuple[int, dict[str, str], str]:
        """Status, headers (lower case) and body of the answer; packets on the way to it are dropped."""
        self.tell(method, path, **headers)
        while True:
            first = self._file.read(1)
            if first == b"$":
                self._interleaved()
                continue
            assert first, "the connection ended"
            return self._answer(first)

    def tell(self, method: str, path: str = "", **headers: str) -> None:
        self._cseq += 1
        lines = [f"{method} {self._url}{path} RTSP/1.0", f"CSeq: {self._cseq}"]
        lines += [f"Session: {self.session}"] if self.session else []
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self._socket.sendall("\r\n".join([*lines, "", ""]).encode())

    def play(self) -> dict[str, str]:
        """SETUP and PLAY; the headers of the answer to PLAY."""
        status, headers, _ = self.ask("SETUP", "/track0", Transport=self._transport())
        assert status == 200
        self.session = headers["session"].partition(";")[0]
        status, headers, _ = self.ask("PLAY")
        assert status == 200
        return headers

    def packets(self, within_s: float = WITHIN_S) -> Iterator[Packet]:
        """What comes, until nothing came for so long (TimeoutError) or the connection ends."""
        self._socket.settimeout(within_s)
        while self._udp:
            yield packet_of(self._udp[0].recv(65536), 0)
        while first := self._file.read(1):
            assert first == b"$", first
            yield self._interleaved()

    def media(self, count: int) -> list[Packet]:
        """So many RTP packets."""
        found: list[Packet] = []
        for packet in self.packets():
            found += [packet] if packet.channel == 0 else []
            if len(found) == count:
                return found
        raise AssertionError(f"the connection ended after {len(found)} packets")

    def pictures(self, count: int) -> list[int]:
        """The time stamps of so many pictures, one each."""
        stamps: list[int] = []
        for packet in self.packets():
            stamps += [packet.stamp] if packet.marker else []
            if len(stamps) == count:
                return stamps
        raise AssertionError("the connection ended")

    def silent_for(self, seconds: float) -> bool:
        """Whether nothing comes, not even the end."""
        self._socket.settimeout(seconds)
        try:
            return self._socket.recv(1, socket.MSG_PEEK) is None
        except TimeoutError:
            return True

    def close(self) -> None:
        self._file.close()
        self._socket.close()
        for one in self._udp:
            one.close()

    def _transport(self) -> str:
        if not self._udp:
            return "RTP/AVP/TCP;unicast;interleaved=0-1"
        ports = [one.getsockname()[1] for one in self._udp]
        return f"RTP/AVP;unicast;client_port={ports[0]}-{ports[1]}"

    def _pair(self) -> tuple[socket.socket, socket.socket]:
        made = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
        for one in made:
            one.bind(("127.0.0.1", 0))
            one.settimeout(WITHIN_S)
        return made[0], made[1]

    def _interleaved(self) -> Packet:
        channel, size = struct.unpack("!BH", self._file.read(3))
        return packet_of(self._file.read(size), channel)

    def _answer(self, first: bytes) -> tuple[int, dict[str, str], str]:
        status = int((first + self._file.readline()).split()[1])
        headers: dict[str, str] = {}
        while line := self._file.readline().decode().strip():
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        return status, headers, self._file.read(int(headers.get("content-length", "0"))).decode()


@dataclass
class Seen:
    """One decoded picture: the number it shows (None: unreadable), its time stamp, its size, a sum of its pixels."""

    number: int | None
    pts: int | None
    width: int
    height: int
    checksum: int


class Viewing:
    """FFmpeg as client: at the end of a live stream it says nothing, so `pictures` ends short then."""

    def __init__(
        self, url: str, transport: str = "tcp", timeout: tuple[float, float] = (WITHIN_S, WITHIN_S), **more: str
    ) -> None:
        options = {"rtsp_transport": transport, "probesize": "200000", "analyzeduration": "500000", **more}
        self.container = av.open(url, options=options, timeout=timeout)
        self.stream = self.container.streams.video[0]
        self.stream.thread_type = "NONE"
        self.undecodable = 0

    def packets(self) -> Iterator[Any]:
        """Until the end of the stream."""
        for packet in self.container.demux(self.stream):
            if packet.size == 0:
                return
            yield packet

    def pictures(self, count: int) -> list[Seen]:
        """So many pictures, or fewer where the stream ends before. Raises ExitError where it stalls."""
        seen: list[Seen] = []
        for packet in self.packets():
            seen += self._decoded(packet)
            if len(seen) >= count:
                break
        return seen

    def _decoded(self, packet: Any) -> list[Seen]:
        try:
            frames = packet.decode()
        except av.FFmpegError:
            self.undecodable += 1
            return []
        greys = [(frame, frame.to_ndarray(format="gray")) for frame in frames]
        return [Seen(number_of(grey), frame.pts, frame.width, frame.height, zlib.crc32(grey)) for frame, grey in greys]


def small(name: str, codec: str = "h264", b_frames: int = 0, width: int = 320, **settings: Any) -> CameraSettings:
    """A camera of little work, and of 50 fps so that tests wait half as long."""
    clip = ClipSettings(codec=codec, width=width, fps=50, seconds=ROUND / 50, gop=ROUND, b_frames=b_frames)
    return CameraSettings(name=name, clip=clip, **settings)


@pytest.fixture(scope="module")
def simulator() -> Iterator[RtspSimulator]:
    cameras = [
        small("h264", width=640),
        small("h264-b", b_frames=2),
        small("h265", "h265"),
        small("h265-b", "h265", b_frames=2),
        small("basic", auth="basic", user="me", password="a/b#c:d@e"),
        small("digest", auth="digest", user="me", password="a/b#c:d@e"),
    ]
    with RtspSimulator(cameras) as made:
        yield made


@pytest.fixture
def camera(simulator: RtspSimulator) -> Iterator[CameraHandle]:
    """One that is well again afterwards."""
    yield simulator.camera("h264")
    simulator.camera("h264").heal()


@pytest.fixture(scope="module")
def well(simulator: RtspSimulator) -> list[Seen]:
    """The pictures of one round of the camera of faults, as they ought to be."""
    viewing = Viewing(simulator.camera("h264").url)
    try:
        return viewing.pictures(ROUND)
    finally:
        viewing.container.close()


@pytest.fixture
def bare() -> Iterator[Callable[..., BareClient]]:
    with ExitStack() as stack:

        def make(camera: CameraHandle, udp: bool = False) -> BareClient:
            made = BareClient(camera, udp)
            stack.callback(made.close)
            return made

        yield make


@pytest.fixture
def view() -> Iterator[Callable[..., Viewing]]:
    with ExitStack() as stack:

        def make(url: str, transport: str = "tcp", **options: Any) -> Viewing:
            made = Viewing(url, transport, **options)
            stack.callback(made.container.close)
            return made

        yield make
