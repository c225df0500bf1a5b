"""Writes one row for each incident into a CSV file, for spreadsheets.

    table: {use: sink_csv, from: actions, with: {path: incidents.csv, time_zone: Europe/Berlin}}

The row comes when the incident ends, or at once for one of a single moment. Events of other kinds, such as a lost
camera, have no row. A row is on the disk before the outbox forgets the event. A cell that a spreadsheet would take for
a formula gets an apostrophe in front. If the file is moved away or emptied, the next row begins a new one.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from camgraph.pipeline.errors import EnvironmentProblem, Unavailable, UserError
from camgraph.pipeline.stage import Context, SettingProblems
from camgraph.pipeline.system.disk import write_whole
from camgraph.pipeline.system.paths import resolve_output, resolve_output_path, why_no_output
from camgraph.stages.sinks.delivery.event_sink import DeliverySettings, EventSink
from camgraph.stages.sinks.delivery.event_view import EventView
from camgraph.stages.sinks.delivery.incident_rows import COLUMNS, as_line, row_of
from camgraph.stages.sinks.writing.table_file import TableFile, cannot_write

_DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t"}
_ENDS = ("end", "single")


class SinkCsvSettings(DeliverySettings):
    """The file, and how it is written."""

    path: str = Field(min_length=1, description="The file, relative to the graph file; rows are appended")
    delimiter: Literal["comma", "semicolon", "tab"] = Field(
        "comma", description="Between cells. Spreadsheets in many languages of Europe expect semicolon"
    )


class SinkCsv(EventSink[SinkCsvSettings]):
    """The end of an incident -> a row."""

    settings_type = SinkCsvSettings

    def __init__(self, settings: SinkCsvSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._file: TableFile | None = None
        self._warned = False
        self._delimiter = _DELIMITERS[settings.delimiter]
        self._read_back: frozenset[str] = frozenset()
        """Ids of rows that this run had written before its process was started again."""

    @classmethod
    def check(cls, settings: SinkCsvSettings, base_folder: Path) -> SettingProblems:
        why = why_no_output(settings.path, base_folder)
        if why:
            yield ("path",), why

    @classmethod
    def written_folders(cls, settings: Any, base_folder: Path) -> Iterable[Path]:
        yield resolve_output_path(settings.path, base_folder).parent

    def open(self) -> None:
        super().open()
        try:
            self.connect()
        except (Unavailable, OSError) as error:
            if self.context.incarnation == 1:
                raise EnvironmentProblem(str(error), error_id="cannot-write") from None
            self.context.log.warning("events_file_not_opened", why=str(error))

    def connect(self) -> None:
        """Raises Unavailable; at the start of a run UserError if the file is another table."""
        if self._file is not None:
            return
        try:
            path = resolve_output(self.settings.path, self.context.base_folder)
            self._file = TableFile(path, as_line(list(COLUMNS), self._delimiter))
        except OSError as error:
            raise Unavailable(str(cannot_write(Path(self.settings.path), error))) from None
        except UserError as error:
            if not self._start_file.exists():
                raise
            raise Unavailable(str(error)) from None  # it was right when the run began
        self._begin(self._file)
        self.context.wrote(path)

    def disconnect(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def send(self, events: Sequence[EventView]) -> None:
        if self._file is not None and not self._file.is_whole():
            self.disconnect()
        self.connect()
        assert self._file is not None
        ended = [view for view in events if view.kind == "incident" and view.phase in _ENDS]
        rows = [(view, row_of(view, self.settings.time_zone)) for view in ended]
        known = [view for view, row in rows if row[-1] in self._read_back and not view.event.requeued]
        lines = [as_line(row, self._delimiter) for view, row in rows if view not in known]
        try:
            if lines:
                self._file.append("".join(lines).encode())
        except OSError as error:
            raise Unavailable(str(cannot_write(self._file.path, error))) from None
        self._report_others(self._file)
        for view in events:
            if view in known:
                self._finished(view, "repeated")
            elif view not in ended:
                self._finished(view, "filtered")

    def _report_others(self, file: TableFile) -> None:
        """Once: another program may leave one line without an end after the other."""
        if file.kept_bytes and not self._warned:
            self._warned = True
            why = "another program writes into this file too, and does not end its lines"
            self.context.log.warning("torn_line_of_others_kept", path=str(file.path), bytes=file.kept_bytes, why=why)

    # ---- what a process that was started again knows

    @property
    def _start_file(self) -> Path:
        return self.context.state_folder / "table.json"

    def _begin(self, file: TableFile) -> None:
        """Note how long the file was at the start of the run, or read the rows of this run back."""
        self._read_back = frozenset()  # a file that took the place of another has none of its rows
        with suppress(OSError, ValueError, KeyError, TypeError):
            start = int(json.loads(self._start_file.read_text())["size"])
            if self.context.incarnation > 1 and start <= file.size:
                self._read_back = frozenset(_ids(file.rows_from(start), self._delimiter))
            return
        with suppress(OSError):  # rows may then come twice
            write_whole(self._start_file, json.dumps({"size": file.size}).encode())


def _ids(lines: Iterable[str], delimiter: str) -> Iterable[str]:
    """The last cell of each row."""
    for cells in csv.reader(lines, delimiter=delimiter):
        if len(cells) == len(COLUMNS):
            yield cells[-1]
