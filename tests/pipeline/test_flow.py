"""Flow where the shape of a graph makes it hard: large messages from several stages of a process, live cameras on edges
that block, several messages of one frame, a merge behind a rare filter, many stages one behind the other."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.supervision.supervisor import Supervisor
from camgraph.pipeline.testing import hit, run_graph


def run(folder: Path, processes: str, body: str, during: Callable[[Supervisor], None] | None = None) -> dict[str, Any]:
    """Run a graph to an end without any problem; its last status."""
    folder.mkdir(exist_ok=True)
    path = folder / "g.yaml"
    path.write_text(f"version: 1\nname: f{os.getpid()}\nprocesses: {processes}\n{body}")
    outcome, status = run_graph(load_plan(path), during)
    assert (outcome.status, outcome.problems) == (0, [])
    return status


def lines(path: Path, camera: str) -> list[str]:
    return [line for line in path.read_text().splitlines() if line.startswith(f"{camera} ")]


GROUP = """
cameras: {a: {frames: 80, bytes: 30000}, b: {frames: 50, bytes: 30000}, c: {frames: 80, bytes: 100}}
stages:
  src: {use: count_source}
  left: {use: double, from: src, group: both, with: {bytes: 40000}}
  right: {use: double, from: left, group: both, with: {bytes: 90000}}
  quick: {use: collect, from: left, batch: {max: 4}, with: {path: left}}
  slow: {use: collect, from: right, with: {path: right, cost_ms: 3}}
"""


@pytest.mark.parametrize("processes", ["separate", "compact"])
def test_two_stages_of_one_process_send_large_messages_to_others(tmp_path: Path, processes: str) -> None:
    run(tmp_path / "one", "one", GROUP)
    status = run(tmp_path / "many", processes, GROUP)
    assert sum(camera["drops"] for camera in status["cameras"].values()) == 0
    for name, factor in (("left", 2), ("right", 4)):
        for camera, frames in (("a", 80), ("b", 50), ("c", 80)):
            seen = lines(tmp_path / "many" / name, camera)
            assert seen == [f"{camera} 0 {seq} {factor * seq}" for seq in range(frames)]
            assert seen == lines(tmp_path / "one" / name, camera)


LIVE = """
cameras:
  quick: {frames: 300, pace_ms: 3, live: true, bytes: 50000}
  slow: {frames: 30, pace_ms: 30, live: true, bytes: 50000}
stages:
  src: {use: count_source}
  model: {use: null_model, from: {stage: src, policy: block}, batch: {max: 2}, with: {cost_ms: 30}}
  out: {use: collect, from: {stage: model, policy: block}, with: {path: out}}
"""


def test_blocked_live_camera_drops_at_source_only(tmp_path: Path) -> None:
    status = run(tmp_path, "separate", LIVE)
    for camera, frames in (("quick", 300), ("slow", 30)):
        counted = status["cameras"][camera]
        seen = [int(line.split()[2]) for line in lines(tmp_path / "out", camera)]
        assert seen == sorted(set(seen))
        assert seen[-1] == frames - 1, "the last frame is the newest, and nothing replaced it"
        assert counted["frames"] == frames
        assert len(seen) + counted["drops"] == frames
    assert status["cameras"]["quick"]["drops_by_reason"].keys() == {"queue_full"}
    assert status["stages"]["model"]["items"] == sum(len(lines(tmp_path / "out", c)) for c in ("quick", "slow"))


SEVERAL = """
cameras: {a: {frames: 60, bytes: 30000}, b: {frames: 60, bytes: 30000}, c: {frames: 20}}
stages:
  src: {use: count_source}
  model: {use: null_model, from: src, batch: {max: 5}, threads: 2, with: {cost_ms: 1}}
  three: {use: double, from: model, batch: {max: 4}, with: {copies: 3, bytes: 20000}}
  again: {use: double, from: three, batch: {max: 4}, with: {copies: 2}}
  sum: {use: running_sum, from: three}
  out: {use: collect, from: again, batch: {max: 8}, with: {path: out}}
  sums: {use: collect, from: sum, with: {path: sums}}
"""


@pytest.mark.parametrize("processes", ["one", "separate", "compact"])
def test_batching_keeps_order_within_a_frame(tmp_path: Path, processes: str) -> None:
    status = run(tmp_path, processes, SEVERAL)
    assert sum(camera["drops"] for camera in status["cameras"].values()) == 0
    for camera, frames in (("a", 60), ("b", 60), ("c", 20)):
        made = [(seq, 2 * seq + copy) for seq in range(frames) for copy in range(3)]
        doubled = [f"{camera} 0 {seq} {2 * value + copy}" for seq, value in made for copy in range(2)]
        assert lines(tmp_path / "out", camera) == doubled
        sums, total = [], 0
        for seq, value in made:
            total += value * (seq + 1)
            sums.append(f"{camera} 0 {seq} {total}")
        assert lines(tmp_path / "sums", camera) == sums


RARE = """
cameras: {a: {frames: 40}, b: {frames: 30}}
stages:
  src: {use: count_source}
  rare: {use: thin, from: src, with: {every: 1000}}
  sum: {use: running_sum, from: [src, rare]}
  out: {use: collect, from: sum, with: {path: out}}
"""


def test_a_merge_does_not_wait_for_what_a_rare_filter_keeps(tmp_path: Path) -> None:
    """Of each camera, the filter lets a single frame through: the others are reported by tombstones."""
    run(tmp_path / "one", "one", RARE)
    run(tmp_path / "many", "separate", RARE)
    for camera, frames in (("a", 40), ("b", 30)):
        seen = lines(tmp_path / "many" / "out", camera)
        assert seen == lines(tmp_path / "one" / "out", camera)
        assert len(seen) == frames + 1


DEEP = """
cameras: {a: {frames: 200, bytes: 100, pace_ms: 10}}
stages:
  src: {use: count_source}
  d1: {use: double, from: src, with: {copies: 2}}
""" + "".join(f"  d{n}: {{use: double, from: d{n - 1}}}\n" for n in range(2, 8))
DEEP += """
  emit: {use: emit, from: d7, with: {every: 1}}
  out: {use: collect, from: d7, with: {path: out}}
  timed: {use: collect_events, from: emit, with: {path: timed, order: time}}
"""


def test_deep_keys_survive_many_stages_and_a_death(tmp_path: Path) -> None:
    """Keys grow with each stage, beyond what msgpack and SQLite hold as a number."""
    run(tmp_path / "one", "one", DEEP)
    killed: list[int] = []

    def kill_the_second(supervisor: Supervisor) -> None:
        frames = sum(n for one in supervisor.processes for (name, _), n in one.counts().items() if name == "frames")
        if frames > 50 and not killed:
            killed.append(next(process.pid for process in supervisor.processes if process.plan.name == "d2.0"))
            hit(killed[0])

    status = run(tmp_path / "many", "separate", DEEP, kill_the_second)
    assert killed
    restarts = {stage: reported["restarts"] for stage, reported in status["stages"].items() if reported["restarts"]}
    assert restarts == {"d2": 1}, "nobody dies of what another's death makes known"
    assert lines(tmp_path / "many" / "out", "a") == [
        f"a 0 {seq} {64 * (2 * seq + copy)}" for seq in range(200) for copy in range(2)
    ]
    assert (tmp_path / "many" / "timed").read_text() == (tmp_path / "one" / "timed").read_text()
