"""The cost of the service, and the load that it bears: `python -m tools.benchmarks.service --report docs/service.md`.

A graph of cameras that are played at their own pace (files in a loop, decoded and judged as live ones are, so that a
camera which is slowed down shows fewer frames a second) runs with the stage `serve`. In one run, one after another:

    nobody     nobody asks for anything
    scraped    /metrics once a second
    watched    a wall: the newest picture of each camera every two seconds, and the state every two
    attacked   so many connections: some that ask nothing, some that never end their request, some that send nonsense,
               and some that ask for pictures and read nothing; /metrics once a second beside them

Those who watch and attack are other processes, of the lowest priority: what they cost themselves is not what the
service costs.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.synchronize import Event as Stop
from pathlib import Path
from statistics import median
from typing import Any

import click
import httpx

from pipeline.graph.loading import load_plan
from pipeline.supervision.supervisor import Supervisor
from tools.display.running import only_run
from tools.measuring.blinking import write_clip
from tools.measuring.light_model import SIDE, write_model
from tools.measuring.report_page import machine_line, publish, report_option, written_by

TOOL = "benchmarks.service"
_SIZE, _FPS = (640, 360), 10
_WARM_S = 8.0
_GRAPH = """
version: 1
name: {name}
camera_defaults: {{url: cam.mp4, loop: true, realtime: true, start_at: "2026-01-01T00:00:00Z"}}
cameras: {{{cameras}}}
stages:
  capture: {{use: capture, cameras_per_process: 8}}
  prepare: {{use: preprocess, from: capture, with: {{size: [{side}, {side}]}}}}
  infer: {{use: infer, from: prepare, with: {{model: light.onnx}}}}
  people: {{use: decode_yolo_pose, from: infer}}
  tracks: {{use: track, from: people, with: {{confirm_s: 0}}}}
  actions: {{use: rules, from: tracks, with: {{rules: [{{id: seen, when: score > 0.3, hold: 0.2s}}]}}}}
  footage: {{use: sink_footage, from: actions, with: {{path: footage, before_s: 1, after_s: 1}}}}
  page: {{use: serve, from: events, with: {{address: "127.0.0.1:{port}"}}}}
"""


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase, measured: frames a second of all cameras, cores of the service, seconds of scrapes."""

    name: str
    frames_per_s: float
    cores: float
    scrapes_s: Sequence[float] = ()

    def row(self, ideal: float) -> str:
        """A line of the table."""
        known = sorted(self.scrapes_s)
        usual, worst = (f"{at(known) * 1e3:.0f} ms" if known else "" for at in (median, max))
        return f"| {self.name} | {self.frames_per_s / ideal:.3f} | {self.cores:.1%} | {usual} | {worst} |"


# ---- clients


def scraping(port: int, stop: Stop, scrapes: Any) -> None:
    """/metrics once a second."""
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
        while not stop.wait(1.0):
            begun = time.perf_counter()
            with suppress(httpx.HTTPError):
                client.get("/metrics").raise_for_status()
                scrapes.append(time.perf_counter() - begun)


def watching(port: int, cameras: int, stop: Stop) -> None:
    """A wall of stills."""
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
        tags: dict[int, str] = {}
        while not stop.wait(2.0):
            client.get("/api/cameras")
            for camera in range(cameras):
                answer = client.get(
                    f"/api/cameras/cam{camera}/picture.jpg", headers={"If-None-Match": tags.get(camera, "")}
                )
                tags[camera] = answer.headers.get("etag", "")


def looking(port: int, stop: Stop) -> None:
    """One camera, live, with the people in it. These cameras are films, and begin anew every few seconds."""
    threads = [threading.Thread(target=_look, args=(port, path, stop), daemon=True) for path in ("live.mp4", "people")]
    for thread in threads:
        thread.start()
    stop.wait()


def _look(port: int, path: str, stop: Stop) -> None:
    while not stop.wait(0.1):
        with (
            suppress(httpx.HTTPError),
            httpx.stream("GET", f"http://127.0.0.1:{port}/api/cameras/cam0/{path}", timeout=30) as answer,
        ):
            for _ in answer.iter_raw():
                pass


def attacking(port: int, connections: int, stop: Stop) -> None:
    """Keep this many connections open: each is opened again when it is closed."""
    ways: tuple[Callable[[socket.socket], None], ...] = (_silent, _slow, _nonsense, _reads_nothing)
    threads = [
        threading.Thread(target=_attack, args=(port, ways[number % len(ways)], stop), daemon=True)
        for number in range(connections)
    ]
    for thread in threads:
        thread.start()
    stop.wait()


def _attack(port: int, way: Callable[[socket.socket], None], stop: Stop) -> None:
    while not stop.is_set():
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 5) as client:
            client.settimeout(5)
            way(client)
        stop.wait(0.2)


def _silent(client: socket.socket) -> None:
    client.recv(1)


def _slow(client: socket.socket) -> None:
    client.sendall(b"GET / HTTP/1.1\r\n")
    while True:
        client.sendall(b"X-More: 1\r\n")
        time.sleep(0.5)


