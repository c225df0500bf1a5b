"""The cost of the service, and the load that it bears.

    python -m camgraph.tools.lab.benchmarks.service --report docs/service.md

A graph of cameras that are played at their own pace (files in a loop, decoded and judged as live ones are, so that a
camera which is slowed down shows fewer frames a second) runs with the stage `serve`. In one run, one after another:

    nobody     nobody asks for anything
    scraped    /metrics once a second
    wall       the newest picture of each camera every two seconds, and the state every two
    watched    one camera live, with the people in it; then the same camera as pictures
    attacked   so many connections: some that ask nothing, some that never end their request, some that send nonsense,
               some that ask for pictures and read nothing, and some that open each of the four streams, half of
               which are never read; /metrics once a second beside them
    dear       the dearest requests that a viewer may send, as many as are answered: 100 a second of each of four

The service bounds what one address can have, which would hide the load. So attackers have addresses of their own,
127.0.0.2 and so on, and no bound is raised. Those who watch and attack are other processes, of the lowest priority:
what they cost themselves is not what the service costs.
"""

from __future__ import annotations

import http.client
import itertools
import multiprocessing
import os
import socket
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.synchronize import Event as Stop
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

import click
import httpx

from camgraph.pipeline.graph.loading import load_plan
from camgraph.pipeline.supervision.supervisor import Supervisor
from camgraph.tools.display.running import only_run
from camgraph.tools.lab.blinking import write_clip
from camgraph.tools.lab.broker_servers import free_port
from camgraph.tools.lab.figure import Figure, figure_command
from camgraph.tools.lab.light_model import SIDE, write_model
from camgraph.tools.measuring.processor_time import tree_cpu_s

T = TypeVar("T")
_SIZE, _FPS = (640, 360), 10
_WARM_S = 8.0
_PHASES = 8
_GRAPH = """
version: 1
name: {name}
camera_defaults: {{loop: true, realtime: true, start_at: "2026-01-01T00:00:00Z"}}
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


_ADDRESSES = 8
"""Of those who attack: a quarter of their connections would be the most of one."""
_DEAR = (
    "/metrics",
    "/api/status",
    "/api/events?limit=500",
    "/api/events?camera=nobody&limit=500",
    "/api/events?rule=nothing&limit=500",
    "/api/events?since=2020-01-01T00:00:00Z&until=2020-01-02T00:00:00Z",
    "/api/incidents?limit=200",
    "/api/cameras/cam0/shapes",
    "/api/cameras/cam0/picture.jpg",
)
_DEAR_CLIENTS, _DEAR_PER_S, _DEAR_THREADS = 4, 100, 5


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase, measured: frames a second of all cameras, cores of the service and of the whole run.

    `inferred_per_s`: frames that the model has seen; `ages`: how many frames were so old at the end of their way, by
    the upper bounds in seconds; `scrapes_s`: seconds of scrapes.
    """

    name: str
    frames_per_s: float
    cores: float
    run_cores: float
    inferred_per_s: float = 0.0
    ages: Mapping[float, int] | None = None
    scrapes_s: Sequence[float] = ()

    def row(self, nobody: Phase) -> str:
        """A line of the table."""
        known = sorted(self.scrapes_s)
        usual, worst = (f"{at(known) * 1e3:.0f} ms" if known else "" for at in (median, max))
        frames, more = self.frames_per_s / nobody.frames_per_s, self.run_cores - nobody.run_cores
        return f"| {self.name} | {frames:.3f} | {self.cores:.1%} | {more:+.1%} | {usual} | {worst} |"


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


