"""Runs a model on the pictures of many items.

items of one call        a@640x640  b@640x640  c@768x576  d@640x640
one run for each size    [a b d]    [c]                                 a model of static batch: in steps of it
rows of each item        a  b  c  d

The outputs for a picture do not depend on the other pictures of its run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from camgraph.pipeline.errors import BadItem
from camgraph.pipeline.messages import Array
from camgraph.stages.people.inference.contracts import NOTHING_DECLARED, reading_of
from camgraph.stages.people.inference.engines.engine import Engine, OutOfMemory, PlansOutputs, RunFailed, WrongOutput
from camgraph.stages.people.inference.engines.pinned import TakesFromHost, plain_array
from camgraph.stages.people.inference.feeds import NO_FEEDS, Feeds
from camgraph.stages.people.inference.model.candidate_selection import Selection
from camgraph.stages.people.inference.output_checks import check_shape
from camgraph.stages.vision.decoding.end2end import joined_rows, rows_by_image
from camgraph.stages.vision.foreign_text import shown
from camgraph.stages.vision.model_contract import InputContract
from camgraph.stages.vision.recognition import Declared, Port
from camgraph.stages.vision.run_sizes import runs_of
from camgraph.stages.vision.window_contract import TakesBatch, converter_of

Row = dict[str, Array]
"""The model's outputs for one picture, each with a leading axis of 1."""


@dataclass(frozen=True)
class Given:
    """Of one item: pictures, uint8 RGB (n, H, W, 3), or windows of keypoints, float32 (n, T, V, 3); and by their names
    rows for the model's other inputs.
    """

    pictures: Array
    beside: Mapping[str, Array] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.pictures)

    def each(self) -> Iterator[Given]:
        """Its pictures one by one."""
        for i in range(len(self)):
            yield Given(self.pictures[i : i + 1], {name: rows[i : i + 1] for name, rows in self.beside.items()})


class _TooManyRows(Exception):
    """A device has no memory for a run of ``rows`` rows, but perhaps for fewer."""

    def __init__(self, rows: int, why: str) -> None:
        self.rows = rows
        super().__init__(why)


def _log_nothing(rows: int, why: str) -> None:
    """The default, which reports nothing."""


def _given(port: Port, selection: Selection | None) -> Port:
    """An output as the engine gives it."""
    if selection is None or port.name != selection.output:
        return port
    shape = [*port.shape]
    shape[selection.axis] = selection.most
    return port._replace(shape=tuple(shape))


