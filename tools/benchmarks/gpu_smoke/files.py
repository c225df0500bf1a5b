"""Steps that run the graph over files, where no frame may be lost."""

from __future__ import annotations

from tools.benchmarks.gpu_smoke.graph_run import run_files
from tools.benchmarks.gpu_smoke.task import Bench, Failed


def files(bench: Bench) -> str:
    """Four files through one model on the GPU: no frame is lost."""
    status = run_files(bench)
    return f"{status['stages']['infer']['items']} frames, {status['worked_s']:.1f} s"


def kill(bench: Bench) -> str:
    """The process of the model is killed in the middle: it comes back, and no frame is lost."""
    from tools.measuring.file_runs import Killing  # noqa: PLC0415

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
