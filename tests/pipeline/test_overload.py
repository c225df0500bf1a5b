"""Live cameras and a device that cannot take all, in real processes: what begins is fresh, the shares are fair, and
nobody is hurt by a camera that floods or stalls. The same with a simulated clock: `test_batcher`."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.testing import run_graph
from camgraph.tools.lab.benchmarks.live import Camera, fair_rates


@dataclass(frozen=True, slots=True)
class Begun:
    """A frame whose batch began at `at_ns` (monotonic)."""

    at_ns: int
    camera: str
    seq: int


class Flow:
    """What a run has written down: when each frame was made, and when inference began with it."""

    def __init__(self, folder: Path, text: str) -> None:
        path = folder / "g.yaml"
        path.write_text(f"version: 1\nname: o{os.getpid()}\n{text}")
        outcome, self.status = run_graph(load_plan(path))
        assert (outcome.status, outcome.problems) == (0, [])
        self.made: dict[str, dict[int, int]] = defaultdict(dict)
        for at_ns, camera, _, seq in _rows(folder / "made"):
            self.made[camera][int(seq)] = int(at_ns)
        self.begun = [Begun(int(at), camera, int(seq)) for at, camera, _, seq, _ in _rows(folder / "begun")]

    def while_all_film(self) -> list[Begun]:
        """What began from the first batch that anybody had to be left out of, until the first camera's last frame."""
        first = self.begun[0].at_ns + 500_000_000
        last = min(max(frames.values()) for frames in self.made.values())
        return [one for one in self.begun if first <= one.at_ns <= last]

    def passed_over(self, one: Begun, since_ns: int) -> bool:
        """Whether a newer frame of that camera had been made for so long when the batch began."""
        made = self.made[one.camera].items()
        return any(seq > one.seq and at_ns + since_ns < one.at_ns for seq, at_ns in made)

    def counted(self, prefix: str, camera: str) -> int:
        counts = self.status["counts"]
        return sum(n for name, whose, n in counts if name.startswith(prefix) and whose == camera)


def _rows(path: Path) -> Iterator[list[str]]:
    return (line.split() for line in path.read_text().splitlines())


CAMERAS = """
cameras:
  quick: {frames: 210, pace_ms: 33, live: true, bytes: 60000, log: made}
  prior: {frames: 210, pace_ms: 33, live: true, bytes: 60000, log: made, priority: 3}
  steady: {frames: 70, pace_ms: 100, live: true, bytes: 60000, log: made}
  other: {frames: 70, pace_ms: 100, live: true, bytes: 60000, log: made}
  slow: {frames: 7, pace_ms: 1000, live: true, bytes: 60000, log: made}
"""
FILMED = {"quick": Camera(30), "prior": Camera(30, 3), "steady": Camera(10), "other": Camera(10), "slow": Camera(1)}
CHAIN = """
stages:
  src: {use: count_source, workers: 1}
  prepare: {use: double, from: src, with: {bytes: 60000}}
  model: {use: null_model, from: prepare, batch: {max: 2}, with: {cost_ms: 250, log: begun}}
  end: {use: sink_null, from: model}
"""
JOIN = """
stages:
  src: {use: count_source, workers: 1}
  prepare: {use: double, from: src, with: {bytes: 60000}}
  both: {use: pair, from: {left: src, right: prepare}}
  model: {use: null_model, from: both, batch: {max: 2}, with: {cost_ms: 250, log: begun}}
  end: {use: sink_null, from: model}
"""


@pytest.mark.parametrize(
    ("processes", "stages"),
    [("separate", CHAIN), ("compact", CHAIN), ("separate", JOIN)],
    ids=["chain", "compact", "join"],
)
def test_the_newest_frame_begins_and_everyone_has_a_share(tmp_path: Path, processes: str, stages: str) -> None:
    """8 frames a second for 81: slow has its 1, and of the 7 that are left prior half, the others a sixth each."""
    flow = Flow(tmp_path, f"processes: {processes}\n{CAMERAS}{stages}")
    begun = flow.while_all_film()
    # A frame that waits for one batch too many is 250 ms behind. The machine may be slow now and then.
    late = [one for one in begun if flow.passed_over(one, 150_000_000)]
    assert len(late) <= 0.05 * len(begun), late
    seconds = (begun[-1].at_ns - begun[0].at_ns) / 1e9
    got = Counter(one.camera for one in begun)
    for camera, share in fair_rates(FILMED, len(begun) / seconds, 4).items():
        assert got[camera] / seconds == pytest.approx(share, rel=0.1, abs=1.5 / seconds), camera
    for camera, made in flow.made.items():
        began = sum(one.camera == camera for one in flow.begun)
        lost, skipped = flow.counted("dropped.", camera), flow.counted("skipped.", camera)
        assert began + lost <= len(made) <= began + lost + skipped, "what a join misses is counted as skipped"


NEIGHBOURS = """
hang_s: 2
cameras:
  flood: {frames: 1600, pace_ms: 5, live: true, log: made}
  stalls: {frames: 40, pace_ms: 200, live: true, log: made, block_at: 10, block_lives: 1}
  a: {frames: 40, pace_ms: 200, live: true, log: made}
  b: {frames: 40, pace_ms: 200, live: true, log: made}
  c: {frames: 40, pace_ms: 200, live: true, log: made}
  d: {frames: 40, pace_ms: 200, live: true, log: made}
stages:
  src: {use: count_source}
  prepare: {use: double, from: src, with: {bytes: 60000}}
  model: {use: null_model, from: prepare, batch: {max: 4}, with: {cost_ms: 110, log: begun}}
  end: {use: sink_null, from: model}
"""


def test_a_camera_that_floods_and_one_that_stalls_hurt_nobody(tmp_path: Path) -> None:
    """The others load the device to 70 %: 25 frames a second of 36."""
    flow = Flow(tmp_path, NEIGHBOURS)
    got = Counter(one.camera for one in flow.begun)
    assert flow.counted("dropped.queue_full", "flood") > 0.7 * 1600, (
        "what is too much is the flooding camera's own loss"
    )
    for camera in "abcd":
        assert got[camera] >= 0.95 * 40
