"""Checks that the installed packages can be imported: half-removed ones, and missing libraries, show here."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from tools.commands.doctor.finding import Finding


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


def look_at_imports(runtime: str, load: Import = importlib.import_module) -> Iterator[Finding]:
    """One line for all that can be imported, one for each that cannot. ``runtime``: the package of ONNX Runtime."""
    broken = {module: why for module in _NATIVE if (why := _why_not(module, load))}
    for module, why in broken.items():
        cure = f"pip install --force-reinstall {_NATIVE[module].package or runtime}"
        yield Finding("wrong", f"import {module}", why, cure)
    if fine := [module for module in _NATIVE if module not in broken]:
        yield Finding("ok", "imports", ", ".join(fine))


def _why_not(module: str, load: Import) -> str:
    try:
        loaded = load(module)
    except Exception as error:  # noqa: BLE001 - whatever a broken package raises
        return f"cannot be imported: {type(error).__name__}: {error}"[:300]
    return "" if hasattr(loaded, _NATIVE[module].name) else f"is installed in part: it has no {_NATIVE[module].name}"
