"""The graph that the steps run, a run of it over files, and the steps in which such a run may lose no frame."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from camgraph.tools.lab.benchmarks.gpu_smoke.task import Bench, Failed

_FILES = 4

_GRAPH = """
version: 1
name: {name}
cameras:
{cameras}
stages:
  capture: {{use: capture, cameras_per_process: {together}}}
  prepare: {{use: preprocess, from: capture{size}}}
  infer:
    use: infer
    from: prepare
    group: model
    workers: {workers}
    batch: {{max: {most}}}
    threads: 2
    with: {{model: "{model}", providers: [cuda], options: {{cuda: {{device_id: {device}{limit}}}}}{sizes}}}
  people: {{use: decode, from: infer, group: model, workers: {workers}}}
  end: {{use: sink_null, from: people}}
"""


def plan_for(
    bench: Bench, cameras: str, *, workers: int = 1, together: int = 1, limit: int = 0, sizes: Sequence[int] = ()
) -> Any:
    """``together``: cameras of a process; ``limit``: bytes of the arena; ``sizes``: the `batch_sizes`."""
    from camgraph.pipeline.graph.loading import parse_graph  # noqa: PLC0415
    from camgraph.pipeline.graph.planning import plan_of  # noqa: PLC0415
    from camgraph.tools.models.declaration import DeclaredModel  # noqa: PLC0415

    contract = DeclaredModel(Path(bench.task.model)).contract()
    text = _GRAPH.format(
        name=f"smoke{bench.folder.name[-8:]}", cameras=cameras, model=bench.task.model, device=bench.task.device,
        size="" if contract.width else ", with: {size: [640, 640]}", workers=workers, together=together,
        most=max(8, *sizes) if sizes else 8, limit=f", gpu_mem_limit: {limit}" if limit else "",
        sizes=f", batch_sizes: [{', '.join(map(str, sizes))}]" if sizes else "",
    )  # fmt: skip
    return plan_of(parse_graph(text, "smoke.yaml", base_folder=bench.folder))


def run_files(bench: Bench, during: Callable[[Any], None] | None = None, **how: Any) -> Mapping[str, Any]:
    """``how``: as `plan_for` has it."""
    from camgraph.pipeline.testing import run_graph  # noqa: PLC0415

    cameras = "\n".join(f'  c{n}: {{url: "{bench.task.clip}", duration_s: 20}}' for n in range(_FILES))
    outcome, status = run_graph(plan_for(bench, cameras, **how), during, limit_s=150)
    frames = sum(camera["frames"] for camera in status["cameras"].values())
    drops = {name: camera["drops_by_reason"] for name, camera in status["cameras"].items() if camera["drops"]}
    bench.figures |= {
        "frames": frames, "drops": drops, "worked_s": status["worked_s"],
        "inferred": status["stages"]["infer"]["items"], "problems": outcome.problems, "memory_mb": status["memory_mb"],
        "cpu_s": {name: process["cpu_s"] for name, process in status["processes"].items()},
    }  # fmt: skip
    if outcome.problems or drops or not frames:
        raise Failed("; ".join(outcome.problems) or f"{frames} frames, lost: {drops}")
    return status


def files(bench: Bench) -> str:
    """Four files through one model on the GPU: no frame is lost."""
    status = run_files(bench)
    return f"{status['stages']['infer']['items']} frames, {status['worked_s']:.1f} s"


def kill(bench: Bench) -> str:
    """The process of the model is killed in the middle: it comes back, and no frame is lost."""
    from camgraph.tools.lab.file_runs import Killing  # noqa: PLC0415

    killing = Killing(["model.0"], after_frames=40)
    run_files(bench, killing)
    bench.figures["recovery_s"] = killing.recovery_s
    if not killing.recovery_s:
        raise Failed("the run was over before anything was killed: use a longer clip")
    return f"back after {killing.recovery_s['model.0']:.1f} s"


def workers(bench: Bench) -> str:
    """Four processes run the model on one GPU: no frame is lost. One with threads should be as fast."""
    one_s = bench.figures["one_process_s"] = run_files(bench)["worked_s"]
    four_s = bench.figures["four_processes_s"] = run_files(bench, workers=4)["worked_s"]
    return f"{bench.figures['inferred']} frames in {four_s:.1f} s by four processes, in {one_s:.1f} s by one"
