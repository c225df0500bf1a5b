"""Capture, run as its process runs it: a thread that reads one camera, and what it says meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from camgraph_test_stages.waiting import until

from camgraph.pipeline.errors import CamgraphError
from camgraph.pipeline.messages import Stamp
from camgraph.pipeline.stage import Settings
from camgraph.pipeline.testing import HandContext
from camgraph.stages.messages import Frame
from camgraph.stages.video.capture import Camera, Capture

WITHIN_S = 60.0


class Watching:
    """Reads a camera in a thread of its own, as `pipeline.execution.source_thread` does, and keeps what comes."""

    def __init__(self, folder: Path, url: str, *, slots: int = 0, **settings: Any) -> None:
        self.context = HandContext(folder, folder, outputs_leave=slots > 0, slots=slots)
        self.stamps: list[Stamp] = []
        self.sizes: list[tuple[int, int]] = []
        self._stop = threading.Event()
        self._capture = Capture(Settings(), "cam", Camera.model_validate({"url": url, **settings}), self.context)
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        for frame in self._capture.frames(self._stop, None):
            self.stamps.append(frame.stamp)
            self.sizes.append((frame.width, frame.height))

    @property
    def states(self) -> list[str]:
        """All that the camera has been, in order."""
        return [state for _, state, _ in self.context.camera_states]

    @property
    def facts(self) -> dict[str, str | float]:
        return self.context.camera_facts.get("cam", {})

    @property
    def reported(self) -> str:
        """All that was said of it, to be searched for a password."""
        return f"{self.context.camera_states} {self.context.camera_facts}"

    def until(self, condition: Callable[[], bool], within_s: float = WITHIN_S) -> None:
        """Wait until it is so."""
        until(condition, within_s, lambda: f"{self.reported}, {len(self.stamps)} frames")

    def until_state(self, *states: str, within_s: float = WITHIN_S) -> None:
        """Wait until it is in one of these states."""
        self.until(lambda: bool(self.states) and self.states[-1] in states, within_s)

    def until_frames(self, count: int = 3, within_s: float = WITHIN_S) -> None:
        """Wait until so many more frames have come."""
        wanted = len(self.stamps) + count
        self.until(lambda: len(self.stamps) >= wanted, within_s)

    def stop(self) -> float:
        """Ask it to stop, and wait for that; how long it took, in seconds."""
        begun = time.monotonic()
        self._stop.set()
        self._thread.join(WITHIN_S)
        assert not self._thread.is_alive(), "it did not stop"
        return time.monotonic() - begun

    def longest_silence_s(self) -> float:
        """Between two signs of life, or frames."""
        signs = sorted([*self.context.signs, *(stamp.captured_ns / 1e9 for stamp in self.stamps)])
        return max((later - earlier for earlier, later in pairwise(signs)), default=0.0)


Watch = Callable[..., Watching]


@pytest.fixture
def watch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watch]:
    """Watches cameras, `watch(url, **settings)`, each in a run of its own, and stops at the end of the test."""
    with ExitStack() as stack:

        def begin(url: str, **settings: Any) -> Watching:
            watching = Watching(tmp_path_factory.mktemp("run"), url, **settings)
            stack.callback(watching.stop)
            return watching

        yield begin


# --- files

MakeCapture = Callable[..., Capture]


def _capture(path: Path | str, *, slots: int = 0, **settings: Any) -> Capture:
    folder = path.parent if isinstance(path, Path) else Path.cwd()
    camera = Camera.model_validate({"url": str(path), **settings})
    return Capture(Settings(), "cam", camera, HandContext(folder, folder, outputs_leave=slots > 0, slots=slots))


def _counts(source: Capture) -> dict[tuple[str, str], int]:
    assert isinstance(source.context, HandContext)
    return dict(source.context.counts)


def _read(path: Path | str, resume: Stamp | None = None, **settings: Any) -> list[Frame]:
    return list(_capture(path, **settings).frames(threading.Event(), resume))


def _read_until_error(source: Capture) -> tuple[list[Frame], CamgraphError | None]:
    frames: list[Frame] = []
    try:
        for frame in source.frames(threading.Event(), None):
            frames.append(frame)
    except CamgraphError as error:
        return frames, error
    return frames, None


def _bare(path: Path) -> list[av.VideoFrame]:
    with av.open(str(path)) as container:
        return list(container.decode(video=0))


def _same(one: Sequence[Frame], other: Sequence[Frame]) -> bool:
    """Equal stamps (but for the time of capture, which is of this run) and equal pixels."""
    stamps = [[f.stamp._replace(captured_ns=0) for f in frames] for frames in (one, other)]
    return stamps[0] == stamps[1] and all(
        a.format == b.format and np.array_equal(a.pixels, b.pixels) for a, b in zip(one, other, strict=True)
    )


@pytest.fixture
def capture() -> MakeCapture:
    """A capture of a path, with settings of its camera."""
    return _capture


@pytest.fixture
def counts() -> Callable[[Capture], dict[tuple[str, str], int]]:
    """What a capture has counted."""
    return _counts


@pytest.fixture
def read() -> Callable[..., list[Frame]]:
    """All frames of a path."""
    return _read


@pytest.fixture
def read_until_error() -> Callable[[Capture], tuple[list[Frame], CamgraphError | None]]:
    """The frames, and how it ended."""
    return _read_until_error


@pytest.fixture
def bare() -> Callable[[Path], list[av.VideoFrame]]:
    """What PyAV alone makes of a path."""
    return _bare


@pytest.fixture
def same() -> Callable[[Sequence[Frame], Sequence[Frame]], bool]:
    """Whether two readings are one."""
    return _same
