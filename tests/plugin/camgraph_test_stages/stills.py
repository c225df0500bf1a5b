"""A live camera without a decoder: the same picture at its pace, for benchmarks of what comes behind."""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from camgraph.pipeline.messages import Message, Stamp
from camgraph.pipeline.stage import CameraSettings, Settings, Source, Stop
from camgraph.stages.messages import Frame


class StillCamera(CameraSettings):
    """One camera."""

    fps: float = Field(10.0, gt=0, description="Frames a second")
    size: tuple[int, int] = Field((640, 360), description="Width and height of its pictures, even numbers")


class StillSource(Source[Settings]):
    """Frames of noise in yuv420p, each written into shared memory as a decoder does; each camera has its own beat."""

    camera_type = StillCamera
    outputs = (Frame,)

    @classmethod
    def is_live(cls, camera_settings: Any) -> bool:
        return True

    @classmethod
    def slot_bytes(cls, camera_settings: Any, base_folder: Path) -> int | None:
        width, height = camera_settings.size
        return int(width * height * 3 // 2)

    def frames(self, stop: Stop, resume: Stamp | None) -> Iterator[Message]:
        width, height = self.camera_settings.size
        rng = np.random.default_rng(zlib.crc32(self.camera.encode()))
        picture = rng.integers(16, 236, (height * 3 // 2, width), np.uint8)
        epoch = resume.epoch + 1 if resume else 0
        began = time.monotonic() + rng.random() / self.camera_settings.fps
        seq = beat = 0
        while not stop.wait(max(0.0, began + beat / self.camera_settings.fps - time.monotonic())):
            self.context.alive()
            out = self.context.new_arrays({"pixels": (picture.shape, "uint8")})["pixels"]
            out[...] = picture
            now_ns = time.monotonic_ns()
            yield Frame(
                Stamp(self.camera, epoch, seq, now_ns, now_ns, time.time_ns(), seq), out, width, height, "yuv420p"
            )
            seq += 1
            # A beat that was missed is no burst afterwards.
            beat = max(beat + 1, int((time.monotonic() - began) * self.camera_settings.fps))
