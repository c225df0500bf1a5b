"""What the runtime gives a stage (`pipeline.stage.Context`), in a process of its own or in the caller's."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pipeline.errors import BadItem
from pipeline.messages import Array
from pipeline.metrics import Counters
from pipeline.stage import Logger

if TYPE_CHECKING:
    from pipeline.slots import Slot


class Collector:
    """The slots that a thread's stages take for their outputs; whoever collects releases them after sending."""

    def __init__(self) -> None:
        self._local = threading.local()

    @property
    def slots(self) -> list[Slot] | None:
        """What this thread has collected so far, or None when nobody collects."""
        slots: list[Slot] | None = getattr(self._local, "slots", None)
        return slots

    @contextmanager
    def collecting(self) -> Iterator[list[Slot]]:
        """Collect in this thread meanwhile."""
        outer = self.slots
        slots: list[Slot] = []
        self._local.slots = slots
        try:
            yield slots
        finally:
            self._local.slots = outer


Allocate = Callable[[Mapping[str, tuple[tuple[int, ...], str]]], "tuple[Slot, dict[str, Array]]"]


class StageContext:
    """One stage's view of its run. `allocate` is None where outputs stay in the process."""

    def __init__(
        self,
        *,
        stage: str,
        graph: str,
        cameras: tuple[str, ...],
        incarnation: int,
        state_folder: Path,
        base_folder: Path,
        log: Logger,
        counters: Counters,
        collector: Collector | None = None,
        allocate: Allocate | None = None,
    ) -> None:
        self.stage = stage
        self.graph = graph
        self.cameras = cameras
        self.incarnation = incarnation
        self.state_folder = state_folder
        self.base_folder = base_folder
        self.log = log
        self._counters = counters
        self._allocate = allocate
        self._collector = collector or Collector()

    def new_arrays(self, specs: Mapping[str, tuple[tuple[int, ...], str]]) -> dict[str, Array]:
        """See `pipeline.stage.Context`."""
        collected = self._collector.slots
        if self._allocate is None or collected is None:
            return {name: np.empty(shape, dtype) for name, (shape, dtype) in specs.items()}
        try:
            slot, arrays = self._allocate(specs)
        except BadItem:  # said, counted and dropped when the output is to be sent, which needs a slot as well
            return {name: np.empty(shape, dtype) for name, (shape, dtype) in specs.items()}
        collected.append(slot)
        return arrays

    def count(self, name: str, camera: str, n: int = 1) -> None:
        """See `pipeline.stage.Context`."""
        self._counters.add(name, camera, n)

    def wrote(self, path: Path) -> None:
        """See `pipeline.stage.Context`."""
        self._counters.wrote(str(path))
