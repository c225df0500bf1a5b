"""Frames that came out of all stages, read in a file of events as it grows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from camgraph.tools.lab.proofs.trials.frames import FrameLog, Seen, longest_gap_s

WALL_S = 1_700_000_000.0
DAY = "2023-11-14T22:13:"
"""Of 1.7e9 seconds since 1970 the 20th second."""


def line(camera: str, epoch: int, seq: int, *, phase: str = "update", at: str = "25.500Z") -> str:
    data = {"camera": camera, "phase": phase, "frame": {"epoch": epoch, "seq": seq}}
    return json.dumps({"type": f"camgraph.incident.{phase}", "time": DAY + at, "data": data}) + "\n"


def test_frame_log_has_each_frame_once(tmp_path: Path) -> None:
    events = tmp_path / "events.jsonl"
    log = FrameLog(events, WALL_S)
    log.read(1.0)
    assert not log.frames
    assert log.newest_epoch("a") == -1
    lost = {"type": "camgraph.camera.lost", "time": DAY + "25Z", "data": {"camera": "a", "phase": "start"}}
    events.write_text(line("a", 0, 1, phase="start") + line("b", 7, 1) + json.dumps(lost) + "\n")
    log.read(6.0)
    assert log.frames == {"a": [Seen(6.0, pytest.approx(5.5), 0, 1)], "b": [Seen(6.0, pytest.approx(5.5), 7, 1)]}
    with events.open("a") as file:
        file.write(line("a", 0, 1) + line("a", 1, 0) + line("a", 1, 0, phase="end") + line("a", 1, 1)[:-9])
    log.read(7.0)
    assert [(seen.at_s, seen.epoch, seen.seq) for seen in log.frames["a"]] == [(6.0, 0, 1), (7.0, 1, 0)]
    assert log.newest_epoch("a") == 1


def test_longest_gap_includes_both_ends_of_the_window() -> None:
    frames = [Seen(at, 0, 0, n) for n, at in enumerate((0.5, 2.0, 2.5, 3.0, 9.0))]
    assert longest_gap_s(frames, 1.0, 3.5) == 1.0
    assert longest_gap_s(frames, 2.0, 4.5) == 1.5
    assert longest_gap_s([], 2.0, 4.5) == 2.5
