"""Measures the cost of the runtime.

    python -m camgraph.tools.lab.benchmarks.runtime [--report docs/benchmarks.md]    (after `make dev`)

    chain    file ─> capture ─> prepare ─> null model ─> track ─> rules ─> end      less    file ─> capture ─> end,
             in milliseconds and in shares of what FFmpeg takes to decode a frame
    device   src ─> a device that takes 4 ms for each batch of 8 ─> end             against 2000 items a second

The null model sees nobody and takes no time. The device sleeps, one batch after the other: only gathering, sending and
receiving keep it waiting. Rounds are interleaved, and figures are medians.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import av
import click

from camgraph.pipeline.system.paths import resolve
from camgraph.tools.lab.benchmarks.peers.clip import write_clip
from camgraph.tools.lab.figure import Figure, figure_command
from camgraph.tools.lab.graph_run import run_text
from camgraph.tools.lab.report_page import machine_line, median_and_range

_CAMERAS = 4
_PICTURE = (1280, 720)
_DEVICE_MS = 4.0
_BATCH = 8
_RUN_S = 14.0
"""About what one run takes with the usual number of frames."""
_CHAIN = """
version: 1
name: chain{pid}
processes: {processes}
cameras:
{cameras}
stages:
  capture: {{use: capture}}
  prepare: {{use: preprocess, from: capture, with: {{size: [640, 640]}}}}
  people: {{use: null_pose, from: prepare, threads: 2, with: {{log: /dev/null}}}}
  tracks: {{use: track, from: people}}
  actions: {{use: rules, from: tracks, with: {{rules: [{{id: stays, when: age >= 1s}}]}}}}
  end: {{use: sink_null, from: actions}}
"""
_CAPTURE_ALONE = """
version: 1
name: chain{pid}
processes: {processes}
cameras:
{cameras}
stages:
  capture: {{use: capture}}
  end: {{use: sink_null, from: capture}}
"""
_DEVICE = """
version: 1
name: device{pid}
processes: {processes}
cameras:
{cameras}
stages:
  src: {{use: count_source}}
  device:
    use: null_model
    from: src
    threads: 2
    batch: {{max: {batch}}}
    with: {{cost_ms: {cost_ms}, one_device: true}}
  end: {{use: sink_null, from: device}}
"""


@dataclass(slots=True)
class Placed:
    """One placing of the processes, a value a round. ``chain_ms``: processor time behind `capture` for a frame;
    ``chain_share``: the same over that of decoding; ``chain_fps``: frames a second; ``device_rate``: items a second
    over those that the device can do.
    """

    chain_ms: list[float] = field(default_factory=list)
    chain_share: list[float] = field(default_factory=list)
    chain_fps: list[float] = field(default_factory=list)
    device_rate: list[float] = field(default_factory=list)


def run_once(text: str, processes: str, cameras: Sequence[str], **values: Any) -> dict[str, Any]:
    """One run of a graph on these cameras: its last status."""
    lines = "\n".join(f"  c{number}: {camera}" for number, camera in enumerate(cameras))
    return run_text(text.format(pid=os.getpid(), processes=processes, cameras=lines, **values), limit_s=300)


def cpu_ms(status: dict[str, Any], frames: int) -> float:
    """Processor time of all processes for a frame, from when they were ready. Pure."""
    return 1000 * sum(float(process["cpu_s"]) for process in status["processes"].values()) / frames


def decoding_ms(clip: Path) -> float:
    """Processor time of FFmpeg's decoder for a frame, in one thread."""
    with av.open(str(clip)) as film:
        stream = film.streams.video[0]
        stream.thread_type, stream.codec_context.thread_count = "NONE", 1
        begun = time.process_time()
        frames = sum(1 for _ in film.decode(stream))
        return 1000 * (time.process_time() - begun) / frames


def measure(clip: Path, frames: int, items: int, rounds: int, look: Callable[[], None]) -> dict[str, Placed]:
    """Interleaved rounds of both placings, with a ``look`` at the machine after each."""
    found = {"separate": Placed(), "compact": Placed()}
    films = [f'{{url: "{clip}"}}'] * _CAMERAS
    counters = [f"{{frames: {items // _CAMERAS}, bytes: 16}}"] * _CAMERAS
    for _ in range(rounds):
        for processes, placed in found.items():
            chain = run_once(_CHAIN, processes, films)
            alone = run_once(_CAPTURE_ALONE, processes, films)
            placed.chain_ms.append(cpu_ms(chain, _CAMERAS * frames) - cpu_ms(alone, _CAMERAS * frames))
            placed.chain_share.append(placed.chain_ms[-1] / decoding_ms(clip))
            placed.chain_fps.append(_CAMERAS * frames / chain["worked_s"])
            device = run_once(_DEVICE, processes, counters, batch=_BATCH, cost_ms=_DEVICE_MS)
            placed.device_rate.append(items / device["worked_s"] / (_BATCH * 1000 / _DEVICE_MS))
            look()
    return found


def lines(found: dict[str, Placed]) -> list[str]:
    """The table. Pure."""
    rows = [
        f"| {name} | {median_and_range(p.chain_ms)} | {median_and_range(p.chain_share)} | {median(p.chain_fps):.0f} "
        f"| {median_and_range(p.device_rate, 3)} |"
        for name, p in found.items()
    ]
    return [
        "| placing | chain behind `capture`: ms of processor time a frame | chain / decoding a frame "
        "| frames/s with it | device: rate / ideal |",
        "|---|---|---|---|---|",
        *rows,
    ]


@figure_command("benchmarks.runtime")
@click.option("--clip", default="asset:vtest.avi", show_default=True, help="A video, for all four cameras.")
@click.option("--frames", default=400, show_default=True, help="Of each camera.")
@click.option("--items", default=8000, show_default=True, help="Through the pretended device.")
@click.option("--rounds", default=3, show_default=True)
def main(figure: Figure, clip: str, frames: int, items: int, rounds: int) -> None:
    """Measure the cost of the runtime itself."""
    figure.takes(rounds * 6 * _RUN_S, f"{rounds} rounds, each of two placings and three runs")
    with tempfile.TemporaryDirectory() as folder:
        film = Path(folder) / "film.mp4"
        write_clip(resolve(clip, Path.cwd()), film, frames, _PICTURE)
        found = measure(film, frames, items, rounds, figure.look)
    head = [figure.written(), "", f"{machine_line()}. {figure.others()}", ""]
    figure.publish("\n".join([*head, *lines(found)]))


if __name__ == "__main__":
    main()