class BatchRuns:
    """An engine for pictures of many items; several threads may use it at once.

    If the device has too little memory for a run, later ones are smaller.

    ``sizes``: the only numbers of pictures that a run may have, ascending; empty for any up to ``most``. ``declared``:
    facts about the model in addition to its own metadata. ``selection``: of the model's candidates, if the engine gives
    no others. ``on_smaller``: called with the new maximum of pictures in a run, and the reason.
    """

    def __init__(
        self,
        engine: Engine,
        contract: InputContract,
        feeds: Feeds = NO_FEEDS,
        *,
        sizes: Sequence[int],
        most: int,
        declared: Declared = NOTHING_DECLARED,
        selection: Selection | None = None,
        on_smaller: Callable[[int, str], None] = _log_nothing,
    ) -> None:
        self._engine = engine
        self._contract = contract
        self._feeds = feeds
        self._sizes = sizes
        self._most = most
        self._on_smaller = on_smaller
        self._ports = {port.name: _given(port, selection) for port in engine.signature.outputs}
        reading = reading_of(engine.signature, declared)
        self._mixed = reading.outputs[0] if reading is not None and reading.mixes_images else None
        self._alone = reading is not None and reading.alone
        if (self._mixed is not None or self._alone) and isinstance(engine, PlansOutputs):
            engine.expect_any_rows()
        self._new_array = engine.new_array if isinstance(engine, TakesFromHost) else plain_array
        self._threads = threading.local()

    def rows(self, items: Sequence[Given]) -> list[list[Row]]:
        """The model's outputs for each picture of each item: pictures of one size share runs.

        Raises BadItem if the model does not take them, WrongOutput if its outputs break its promises.
        """
        results: list[list[Row]] = [[] for _ in items]
        groups: dict[tuple[int, ...], list[int]] = {}
        for index, item in enumerate(items):
            groups.setdefault(item.pictures.shape[1:3], []).append(index)
        for indexes in groups.values():
            owners = [index for index in indexes for _ in range(len(items[index]))]
            for index, row in zip(owners, self._run_as_fits([items[index] for index in indexes]), strict=True):
                results[index].append(row)
        return results

    def _run_as_fits(self, items: Sequence[Given]) -> list[Row]:
        """As `_run`, in smaller runs if the device has too little memory."""
        while True:
            try:
                return [*self._run(items)]
            except _TooManyRows as error:
                self._run_fewer_than(error.rows, str(error))

    def _run_fewer_than(self, rows: int, why: str) -> None:
        sizes = [size for size in self._sizes if size < rows]
        most = sizes[-1] if sizes else max(1, rows // 2)
        if most < (self._sizes[-1] if self._sizes else self._most):  # no other thread has come first
            self._sizes, self._most = sizes, most
            self._on_smaller(most, why)

    def joined(self, rows: Sequence[Row]) -> Row:
        """Join rows into arrays. Raises WrongOutput if their shapes differ."""
        return {name: self._stacked(name, [row[name] for row in rows]) for name in self._ports}

    def _stacked(self, name: str, parts: list[Array]) -> Array:
        has_rows = name == self._mixed or (self._alone and parts[0].ndim > 1)
        first_common = 2 if has_rows else 1
        if len(shapes := {part.shape[first_common:] for part in parts}) > 1:
            raise WrongOutput(name, f"output `{shown(name)}` differs from run to run: {', '.join(map(str, shapes))}")
        return joined_rows(parts) if has_rows else np.concatenate(parts)

    def _run(self, items: Sequence[Given]) -> Iterator[Row]:
        """The rows of pictures of one size, in order; a run that is too small is filled up with its last row."""
        rows = sum(map(len, items))
        runs = list(runs_of(rows, most=self._most, sizes=self._sizes))
        if len(runs) == 1 and runs[0].rows == rows:
            yield from self._run_once(items)
            return
        singles = [single for item in items for single in item.each()]
        for run in runs:
            own = singles[run.first : run.first + run.own]
            yield from self._run_once([*own, *[own[-1]] * (run.rows - run.own)])[: run.own]

    def _run_once(self, items: Sequence[Given]) -> list[Row]:
        count = sum(map(len, items))
        if count == 0:
            return []
        inputs = {self._contract.name: self._converter().batch([item.pictures for item in items])}
        for name in items[0].beside:
            inputs[name] = np.concatenate([item.beside[name] for item in items])
        try:
            outputs = self._engine.run(inputs | self._feeds.of_run(count))
        except OutOfMemory as error:
            if count > (self._sizes[0] if self._sizes else 1):
                raise _TooManyRows(count, str(error)) from None
            raise BadItem("model_failed", str(error)) from None
        except RunFailed as error:
            raise BadItem("model_failed", str(error)) from None
        each = [self._each(name, output, count) for name, output in outputs.items()]
        return [dict(zip(self._ports, parts, strict=True)) for parts in zip(*each, strict=True)]

    def _each(self, name: str, output: Array, count: int) -> Sequence[Array]:
        """The part of an output for each of ``count`` pictures, with a leading axis of 1."""
        if self._alone:
            port, alone = self._ports[name], output[np.newaxis]
            check_shape(port._replace(shape=(None, *port.shape) if port.shape else ()), alone, count)
            return [alone]
        check_shape(self._ports[name], output, None if name == self._mixed else count)
        if name == self._mixed:
            try:
                return rows_by_image(output, count)
            except ValueError as error:
                raise BadItem("nonfinite", f"output `{shown(name)}`: {error}") from None
        return [output[index : index + 1] for index in range(count)]

    def _converter(self) -> TakesBatch:
        """This thread's own: it holds a buffer."""
        converter: TakesBatch | None = getattr(self._threads, "converter", None)
        if converter is None:
            in_place = self._new_array is plain_array  # a GPU reads its own kind of memory faster
            converter = self._threads.converter = converter_of(self._contract, self._new_array, in_place=in_place)
        return converter