def looking(port: int, kind: str, stop: Stop) -> None:
    """One camera, `live.mp4` or `mjpeg`, with the people in it. These films begin anew every few seconds."""
    threads = [threading.Thread(target=_look, args=(port, path, stop), daemon=True) for path in (kind, "people")]
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
    streams = ("/api/events/stream", *(f"/api/cameras/cam0/{name}" for name in ("people", "live.mp4", "mjpeg")))
    asked = [partial(_streams, path, reads=reads) for path in streams for reads in (True, False)]
    ways: tuple[Callable[[socket.socket], None], ...] = (_silent, _slow, _nonsense, _reads_nothing, *asked)
    places = ((f"127.0.0.{2 + number % _ADDRESSES}", 0) for number in itertools.count())
    threads = [
        threading.Thread(target=_attack, args=(port, place, ways[number % len(ways)], stop), daemon=True)
        for number, place in zip(range(connections), places, strict=False)
    ]
    for thread in threads:
        thread.start()
    stop.wait()


def _attack(port: int, source: tuple[str, int], way: Callable[[socket.socket], None], stop: Stop) -> None:
    while not stop.is_set():
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 5, source) as client:
            client.settimeout(5)
            way(client)
        stop.wait(0.2)


def _streams(path: str, client: socket.socket, *, reads: bool) -> None:
    client.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    if not reads:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        time.sleep(30)
    client.settimeout(60)
    while reads and client.recv(1 << 16):
        pass


def demanding(port: int, codes: Any, stop: Stop) -> None:
    """The dearest requests, at the highest rate that is answered. `codes`: what was answered, one after the other."""
    counts: Counter[int] = Counter()
    threads = [
        threading.Thread(target=_demand, args=(port, f"127.0.0.{2 + client}", counts, stop), daemon=True)
        for client in range(_DEAR_CLIENTS)
        for _ in range(_DEAR_THREADS)
    ]
    for thread in threads:
        thread.start()
    stop.wait()
    codes.extend(counts.items())


def _demand(port: int, source: str, counts: Counter[int], stop: Stop) -> None:
    every_s, next_s = _DEAR_THREADS / _DEAR_PER_S, time.monotonic()
    for path in itertools.cycle(_DEAR):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30, source_address=(source, 0))
        while not stop.is_set():
            try:
                connection.request("GET", path)
                answer = connection.getresponse()
                answer.read()
            except (OSError, http.client.HTTPException):
                break
            counts[answer.status] += 1
            next_s = max(next_s + every_s, time.monotonic() - 1.0)
            stop.wait(max(0.0, next_s - time.monotonic()))
            path = _DEAR[counts.total() % len(_DEAR)]  # noqa: PLW2901
        connection.close()
        if stop.wait(0.2):
            return


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

    def __init__(
        self,
        folder: Path,
        urls: Sequence[str],
        seconds: float,
        graph: str = _GRAPH,
        *,
        size: tuple[int, int] = _SIZE,
    ) -> None:
        """`urls`: of the cameras; `cam.mp4` is made, of pictures of this `size`."""
        self.port, self.cameras, self._seconds = free_port(), len(urls), seconds
        write_clip(folder / "cam.mp4", size=size, fps=_FPS)
        write_model(folder / "light.onnx", bright=110.0)
        names = ", ".join(f'cam{number}: {{url: "{url}"}}' for number, url in enumerate(urls))
        text = graph.format(name=folder.name, cameras=names, side=SIDE, port=self.port)
        (folder / "graph.yaml").write_text(text)
        self.plan = load_plan(folder / "graph.yaml")

    def phases(self, measured: Callable[[Measured], T]) -> T:
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
        begun_s, before, used = time.monotonic(), self._status(), self._used_s()
        time.sleep(self._seconds)
        took_s, after, used_then = time.monotonic() - begun_s, self._status(), self._used_s()
        stop.set()
        for process in processes:
            process.join(_WARM_S)
            process.kill()
            process.join()
        frames = after["totals"]["frames"] - before["totals"]["frames"]
        inferred = after["stages"]["infer"]["items"] - before["stages"]["infer"]["items"]
        page, whole = (then - now for then, now in zip(used_then, used, strict=True))
        return Phase(
            name,
            frames / took_s,
            page / took_s,
            whole / took_s,
            inferred / took_s,
            _ages(before["durations"], after["durations"]),
            tuple(scrapes) if scrapes is not None else (),
        )

    def _used_s(self) -> tuple[float, float]:
        """Processor time of the service, with its process of pictures, and of the whole run, in seconds."""
        pids = {name: one["pid"] for name, one in self._status()["processes"].items() if one["pid"]}
        used = {name: tree_cpu_s(pid) for name, pid in pids.items()}
        return used.get("page.0", 0.0), sum(used.values()) + time.process_time()

    def _status(self) -> dict[str, Any]:
        """The status, asked of the run itself, because asking the service would add to its load."""
        from camgraph.pipeline.supervision.control_client import ask  # noqa: PLC0415

        return ask(self.plan.graph, "status", within_s=30)

    def _wait_ready(self, run: threading.Thread) -> None:
        while run.is_alive():
            with suppress(httpx.TransportError):
                if httpx.get(f"http://127.0.0.1:{self.port}/readyz", timeout=30).is_success:
                    return
            time.sleep(0.5)
        raise click.ClickException("the run has ended at its start")