def _nonsense(client: socket.socket) -> None:
    client.sendall(os.urandom(1000))
    client.recv(1000)


def _reads_nothing(client: socket.socket) -> None:
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    request = b"GET /api/cameras/cam0/picture.jpg HTTP/1.1\r\nHost: localhost\r\n\r\n"
    client.sendall(20 * request)
    time.sleep(5)


def _client(work: Callable[..., None], *values: Any) -> None:
    if work is not scraping:  # in this process, its own wait for the processor would be measured too
        os.nice(19)
    work(*values)


# ---- the run


class Measured:
    """A run in a thread, and clients in processes."""

    def __init__(self, folder: Path, cameras: int, seconds: float, graph: str = _GRAPH) -> None:
        self.port, self.cameras, self._seconds = _free_port(), cameras, seconds
        write_clip(folder / "cam.mp4", size=_SIZE, fps=_FPS)
        write_model(folder / "light.onnx", bright=110.0)
        names = ", ".join(f"cam{number}: {{}}" for number in range(cameras))
        text = graph.format(name=folder.name, cameras=names, side=SIDE, port=self.port)
        (folder / "graph.yaml").write_text(text)
        self.plan = load_plan(folder / "graph.yaml")

    def phases(self, measured: Callable[[Measured], list[Phase]]) -> list[Phase]:
        """Those that `measured` measures, one after another in one run."""
        with only_run(self.plan) as folder:
            run = Supervisor(self.plan, folder)
            thread = threading.Thread(target=run.run)
            thread.start()
            try:
                self._wait_ready(thread)
                time.sleep(_WARM_S)
                return measured(self)
            finally:
                run.stop()
                thread.join()

    def phase(self, name: str, scrapes: Any = None, *clients: tuple[Any, ...]) -> Phase:
        """What the run does while these clients ask: each a function and its values."""
        context = multiprocessing.get_context("spawn")
        stop = context.Event()
        processes = []
        for work, *values in clients:
            arguments = (self.port, stop, *values) if work is scraping else (self.port, *values, stop)
            processes.append(context.Process(target=_client, args=(work, *arguments)))
        for process in processes:
            process.start()
        time.sleep(_WARM_S)
        begun_s, before = time.monotonic(), self._status()
        time.sleep(self._seconds)
        took_s, after = time.monotonic() - begun_s, self._status()
        stop.set()
        for process in processes:
            process.join(_WARM_S)
            process.kill()
            process.join()
        frames = after["totals"]["frames"] - before["totals"]["frames"]
        cpu_s = after["processes"]["page.0"]["cpu_s"] - before["processes"]["page.0"]["cpu_s"]
        return Phase(name, frames / took_s, cpu_s / took_s, tuple(scrapes) if scrapes is not None else ())

    def _status(self) -> dict[str, Any]:
        """The status, asked of the run itself, because asking the service would add to its load."""
        from pipeline.supervision.control import ask  # noqa: PLC0415

        return ask(self.plan.graph, "status", within_s=30)

    def _wait_ready(self, run: threading.Thread) -> None:
        while run.is_alive():
            with suppress(httpx.TransportError):
                if httpx.get(f"http://127.0.0.1:{self.port}/readyz", timeout=30).is_success:
                    return
            time.sleep(0.5)
        raise click.ClickException("the run has ended at its start")


def _every_phase(run: Measured) -> list[Phase]:
    with multiprocessing.Manager() as manager:
        return [
            run.phase("nobody asks"),
            run.phase("scraped once a second", scrapes := manager.list(), (scraping, scrapes)),
            run.phase("a wall of stills is open", None, (watching, run.cameras)),
            run.phase("somebody watches one camera live", None, (looking,)),
            run.phase("200 hostile connections", more := manager.list(), (attacking, 200), (scraping, more)),
            run.phase("nobody asks any more"),
        ]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@click.command()
@report_option(TOOL)
@click.option("--cameras", default=16, show_default=True, type=click.IntRange(1), help="So many.")
@click.option("--seconds", default=20.0, show_default=True, type=click.FloatRange(2), help="Of each phase.")
def main(target: Path | None, cameras: int, seconds: float) -> None:
    """Measure the service."""
    with tempfile.TemporaryDirectory(prefix="cgserve") as folder:
        phases = Measured(Path(folder), cameras, seconds).phases(_every_phase)
    ideal = phases[0].frames_per_s
    parts = [
        f"{written_by(TOOL, {'cameras': cameras, 'seconds': seconds})} {machine_line()}. The cameras are {_SIZE[0]} x "
        f"{_SIZE[1]} at {_FPS} frames a second; while nobody asked, {ideal:.0f} of {cameras * _FPS} came.",
        "",
        "| | frames a second, of those while nobody asks | the service, of a core | scrape, median | slowest |",
        "|---|---|---|---|---|",
        *(phase.row(ideal) for phase in phases),
        "",
    ]
    publish("\n".join(parts), target, TOOL)


if __name__ == "__main__":
    main()
