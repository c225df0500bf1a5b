"""All steps in their order, and the process in which one of them runs, with the task on stdin.

    python -m camgraph.tools.lab.benchmarks.gpu_smoke.steps NAME FOLDER

A step returns what it found, or raises Failed; figures that it has until then are kept.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from camgraph.tools.lab.benchmarks.gpu_smoke.cameras import cameras_cpu, cameras_cuda, cameras_shared
from camgraph.tools.lab.benchmarks.gpu_smoke.graph_run import files, kill, workers
from camgraph.tools.lab.benchmarks.gpu_smoke.machine import doctor, doctor_after, libraries
from camgraph.tools.lab.benchmarks.gpu_smoke.memory import memory_limit, out_of_memory
from camgraph.tools.lab.benchmarks.gpu_smoke.placement import memcpy, placement, tensorrt
from camgraph.tools.lab.benchmarks.gpu_smoke.same_people import fp16, people, prepared
from camgraph.tools.lab.benchmarks.gpu_smoke.speed import alternating, binding, folding, graphs, peers, rates
from camgraph.tools.lab.benchmarks.gpu_smoke.task import Bench, Failed, Step, Task

STEPS: Mapping[str, Step] = {
    "libraries": Step("the driver and CUDA's libraries load", 60, libraries),
    "doctor": Step("the doctor finds a provider cuda that runs a model", 240, doctor),
    "placement": Step("strict [cuda] takes all nodes", 120, placement),
    "people": Step("the same people on cuda and cpu", 180, people),
    "rates": Step("frames a second by batch and threads", 240, rates),
    "folding": Step("less processor time a frame with pixels and selection in the graph", 180, folding),
    "alternating": Step("batches of two sizes in turn, as fast as by themselves", 120, alternating),
    "files": Step("four files through one model, no frame lost", 180, files),
    "kill": Step("a killed process of the model comes back, no frame lost", 180, kill),
    "memory_limit": Step("out of memory is said, and smaller batches go on", 90, memory_limit),
    "out_of_memory": Step("out of memory in a run: smaller batches, no frame lost", 180, out_of_memory),
    "cameras_cpu": Step("live cameras, decoded on the CPU", 300, cameras_cpu),
    "cameras_shared": Step("live cameras, decoded on the GPU, 16 in a process", 300, cameras_shared),
    "fp16": Step("the same people in half precision, faster", 240, fp16),
    "binding": Step("pinned memory: the same outputs as a plain run, no slower", 120, binding),
    "graphs": Step("CUDA graphs: the same outputs, no slower", 120, graphs),
    "workers": Step("four processes on one GPU, no frame lost", 300, workers),
    "memcpy": Step("no copies in the middle of the model", 120, memcpy),
    "prepared": Step("the same people with the preparation of pixels in the model", 240, prepared),
    "cameras_cuda": Step("live cameras, decoded on the GPU, a process each", 300, cameras_cuda),
    "tensorrt": Step("TensorRT builds its engines, and keeps them", 1800, tensorrt),
    "peers": Step("camgraph beside others, all on the GPU", 900, peers),
    "doctor_after": Step("as before, and nothing has stayed in the GPU's memory", 240, doctor_after),
}
"""The most important first: the time on a borrowed machine may end at any moment."""


def main() -> None:
    """Run one step; its result is in FOLDER/result.json."""
    name, folder = sys.argv[1], Path(sys.argv[2])
    bench = Bench(Task(**json.load(sys.stdin)), folder)
    os.environ |= {"XDG_RUNTIME_DIR": str(folder), "XDG_STATE_HOME": str(folder / "state")}
    try:
        result = {"state": "passed", "found": STEPS[name].run(bench)}
    except Failed as error:
        result = {"state": "failed", "found": str(error)}
    except Exception as error:
        result = {"state": "failed", "found": f"{type(error).__name__}: {error}"}
        raise
    finally:
        (folder / "result.json").write_text(json.dumps({**result, "figures": bench.figures}, default=float))


if __name__ == "__main__":
    main()
