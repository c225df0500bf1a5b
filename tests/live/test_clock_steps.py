"""Somebody sets the machine's clock back and forth by an hour while graphs run: nothing hangs, and no event is lost.

libfaketime gives the processes of a run another time of day; the monotonic clock is left alone, as it is when a clock
is set.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from camgraph.tools.lab.proofs.trials.run import LiveRun
from camgraph.tools.lab.proofs.trials.subject import simulated_cameras, write_subject
from camgraph.tools.measuring.processes import left_over
from camgraph.tools.scenes.simulator import RtspSimulator

WITHIN_S = 120.0
STEPS = ("+1h", "-1h", "+0", "-1h", "+1h", "+0")
# Processes of a run get none of the variables of libfaketime: each Python begins anew with them. Its clock_nanosleep
# fails once the offset has changed, which no system's does: Python sleeps otherwise.
SITE = """
import os, select, sys, time
if "FAKETIME_TIMESTAMP_FILE" not in os.environ:
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {{**os.environ, **{variables}}})
time.sleep = lambda seconds: select.select([], [], [], seconds) and None
"""


@pytest.fixture
def library() -> Path:
    found = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    if not found:
        pytest.skip("no libfaketime (Debian: apt-get install faketime)")
    return found[0]


class TimeOfDay:
    """The clock of a run, as its environment has it."""

    def __init__(self, folder: Path, library: Path) -> None:
        self._file = folder / "time_of_day"
        self.set("+0")
        variables = {
            "LD_PRELOAD": str(library),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
        (folder / "site").mkdir()
        (folder / "site" / "sitecustomize.py").write_text(SITE.format(variables=variables))
        before = os.environ.get("PYTHONPATH")
        self.environment = {"PYTHONPATH": os.pathsep.join([str(folder / "site"), *([before] if before else [])])}

    def set(self, offset: str) -> None:
        """So far from the truth: "+1h"."""
        new = self._file.with_suffix(".new")
        new.write_text(f"{offset}\n")
        new.replace(self._file)


@pytest.fixture
def time_of_day(tmp_path: Path, library: Path) -> Iterator[TimeOfDay]:
    yield TimeOfDay(tmp_path, library)
    for left in Path("/dev/shm").glob("*faketime_s*_*"):  # libfaketime's own, of processes that are dead
        if not Path("/proc", left.name.rpartition("_")[2]).exists():
            left.unlink(missing_ok=True)


def frames(status: dict[str, Any]) -> dict[str, int]:
    return {name: camera["frames"] for name, camera in status["cameras"].items()}


def grown(before: dict[str, int], by: int) -> Callable[[dict[str, Any]], bool]:
    return lambda now: all(frames(now).get(name, 0) > n + by for name, n in before.items())


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_live_cameras_do_not_notice_that_the_clock_is_set(tmp_path: Path, time_of_day: TimeOfDay) -> None:
    """One camera tells the time itself, the other one leaves it to this machine."""
    reported, silent = simulated_cameras(2)
    with RtspSimulator([reported, silent.model_copy(update={"report_s": 0.0})]) as simulator:
        subject = write_subject(tmp_path, f"clock{os.getpid()}", simulator.cameras, every_frame=True)
        with LiveRun(subject, environment=time_of_day.environment) as run:
            run.until_live(WITHIN_S)
            for step in STEPS:
                time_of_day.set(step)
                run.until(grown(frames(run.status()), 12), WITHIN_S, f"frames after {step}")
                status = run.status()
                assert {camera["state"] for camera in status["cameras"].values()} == {"live"}
                assert all(camera["losses"] == 0 for camera in status["cameras"].values())
            assert run.stop() == 0, run.problems()
        assert run.lines("process_died") == []
        states = sorted(line["state"] for line in run.lines("camera_state"))
        assert states == ["connecting", "connecting", "live", "live"]
    assert left_over(subject.name) == []
    events = [json.loads(line) for line in subject.events.read_text().splitlines()]
    for camera in ("c0", "c1"):
        mine = [event for event in events if event["subject"] == camera]
        assert [event["data"]["phase"] for event in mine] == ["start", *["update"] * (len(mine) - 2), "end"]
        updates = mine[1:-1]
        assert len(updates) > 40
        assert all(before < after for before, after in pairwise(event["data"]["frame"]["seq"] for event in updates))
        assert all(before <= after for before, after in pairwise(event["data"]["duration_s"] for event in updates))
        assert mine[-1]["data"]["duration_s"] < 600, "an hour is not counted"
    hours = {event["time"][:13] for event in mine}
    assert len(hours) > 2, "the clock of the machine was set, or this tests nothing"


FILES = """
version: 1
name: {name}
cameras:
  a: {{url: clip.mp4}}
  b: {{url: clip.mp4}}
stages:
  capture: {{use: capture}}
  prepare: {{use: preprocess, from: capture, with: {{size: [64, 64]}}}}
  infer: {{use: infer, from: prepare, with: {{model: light.onnx}}}}
  people: {{use: decode_yolo_pose, from: infer}}
  tracks: {{use: track, from: people, with: {{confirm_s: 0}}}}
  actions: {{use: rules, from: tracks, with: {{rules: [{{id: seen, when: score > 0.01, update: 1ms}}]}}}}
  log: {{use: sink_jsonl, from: actions, with: {{path: events.jsonl, order: time}}}}
"""


def write_clip(path: Path, count: int) -> None:
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=10)
        stream.width, stream.height, stream.pix_fmt = 192, 128, "yuv420p"
        for number in range(count):
            picture = np.full((128, 192, 3), number % 256, np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="bgr24")))
        container.mux(stream.encode(None))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_clock_steps_leave_file_events_unchanged(tmp_path: Path, time_of_day: TimeOfDay) -> None:
    with RtspSimulator(simulated_cameras(1)) as simulator:
        subject = write_subject(tmp_path, f"files{os.getpid()}", simulator.cameras)  # for its model
    subject.graph.write_text(FILES.format(name=subject.name))
    write_clip(tmp_path / "clip.mp4", 400)
    with LiveRun(subject) as run:
        assert run.wait(WITHIN_S) == 0, run.problems()
    undisturbed = subject.events.read_bytes()
    assert undisturbed.count(b"\n") > 700
    subject.events.unlink()
    steps = 0
    with LiveRun(subject, environment=time_of_day.environment) as run:
        for step in _again_and_again(run):
            time_of_day.set(step)
            steps += bool(run.status().get("uptime_s"))
        assert run.wait(WITHIN_S) == 0, run.problems()
    assert steps > 3
    assert subject.events.read_bytes() == undisturbed


def _again_and_again(run: LiveRun) -> Iterator[str]:
    while not run.has_ended:
        yield from STEPS
