"""A whole graph in the caller's own process (`processes: one`): for debugging, and for systems without shared memory.

The same stages, the same order, the same events; no sockets, no shared memory, no restarts: what dies takes the run
along.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections import Counter, deque
from collections.abc import Callable
from typing import Any

import structlog

from pipeline.boot import Boot, build_unit
from pipeline.context import Collector
from pipeline.errors import EXIT_ENVIRONMENT, CamgraphError
from pipeline.feed import Handed, SourceFeed
from pipeline.items import END_SEQ, Item, Key
from pipeline.messages import End
from pipeline.metrics import Counters
from pipeline.outcome import Outcome
from pipeline.plan import RunPlan, UnitPlan
from pipeline.status import Meter
from pipeline.unit import Unit

_WAIT_S = 0.1


class _OneProcess:
    """The run's own process, as `pipeline.status` wants to see it."""

    def __init__(self, plan: UnitPlan) -> None:
        self.plan = plan
        self.state = "running"
        self.beat: dict[str, Any] = {}
        self.ended: dict[str, tuple[str, str]] = {}
        self.restarts = 0
        self.counters = Counters()
        self.pid = os.getpid()
        self.shared_bytes = 0

    def counts(self) -> Counter[tuple[str, str]]:
        return Counter({(name, camera): n for name, camera, n in self.counters.snapshot()})


class LocalRun:
    """One run. `tell` is called between frames and must return at once."""

    def __init__(self, plan: RunPlan, tell: Callable[[LocalRun], None] | None = None) -> None:
        self.plan = plan
        self.outcome = Outcome()
        self.events: deque[dict[str, Any]] = deque(maxlen=50)
        self.meter = Meter(plan)
        self._tell = tell
        self._log = structlog.get_logger()
        self._process = _OneProcess(plan.units[0])
        self._wake = threading.Event()
        self._feeds: list[SourceFeed] = []
        self._stopping = False

    def stop(self) -> None:
        """Let the sources end and the rest drain; the second call gives up what is on the way."""
        if self._stopping:
            raise KeyboardInterrupt
        self._stopping = True
        for feed in self._feeds:
            feed.stop()

    def run(self) -> Outcome:
        """Run the graph to its end."""
        with tempfile.TemporaryDirectory(prefix="camgraph-") as folder:
            unit = self._build(folder)
            try:
                unit.open()
                for feed in self._feeds:
                    feed.start(None)
                while len(self._process.ended) < len(self._feeds):
                    self._turn(unit)
            except CamgraphError as error:
                self.outcome.add(error.exit_status, str(error))
            finally:
                for feed in self._feeds:
                    feed.stop()
                self._note_undelivered(unit)
                unit.close()
        self.outcome.add_camera_errors(self._process.ended, self.plan.camera_settings)
        self.outcome.add_losses(self._process.counts())
        self._look(unit)
        return self.outcome

    def _note_undelivered(self, unit: Unit) -> None:
        outbox = unit.outbox
        if outbox is None or not outbox.is_open:
            return
        for sink in outbox.settings.sinks:
            if outbox.left(sink):
                text = (
                    f"{sink} did not take all events: they are kept, and the next run of this name delivers them first"
                )
                self.outcome.add(EXIT_ENVIRONMENT, text)

    def _build(self, folder: str) -> Unit:
        boot = Boot(
            unit=self.plan.units[0],
            graph=self.plan.graph,
            run=self.plan.graph,
            incarnation=1,
            run_folder=folder,
            endpoint="",
            shm_prefix="",
            base_folder=self.plan.base_folder,
            camera_settings=self.plan.camera_settings,
        )
        collector = Collector()
        unit, sources = build_unit(boot, self._process.counters, self._log, collector, None)
        self._feeds = [
            SourceFeed(
                source,
                collector,
                window=boot.unit.window,
                live=source.is_live(source.camera_settings),
                wake=self._wake.set,
                release=lambda _: None,
            )
            for source in sources
        ]
        return unit

    def _turn(self, unit: Unit) -> None:
        """Take what the sources have, of each camera in turn, and see it through to the sinks."""
        self._wake.wait(_WAIT_S)
        self._wake.clear()
        taken = {feed.camera: (feed, deque(feed.take())) for feed in self._feeds}
        while any(waiting for _, waiting in taken.values()):
            row = [(feed, waiting.popleft()) for feed, waiting in taken.values() if waiting]
            self._process_row(unit, [(f, h) for f, h in row if not isinstance(h.message, End)])
            for feed, handed in row:
                if isinstance(handed.message, End):
                    self._end(unit, feed, handed.message)
            self._look(unit)

    def _process_row(self, unit: Unit, row: list[tuple[SourceFeed, Handed]]) -> None:
        if not row:
            return
        items = []
        for feed, handed in row:
            stamp = handed.message.stamp
            items.append(Item(feed.camera, Key(stamp.epoch, stamp.seq, 0), handed.message))
            self._process.counters.add("frames", feed.camera)
        unit.spread(row[0][0].stage, items, [[handed.message] for _, handed in row])
        for feed, _ in row:
            feed.give_back()

    def _end(self, unit: Unit, feed: SourceFeed, end: End) -> None:
        unit.end(feed.stage, Item(feed.camera, Key(end.stamp.epoch, END_SEQ, 0), end))
        self._process.ended[feed.camera] = (end.reason, end.error)

    def _look(self, unit: Unit) -> None:
        outbox = unit.outbox
        if outbox is not None:
            for body in outbox.committed:
                self.events.append(self.meter.note_event(body))
            outbox.committed.clear()
        stages = {name: runner.times.snapshot() for name, runner in unit.runners.items()}
        self._process.beat = {"stages": stages, "files": self._process.counters.files}
        if self._tell:
            self._tell(self)

    def status(self) -> dict[str, Any]:
        """The state of the run as plain values."""
        return self.meter.status([self._process], list(self.events))
