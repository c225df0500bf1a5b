"""Cameras that speak TLS, with certificates that they have signed themselves."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.stages.video.capture.test_web import WebCamera

from camgraph.tools.scenes.simulator import CameraSettings, ClipSettings, RtspSimulator

Watch = Callable[..., Any]
Front = Callable[[int], int]

pytestmark = pytest.mark.skipif(
    not shutil.which("openssl"), reason="certificates are made by openssl, which is not here"
)


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    folder = tmp_path_factory.mktemp("certificate")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=camera", "-days", "2"]
    subprocess.run([*command, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(certificate, key)
    return made


@pytest.fixture
def front(context: ssl.SSLContext) -> Iterator[Front]:
    """Puts TLS before a port of this machine: `front(port)` gives the other one."""
    with ExitStack() as stack:

        def begin(port: int) -> int:
            door = socket.create_server(("127.0.0.1", 0))
            threads: list[threading.Thread] = []
            open_ones: list[socket.socket] = [door]

            def started(target: Callable[..., None], *arguments: Any) -> None:
                threads.append(threading.Thread(target=target, args=arguments))
                threads[-1].start()

            def accept() -> None:
                with suppress(OSError):
                    while True:
                        client, _ = door.accept()
                        with suppress(OSError):
                            secure = context.wrap_socket(client, server_side=True)
                            plain = socket.create_connection(("127.0.0.1", port))
                            open_ones.extend((secure, plain))
                            started(copy, secure, plain)
                            started(copy, plain, secure)

            def copy(source: socket.socket, target: socket.socket) -> None:
                with suppress(OSError):
                    while data := source.recv(1 << 16):
                        # The simulator knows no rtsps.
                        target.sendall(data.replace(b"rtsps://", b"rtsp://"))
                for one in (source, target):
                    with suppress(OSError):
                        one.shutdown(socket.SHUT_RDWR)

            def close() -> None:
                for one in open_ones:
                    with suppress(OSError):
                        one.shutdown(socket.SHUT_RDWR)
                for thread in threads:
                    thread.join(20)
                for one in open_ones:
                    one.close()

            started(accept)
            stack.callback(close)
            return int(door.getsockname()[1])

        yield begin


def test_rtsps(front: Front, watch: Watch) -> None:
    clip = ClipSettings(codec="h264", width=320, fps=20, seconds=1, gop=10)
    with RtspSimulator([CameraSettings(name="a", clip=clip)]) as simulator:
        url = simulator.camera("a").url
        port = int(url.partition("//")[2].partition("/")[0].rpartition(":")[2])
        watching = watch(url.replace("rtsp://", "rtsps://").replace(f":{port}/", f":{front(port)}/"))
        watching.until_frames(20)
        assert watching.states == ["connecting", "live"]
        assert watching.stop() < 2.5


@pytest.mark.parametrize("path", ["a.mjpg", "a.m3u8"])
def test_https(front: Front, watch: Watch, path: str) -> None:
    camera = WebCamera()
    try:
        port = int(camera.url("").rpartition(":")[2].rstrip("/"))
        watching = watch(camera.url(path).replace("http://", "https://").replace(f":{port}/", f":{front(port)}/"))
        watching.until_frames(20)
        assert watching.states == ["connecting", "live"]
        assert watching.stop() < 2.5
    finally:
        camera.close()


def test_no_tls_where_it_is_expected_is_said(watch: Watch, tmp_path: Path) -> None:
    camera = WebCamera()
    try:
        watching = watch(camera.url("a.mjpg").replace("http://", "https://"))
        watching.until_state("lost")
        assert "no TLS with it" in watching.reported
    finally:
        camera.close()
