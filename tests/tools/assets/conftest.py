"""A registry on this machine, that the real npm talks to."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from camgraph_test_stages.packages import TEXT, sha256, tar_gz

from camgraph.tools.assets.catalogue import Asset, Member, Package

PACKAGE = "@someone/models"
NUMBER = b"\x07" * 5000


class Registry(ThreadingHTTPServer):
    """One npm package of one version. `gate` holds back the second half of the archive while it is clear."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Answer)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.archive = b""
        self.served = 0
        self.half_sent = threading.Event()
        self.gate = threading.Event()
        self.gate.set()

    def offer(self, files):
        manifest = json.dumps({"name": PACKAGE, "version": "1.0.0"}).encode()
        self.archive = tar_gz({"package/package.json": manifest, **files})

    def handle_error(self, request, client_address):
        """A client that was killed is what some tests are about."""


class _Answer(BaseHTTPRequestHandler):
    server: Registry

    def do_GET(self):
        if self.path.endswith(".tgz"):
            self._archive()
        else:
            self._send(json.dumps(self._packument()).encode())

    def _packument(self):
        digest = base64.b64encode(hashlib.sha512(self.server.archive).digest()).decode()
        dist = {"tarball": f"{self.server.url}/models.tgz", "integrity": f"sha512-{digest}"}
        version = {"name": PACKAGE, "version": "1.0.0", "dist": dist}
        return {"name": PACKAGE, "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}

    def _archive(self):
        self.server.served += 1
        data, half = self.server.archive, len(self.server.archive) // 2
        self._send(data[:half], length=len(data))
        self.server.half_sent.set()
        self.server.gate.wait(60)
        self.wfile.write(data[half:])

    def _send(self, data, length=None):
        self.send_response(200)
        self.send_header("Content-Length", str(len(data) if length is None else length))
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()

    def log_message(self, format, *args):  # noqa: A002
        """Quiet."""


@pytest.fixture
def registry(monkeypatch):
    """What npm takes for its registry."""
    if shutil.which("npm") is None:
        pytest.skip("no npm on PATH: pulling from an npm registry is not tested here")
    server = Registry()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv("npm_config_registry", server.url)
    yield server
    server.gate.set()
    server.shutdown()
    thread.join()
    server.server_close()


def joined(sources):
    return b"".join(sources)


def model_asset():
    """An asset that is made of two files of the registry's package."""
    members = (
        Member("package/a.txt", "a.txt", sha256(TEXT), 10_000),
        Member("package/b.bin", "b.bin", sha256(NUMBER), 10_000),
    )
    package = Package("npm", PACKAGE, "1.0.0", archive_bytes=1000)
    return Asset("ab.model", "a model", "CC0", sha256(TEXT + NUMBER), package, members, joined)


@pytest.fixture
def converted_asset(registry):
    registry.offer({"package/a.txt": TEXT, "package/b.bin": NUMBER})
    return model_asset()
