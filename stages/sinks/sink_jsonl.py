"""Writes events into a file, one CloudEvents JSON object a line.

    log: {use: sink_jsonl, from: actions, with: {path: events.jsonl, rotate: {every: 1d, keep: 90}}}

Events are on the disk before the outbox forgets them. Delivery is at least once: a reader recognises a repeated event
by its `id`. Events that come again because the outbox died are not written twice, nor are those that this process had
written before it was killed: a restarted process reads them back. That is impossible for standard output, and across a
rotation.

Only a regular file is written. While the path names anything else, or a symbolic link that was not there when the run
began, events wait as they do for a full disk. A torn last line that nobody of this program has begun is kept.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from camgraph.pipeline.errors import EnvironmentProblem, UserError
from camgraph.pipeline.messages import MOST_REPEATED, Event, Message
from camgraph.pipeline.stage import Context, Counts
from camgraph.pipeline.system.disk import write_whole
from camgraph.pipeline.system.paths import resolve_output, resolve_output_path, why_no_output
from camgraph.stages.sinks.delivery.event_view import view_of
from camgraph.stages.sinks.delivery.selection import REPEATED, SelectingSink, Selection, SelectionSettings
from camgraph.stages.sinks.writing.line_file import LineFile, LineStream, is_device, link_of
from camgraph.stages.sinks.writing.rotation import RotateSettings, Rotation, is_due

STANDARD_OUTPUT = "-"
KNOWN = 2 * MOST_REPEATED
"""So many events, the last ones, are known again by their ids."""
READ_BACK = 16 << 20
"""Of the lines that are read back after a restart, so many bytes at most."""


class SinkJsonlSettings(SelectionSettings):
    """The place to write the events to."""

    path: str = Field(min_length=1, description="The file, relative to the graph file; - is standard output")
    order: Literal["arrival", "time"] = Field(
        "arrival", description="time: the events of all cameras in the order of their time, one identical file per run"
    )
    mode: Literal["append", "replace"] = Field("append", description="replace: start each run with an empty file")
    sync: bool = Field(True, description="Wait for the disk (fdatasync) before an event counts as delivered")
    rotate: RotateSettings | None = Field(
        None, description="Begin a new file when this one is large or old; without it, logrotate can do that"
    )

    @model_validator(mode="after")
    def _can_rotate(self) -> Self:
        if self.rotate and self.path == STANDARD_OUTPUT:
            raise ValueError("`rotate` is for files: standard output cannot begin anew")
        if self.rotate and self.order == "time":
            raise ValueError(
                "`order: time` makes one identical file a run: leave out `rotate`, or write `order: arrival`"
            )
        return self


class SinkJsonl(SelectingSink[SinkJsonlSettings]):
    """All lines of a batch in one write. The order is the runtime's work: lines stand as events come."""

    settings_type = SinkJsonlSettings
    inputs = Event
    outputs = ()
    counts: ClassVar[Counts] = {
        **SelectingSink.counts,
        **REPEATED,
    }
    own_thread = True

    def __init__(self, settings: SinkJsonlSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._out: LineFile | LineStream | None = None
        self._rotation: Rotation | None = None
        self._selection = Selection(settings.only, settings.never, settings.time_zone)
        self._read_back: frozenset[str] = frozenset()
        self._warned = False
        """Of lines that another program has not ended: once, because it may leave one after the other."""
        self._written: dict[str, None] = {}
        """The ids of the last events that this process has written, the oldest first."""

    @classmethod
    def check(cls, settings: SinkJsonlSettings, base_folder: Path) -> Iterable[tuple[tuple[str, ...], str]]:
        why = "" if settings.path == STANDARD_OUTPUT else why_no_output(settings.path, base_folder)
        if why:
            yield ("path",), why

    @classmethod
    def written_folders(cls, settings: Any, base_folder: Path) -> Iterable[Path]:
        if settings.path != STANDARD_OUTPUT:
            yield resolve_output_path(settings.path, base_folder).parent

    @classmethod
    def ordered_by_time(cls, settings: SinkJsonlSettings) -> bool:
        return settings.order == "time"

    def open(self) -> None:
        try:
            self._out = self._opened()
        except (UserError, EnvironmentProblem) as error:
            if self.context.incarnation == 1:
                raise
            # It was right when the run began: events wait until it is so again.
            self.context.log.warning("events_file_not_opened", why=str(error))

    def _opened(self) -> LineFile | LineStream:
        if self.settings.path == STANDARD_OUTPUT:
            return LineStream(1, "standard output")
        path = resolve_output(self.settings.path, self.context.base_folder)
        try:
            return LineStream.device(path) if is_device(path) else self._open_file(path)
        except OSError as error:  # errors of reading back, or of the state: those of the file itself are for the user
            raise EnvironmentProblem(f"{path}: cannot be opened now: {error}", error_id="cannot-write") from error

    def process(self, items: Sequence[Any]) -> Iterable[Message]:
        """Raises EnvironmentProblem when the disk fails: then none of `items` is in the file."""
        if self._out is None:
            self._open_again()
        assert self._out is not None
        wanted = [event for event in items if not self.settings.selects or self._selection.fits(view_of(event))]
        events: list[Event] = [event for event in wanted if not self._knows(event)]
        data = b"".join(event.body + b"\n" for event in events)
        if isinstance(self._out, LineFile):
            self._follow(self._out, len(data))
        if events:
            self._append(self._out, data)
        for event in wanted:
            self.context.count("repeated" if self._knows(event) else "written", event.stamp.camera)
        kept = set(map(id, wanted))
        for event in items:
            if id(event) not in kept:
                self.context.count("filtered", event.stamp.camera)
        self._remember(events)
        return ()

    def _follow(self, file: LineFile, more: int) -> None:
        """Go on in the file that the path names now, or begin a new one if the present one is large or old."""
        if file.follow():
            self._remember_start(file, 0)
        rotate, now_s = self.settings.rotate, time.time()
        if self._rotation is None or rotate is None:
            return
        if not is_due(rotate, file.size, more, file.last_write_s, now_s):
            return
        try:
            file.move_to(self._rotation.new_name(file.last_write_s))
        except OSError as error:
            self.context.trouble(f"{file.path}: cannot begin a new file: {error.strerror}; it grows on")
            return
        self.context.trouble("")
        file.follow()
        self._remember_start(file, 0)
        self._rotation.tidy()

    def _open_again(self) -> None:
        try:
            self._out = self._opened()
        except UserError as error:
            raise EnvironmentProblem(str(error), error_id="cannot-write") from error

    def _append(self, out: LineFile | LineStream, data: bytes) -> None:
        out.append(data)
        if isinstance(out, LineFile) and out.kept_bytes:
            if not self._warned:
                why = "another program writes into this file too, and does not end its lines"
                self.context.log.warning("torn_line_of_others_kept", path=str(out.path), bytes=out.kept_bytes, why=why)
            self._warned = True
            out.kept_bytes = 0

    def _knows(self, event: Event) -> bool:
        return event.id in self._written or (event.own_id in self._read_back and not event.requeued)

    def _remember(self, events: Iterable[Event]) -> None:
        self._written.update(dict.fromkeys(event.id for event in events))
        for old in list(itertools.islice(self._written, max(0, len(self._written) - KNOWN))):
            del self._written[old]

    def close(self) -> None:
        if self._out is not None:
            self._out.close()
        if self._rotation is not None:
            self._rotation.close()

    def _open_file(self, path: Path) -> LineFile:
        started = self._read_start() if self.context.incarnation > 1 else None
        link = link_of(path) if started is None or started is _UNKNOWN else started.link
        file = LineFile(path, sync=self.settings.sync, link=link)
        try:
            self._begin(file, started)
        except BaseException:
            file.close()  # its lock would keep out the next attempt
            raise
        self.context.wrote(path)
        if self.settings.rotate:
            self._rotation = Rotation(file.followed, self.settings.rotate, self.context.log)
            self._rotation.tidy()
        self.context.log.info(
            "events_file",
            path=str(path),
            cut_bytes=file.cut_bytes,
            written=len(self._read_back),
            **({"link_to": link} if link else {}),
        )
        return file

    def _begin(self, file: LineFile, started: _Start | None) -> None:
        """Begin the run in a file, or go on with it. Raises OSError and EnvironmentProblem."""
        if started is _UNKNOWN:  # events of this run may come twice, and none of them is lost
            self._remember_start(file, file.whole_size)
            return
        if started is not None:
            offset = started.size if file.inode == started.inode else 0
            self._read_back = frozenset(_ids(file.tail(offset, READ_BACK, KNOWN)))
            return
        if self.settings.mode == "replace":
            file.empty()
        self._remember_start(file, file.whole_size)

    @property
    def _start_file(self) -> Path:
        return self.context.state_folder / "start.json"

    def _read_start(self) -> _Start | None:
        """The state of the file at the start of the run; None if the process died before."""
        try:
            return _Start(**json.loads(self._start_file.read_text()))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError) as error:
            self.context.log.warning("start_of_run_not_known", file=str(self._start_file), why=str(error))
            return _UNKNOWN

    def _remember_start(self, file: LineFile, size: int) -> None:
        start = _Start(file.inode, size, file.link)
        try:
            write_whole(self._start_file, json.dumps(start._asdict()).encode())
        except OSError as error:
            raise EnvironmentProblem(
                f"{self._start_file}: cannot write the state: {error.strerror}", error_id="cannot-write"
            ) from error


class _Start(NamedTuple):
    """Which file it was at the start of the run, how long, and the symbolic link that led to it; "": none did."""

    inode: int
    size: int
    link: str


_UNKNOWN = _Start(0, 0, "")
"""The file that held the start is damaged."""


def _ids(lines: Iterable[bytes]) -> Iterator[str]:
    """The ids of the events in these lines; other lines in the file are none of ours."""
    for line in lines:
        with contextlib.suppress(ValueError, KeyError, TypeError):
            yield str(json.loads(line)["id"])
