"""A GPU that is lost in the middle of a run: its process ends and comes back, and nobody else is harmed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from camgraph_test_stages.waiting import until

GRAPH = """
version: 1
name: lost
cameras:
  a: {url: noise.mp4}
  b: {url: noise.mp4}
stages:
  capture: {use: capture}
  prepare: {use: preprocess, from: capture}
  infer:
    use: infer
    from: prepare
    workers: 2
    batch: {max: 2}
    with: {model: pose.onnx, providers: [cuda], devices: [0, 1]}
  people: {use: decode, from: infer}
  tracks: {use: track, from: people}
  log: {use: sink_null, from: tracks}
"""


class Run:
    """`camgraph run` of the graph, on two GPUs that take their time."""

    def __init__(self, cuda: Any, text: str = GRAPH) -> None:
        (cuda.folder / "lost.yaml").write_text(text)
        self._out = (cuda.folder / "out").open("w+")
        command = [*("-m", "camgraph.tools.cli"), "run", "lost.yaml", "--json-logs"]
        self._cuda = cuda
        self.process = cuda.start(*command, output=self._out, gpus=2, kernel_ms=5)

    @property
    def logs(self) -> list[dict[str, Any]]:
        """What was logged so far."""
        lines = (self._cuda.folder / "out").read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]

    def wait_for(self, seen: Callable[[], object]) -> None:
        """Until something is seen; fails where the run ends, or takes too long, before."""
        out = self._cuda.folder / "out"

        def is_so() -> object:
            assert self.process.poll() is None, out.read_text()
            return seen()

        until(is_so, 120, out.read_text, every_s=0.02)

    def end(self) -> int:
        """Its exit status."""
        try:
            return int(self.process.wait(timeout=150))
        finally:
            self.process.kill()
            self._out.close()


def kernels(cuda: Any, device: int) -> int:
    return sum(call["call"] == "cudaLaunchKernel" and call["device"] == device for call in cuda.calls())


@pytest.mark.usefixtures("pose", "clip")
def test_lost_gpu_restarts_process_without_loss(cuda: Any) -> None:
    run = Run(cuda)
    run.wait_for(lambda: kernels(cuda, 1) > 60)
    cuda.fail("*", 719, device=1)
    run.wait_for(lambda: any(log["event"] == "process_died" for log in run.logs))
    cuda.errors.unlink()
    assert run.end() == 0, run.logs
    died = [log for log in run.logs if log["event"] == "process_died"]
    assert {log["process"] for log in died} == {"infer.1"}
    assert died[0]["why"] == "GPU 1 is lost to this process: CUDA error 719, unspecified launch failure"
    assert not any(log["event"] == "item_dropped" for log in run.logs)
    processes = [{call["process"] for call in cuda.calls() if call["device"] == device} for device in (0, 1)]
    assert len(processes[1]) > 1
    own = {call["process"] for call in cuda.calls() if call["call"] == "cudaLaunchKernel" and call["device"] == 0}
    assert len(own) == 1, "that of the other GPU lived on"
