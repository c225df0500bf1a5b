"""Stages that say when, for benchmarks with pictures."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from pydantic import Field

from camgraph.pipeline.messages import Event, Message
from camgraph.pipeline.stage import Context, Settings, Stage
from camgraph.pipeline.system.paths import resolve
from camgraph.stages.messages import People, Tensor
from camgraph.stages.people.infer import Infer, InferSettings


class _Times:
    """Lines of `begun_ns done_ns camera epoch seq captured_ns`; several threads may write."""

    def __init__(self, path: str, context: Context) -> None:
        self._file = os.open(resolve(path, context.base_folder), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def note(self, items: Sequence[Message], begun_ns: int) -> None:
        """One call began then and is done now."""
        done_ns = time.monotonic_ns()
        stamps = [item.stamp for item in items]
        lines = [f"{begun_ns} {done_ns} {s.camera} {s.epoch} {s.seq} {s.captured_ns}\n" for s in stamps]
        os.write(self._file, "".join(lines).encode())

    def close(self) -> None:
        os.close(self._file)


class TimedInferSettings(InferSettings):
    """Those of `infer`, and where the times go."""

    log: str = Field(description="A file: `begun_ns done_ns camera epoch seq captured_ns` for each item.")


class TimedInfer(Infer):
    """`infer`, and a line for each item."""

    settings_type = TimedInferSettings
    settings: Any

    def open(self) -> None:
        super().open()
        self._times = _Times(self.settings.log, self.context)

    def process(self, items: Sequence[Tensor]) -> Iterable[Tensor]:
        begun_ns = time.monotonic_ns()
        outputs = super().process(items)
        self._times.note(items, begun_ns)
        return outputs

    def close(self) -> None:
        if hasattr(self, "_times"):
            self._times.close()
        super().close()


class StuckInferSettings(InferSettings):
    """Those of `infer`, and when it is stuck."""

    while_file: str = Field(description="While there is a file of this name, the model does not return.")


class StuckInfer(Infer):
    """`infer` with a model that does not return."""

    settings_type = StuckInferSettings
    settings: Any

    def process(self, items: Sequence[Tensor]) -> Iterable[Tensor]:
        while resolve(self.settings.while_file, self.context.base_folder).exists():
            time.sleep(0.05)
        return super().process(items)


class NullPoseSettings(Settings):
    """What it takes, and where the times go."""

    cost_ms: float = Field(0.0, ge=0, description="What one batch takes.")
    log: str = Field(description="A file: `begun_ns done_ns camera epoch seq captured_ns` for each item.")


class NullPose(Stage[NullPoseSettings]):
    """A model that only takes time and sees nobody: what is left is what the chain costs."""

    settings_type = NullPoseSettings
    inputs = Tensor
    outputs = (People,)
    own_thread = True
    thread_safe = True

    def open(self) -> None:
        self._times = _Times(self.settings.log, self.context)

    def process(self, items: Sequence[Tensor]) -> Iterable[Message]:
        begun_ns = time.monotonic_ns()
        if self.settings.cost_ms:
            time.sleep(self.settings.cost_ms / 1e3)
        self._times.note(items, begun_ns)
        return [_nobody(item) for item in items]

    def close(self) -> None:
        if hasattr(self, "_times"):
            self._times.close()


def _nobody(item: Tensor) -> People:
    boxes, keypoints = np.empty((0, 4), np.float32), np.empty((0, 17, 3), np.float32)
    return People(item.stamp, boxes, np.empty(0, np.float32), keypoints, item.frame_size, np.empty(0, np.int64))


class EveryFrame(Stage[Settings]):
    """An event for each frame, which says whose it is, when it was caught and when the event was made."""

    inputs = Message
    outputs = (Event,)

    def process(self, items: Sequence[Message]) -> Iterable[Message]:
        for item in items:
            at = item.stamp
            event_id = f"{at.camera}.{at.epoch}.{at.seq}"
            body = {"id": event_id, "camera": at.camera, "epoch": at.epoch, "seq": at.seq}
            body |= {"wall_ns": at.wall_ns, "clock": at.clock, "made_ns": time.monotonic_ns()}
            yield Event(at, event_id, event_id, "single", json.dumps(body).encode())
