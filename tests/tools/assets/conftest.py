"""A registry on this machine, that the real npm talks to, and a folder of source packages for the real pip."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import shutil
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tools.assets.catalogue import Asset, Member, Package

PACKAGE = "@someone/models"


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def tar_gz(files):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


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
def cache(tmp_path, monkeypatch):
    """The folder of pulled assets, empty and not there yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "camgraph" / "assets"


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


TEXT, NUMBER = b"a text" * 1000, b"\x07" * 5000


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


BACKEND = """
def get_requires_for_build_wheel(config_settings=None): return []
def prepare_metadata_for_build_wheel(folder, config_settings=None):
    import pathlib
    info = pathlib.Path(folder) / "clips-2.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\\nName: clips\\nVersion: 2.0\\n")
    (info / "WHEEL").write_text("Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    return info.name
"""


@pytest.fixture
def clip_asset(tmp_path, monkeypatch):
    """An asset that is a file of a source package, which pip finds in a folder."""
    project = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    archive = tar_gz(
        {
            "clips-2.0/PKG-INFO": b"Metadata-Version: 2.1\nName: clips\nVersion: 2.0\n",
            "clips-2.0/pyproject.toml": project.encode(),
            "clips-2.0/backend.py": BACKEND.encode(),
            "clips-2.0/data/clip.avi": TEXT,
        }
    )
    (tmp_path / "index").mkdir()
    (tmp_path / "index" / "clips-2.0.tar.gz").write_bytes(archive)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    package = Package("pip", "clips", "2.0", archive_bytes=len(archive), sha256=sha256(archive))
    member = Member("clips-2.0/data/clip.avi", "clip.avi", sha256(TEXT), 10_000)
    return Asset("clip.avi", "a clip", "CC0", sha256(TEXT), package, (member,))
