"""The context of a stage (`pipeline.stage.Context`), in a process of its own or in the caller's."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from camgraph.pipeline.boot import Boot
from camgraph.pipeline.dead_letters import DeadLetters
from camgraph.pipeline.errors import BadItem
from camgraph.pipeline.execution.process_parts import ProcessParts
from camgraph.pipeline.messages import Array, Event
from camgraph.pipeline.outbox.event_validity import why_unfit
from camgraph.pipeline.plan import StagePlan, slots_of_camera
from camgraph.pipeline.stage import CameraState
from camgraph.pipeline.traces import traceparent


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


class StageContext:
    """One stage's view of its run. `pulse`: that of a source. `emits`: whether the stage declares events of its own.

    Makes the state folder of the stage.
    """

    def __init__(
        self, plan: StagePlan, boot: Boot, parts: ProcessParts, *, pulse: Pulse | None = None, emits: bool = False
    ) -> None:
        process = boot.plan
        self.stage = plan.name
        self.graph = boot.graph
        self.cameras = process.seen_cameras
        self.cameras_now: Mapping[str, CameraState] = dict(boot.cameras_now)
        self.switches: Mapping[str, bool] = dict(boot.switches)
        self.resets: Mapping[str, Mapping[str, int]] = dict(boot.resets)
        self.worker = process.worker
        self.workers = plan.workers
        self.beside_sources = bool(process.sources)
        self.threads, self.cores = (1, plan.threads) if parts.one_at_a_time else (plan.threads, 1)
        self.batch_max = plan.batch_max
        self.incarnation = boot.incarnation
        self.state_folder = Path(boot.run_folder) / "state" / plan.name
        self.state_folder.mkdir(parents=True, exist_ok=True)
        self.base_folder = Path(boot.base_folder)
        self.log = parts.log
        letters_folder = Path(boot.outbox_folder) if boot.outbox_folder else self.state_folder
        self.dead_letters = DeadLetters(letters_folder, plan.name, discarded=self._letters_discarded)
        leaves = plan.name in {edge.sender for edge in process.outgoing}
        self._allocate = parts.allocate if leaves else None
        self.outputs_leave = self._allocate is not None
        self.slots = slots_of_camera(process) if self.outputs_leave else 0
        self._counters = parts.counters
        self._collector = parts.collector
        self._report_opening = parts.report_opening
        self._emissions = parts.emissions if emits else None
        self._pulse = pulse
        self._traced_share: float | None = boot.tracing["share"] if boot.tracing else None

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
