"""The unfinished file of one camera's tracks, for Parquet, which can be read only once it is complete.

    front.parquet.part   a journal: an Arrow schema, then an Arrow record batch for each frame with people
         |               complete(): made into Parquet beside it, which then takes its place
    front.parquet        complete

So a kill loses no frame that was written: what is whole in the journal is read again. This module needs pyarrow.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from camgraph.pipeline.system.disk import open_regular, try_lock
from camgraph.stages.messages import Tracks
from camgraph.stages.sinks.writing.growing_file import GrowingFile
from camgraph.stages.sinks.writing.track_lines import Place, rounded

MISSING = "Parquet needs the package pyarrow; get it with `pip install 'camgraph[parquet]'`"
MOST_ROWS = 100_000
"""A longer file goes on in a new one, so that completing one takes a second or two."""
ROW_GROUP = 50_000
_JOINTS = "keypoints"
"""The last column."""
_NAMES = ["camera", "clock", "keypoints_format"]
"""Columns with few values."""
MAGIC = b"PAR1"
_NEW = ".new"
"""The end of the name of a Parquet file that is not whole yet."""


def is_installed() -> bool:
    return importlib.util.find_spec("pyarrow") is not None


class ParquetTracks:
    """A `stages.sinks.writing.track_files.TrackFile`."""

    torn: Place | None = None

    def __init__(self, target: Path, *, replace: bool = False) -> None:
        """Begin the file. Raises as `GrowingFile` does."""
        self._file = GrowingFile(target, fresh=True, replace=replace)
        self._replace = replace
        self.last: Place | None = None
        self._rows = 0
        self._schema = _schema()
        try:
            self._file.append(self._schema.serialize().to_pybytes())
        except BaseException:
            self._file.part.unlink(missing_ok=True)
            self.close()
            raise

    @classmethod
    def resumed(cls, target: Path, *, replace: bool = False) -> ParquetTracks:
        """Go on with the journal that a killed writer left. Raises as `GrowingFile` does."""
        self = cls.__new__(cls)
        self._file = GrowingFile(target, fresh=False, replace=replace)
        self._replace = replace
        self.last, self._rows, self._schema = None, 0, _schema()
        try:
            self._look_back()
        except BaseException:
            self.close()
            raise
        return self

    @property
    def target(self) -> Path:
        return self._file.target

    @property
    def is_full(self) -> bool:
        return self._rows >= MOST_ROWS

    @property
    def is_gone(self) -> bool:
        return self._file.is_gone

    @property
    def is_empty(self) -> bool:
        return not self._rows and not self._is_made()

    def append(self, tracks: Tracks) -> None:
        if len(tracks):
            self._file.append(_batch(tracks, self._schema))
            self._rows += len(tracks)
        self.last = tracks.stamp.place

    def complete(self) -> Path:
        """As `TrackFile.complete`. A journal that was made into Parquet already only gets its name."""
        if not self._is_made():
            self._make()
        return self._file.complete()

    def close(self) -> None:
        self._file.close()

    def _is_made(self) -> bool:
        return self._file.head(len(MAGIC)) == MAGIC

    def _look_back(self) -> None:
        """Find the last frame, and cut off a batch that is not whole. Raises OSError, EnvironmentProblem."""
        if self._is_made():
            return
        head: bytes = self._schema.serialize().to_pybytes()
        end = len(head)
        for end, batch in _batches(self._file.part):  # noqa: B007 - the last end is used behind the loop
            self._rows += batch.num_rows
            self.last = batch["epoch"][-1].as_py(), batch["seq"][-1].as_py()
        if self._file.head(len(head)) == head:
            self._file.cut(end)
        else:  # killed in its first moment
            self._file.cut(0)
            self._file.append(head)

    def _make(self) -> None:
        """Put Parquet into the place of the journal, in one step. Raises OSError; then the journal is as it was."""
        new = self._file.part.with_name(self._file.part.name + _NEW)
        descriptor = open_regular(new, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
        try:
            try_lock(descriptor)
            with open(os.dup(descriptor), "wb") as file:  # noqa: PTH123 - it is open already
                self._write(file)
            new.replace(self._file.part)
        except BaseException:
            os.close(descriptor)
            new.unlink(missing_ok=True)
            raise
        self._file.take_over(descriptor)

    def _write(self, file: BinaryIO) -> None:
        import pyarrow.parquet as pq  # noqa: PLC0415 - an extra

        with pq.ParquetWriter(file, self._schema, compression="zstd", use_dictionary=_NAMES) as writer:
            for table in _row_groups(self._file.part, self._schema):
                writer.write_table(table, ROW_GROUP)


def _row_groups(journal: Path, schema: Any) -> Iterator[Any]:
    """Its rows as tables of one length, however the frames came; the last one may be shorter."""
    import pyarrow as pa  # noqa: PLC0415

    waiting: list[Any] = []
    rows = 0
    for _, batch in _batches(journal):
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= ROW_GROUP:
            table = pa.Table.from_batches(waiting, schema).combine_chunks()
            yield table.slice(0, ROW_GROUP)
            waiting, rows = table.slice(ROW_GROUP).to_batches(), table.num_rows - ROW_GROUP
    if rows:
        yield pa.Table.from_batches(waiting, schema).combine_chunks()


def _batches(journal: Path) -> Iterator[tuple[int, Any]]:
    """(end in bytes, record batch) of each that is whole."""
    import pyarrow as pa  # noqa: PLC0415

    with pa.OSFile(str(journal), "rb") as file:
        try:
            schema = pa.ipc.read_schema(file)
            while True:
                batch = pa.ipc.read_record_batch(pa.ipc.read_message(file), schema)
                yield file.tell(), batch
        except (EOFError, pa.ArrowInvalid, OSError):  # the end, or where a kill tore the last one
            return


def _schema() -> Any:
    """The columns."""
    import pyarrow as pa  # noqa: PLC0415

    number, name = pa.float64(), pa.string()
    return pa.schema(
        [
            pa.field("camera", name, nullable=False),
            pa.field("epoch", pa.int32(), nullable=False),
            pa.field("seq", pa.int64(), nullable=False),
            pa.field("pts", pa.int64()),
            pa.field("time_s", pa.float64(), nullable=False),
            pa.field("time", pa.timestamp("ms", "UTC")),
            pa.field("clock", name),
            pa.field("width", pa.int32(), nullable=False),
            pa.field("height", pa.int32(), nullable=False),
            pa.field("track_id", pa.int64(), nullable=False),
            pa.field("continues", pa.int64()),
            pa.field("class", pa.int32(), nullable=False),
            *(pa.field(side, number, nullable=False) for side in ("x1", "y1", "x2", "y2", "score")),
            pa.field("keypoints_format", name, nullable=False),
            pa.field(_JOINTS, pa.list_(pa.field("item", number, nullable=False)), nullable=False),
        ]
    )


def _batch(tracks: Tracks, schema: Any) -> bytes:
    """The people of a frame, as a message of Arrow's stream format."""
    import pyarrow as pa  # noqa: PLC0415

    stamp, count = tracks.stamp, len(tracks)
    boxes, scores, keypoints = rounded(tracks)
    frame = {
        "camera": stamp.camera,
        "epoch": stamp.epoch,
        "seq": stamp.seq,
        "pts": stamp.pts,
        "time_s": round(stamp.time_ns / 1e9, 6),
        "time": stamp.wall_ns // 1_000_000 if stamp.clock else None,
        "clock": stamp.clock or None,
        "width": tracks.frame_size[0],
        "height": tracks.frame_size[1],
        "keypoints_format": tracks.skeleton,
    }
    people: dict[str, Any] = {
        "track_id": tracks.ids,
        "continues": [one or None for one in tracks.continues.tolist()],
        "class": tracks.classes,
        **dict(zip(("x1", "y1", "x2", "y2"), boxes.T, strict=True)),
        "score": scores,
    }
    columns: dict[str, Any] = {name: [value] * count for name, value in frame.items()} | people
    arrays = [pa.array(columns[one.name], one.type) for one in schema if one.name != _JOINTS]
    ends = pa.array(np.arange(count + 1) * keypoints[0].size, pa.int32())
    joints = pa.ListArray.from_arrays(ends, pa.array(keypoints.reshape(-1)), schema.field(_JOINTS).type)
    batch = pa.record_batch([*arrays, joints], schema=schema)
    data: bytes = batch.serialize().to_pybytes()
    return data
