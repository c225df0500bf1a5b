"""What a model file says of itself, as `stages.vision.recognition` takes it."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import onnxruntime as ort

from pipeline.errors import UserError
from stages.inference.sessions import inspect_model
from stages.vision.recognition import Port, Reading, Signature, Stated, Unrecognised, recognise


def signature_of(session: ort.InferenceSession) -> Signature:
    """Of an open model."""
    inputs = tuple(Port(entry.name, tuple(entry.shape), entry.type) for entry in session.get_inputs())
    outputs = tuple(Port(entry.name, tuple(entry.shape), entry.type) for entry in session.get_outputs())
    return Signature(inputs, outputs, dict(session.get_modelmeta().custom_metadata_map))


def signature_of_file(path: Path) -> Signature:
    """Of a model file, which is opened once as long as it does not change. Raises UserError where it is none."""
    try:
        status = path.stat()
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}; expected an ONNX file") from None
    return _signature(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=16)
def _signature(path: Path, _changed_ns: int, _size: int) -> Signature:
    return signature_of(inspect_model(path))


def read_model(path: Path, stated: Stated) -> Reading:
    """What a model file is. Raises UserError where that cannot be said."""
    try:
        return recognise(signature_of_file(path), stated)
    except Unrecognised as error:
        raise UserError(f"{path}: {error}") from None
