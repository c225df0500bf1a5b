"""One RTSP connection of a client: its requests and their answers."""

from __future__ import annotations

import asyncio
import base64
import socket
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from camgraph.tools.scenes.simulator.authentication import challenge, is_authorised
from camgraph.tools.scenes.simulator.carriers import TcpCarrier, UdpCarrier
from camgraph.tools.scenes.simulator.clip import Clip
from camgraph.tools.scenes.simulator.nal import nal_type
from camgraph.tools.scenes.simulator.outflow import Outflow
from camgraph.tools.scenes.simulator.rtp import CLOCK_HZ, PAYLOAD_TYPE, STAMP_MASK
from camgraph.tools.scenes.simulator.rtsp import Request, RequestReader, Response, Transport, transport_of
from camgraph.tools.scenes.simulator.viewer import Identity, Viewer

if TYPE_CHECKING:
    from camgraph.tools.scenes.simulator.camera import Camera

REALM = "camgraph farm"

_METHODS = "OPTIONS, DESCRIBE, SETUP, PLAY, TEARDOWN, GET_PARAMETER, SET_PARAMETER"
_SESSION_TIMEOUT_S = 60
_RESET = struct.pack("ii", 1, 0)
TRACK = "track0"


class Connection(asyncio.Protocol):
    """Answers one client, until either side ends it; a session lives as long as its connection."""

    def __init__(self, camera: Camera) -> None:
        self._camera = camera
        self._reader = RequestReader()
        self._viewer: Viewer | None = None
        self._session = ""
        self._abandoned = False
        self._transport: asyncio.Transport
        self._outflow: Outflow
        self._answers: dict[str, Callable[[Request], Response]] = {
            "OPTIONS": self._options,
            "DESCRIBE": self._describe,
            "SETUP": self._setup,
            "PLAY": self._play,
            "TEARDOWN": self._teardown,
            "GET_PARAMETER": self._kept_alive,
            "SET_PARAMETER": self._kept_alive,
        }

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._outflow = Outflow(self._transport)
        self._camera.connected(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave()
        self._camera.disconnected(self)

    def data_received(self, data: bytes) -> None:
        if self._abandoned or "silence" in self._camera.faults:
            return
        try:
            for request in self._reader.feed(data):
                self._answer(request)
        except ValueError:
            self._outflow.write(Response(400).encode("0"))
            self._transport.close()

    def cut(self, how: str) -> None:
        """End it: `fin` in order, `rst` with a reset."""
        self._leave()
        if how == "fin":
            self._transport.close()
            return
        cast(socket.socket, self._transport.get_extra_info("socket")).setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, _RESET
        )
        self._transport.abort()

    def hold(self, seconds: float) -> None:
        """Let all that is sent come late, from the middle of the next packet on."""
        self._outflow.hold(seconds)

    def abandon(self) -> None:
        """Neither read nor write any more, and leave the socket open."""
        self._leave()
        self._abandoned = True
        if not self._transport.is_closing():
            self._transport.pause_reading()

    def _leave(self) -> None:
        viewer, self._viewer = self._viewer, None
        if viewer is not None:
            self._camera.left(viewer)
            viewer.close()

    def _answer(self, request: Request) -> None:
        self._camera.counts.requests += 1
        response = self._checked(request)
        self._outflow.write(response.encode(request.headers.get("cseq", "0")))
        if request.method == "PLAY" and response.status == 200 and self._viewer is not None:
            self._camera.joined(self._viewer)
        if request.method == "TEARDOWN" and response.status == 200:
            self._transport.close()

    def _checked(self, request: Request) -> Response:
        """The answer of the first objection to the request, else that of its method."""
        answer = self._answers.get(request.method)
        if answer is None:
            return Response(501)
        if request.method == "OPTIONS":
            return answer(request)
        fault = self._camera.faults.get("answer")
        if fault is not None:
            return self._unauthorised() if fault.value == "401" else Response(int(fault.value))
        if not self._authorised(request):
            return self._unauthorised()
        if request.path.split("/")[0] != self._camera.settings.name:
            return Response(404)
        return answer(request)

    def _authorised(self, request: Request) -> bool:
        settings = self._camera.settings
        header = request.headers.get("authorization", "")
        account = (settings.user, settings.password)
        return is_authorised(settings.auth, header, request.method, self._camera.nonce, account)

    def _unauthorised(self) -> Response:
        scheme = self._camera.settings.auth
        asked = challenge("digest" if scheme == "none" else scheme, REALM, self._camera.nonce)
        return Response(401, {"WWW-Authenticate": asked})

    def _options(self, request: Request) -> Response:
        return Response(200, {"Public": _METHODS})

    def _describe(self, request: Request) -> Response:
        camera = self._camera
        body = session_description(camera.clip, camera.settings.name, camera.declared_fps)
        headers = {"Content-Base": f"{request.url.rstrip('/')}/", "Content-Type": "application/sdp"}
        return Response(200, headers, body)

    def _setup(self, request: Request) -> Response:
        wanted = transport_of(request.headers.get("transport", ""))
        if wanted is None:
            return Response(461)
        if self._viewer is not None:
            return Response(455)
        identity = self._camera.new_identity()
        self._session = f"{identity.ssrc ^ 0x5A5A5A5A:08x}"
        transport = self._carry(wanted, identity)
        session = f"{self._session};timeout={_SESSION_TIMEOUT_S}"
        return Response(200, {"Transport": f"{transport};ssrc={identity.ssrc:08X}", "Session": session})

    def _carry(self, wanted: Transport, identity: Identity) -> str:
        """Make the viewer; the transport as the answer names it."""
        report_s = self._camera.settings.report_s
        ports = (wanted.first, wanted.second)
        if wanted.kind == "tcp":
            self._viewer = Viewer(TcpCarrier(self._outflow, ports), self, identity, report_s)
            return f"RTP/AVP/TCP;unicast;interleaved={ports[0]}-{ports[1]}"
        carrier = UdpCarrier(ports)
        self._viewer = Viewer(carrier, self, identity, report_s)
        own = carrier.ports
        return f"RTP/AVP;unicast;client_port={ports[0]}-{ports[1]};server_port={own[0]}-{own[1]}"

    def _play(self, request: Request) -> Response:
        if self._viewer is None or not self._in_session(request):
            return Response(455 if self._viewer is None else 454)
        first = self._viewer.identity
        url = f"{request.url.rstrip('/')}/{TRACK}"
        info = f"url={url};seq={first.sequence & 0xFFFF};rtptime={first.stamp & STAMP_MASK}"
        return Response(200, {"Session": self._session, "Range": "npt=now-", "RTP-Info": info})

    def _teardown(self, request: Request) -> Response:
        if not self._in_session(request):
            return Response(454)
        self._leave()
        return Response(200)

    def _kept_alive(self, request: Request) -> Response:
        return Response(200, {"Session": self._session} if self._session else {})

    def _in_session(self, request: Request) -> bool:
        return request.headers.get("session", "").partition(";")[0].strip() == self._session


