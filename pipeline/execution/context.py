"""The context of a stage (`pipeline.stage.Context`), in a process of its own or in the caller's."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from camgraph.pipeline.dead_letters import DeadLetters
from camgraph.pipeline.errors import BadItem
from camgraph.pipeline.execution.emissions import Emissions
from camgraph.pipeline.messages import Array, Event
from camgraph.pipeline.monitoring.metrics import Counters
from camgraph.pipeline.outbox.event_validity import why_unfit
from camgraph.pipeline.stage import CameraState, Logger
from camgraph.pipeline.traces import traceparent

if TYPE_CHECKING:
    from camgraph.pipeline.shm.slots import Slot


class Collecting:
    """The slots that one thread collects within a `with`; afterwards the outer collection goes on."""

    __slots__ = ("_local", "_outer", "_slots")

    def __init__(self, local: threading.local) -> None:
        self._local = local
        self._slots: list[Slot] = []

    def __enter__(self) -> list[Slot]:
        self._outer = getattr(self._local, "slots", None)
        self._local.slots = self._slots
        return self._slots

    def __exit__(self, *error: object) -> None:
        self._local.slots = self._outer


class Collector:
    """The slots that a thread's stages take for their outputs; the collector lets go of them after sending.

    `release` gives one back to its owner; it is not needed if nothing is allocated.
    """

    def __init__(self, release: Callable[[Slot], None] | None = None) -> None:
        self._local = threading.local()
        self._release = release

    @property
    def slots(self) -> list[Slot] | None:
        """The slots that this thread has collected so far, or None if it does not collect."""
        slots: list[Slot] | None = getattr(self._local, "slots", None)
        return slots

    def collecting(self) -> Collecting:
        """Collect in this thread meanwhile: `with collector.collecting() as slots`."""
        return Collecting(self._local)

    def let_go(self, slots: Iterable[Slot]) -> None:
        """These are needed no longer."""
        for slot in slots:
            assert self._release
            self._release(slot)

    def mark(self) -> int:
        """The number of slots that this thread has collected so far: to come `back_to` after a failure."""
        return len(self.slots or ())

    def back_to(self, mark: int) -> None:
        """Let go of the slots that this thread has collected since `mark`."""
        slots = self.slots or []
        failed = slots[mark:]
        del slots[mark:]
        self.let_go(failed)


class Pulse:
    """When a source last gave a sign of life while it was asked for a frame. Times are monotonic ns."""

    def __init__(self) -> None:
        self._asked_ns = 0
        self._sign_ns = 0

    @contextmanager
    def asked(self) -> Iterator[None]:
        """The source is asked for its next frame meanwhile."""
        self._asked_ns = time.monotonic_ns()
        try:
            yield
        finally:
            self._asked_ns = 0

    def sign(self) -> None:
        """A sign of life. May come from any thread, at any time."""
        self._sign_ns = time.monotonic_ns()

    @property
    def silent_since_ns(self) -> int:
        """Since when there has been no sign; 0 while the source is not asked for anything."""
        asked_ns = self._asked_ns
        return max(asked_ns, self._sign_ns) if asked_ns else 0


Allocate = Callable[[Mapping[str, tuple[tuple[int, ...], str]]], "tuple[Slot | None, dict[str, Array]]"]


class StageContext:
    """One stage's view of its run. `allocate` is None if outputs stay in the process.

    `report_opening`: called with a slow step of opening, and the seconds that it may take.
    """

    def __init__(
        self,
        *,
        stage: str,
        graph: str,
        cameras: tuple[str, ...],
        incarnation: int,
        state_folder: Path,
        base_folder: Path,
        outbox_folder: Path | None = None,
        log: Logger,
        counters: Counters,
        collector: Collector | None = None,
        allocate: Allocate | None = None,
        slots: int = 0,
        pulse: Pulse | None = None,
        report_opening: Callable[[str, float], object] | None = None,
        worker: int = 0,
        workers: int = 1,
        beside_sources: bool = False,
        threads: int = 1,
        cores: int = 1,
        batch_max: int = 1,
        cameras_now: Mapping[str, CameraState] | None = None,
        switches: Mapping[str, bool] | None = None,
        emissions: Emissions | None = None,
        resets: Mapping[str, Mapping[str, int]] | None = None,
        traced_share: float | None = None,
    ) -> None:
        self.stage = stage
        self.graph = graph
        self.cameras = cameras
        self.cameras_now: Mapping[str, CameraState] = dict(cameras_now or {})
        self.switches: Mapping[str, bool] = dict(switches or {})
        self.resets: Mapping[str, Mapping[str, int]] = dict(resets or {})
        self.worker = worker
        self.workers = workers
        self.beside_sources = beside_sources
        self.threads = threads
        self.cores = cores
        self.batch_max = batch_max
        self.incarnation = incarnation
        self.state_folder = state_folder
        self.base_folder = base_folder
        self.dead_letters = DeadLetters(outbox_folder or state_folder, stage, discarded=self._letters_discarded)
        self.log = log
        self._counters = counters
        self.outputs_leave = allocate is not None
        self.slots = slots
        self._allocate = allocate
        self._collector = collector or Collector()
        self._pulse = pulse
        self._report_opening = report_opening
        self._emissions = emissions
        self._traced_share = traced_share

    def new_arrays(self, specs: Mapping[str, tuple[tuple[int, ...], str]]) -> dict[str, Array]:
        """See `pipeline.stage.Context`."""
        collected = self._collector.slots
        if self._allocate is None or collected is None:
            return {name: np.empty(shape, dtype) for name, (shape, dtype) in specs.items()}
        try:
            slot, arrays = self._allocate(specs)
        except BadItem:  # reported, counted and dropped when the output is sent, which needs a slot as well
            return {name: np.empty(shape, dtype) for name, (shape, dtype) in specs.items()}
        if slot:
            collected.append(slot)
        return arrays

    def count(self, name: str, camera: str, n: int = 1) -> None:
        """See `pipeline.stage.Context`."""
        self._counters.add(name, camera, n)

    def _letters_discarded(self, camera: str, n: int) -> None:
        self.count("letters_discarded", camera, n)
        self.log.warning("old_dead_letters_discarded", camera=camera, n=n, file=str(self.dead_letters.path))

    def counters_are(self, camera: str, counters: Mapping[str, Mapping[str, int]]) -> None:
        """See `pipeline.stage.Context`."""
        self._counters.counters_are(self.stage, camera, counters)

    def trouble(self, why: str, camera: str = "") -> None:
        """See `pipeline.stage.Context`."""
        self._counters.trouble(self.stage, why, camera)

    def opening(self, doing: str, within_s: float = 0.0) -> None:
        """See `pipeline.stage.Context`."""
        if self._report_opening:
            self._report_opening(doing, within_s)

    def alive(self) -> None:
        """See `pipeline.stage.Context`."""
        if self._pulse:
            self._pulse.sign()

    def camera_is(self, camera: str, state: CameraState, why: str = "") -> None:
        """See `pipeline.stage.Context`."""
        self._counters.camera_is(camera, state, why)

    def camera_shows(self, camera: str, **facts: str | float) -> None:
        """See `pipeline.stage.Context`."""
        self._counters.camera_shows(camera, facts)

    def shows(self, **facts: str | float) -> None:
        """See `pipeline.stage.Context`."""
        self._counters.stage_shows(self.stage, facts)

    def wrote(self, path: Path) -> None:
        """See `pipeline.stage.Context`."""
        self._counters.wrote(str(path))

    def traceparent(self, event_id: str) -> str | None:
        """See `pipeline.stage.Context`."""
        return None if self._traced_share is None else traceparent(event_id, self._traced_share)

    def emit(self, event: Event) -> None:
        """See `pipeline.stage.Context`."""
        if self._emissions is None:
            raise TypeError(f"{self.stage} must declare `emits` to give events of its own to the outbox")
        why = why_unfit(event)
        if why:  # the outbox would not commit it, and the stage would wait for that without end
            self.count("dropped.invalid_event", str(event.stamp.camera))
            self.log.error("event_refused", stage=self.stage, id=str(event.id), why=why, error_id="events-dropped")
            return
        self._emissions.emit(self.stage, event)
