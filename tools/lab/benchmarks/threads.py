"""The cores that `infer` uses by itself, against one.

    python -m camgraph.tools.lab.benchmarks.threads [--report docs/benchmarks.md]

The same graph with `threads: 1` and without a word about threads, one after the other, on files and on live cameras of
the simulator: ratios of runs that followed each other hold on a busy machine, too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import click

from camgraph.pipeline.supervision.supervisor import Supervisor
from camgraph.pipeline.system.cores import usable_cores
from camgraph.tools.assets import asset_path
from camgraph.tools.lab.figure import Figure, figure_command
from camgraph.tools.lab.graph_run import run_text
from camgraph.tools.lab.report_page import percentile
from camgraph.tools.scenes.simulator import CameraSettings, ClipSettings, RtspSimulator

_GRAPH = """
version: 1
name: threads{pid}
hang_s: 120
processes: {processes}
cameras:
{cameras}
stages:
  capture: {{use: capture}}
  prepare: {{use: preprocess, from: capture, with: {{size: [512, 384]}}}}
  infer: {{use: infer, from: prepare, {threads} with: {{model: "asset:movenet-multipose.onnx"}}}}
  people: {{use: decode, from: infer}}
  end: {{use: sink_null, from: people}}
"""
_CAMERAS = 4
_FPS = 10.0
WAYS = ("separate", "compact", "one")
_LIMIT_S = 900.0


@dataclass(frozen=True, slots=True)
class Pair:
    """Frames a second that came out of the model with one thread, and with as many as it takes by itself; and what the
    run with one thread said of its limit."""

    what: str
    one: float
    itself: float
    limit: str

    @property
    def ratio(self) -> float:
        return self.itself / self.one if self.one else 0.0


def files(processes: str, seconds: float) -> Callable[[str], tuple[float, str]]:
    """A run of files: its frames a second, and its limit."""
    cameras = [f'c{n}: {{url: "asset:vtest.avi", start_s: {15 * n}, duration_s: {seconds}}}' for n in range(_CAMERAS)]

    def run(threads: str) -> tuple[float, str]:
        status = _run(processes, threads, cameras)
        worked_s = status.get("worked_s") or status["uptime_s"]
        return status["totals"]["frames"] / worked_s, _limit(status)

    return run


def live(urls: Sequence[str], seconds: float) -> Callable[[str], tuple[float, str]]:
    """A run of live cameras, for so many seconds from the first frames on."""
    cameras = [f'c{n}: {{url: "{url}"}}' for n, url in enumerate(urls)]

    def run(threads: str) -> tuple[float, str]:
        begun: list[tuple[float, int]] = []

        def stop_in_time(supervisor: Supervisor) -> None:
            status = supervisor.status()
            now_s, done = status.uptime_s, status.stages["infer"].items
            if done and (not begun or now_s - begun[0][0] < seconds):
                begun.append((now_s, done))
            elif begun:
                supervisor.stop()

        status = _run("separate", threads, cameras, stop_in_time)
        (first_s, first), (last_s, last) = begun[0], begun[-1]
        return (last - first) / (last_s - first_s), _limit(status)

    return run


def _run(
    processes: str, threads: str, cameras: Sequence[str], during: Callable[[Supervisor], None] | None = None
) -> dict[str, Any]:
    listed = "\n".join(f"  {camera}" for camera in cameras)
    text = _GRAPH.format(pid=os.getpid(), processes=processes, cameras=listed, threads=threads)
    return run_text(text, during, limit_s=_LIMIT_S)


def _limit(status: dict[str, Any]) -> str:
    return str((status["limit"] or {}).get("text", "nothing"))


def measured(what: str, run: Callable[[str], tuple[float, str]], rounds: int) -> Pair:
    """The medians of so many rounds, in turns."""
    pairs = [(run("threads: 1,"), run("")) for _ in range(rounds)]
    ones, selves = ([pair[n][0] for pair in pairs] for n in (0, 1))
    found = Pair(what, percentile(ones, 0.5), percentile(selves, 0.5), pairs[-1][0][1])
    click.echo(f"{what}: {found.ratio:.2f}")
    return found


def report(pairs: Sequence[Pair]) -> str:
    """The table."""
    return "\n".join(
        [
            "| what | frames/s with `threads: 1` | without a word | ratio | the first said |",
            "|---|---|---|---|---|",
            *(f"| {p.what} | {p.one:.1f} | {p.itself:.1f} | {p.ratio:.2f} | {p.limit} |" for p in pairs),
        ]
    )


@figure_command("benchmarks.threads")
@click.option("--seconds", default=10.0, show_default=True, help="Of each file camera, and of live cameras.")
@click.option("--rounds", default=3, show_default=True, help="Runs of each, in turns.")
def main(figure: Figure, seconds: float, rounds: int) -> None:
    """Compare the frames of a second."""
    figure.takes(2 * rounds * (len(WAYS) * 3.0 * seconds + 2 * seconds), f"{usable_cores()} cores")
    pairs = [measured(f"{_CAMERAS} files, `{way}`", files(way, seconds), rounds) for way in WAYS]
    figure.look()
    clip = ClipSettings(path=str(asset_path("vtest.avi")), codec="h264", fps=_FPS, seconds=20)
    with RtspSimulator([CameraSettings(name=f"c{n}", clip=clip, seed=n) for n in range(_CAMERAS)]) as simulator:
        urls = [camera.url for camera in simulator.cameras]
        pairs.append(measured(f"{_CAMERAS} live cameras of {_FPS:g} fps", live(urls, seconds), rounds))
    figure.publish(f"{figure.head()}\n{figure.others()}\n\n{report(pairs)}")


if __name__ == "__main__":
    main()
