"""How cost grows with cameras: the simulator's, through a graph whose model does nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from camgraph.tools.lab.benchmarks.cameras import Row, Subject, measure
from camgraph.tools.lab.camera_run import CameraSet

WAY = "null model, 16 a process"
PICTURE = (320, 180)
FPS = 2.0
_MODEL_SIZE = (320, 192)


@dataclass(frozen=True, slots=True)
class Grown:
    """One point of the curve: how many cameras, and their figures (``row``)."""

    cameras: int
    row: Row

    @property
    def frame_ms(self) -> float:
        """Processor time of all processes of the run, the supervisor too, for a frame; nan where none came."""
        return 1000 * sum(self.row.cores.values()) / self.row.frames_fps if self.row.frames_fps else float("nan")

    @property
    def memory_mb(self) -> float:
        """Memory of all processes, including the supervisor with this tool in it."""
        return self.row.memory_mb + self.row.supervisor_mb


def measured(cameras: int, seconds: float) -> Grown:
    """One run."""
    films = CameraSet(cameras, FPS, PICTURE, None)
    subject = Subject(films, "", _MODEL_SIZE, seconds)
    with films.simulator() as simulator:
        return Grown(cameras, measure(subject, WAY, simulator))


def each_more(first: float, last: float, points: Sequence[int]) -> float:
    """The cost of each further camera, by the first and the last point. Pure."""
    return (last - first) / max(1, points[-1] - points[0])
