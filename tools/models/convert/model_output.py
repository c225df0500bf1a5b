"""The file that a tool writes a model to: whole or not at all, and never over the model that it is made of."""

from __future__ import annotations

import errno
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError
from onnx import ModelProto

from camgraph.pipeline.errors import EnvironmentProblem, UserError
from camgraph.pipeline.system.paths import instead_of_file
from camgraph.stages.people.inference.signatures import signature_of_file

_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_MOST_BYTES = (1 << 31) - 1
"""Of a message of protobuf."""


@contextmanager
def written(model: Path, out: Path) -> Iterator[Path]:
    """A file beside ``out`` to write to, which takes its place at the end if it loads, and is gone if anything fails.

    Raises UserError if it cannot be written there, if ``out`` is the ``model`` itself or no model, and if the new model
    does not load; EnvironmentProblem if the disk is full.
    """
    part = out.with_name(f"{out.name}.{secrets.token_hex(8)}.part")
    check_out(model, out, overwrite=True)  # a caller that may not overwrite has asked before
    try:
        part.touch(exist_ok=False)  # not through a link that somebody has put there
    except OSError as error:
        raise UserError(f"{out}: cannot be written: {error.strerror}", error_id="cannot-write") from None
    try:
        yield part
        _check_loads(model, part)
        part.replace(out)
    except OSError as error:
        if error.errno not in _NO_SPACE:
            raise
        raise EnvironmentProblem(f"{out}: cannot be written: {error.strerror}", error_id="cannot-write") from None
    finally:
        part.unlink(missing_ok=True)


def save_model(whole: ModelProto, part: Path) -> None:
    """Into one file. Raises UserError if it is too large for one."""
    size = whole.ByteSize()
    if size > _MOST_BYTES:
        raise UserError(
            f"what is made of it has {size / 1e9:.1f} GB with its weights, and an ONNX file holds "
            f"{_MOST_BYTES / 1e9:.1f} GB: models with weights in other files are read, and not written",
            error_id="model-bounds",
        )
    onnx.save(whole, str(part), format="protobuf")


def check_out(model: Path, out: Path, *, overwrite: bool) -> None:
    """To be asked before anything is computed. Raises UserError if ``out`` must not be written.

    It must not if it exists already without ``overwrite``, if it is the ``model`` itself by any name, or if it is
    anything but a model: a pipe, a device, a video.
    """
    if not out.parent.is_dir():
        raise UserError(f"{out}: {out.parent} is no folder", error_id="file-kind")
    if not out.exists():
        return
    if out.samefile(model):
        raise UserError(
            f"{out}: is the model itself, which would be lost: expected a file of another name", error_id="file-exists"
        )
    if other := instead_of_file(out):
        raise UserError(f"{out}: is {other}, expected a file to write the model to", error_id="file-exists")
    if not _is_model(out):
        raise UserError(
            f"{out}: is there already, and is no model: expected a file of another name", error_id="file-exists"
        )
    if not overwrite:
        raise UserError(f"{out}: exists already: name another file, or add --overwrite", error_id="file-exists")


def _is_model(path: Path) -> bool:
    if path.stat().st_size > _MOST_BYTES:
        return False
    try:
        return onnx.load(str(path), format="protobuf", load_external_data=False).ir_version > 0
    except (DecodeError, OSError, ValueError):
        return False


def _check_loads(model: Path, part: Path) -> None:
    try:
        signature_of_file(part)
    except UserError as error:
        why = str(error).removeprefix(f"{part}: ")
        raise UserError(
            f"{model}: the result does not load, and was not kept: {why}", error_id="model-does-not-run"
        ) from None
