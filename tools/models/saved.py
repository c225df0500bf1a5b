"""Files of results: checked before anything is measured, and written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.system.disk import write_whole


def check_places(paths: Iterable[Path | None]) -> None:
    """Raises UserError if one of these cannot be written: minutes of measuring would be lost. None is nothing."""
    for path in paths:
        if path is not None and not _is_stream(path):
            _check(path)


def save(path: Path, text: str) -> None:
    """Raises UserError if it cannot be written; then an existing file stays unchanged."""
    if _is_stream(path):
        try:
            path.write_text(text)
        except OSError as error:
            raise _refused(path, error) from None
        return
    try:
        write_whole(path.resolve(), text.encode())
    except OSError as error:
        raise _refused(path, error) from None


def _is_stream(path: Path) -> bool:
    """Such as /dev/stdout: nothing is put in its place."""
    return os.path.exists(path) and not os.path.isfile(path)  # noqa: PTH110, PTH113 - Path's raise


def _check(path: Path) -> None:
    try:
        target = path.resolve()
        with tempfile.TemporaryFile(dir=target.parent):
            pass
    except OSError as error:
        raise _refused(path, error) from None


def _refused(path: Path, error: OSError) -> UserError:
    return UserError(f"{path}: cannot be written: {error.strerror}", error_id="cannot-write")
