"""The last stage of the benchmark's graph: how many people were found, and how old each frame was then."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence

from pydantic import Field

from camgraph.pipeline.messages import Message
from camgraph.pipeline.stage import Settings, Stage
from camgraph.pipeline.system.paths import resolve
from camgraph.stages.messages import People


class FrameCountsSettings(Settings):
    """Where it is written."""

    path: str = Field(description="A file: `camera people now_ns age_ns` for each frame")


class FrameCounts(Stage[FrameCountsSettings]):
    """People -> a line for each frame in a file."""

    settings_type = FrameCountsSettings
    inputs = People

    def open(self) -> None:
        path = resolve(self.settings.path, self.context.base_folder)
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def process(self, items: Sequence[People]) -> Iterable[Message]:
        now_ns = time.monotonic_ns()
        lines = [f"{item.stamp.camera} {len(item)} {now_ns} {now_ns - item.stamp.captured_ns}\n" for item in items]
        os.write(self._file, "".join(lines).encode())
        return ()

    def close(self) -> None:
        if hasattr(self, "_file"):
            os.close(self._file)
