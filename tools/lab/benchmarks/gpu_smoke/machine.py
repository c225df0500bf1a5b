"""Steps that look at the machine: the driver, CUDA's libraries, the doctor, and the memory left at the end."""

from __future__ import annotations

import json
import subprocess

from camgraph.tools.lab.benchmarks.gpu_smoke.task import Bench, Failed

_LEFT_MB = 300
"""How much of the GPU's memory may be missing in the end: other programs come and go."""


def libraries(bench: Bench) -> str:
    """CUDA's libraries load, and the GPU tells its memory."""
    import onnxruntime as ort  # noqa: PLC0415

    from camgraph.stages.people.inference.engines.nvidia import cuda_runtime, why_no_cuda  # noqa: PLC0415

    bench.figures |= {"nvidia_smi": _nvidia_smi(), "onnxruntime": ort.__version__, "built_for": ort.cuda_version}
    if why := why_no_cuda():
        raise Failed(why)
    runtime = cuda_runtime(bench.task.device)
    memory = runtime.memory() if runtime else None
    if memory is None:
        raise Failed(f"GPU {bench.task.device} does not tell its memory")
    bench.figures["free_mb"], bench.figures["total_mb"] = (round(size / 1e6) for size in memory)
    return f"ONNX Runtime {ort.__version__} for CUDA {ort.cuda_version}; {memory[1] / 1e9:.1f} GB on the GPU"


def _nvidia_smi() -> str:
    command = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()  # noqa: S603
    except OSError as error:
        return f"not here: {error.strerror}"


def doctor(bench: Bench) -> str:
    """The doctor finds a provider `cuda` that runs a convolution."""
    found = {one["what"]: one for one in json.loads(bench.command("doctor", "--json"))}
    bench.figures["findings"] = [one for one in found.values() if one["state"] != "ok"]
    reported = found["provider cuda"]
    if reported["state"] != "ok" or "runs a model" not in reported["found"]:
        raise Failed(f"provider cuda: {reported['found']}")
    return f"cuda runs a model; decode: cuda: {found['decode: cuda']['found']}"


def doctor_after(bench: Bench) -> str:
    """The GPU still runs a model after the other steps, and they have left nothing in its memory."""
    reported = doctor(bench)
    before, now = bench.task.free_mb, _free_mb(bench)
    bench.figures |= {"free_mb_before": before, "free_mb": now}
    if before is None:
        return f"{reported}; {now} MB free: step `libraries` was not run before"
    if now < before - _LEFT_MB:
        raise Failed(f"{before:.0f} MB of the GPU were free, and now {now}: look with nvidia-smi for whose they are")
    return f"{reported}; {now} MB free, {before:.0f} before"


def _free_mb(bench: Bench) -> int:
    from camgraph.stages.people.inference.engines.nvidia import cuda_runtime, why_no_cuda  # noqa: PLC0415

    why = why_no_cuda()
    runtime = None if why else cuda_runtime(bench.task.device)
    memory = runtime.memory() if runtime else None
    if memory is None:
        raise Failed(why or f"GPU {bench.task.device} does not tell its memory")
    return round(memory[0] / 1e6)
