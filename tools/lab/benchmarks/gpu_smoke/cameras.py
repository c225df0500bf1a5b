"""Steps that run the graph on live cameras of the RTSP simulator."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

from camgraph.tools.lab.benchmarks.gpu_smoke.graph_run import plan_for
from camgraph.tools.lab.benchmarks.gpu_smoke.task import Bench, Failed

_IN_A_PROCESS = 16
"""Cameras that share a process, and with it a context of CUDA, where that is tried."""


def cameras_cpu(bench: Bench) -> str:
    """Live cameras, decoded on the CPU."""
    return _cameras(bench, "cpu")


def cameras_cuda(bench: Bench) -> str:
    """The same cameras, decoded on the GPU."""
    return _cameras(bench, "cuda")


def cameras_shared(bench: Bench) -> str:
    """The same, many in a process: they share its context of CUDA."""
    return _cameras(bench, "cuda", together=_IN_A_PROCESS)


def _cameras(bench: Bench, decode: str, together: int = 1) -> str:
    """Cameras of the simulator, 720p at 10 frames a second; what came through in the last of two looks."""
    from camgraph.pipeline.testing import run_graph  # noqa: PLC0415
    from camgraph.tools.lab.camera_run import CameraSet  # noqa: PLC0415

    rows = []
    for count in bench.task.cameras:
        films = CameraSet(count, 10.0, (1280, 720), bench.task.clip)
        watch = _Watch(bench.task.seconds)
        with films.simulator() as simulator:
            plan = plan_for(bench, films.as_yaml(simulator, f", decode: {decode}"), together=together)
            outcome, status = run_graph(plan, watch, limit_s=120)
        if outcome.status or len(watch.looks) < 2:
            raise Failed("; ".join(outcome.problems) or "the run ended too early")
        first, last = watch.looks
        fps = (last[1] - first[1]) / (last[0] - first[0])
        cores = {name: (cpu - first[2].get(name, 0.0)) / (last[0] - first[0]) for name, cpu in last[2].items()}
        shared: defaultdict[str, float] = defaultdict(float)
        for name, used in cores.items():
            shared[name.partition(".")[0]] += used
        decoders = Counter(camera["facts"].get("decoder", "?") for camera in status["cameras"].values())
        bench.figures[str(count)] = {"fps": fps, "of": 10.0 * count, "cores": shared, "decoders": decoders}
        rows.append(f"{count} cameras: {fps:.0f} of {10 * count} frames/s, cores {_rounded(shared)}, {dict(decoders)}")
        if decode == "cuda" and set(decoders) != {"cuda"}:
            raise Failed("; ".join(rows))
    return "; ".join(rows)


def _rounded(values: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 2) for name, value in values.items()}


class _Watch:
    """Called by the supervisor: looks when all cameras have been there for a while, looks again, and stops the run.

    A look is (seconds, frames inferred, process -> processor time).
    """

    def __init__(self, seconds: float) -> None:
        self.looks: list[tuple[float, int, dict[str, float]]] = []
        self._seconds = seconds
        self._due = 0.0

    def __call__(self, supervisor: Any) -> None:
        now = time.monotonic()
        if len(self.looks) == 2 or now < self._due:
            return
        status = supervisor.status()
        if not all(camera.frames for camera in status.cameras.values()):
            return
        if not self._due:
            self._due = now + self._seconds
            return
        cpu = {name: process.cpu_s for name, process in status.processes.items()}
        self.looks.append((now, status.stages["infer"].items, cpu))
        self._due = now + self._seconds
        if len(self.looks) == 2:
            supervisor.stop()