def _ages(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[float, int]:
    """Upper bound in seconds -> the frames of all cameras between two states of the run."""
    bounds = [*after["bounds_s"], float("inf")]
    ages = dict.fromkeys(bounds, 0)
    for camera, one in after["cameras"].items():
        known = before["cameras"].get(camera, {}).get("counts", [0] * len(bounds))
        for bound, then, now in zip(bounds, one["counts"], known, strict=True):
            ages[bound] += then - now
    return ages


def _every_phase(run: Measured) -> tuple[list[Phase], Counter[int]]:
    with multiprocessing.Manager() as manager:
        scrapes, attacked, pressed, codes = (manager.list() for _ in range(4))
        phases = [
            run.phase("nobody asks"),
            run.phase("scraped once a second", scrapes, (scraping, scrapes)),
            run.phase("a wall of stills is open", None, (watching, run.cameras)),
            run.phase("somebody watches one camera live", None, (looking, "live.mp4")),
            run.phase("somebody watches one camera as pictures", None, (looking, "mjpeg")),
            run.phase("200 hostile connections", attacked, (attacking, 200), (scraping, attacked)),
            run.phase("four ask for the dearest things", pressed, (demanding, codes), (scraping, pressed)),
            run.phase("nobody asks any more"),
        ]
        return phases, Counter(dict(codes))


@figure_command("benchmarks.service")
@click.option("--cameras", default=16, show_default=True, type=click.IntRange(1), help="So many.")
@click.option("--seconds", default=20.0, show_default=True, type=click.FloatRange(2), help="Of each phase.")
@click.option("--size", type=(int, int), default=_SIZE, show_default=True, help="Of the pictures.")
def main(figure: Figure, cameras: int, seconds: float, size: tuple[int, int]) -> None:
    """Measure the service."""
    figure.takes(_PHASES * (seconds + _WARM_S), f"{_PHASES} phases")
    with tempfile.TemporaryDirectory(prefix="cgserve") as folder:
        phases, codes = Measured(Path(folder), ["cam.mp4"] * cameras, seconds, size=size).phases(_every_phase)
    nobody, asked_s = phases[0], seconds + _WARM_S
    parts = [
        f"{figure.head()} The cameras are {size[0]} x {size[1]} at {_FPS} frames a "
        f"second; while nobody asked, {nobody.frames_per_s:.0f} of {cameras * _FPS} came, and the run took "
        f"{nobody.run_cores:.2f} cores. Of the dearest requests, {codes[200] / asked_s:.0f} a second were answered, "
        f"{(codes.total() - codes[200]) / asked_s:.0f} refused.",
        "",
        "| | frames a second, of those while nobody asks | the service, of a core | the whole run, of a core more | "
        "scrape, median | slowest |",
        "|---|---|---|---|---|---|",
        *(phase.row(nobody) for phase in phases),
        "",
    ]
    figure.publish("\n".join(parts))


if __name__ == "__main__":
    main()
