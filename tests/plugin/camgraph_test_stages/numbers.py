"""Numbers into numbers."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from pydantic import Field

from camgraph.pipeline.messages import End, Message
from camgraph.pipeline.stage import Ports, Settings, Stage
from camgraph.pipeline.system.paths import resolve
from camgraph_test_stages.messages import Number, pattern


class NullModelSettings(Settings):
    """A model that only takes time."""

    cost_ms: float = Field(0.0, ge=0, description="What one batch takes.")
    spin: bool = Field(False, description="Keep the processor busy meanwhile, instead of sleeping.")
    one_device: bool = Field(
        False, description="As a GPU does: batches of all threads queue up, and take their time one after the other."
    )
    log: str = Field("", description="A file: `begun_ns camera epoch seq captured_ns` for each item; empty: none.")


class NullModel(Stage[NullModelSettings]):
    """Passes numbers on, verified, and takes its time for each batch."""

    settings_type = NullModelSettings
    inputs = Number
    outputs = (Number,)
    own_thread = True
    thread_safe = True

    def open(self) -> None:
        self._queue = threading.Lock()
        self._free_at = 0.0

    def process(self, items: Sequence[Number]) -> Iterable[Message]:
        until = time.perf_counter() + self.settings.cost_ms / 1e3
        if self.settings.log:
            self._tell(items, time.monotonic_ns())
        if not self.settings.spin and self.settings.cost_ms:
            time.sleep(max(0.0, self._queued_until() - time.perf_counter()))
        for item in items:
            item.verify()
            yield item.with_value(item.value)
        while self.settings.spin and time.perf_counter() < until:
            pass

    def _queued_until(self) -> float:
        """When a batch that comes now is done (seconds of the performance counter)."""
        cost_s, now = self.settings.cost_ms / 1e3, time.perf_counter()
        if not self.settings.one_device:
            return now + cost_s
        with self._queue:
            self._free_at = max(now, self._free_at) + cost_s
            return self._free_at

    def _tell(self, items: Sequence[Number], begun_ns: int) -> None:
        rows = [f"{begun_ns} {s.camera} {s.epoch} {s.seq} {s.captured_ns}\n" for s in (item.stamp for item in items)]
        with resolve(self.settings.log, self.context.base_folder).open("a") as file:
            file.writelines(rows)


class DoubleSettings(Settings):
    """How many, and how large."""

    copies: int = Field(1, ge=1, description="How many numbers are made of each; every further one is one more.")
    bytes: int = Field(16, ge=0, description="Size of the payload.")
    declares: int | None = Field(None, ge=1, description="It says that it makes so many, whatever it makes.")


class Double(Stage[DoubleSettings]):
    """Twice the value."""

    settings_type = DoubleSettings
    inputs = Number
    outputs = (Number,)

    @classmethod
    def large_messages(cls, settings: DoubleSettings) -> int:
        return settings.declares or settings.copies

    def process(self, items: Sequence[Number]) -> Iterable[Message]:
        for item in items:
            item.verify()
            for copy in range(self.settings.copies):
                payload = self.context.new_arrays({"payload": ((self.settings.bytes,), "uint8")})["payload"]
                yield Number(item.stamp, 2 * item.value + copy, pattern(item.stamp.camera, item.stamp.seq, payload))


class ThinSettings(Settings):
    """What to keep."""

    every: int = Field(2, ge=1, description="Keep frames whose seq is a multiple of this.")


class Thin(Stage[ThinSettings]):
    """Makes nothing of most frames."""

    settings_type = ThinSettings
    inputs = Number
    outputs = (Number,)

    def process(self, items: Sequence[Number]) -> Iterable[Message]:
        for item in items:
            item.verify()
            if item.stamp.seq % self.settings.every == 0:
                yield item.with_value(item.value)


class RunningSum(Stage[Settings]):
    """The sum of all values of a camera so far: it shows every frame that is lost, repeated or out of order."""

    inputs = Number
    outputs = (Number,)
    stateful = True

    def open(self) -> None:
        self._sums: Counter[str] = Counter()

    def process(self, items: Sequence[Number]) -> Iterable[Message]:
        for item in items:
            item.verify()
            self._sums[item.stamp.camera] += item.value * (item.stamp.seq + 1)
            yield item.with_value(self._sums[item.stamp.camera])

    def finish(self, camera: str, end: End) -> Iterable[Message]:
        self._sums.pop(camera, None)
        return ()


class Pair(Stage[Settings]):
    """Joins two numbers of the same frame: left + 1000000 x right, modulo 2**62 as pairs of pairs outgrow a message."""

    inputs: ClassVar[Ports] = {"left": Number, "right": Number}
    outputs = (Number,)

    def process(self, items: Sequence[Mapping[str, Number]]) -> Iterable[Message]:
        for item in items:
            left, right = item["left"], item["right"]
            if left.stamp[:3] != right.stamp[:3]:
                raise RuntimeError(f"joined {left.stamp[:3]} with {right.stamp[:3]}")
            left.verify()
            right.verify()
            yield left.with_value((left.value + 1_000_000 * right.value) % (1 << 62))
