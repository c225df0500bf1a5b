"""GStreamer's RTSP server from Debian, run by the system's Python: `with GStreamerServer() as server: server.url`.

The clip is encoded here; everything from there on (packets, time stamps, reports, sessions, accounts) is GStreamer's.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from camgraph.pipeline.errors import EnvironmentProblem
from camgraph.tools.scenes.simulator.authentication import Scheme
from camgraph.tools.scenes.simulator.clip import encode_clip
from camgraph.tools.scenes.simulator.settings import CameraSettings, ClipSettings

PACKAGES = ("gir1.2-gst-rtsp-server-1.0", "python3-gi")
"""The packages to install; the rest comes with these."""

_PYTHON = "/usr/bin/python3"
"""Debian's gi is built for this one and can be had for no virtual environment."""

_PROGRAM = Path(__file__).with_name("program.py")
_IMPORTS = (
    "import gi; gi.require_version('GstRtspServer', '1.0'); from gi.repository import Gst, GstRtspServer; Gst.init();"
    "assert Gst.ElementFactory.find('rtph264pay')"
)
_CHECK_S = 60.0
_START_S = 30.0
_END_S = 5.0


def missing_packages() -> str | None:
    """The packages to install before a `GStreamerServer` can start; None if all are there."""
    found = Path(_PYTHON).exists() and _runs(_IMPORTS)
    if found:
        return None
    return f"GStreamer's RTSP server is not here: apt-get install --no-install-recommends {' '.join(PACKAGES)}"


def _runs(code: str) -> bool:
    """The first run of GStreamer on a machine looks through all its plugins, which takes seconds."""
    command = [_PYTHON, "-I", "-c", code]
    ran = subprocess.run(command, capture_output=True, timeout=_CHECK_S, check=False)  # noqa: S603 - the lines above
    return ran.returncode == 0


class GStreamerServer:
    """One stream on 127.0.0.1, served by a process of its own from `start` to `close`.

    Each client gets a stream of its own that begins with picture 0. Packets go over TCP or UDP, as the client asks;
    sender reports come twice a second.
    """

    def __init__(
        self, clip: ClipSettings | None = None, *, auth: Scheme = "none", account: tuple[str, str] = ("farm", "farm")
    ) -> None:
        """Encodes the clip, by default the test picture. ``account`` is (user, password). Raises UserError."""
        user, password = account
        settings = CameraSettings(name="stream", clip=clip or ClipSettings(), auth=auth, user=user, password=password)
        self._settings = settings
        self._encoding, self._pictures = encode_clip(settings.clip)
        self._port = 0
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def url(self) -> str:
        """With user and password, if it asks for them. The same after `close` and `start`."""
        return self._settings.url(self._port)

    @property
    def port(self) -> int:
        return self._port

    @property
    def pid(self) -> int:
        """Of the process that serves."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Serve; the port is open afterwards, after the first time always the same.

        Raises EnvironmentProblem if GStreamer is missing or does not listen.
        """
        missing = missing_packages()
        if missing:
            raise EnvironmentProblem(missing, error_id="extra-missing")
        command = [_PYTHON, "-I", str(_PROGRAM)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, process_group=0)  # noqa: S603 - our program
        try:
            self._tell(self._process)
            self._port = self._printed_port(self._process)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the server and its connections; nothing if that is done."""
        process, self._process = self._process, None
        if process is None:
            return
        _close(process.stdin)
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        _close(process.stdout)

    def _tell(self, process: subprocess.Popen[bytes]) -> None:
        """By a pipe, because the password must not be in the arguments."""
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(self._plan()).encode() + b"\n")
            process.stdin.write(b"".join(one.data for one in self._pictures))
            process.stdin.flush()
        except BrokenPipeError:
            raise EnvironmentProblem(
                f"GStreamer's RTSP server ended at once; `{_PYTHON} {_PROGRAM}` says why", error_id="simulator"
            ) from None

    def _plan(self) -> dict[str, object]:
        encoding, settings = self._encoding, self._settings
        return {
            "name": settings.name,
            "port": self._port,
            "auth": settings.auth,
            "user": settings.user,
            "password": settings.password,
            "codec": encoding.codec,
            "width": encoding.width,
            "height": encoding.height,
            "fps": encoding.fps.as_integer_ratio(),
            "shown": [one.shown for one in self._pictures],
            "sizes": [len(one.data) for one in self._pictures],
        }

    def _printed_port(self, process: subprocess.Popen[bytes]) -> int:
        """The port, when it is open."""
        assert process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            output = os.read(process.stdout.fileno(), 64) if selector.select(_START_S) else b""
        if not output.strip().isdigit():
            wanted = f"port {self._port}" if self._port else "a port"
            raise EnvironmentProblem(
                f"GStreamer's RTSP server: expected it to listen on {wanted} of 127.0.0.1 within {_START_S:g} s, "
                "it did not; is the port taken?",
                error_id="simulator",
            )
        return int(output)


def _close(pipe: IO[bytes] | None) -> None:
    if pipe is not None:
        pipe.close()
