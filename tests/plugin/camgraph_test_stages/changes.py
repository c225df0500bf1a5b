"""A graph whose cameras and stages change while it runs, and somebody who changes them from outside."""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.supervision.control_client import ask
from camgraph.pipeline.supervision.supervisor import Supervisor
from camgraph.pipeline.testing import hit, run_graph
from camgraph_test_stages.waiting import until

GRAPH = """
version: 1
name: {name}
processes: {processes}
cameras:
{cameras}
stages:
  src: {{use: count_source{dealt}}}
  left: {{use: double, from: src, workers: 2}}
  thin: {{use: thin, from: left, with: {{every: {every}}}}}
  sum: {{use: running_sum, from: thin}}
  both: {{use: pair, from: {{left: src, right: thin}}}}
  emit: {{use: emit, from: sum, with: {{every: 2}}}}
  numbers: {{use: collect, from: both, batch: {{max: 8}}, with: {{path: numbers}}}}
  timed: {{use: collect_events, from: emit, batch: {{max: 8}}, with: {{path: timed, order: time}}}}
"""
ENDLESS = {"frames": 1_000_000, "pace_ms": 5, "bytes": 30000}
LIMIT_S = 60.0


def write(
    folder: Path,
    cameras: dict[str, dict[str, Any]],
    *,
    processes: str = "separate",
    each: int = 0,
    every: int = 3,
    name: str = "m",
) -> Path:
    lines = "\n".join(
        f"  {name}: {{{', '.join(f'{k}: {v}' for k, v in own.items())}}}" for name, own in cameras.items()
    )
    dealt = f", cameras_per_process: {each}" if each else ""
    path = folder / "graph.yaml"
    text = GRAPH.format(name=f"{name}{os.getpid()}", processes=processes, cameras=lines, dealt=dealt, every=every)
    path.write_text(text)
    return path


class Talk:
    """What somebody does to a run from outside, in a thread of his own; the run is stopped at its end."""

    def __init__(self, talk: Callable[[Talk], None]) -> None:
        self._talk = talk
        self._thread: threading.Thread | None = None
        self._killed: dict[str, int] = {}
        self.error: BaseException | None = None
        self.supervisor: Supervisor
        self.name = ""

    def __call__(self, supervisor: Supervisor) -> None:
        if self._thread is None and all(process.state == "running" for process in supervisor.processes):
            self.supervisor, self.name = supervisor, supervisor.folder.name
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()

    def _run(self) -> None:
        try:
            self._talk(self)
        except BaseException as error:  # noqa: BLE001 - the test raises it
            self.error = error
        finally:
            ask(self.name, "stop")

    def ask(self, op: str, **values: Any) -> dict[str, Any]:
        return ask(self.name, op, **values)

    def until(self, condition: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        """What `cameras` answers once the condition is true of it."""
        return self._until("cameras", condition)

    def until_status(self, condition: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        """What `status` answers once the condition is true of it."""
        return self._until("status", condition)

    def _until(self, op: str, condition: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        known: dict[str, Any] = {}

        def is_so() -> bool:
            nonlocal known
            known = self.ask(op)
            return bool(condition(known))

        until(is_so, LIMIT_S, lambda: known, every_s=0.05)
        return known

    def moves(self, *cameras: str, by: int = 10) -> None:
        """Wait until all changes have come to their end, and these bring new frames."""
        self.settled()
        self.moves_meanwhile(*cameras, by=by)

    def moves_meanwhile(self, *cameras: str, by: int = 10) -> None:
        """Wait until these bring new frames, whatever changes."""
        before = self.ask("cameras")["cameras"]
        self.until(
            lambda known: all(
                known["cameras"].get(c, {}).get("frames", 0) > before.get(c, {}).get("frames", 0) + by for c in cameras
            )
        )

    def kill(self, process: str) -> None:
        """Once it is there, and it is another than the one that was killed before."""

        def back() -> int:
            pid = self.pids().get(process, 0)
            return 0 if pid == self._killed.get(process) else pid

        self._killed[process] = until(back, LIMIT_S, lambda: f"{process} does not come back", every_s=0.05)
        hit(self._killed[process])

    def settled(self) -> dict[str, Any]:
        return self.until(lambda known: not known["busy"])

    def pids(self) -> dict[str, int]:
        return {name: process["pid"] for name, process in self.ask("status")["processes"].items()}


def run_with(path: Path, talk: Callable[[Talk], None]) -> Talk:
    """Run the graph while somebody talks to it; it must end well."""
    talking = Talk(talk)
    outcome, _ = run_graph(load_plan(path), talking)
    if talking.error:
        raise talking.error
    assert (outcome.status, outcome.problems) == (0, [])
    return talking


def lives(folder: Path) -> dict[str, list[list[int]]]:
    """Camera -> the frames that were written, in order, of each of its lives: in each, every third one from 0 on."""
    found: dict[str, list[list[int]]] = defaultdict(list)
    for line in (folder / "numbers").read_text().splitlines():
        camera, seq = line.split()[0], int(line.split()[2])
        if not found[camera] or seq == 0:
            found[camera].append([])
        if not found[camera][-1] or seq > found[camera][-1][-1]:  # what is written twice is not looked at
            found[camera][-1].append(seq)
    return found


def whole(life: list[int], every: int = 3) -> bool:
    return life == list(range(0, len(life) * every, every))
