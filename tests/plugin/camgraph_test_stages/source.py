"""Counts instead of filming."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.messages import Message, Stamp
from camgraph.pipeline.stage import CameraSettings, Settings, Source, Stop
from camgraph.pipeline.system.paths import resolve
from camgraph_test_stages.messages import Number, pattern


class CountCamera(CameraSettings):
    """One counting camera."""

    frames: int = Field(10, ge=0, description="How many frames.")
    fps: float = Field(10.0, gt=0, description="Frames per second of stream time.")
    bytes: int = Field(64, ge=0, description="Size of the payload.")
    live: bool = Field(False, description="Behave as a live camera: never wait for readers.")
    pace_ms: float = Field(0.0, ge=0, description="Real time between two frames; 0: as fast as they are taken.")
    block_at: int | None = Field(None, description="Instead of this frame, wait for ever, without a sign of life.")
    block_lives: int = Field(1000, ge=1, description="That happens to so many processes, one after the other.")
    state_from: str = Field(
        "", description="Not empty: a file with the camera's state and why, to be said; frames come only while live."
    )
    log: str = Field("", description="A file: `captured_ns camera epoch seq` for each frame; empty: none.")
    fail: str = Field("", description="Not empty: the camera cannot be opened, and this is why.")


class CountSource(Source[Settings]):
    """Frames whose value is their number; they can be verified byte by byte."""

    camera_type = CountCamera
    outputs = (Number,)

    _reported = ""

    @classmethod
    def is_live(cls, camera_settings: Any) -> bool:
        return bool(camera_settings.live)

    @classmethod
    def takes_turns(cls, camera_settings: Any) -> bool:
        return not camera_settings.live

    @classmethod
    def slot_bytes(cls, camera_settings: Any, base_folder: Path) -> int | None:
        return int(camera_settings.bytes)

    def frames(self, stop: Stop, resume: Stamp | None) -> Iterator[Message]:
        if self.camera_settings.fail:
            raise UserError(f"camera {self.camera}: {self.camera_settings.fail}", error_id="source-missing")
        first = resume.seq + 1 if resume else 0
        epoch = (resume.epoch + self.camera_settings.live) if resume else 0
        for seq in range(first, self.camera_settings.frames):
            self.context.alive()
            if stop.is_set() or (self.camera_settings.pace_ms and stop.wait(self.camera_settings.pace_ms / 1e3)):
                return
            self._wait_until_live(stop)
            if stop.is_set():
                return
            if seq == self.camera_settings.block_at and self.context.incarnation <= self.camera_settings.block_lives:
                threading.Event().wait()
            yield self._frame(epoch, seq)

    def _wait_until_live(self, stop: Stop) -> None:
        """Say what the file says, whenever that is something else, until it says `live`."""
        while self.camera_settings.state_from and not stop.is_set():
            self.context.alive()
            path = self.context.base_folder / self.camera_settings.state_from
            output = path.read_text() if path.exists() else "connecting"
            if not output:  # a test is just about to write it
                continue
            if output != self._reported:
                state, _, why = output.partition(" ")
                self.context.camera_is(self.camera, state, why)
                self.context.camera_shows(self.camera, codec="count", width=np.int64(4), fps=np.float32(0.5))
            self._reported = output
            if output == "live":
                return
            stop.wait(0.02)

    def _frame(self, epoch: int, seq: int) -> Number:
        now_ns = time.monotonic_ns()
        time_ns = now_ns if self.camera_settings.live else round(seq * 1e9 / self.camera_settings.fps)
        stamp = Stamp(self.camera, epoch, seq, time_ns, now_ns, time_ns, seq)
        if self.camera_settings.log:
            with resolve(self.camera_settings.log, self.context.base_folder).open("a") as file:
                file.write(f"{now_ns} {self.camera} {epoch} {seq}\n")
        payload = self.context.new_arrays({"payload": ((self.camera_settings.bytes,), "uint8")})["payload"]
        return Number(stamp, seq, pattern(self.camera, seq, payload))
