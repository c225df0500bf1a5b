"""The unfinished file of one camera's tracks.

A restarted process goes on with the file of its predecessor: it cuts off a torn last line, and knows by the last frame
which frames the file already has. A kill during a write can leave a part of a frame's rows in a MOT file, so the last
frame of a MOT file is written anew if that frame comes again.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import takewhile
from pathlib import Path
from typing import Literal

from camgraph.pipeline.errors import EnvironmentProblem
from camgraph.stages.messages import Tracks
from camgraph.stages.sinks.writing.growing_file import GrowingFile
from camgraph.stages.sinks.writing.output_names import part_of
from camgraph.stages.sinks.writing.track_lines import Place, json_line, mot_lines

Format = Literal["mot", "jsonl"]
SUFFIXES: dict[Format, str] = {"mot": ".txt", "jsonl": ".jsonl"}
_WINDOW = 1 << 16


class TrackFile:
    """A growing file of MOT rows or JSON lines. `epoch`: of all its frames, because MOT rows do not name an epoch.

    All methods raise OSError or EnvironmentProblem if the disk fails.
    """

    def __init__(self, target: Path, form: Format, epoch: int, *, replace: bool = False) -> None:
        """Begin a new file. Raises as `GrowingFile` does."""
        self._begin(GrowingFile(target, fresh=True, replace=replace), form, epoch)

    @classmethod
    def resumed(cls, target: Path, form: Format, epoch: int, *, replace: bool = False) -> TrackFile:
        """Go on with the unfinished file that a killed writer left. Raises as `GrowingFile` does."""
        self = cls.__new__(cls)
        self._begin(GrowingFile(target, fresh=False, replace=replace), form, epoch)
        try:
            self._look_back()
        except BaseException:
            self.close()
            raise
        return self

    def _begin(self, file: GrowingFile, form: Format, epoch: int) -> None:
        self._file = file
        self._lines_of: Callable[[Tracks], bytes] = mot_lines if form == "mot" else json_line
        self._place_of = (lambda line: (epoch, _mot_seq(line))) if form == "mot" else _json_place
        self._may_tear = form == "mot"
        self.last: Place | None = None
        """The last frame with people in the file; None if the file has none."""
        self.torn: Place | None = None
        """The last frame, if the file may lack some of its people."""
        self._torn_at = 0
        self._end = 0

    @property
    def target(self) -> Path:
        """The name that the completed file will have, unless that name is taken."""
        return self._file.target

    @property
    def is_gone(self) -> bool:
        """Whether the file was removed or replaced meanwhile."""
        return self._file.is_gone

    @property
    def is_empty(self) -> bool:
        """Whether the file has no people."""
        return not self._file.size

    def append(self, tracks: Tracks) -> None:
        """Add a frame at the end, or write the `torn` frame anew. If `append` raises, nothing was added."""
        if tracks.stamp.place == self.torn:
            self._file.cut(self._torn_at)
        lines = self._lines_of(tracks)
        # Another program may have added or cut something.
        if self._file.size != self._end and self._file.tail(1) not in (b"", b"\n"):
            lines = b"\n" + lines
        self._file.append(lines)
        self._end = self._file.size
        self.last, self.torn = tracks.stamp.place, None

    def complete(self) -> Path:
        """Give the file the name `target`, or the next free name; return that name."""
        return self._file.complete()

    def close(self) -> None:
        """Close the file and leave it unfinished. A second call does nothing."""
        self._file.close()

    def _look_back(self) -> None:
        """Find the last frame, and cut off a last line that is torn. Raises OSError, EnvironmentProblem."""
        size, window = self._file.size, _WINDOW
        while True:
            *lines, rest = self._file.tail(window).split(b"\n")
            whole = lines if window >= size else lines[1:]
            rows = self._rows_of_last(whole)
            if window >= size or len(rows) < len(whole):
                break
            window *= 4
        self._file.cut(size - len(rest))
        self.last = self._place_of(rows[-1]) if rows else None
        self.torn = self.last if self._may_tear else None
        self._torn_at = self._file.size - sum(len(row) + 1 for row in rows)

    def _rows_of_last(self, lines: list[bytes]) -> list[bytes]:
        """The lines at the end that belong to the last frame. Raises EnvironmentProblem for lines of another kind."""
        try:
            last = self._place_of(lines[-1]) if lines else None
            return list(takewhile(lambda line: self._place_of(line) == last, reversed(lines)))
        except (ValueError, KeyError, TypeError) as error:
            raise EnvironmentProblem(
                f"{self._file.part}: its last line was not written by this sink; move the file away",
                error_id="file-kind",
            ) from error


def rescued(form: Format, target: Path, *, replace: bool) -> Path | None:
    """Complete the unfinished file of a killed run, and return the path. Remove a file without people: None.

    Raises as `GrowingFile` does.
    """
    file = TrackFile.resumed(target, form, 0, replace=replace)
    try:
        if file.is_empty:
            part_of(target).unlink()
            return None
        return file.complete()
    finally:
        file.close()


def _mot_seq(line: bytes) -> int:
    return int(line.partition(b",")[0]) - 1


def _json_place(line: bytes) -> Place:
    frame = json.loads(line)
    return int(frame["epoch"]), int(frame["seq"])
