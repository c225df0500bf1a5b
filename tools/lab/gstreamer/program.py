"""The program of the independent server: run by the system's Python, with its gi and the standard library only.

It is never imported by us. On its standard input it reads

    one line of JSON (what `GStreamerServer` asks for) | the coded pictures, one behind the other

and says on its standard output on which port of 127.0.0.1 it listens. It ends when its standard input does.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import gi

for _name in ("Gst", "GstRtsp", "GstRtspServer"):
    gi.require_version(_name, "1.0")

# After the versions are said: gi takes any that is there otherwise.
from gi.repository import GLib, Gst, GstRtsp, GstRtspServer  # noqa: E402

_ROLE = "viewer"
_METHODS = {"basic": GstRtsp.RTSPAuthMethod.BASIC, "digest": GstRtsp.RTSPAuthMethod.DIGEST}
# Small NAL units of one time stamp share a packet (STAP-A, AP), as with many cameras, and unlike in the simulator.
_LAUNCH = (
    "( appsrc name=source format=time caps=video/x-{codec},stream-format=byte-stream,alignment=au,"
    "width={width},height={height},framerate={fps[0]}/{fps[1]}"
    " ! rtp{codec}pay name=pay0 pt=96 config-interval=-1 aggregate-mode=zero-latency )"
)


class Round:
    """The pictures of a clip for one client, in a loop, each with the time at which it is shown and sent."""

    def __init__(self, plan: dict[str, Any], pictures: list[bytes]) -> None:
        self._shown: list[int] = plan["shown"]
        self._fps: list[int] = plan["fps"]
        self._pictures = pictures
        self._delay = max(place - shown for place, shown in enumerate(self._shown))
        self._next = 0

    def push(self, source: Any, _: int) -> None:
        """Give the source its next picture; the sinks let it wait until it is due."""
        rounds, place = divmod(self._next, len(self._pictures))
        buffer = Gst.Buffer.new_wrapped(self._pictures[place])
        buffer.dts = self._time(self._next)
        buffer.pts = self._time(rounds * len(self._pictures) + self._shown[place] + self._delay)
        buffer.duration = self._time(1)
        self._next += 1
        source.emit("push-buffer", buffer)

    def _time(self, frames: int) -> int:
        return int(frames * Gst.SECOND * self._fps[1] // self._fps[0])


def factory_of(plan: dict[str, Any], pictures: list[bytes]) -> Any:
    """Makes a stream of its own for each client, so that all begin at picture 0."""

    def configure(_: Any, media: Any) -> None:
        source = media.get_element().get_child_by_name("source")
        source.connect("need-data", Round(plan, pictures).push)
        media.connect("prepared", _report_often)

    factory = GstRtspServer.RTSPMediaFactory()
    factory.set_launch(_LAUNCH.format(**plan))
    factory.connect("media-configure", configure)
    if plan["auth"] != "none":
        factory.set_permissions(_permissions())
    return factory


def _report_often(media: Any) -> None:
    """Sender reports come every five seconds at the earliest otherwise, and tests wait for one."""
    media.get_stream(0).get_rtpsession().set_property("rtcp-min-interval", Gst.SECOND // 2)


def _permissions() -> Any:
    made = GstRtspServer.RTSPPermissions()
    for right in ("media.factory.access", "media.factory.construct"):
        made.add_permission_for_role(_ROLE, right, True)
    return made


def authentication(plan: dict[str, Any]) -> Any:
    """Lets in the one account of the plan."""
    token = GstRtspServer.RTSPToken()
    token.set_string("media.factory.role", _ROLE)
    made = GstRtspServer.RTSPAuth()
    made.set_supported_methods(_METHODS[plan["auth"]])
    if plan["auth"] == "basic":
        made.add_basic(GstRtspServer.RTSPAuth.make_basic(plan["user"], plan["password"]), token)
    else:
        made.add_digest(plan["user"], plan["password"], token)
    return made


def serve(plan: dict[str, Any], pictures: list[bytes]) -> int:
    """Serve until the standard input ends; the exit status."""
    server = GstRtspServer.RTSPServer()
    server.set_address("127.0.0.1")
    server.set_service(str(plan["port"]))
    server.get_mount_points().add_factory(f"/{plan['name']}", factory_of(plan, pictures))
    if plan["auth"] != "none":
        server.set_auth(authentication(plan))
    if not server.attach(None):
        return 1
    sys.stdout.write(f"{server.get_bound_port()}\n")
    sys.stdout.flush()
    loop = GLib.MainLoop()
    GLib.io_add_watch(sys.stdin.fileno(), GLib.PRIORITY_DEFAULT, GLib.IO_IN | GLib.IO_HUP, lambda *_: loop.quit())
    loop.run()
    return 0


def main() -> int:
    """Read the request, and serve it."""
    Gst.init(None)
    plan = json.loads(sys.stdin.buffer.readline())
    return serve(plan, [sys.stdin.buffer.read(size) for size in plan["sizes"]])


if __name__ == "__main__":
    sys.exit(main())