def session_description(clip: Clip, name: str, fps: float) -> str:
    """The SDP of one video track with the rate ``fps``, whatever the clip has: a camera's description of its stream.

    RFC 4566; parameters of H.264 in RFC 6184 8.2.1, of H.265 in RFC 7798 7.2.1.
    """
    lines = [
        "v=0",
        "o=- 1 1 IN IP4 127.0.0.1",
        f"s={name}",
        "c=IN IP4 0.0.0.0",
        "t=0 0",
        "a=control:*",
        "a=range:npt=now-",
        f"m=video 0 RTP/AVP {PAYLOAD_TYPE}",
        f"a=rtpmap:{PAYLOAD_TYPE} {clip.codec.upper()}/{CLOCK_HZ}",
        f"a=fmtp:{PAYLOAD_TYPE} {_parameters(clip)}",
        f"a=framerate:{fps:g}",
        f"a=control:{TRACK}",
    ]
    return "\r\n".join([*lines, ""])


def _parameters(clip: Clip) -> str:
    if clip.codec == "h264":
        profile = next(nal for nal in clip.parameter_sets if nal_type("h264", nal) == 7)[1:4].hex()
        sets = ",".join(_base64(nal) for nal in clip.parameter_sets)
        return f"packetization-mode=1; profile-level-id={profile}; sprop-parameter-sets={sets}"
    names = {32: "sprop-vps", 33: "sprop-sps", 34: "sprop-pps"}
    return "; ".join(
        f"{name}={','.join(_base64(nal) for nal in clip.parameter_sets if nal_type('h265', nal) == kind)}"
        for kind, name in names.items()
    )


def _base64(nal: bytes) -> str:
    return base64.b64encode(nal).decode()
