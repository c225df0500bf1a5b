"""Python and the packages: their versions, and whether they can be imported."""

from __future__ import annotations

import importlib
import platform
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, packages_distributions, requires, version
from itertools import groupby
from typing import NamedTuple

from packaging.requirements import Requirement

from camgraph.tools.commands.doctor.notice import Notice, State

_TESTED = ((3, 11), (3, 13))
_MERGED = re.compile(r"[-_.]+")
_PLUGIN = "onnxruntime-ep-"
_FOR_CUDA = re.compile(r"-cu(da)?\d+$")

Owners = Mapping[str, Sequence[str]]
"""Module -> the packages that have files in it, as `packages_distributions` gives them."""


def look_at_python() -> Iterator[Notice]:
    """Its version, and the machine."""
    found = f"Python {platform.python_version()} on {platform.machine()} {platform.system()}"
    if not _TESTED[0] <= sys.version_info[:2] <= _TESTED[1]:
        yield Notice("warning", "python", found, "it was not tried with this one; 3.11 to 3.13 were")
    elif platform.system() != "Linux":
        yield Notice("warning", "python", found, "the runtime is for Linux; `processes: one` should work, unverified")
    else:
        yield Notice("ok", "python", found)


def look_at_requirements(package: str = "camgraph") -> Iterator[Notice]:
    """Whether the package's requirements are installed, in versions that it accepts."""
    try:
        wanted = [Requirement(text) for text in requires(package) or ()]
    except PackageNotFoundError:
        yield Notice("warning", "packages", f"{package} is not installed, it runs from its folder", "pip install -e .")
        return
    problems = [text for one in wanted if _applies(one) and (text := _problem(one))]
    if problems:
        yield Notice("wrong", "packages", "; ".join(problems), f"pip install --upgrade {package}")
    else:
        yield Notice("ok", "packages", f"{package} {version(package)} and all that it needs")


def _applies(wanted: Requirement) -> bool:
    return wanted.marker is None or wanted.marker.evaluate({"extra": ""})


def _problem(wanted: Requirement) -> str:
    # Each package of ONNX Runtime has what camgraph calls: you may have taken the small one.
    instead = _of_module("onnxruntime", None) if wanted.name.startswith("onnxruntime") else []
    try:
        there = version(next(iter(instead), wanted.name))
    except PackageNotFoundError:
        return f"{wanted.name} is missing"
    fits = wanted.specifier.contains(there, prereleases=True)
    return "" if fits else f"{wanted.name} is {there}, expected {wanted.specifier}"


def look_at_runtimes(owners: Owners | None = None) -> Iterator[Notice]:
    """ONNX Runtime comes in several packages that overwrite one another: only one may be there."""
    found = _of_module("onnxruntime", owners)
    wanted = runtime_of_this_system()
    if not found:
        yield Notice("wrong", "onnxruntime", "not installed", f"pip install {wanted}")
    else:
        yield _once("onnxruntime", found, "wrong", wanted)


def runtime_of_this_system() -> str:
    """The package of ONNX Runtime to install here."""
    return _runtime_of(platform.system(), platform.machine())


def _runtime_of(system: str, machine: str) -> str:
    """The package that has most of what there is on such a machine."""
    if system == "Windows":
        return "onnxruntime-directml"
    return "onnxruntime-gpu" if (system, machine) == ("Linux", "x86_64") else "onnxruntime"


def look_at_plugins(owners: Owners | None = None) -> Iterator[Notice]:
    """Additions to ONNX Runtime, or neighbours of it: OpenVINO, and packages with providers (`onnxruntime-ep-`).

    Two that bring the same overwrite one another (openvino and openvino-nightly), or were built for two versions of
    CUDA, and the one that is loaded is not the one that was meant.
    """
    if found := _of_module("openvino", owners):
        yield _once("openvino", found, "warning", "openvino")
    plugins = [name for name in _names(owners) if name.startswith(_PLUGIN)]
    for _, same in groupby(sorted(plugins), key=lambda name: _FOR_CUDA.sub("", name)):
        versions = [*same]
        if len(versions) > 1:
            cure = f"pip uninstall -y {versions[0]} (or the other)"
            yield Notice("warning", "plugin", f"installed more than once: {', '.join(versions)}", cure)


def _once(what: str, found: Sequence[str], state: State, wanted: str) -> Notice:
    if len(found) == 1:
        return Notice("ok", what, f"{found[0]} {_version(found[0])}".rstrip())
    shown = ", ".join(f"{name} {_version(name)}".rstrip() for name in found)
    cure = f"pip uninstall -y {' '.join(found)} && pip install {wanted}"
    return Notice(state, what, f"installed more than once ({shown}): they overwrite one another", cure)


def _of_module(module: str, owners: Owners | None) -> list[str]:
    """The packages that have put files into this module's folder."""
    known = packages_distributions() if owners is None else owners
    return sorted({_plain(name) for name in known.get(module, ())})


def _names(owners: Owners | None) -> set[str]:
    known = packages_distributions() if owners is None else owners
    return {_plain(name) for names in known.values() for name in names}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _plain(name: str) -> str:
    return _MERGED.sub("-", name).lower()


# ---- whether they can be imported: half-removed packages, and missing libraries, show here


class _Native(NamedTuple):
    """The package of a module, and a name that the module must have: a folder that was left behind has none."""

    package: str
    name: str


_NATIVE: Mapping[str, _Native] = {
    "numpy": _Native("numpy", "ndarray"),
    "zmq": _Native("pyzmq", "Context"),
    "msgpack": _Native("msgpack", "packb"),
    "av": _Native("av", "open"),
    "cv2": _Native("opencv-python-headless", "resize"),
    "onnx": _Native("onnx", "load"),
    "onnxruntime": _Native("", "InferenceSession"),
}

Import = Callable[[str], object]


def look_at_imports(runtime: str, load: Import = importlib.import_module) -> Iterator[Notice]:
    """One line for all that can be imported, one for each that cannot. ``runtime``: the package of ONNX Runtime."""
    broken = {module: why for module in _NATIVE if (why := _why_not(module, load))}
    for module, why in broken.items():
        cure = f"pip install --force-reinstall {_NATIVE[module].package or runtime}"
        yield Notice("wrong", f"import {module}", why, cure)
    if fine := [module for module in _NATIVE if module not in broken]:
        yield Notice("ok", "imports", ", ".join(fine))


def _why_not(module: str, load: Import) -> str:
    try:
        loaded = load(module)
    except Exception as error:  # noqa: BLE001 - whatever a broken package raises
        return f"cannot be imported: {type(error).__name__}: {error}"[:300]
    return "" if hasattr(loaded, _NATIVE[module].name) else f"is installed in part: it has no {_NATIVE[module].name}"
