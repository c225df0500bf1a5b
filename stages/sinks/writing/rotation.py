"""Files of lines that begin anew when they are large or old enough, so that a disk does not fill up over the years.

    events.jsonl                            is written
    events-20261123T235958Z.jsonl.gz        older ones, named by the UTC time of their last line
    events-20261122T235959Z.jsonl.gz        ...the newest `keep` of them stay

The name changes in one step, so a crash loses nothing. Packing takes seconds for a large file and runs in a thread of
its own; one that was interrupted is done again when the next begins.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from camgraph.pipeline.stage import Logger, Settings
from camgraph.pipeline.system.disk import open_regular, sync_data
from camgraph.stages.sinks.delivery.durations import Duration, seconds

_PART = ".gz.part"
_PIECE = 1 << 20
_WAIT_AT_END_S = 3.0


class RotateSettings(Settings):
    """When a file begins anew, and what becomes of the old ones."""

    mb: float | None = Field(None, gt=0, le=1_000_000, description="Before it grows over so many MB (10^6 bytes)")
    every: Duration | None = Field(
        None, description="With each such period, counted from 1970 in UTC: `1h`, or `1d` for a file a day"
    )
    keep: int = Field(30, ge=1, le=100_000, description="So many old files stay; older ones are deleted")
    compress: bool = Field(True, description="Pack old files with gzip")

    @model_validator(mode="after")
    def _has_a_limit(self) -> Self:
        if self.mb is None and self.every is None:
            raise ValueError("expected `mb`, `every`, or both: when does a new file begin?")
        return self


def is_due(settings: RotateSettings, size: int, more: int, last_write_s: float, now_s: float) -> bool:
    """Whether a file of `size` bytes begins anew before `more` bytes are added. Times in seconds since 1970."""
    if not size:
        return False
    if settings.mb is not None and size + more > settings.mb * 1e6:
        return True
    period_s = seconds(settings.every) if settings.every else 0.0
    return bool(period_s) and last_write_s // period_s != now_s // period_s


class Rotation:
    """The old files beside one that is written at `path`."""

    def __init__(self, path: Path, settings: RotateSettings, log: Logger) -> None:
        self._path, self._settings, self._log = path, settings, log
        self._packing: threading.Thread | None = None

    def new_name(self, last_write_s: float) -> Path:
        """A name behind those of all old files, also if the clock was set back: the oldest by name are deleted."""
        time = f"{datetime.fromtimestamp(last_write_s, UTC):%Y%m%dT%H%M%SZ}"
        newest, number, _ = max(self._found(), default=("", 0, None))
        number = number + 1 if newest >= time else 1
        return self._path.with_name(
            f"{self._path.stem}-{max(newest, time)}{f'-{number}' if number > 1 else ''}{self._path.suffix}"
        )

    def old_files(self) -> list[Path]:
        """The oldest first."""
        return [entry for _, _, entry in sorted(self._found())]

    def _found(self) -> Iterator[tuple[str, int, Path]]:
        """Time, number within that second, and path of each old file."""
        ending = re.escape(self._path.suffix)
        pattern = re.compile(rf"{re.escape(self._path.stem)}-(\d{{8}}T\d{{6}}Z)(?:-(\d+))?{ending}(?:\.gz)?")
        for entry in self._path.parent.iterdir():
            if match := pattern.fullmatch(entry.name):
                yield match[1], int(match[2] or 1), entry

    def tidy(self) -> None:
        """Delete the oldest, and pack the others in the background. Errors are logged: events are more important."""
        if self._packing is not None and self._packing.is_alive():
            return
        self._packing = threading.Thread(target=self._tidy, name="rotation", daemon=True)
        with suppress(RuntimeError):  # no thread is left: the next time
            self._packing.start()

    def close(self) -> None:
        """Wait a little for a file that is being packed."""
        if self._packing is not None and self._packing.ident is not None:
            self._packing.join(_WAIT_AT_END_S)

    def _tidy(self) -> None:
        try:
            self._delete_oldest()
            if self._settings.compress:
                for path in self.old_files():
                    if path.suffix != ".gz":
                        pack(path)
            self._delete_oldest()
        except OSError as error:
            self._log.warning("old_events_not_packed", path=str(error.filename or self._path), error=error.strerror)

    def _delete_oldest(self) -> None:
        for path in self.old_files()[: -self._settings.keep]:
            path.unlink(missing_ok=True)


def pack(path: Path) -> None:
    """Replace a file by a packed one, `<name>.gz`. Raises OSError; then the file is as it was."""
    part = path.with_name(path.name + _PART)
    with suppress(FileNotFoundError):
        part.unlink()
    source = open_regular(path, os.O_RDONLY)
    with open(source, "rb") as lines:  # noqa: PTH123 - it is open already
        found = os.fstat(source)
        target = open_regular(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, found.st_mode & 0o777)
        with open(target, "wb") as file:  # noqa: PTH123 - as above
            with gzip.GzipFile(path.name, "wb", 6, file, mtime=found.st_mtime) as packed:
                shutil.copyfileobj(lines, packed, _PIECE)
            file.flush()
            sync_data(target)
    part.rename(path.with_name(f"{path.name}.gz"))
    path.unlink()
