"""The file that a tool writes a model to: whole or not at all, and never over the model that it is made of."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.errors import UserError
from stages.inference.signatures import signature_of_file


@contextmanager
def written(model: Path, out: Path) -> Iterator[Path]:
    """A file beside ``out`` to write to, which takes its place at the end if it loads, and is gone if anything fails.

    Raises UserError where it cannot be written there, where ``out`` is the ``model`` itself, by whatever name, and
    where what was made does not load.
    """
    part = out.with_name(f"{out.name}.part")
    _check(model, out, part)
    try:
        part.unlink(missing_ok=True)
        part.touch()
    except OSError as error:
        raise UserError(f"{out}: cannot be written: {error.strerror}") from None
    try:
        yield part
        _check_loads(model, part)
        part.replace(out)
    finally:
        part.unlink(missing_ok=True)


def _check(model: Path, out: Path, part: Path) -> None:
    if not out.parent.is_dir():
        raise UserError(f"{out}: {out.parent} is no folder")
    for path in (out, part):
        if path.exists() and path.samefile(model):
            raise UserError(f"{out}: is the model itself, which would be lost: expected a file of another name")


def _check_loads(model: Path, part: Path) -> None:
    try:
        signature_of_file(part)
    except UserError as error:
        why = str(error).removeprefix(f"{part}: ")
        raise UserError(f"{model}: what was made of it does not load, and was not kept: {why}") from None
