"""What a model file says of itself, as `stages.vision.recognition` takes it."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from pipeline.errors import UserError
from stages.inference.model_safety import checked_model
from stages.inference.onnxruntime_engine import look_into
from stages.vision.recognition import Reading, Signature, Stated, Unrecognised, recognise


def signature_of_file(path: Path, libraries: tuple[Path, ...] = ()) -> Signature:
    """Of a model file, which is opened once as long as it does not change; ``libraries`` have its own operators.

    Raises UserError where it is none, or one that must not be opened.
    """
    try:
        status = path.stat()
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}; expected an ONNX file") from None
    return _signature(path, status.st_mtime_ns, status.st_size, libraries)


@lru_cache(maxsize=16)
def _signature(path: Path, _changed_ns: int, _size: int, libraries: tuple[Path, ...]) -> Signature:
    checked_model(path, custom_ops=bool(libraries))
    return look_into(path, libraries)


def read_model(path: Path, stated: Stated, libraries: tuple[Path, ...] = ()) -> Reading:
    """What a model file is. Raises UserError where that cannot be said."""
    return read_signature(signature_of_file(path, libraries), str(path), stated)


def read_signature(signature: Signature, name: str, stated: Stated) -> Reading:
    """What the model of this signature is; ``name`` is its in errors. Raises UserError where that cannot be said."""
    try:
        return recognise(signature, stated)
    except Unrecognised as error:
        raise UserError(f"{name}: {error}") from None
