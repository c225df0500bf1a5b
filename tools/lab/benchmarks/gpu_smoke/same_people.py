"""Steps that compare the people found on the GPU with those found on the CPU."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from camgraph.tools.lab.benchmarks.gpu_smoke.open_model import CANDIDATES, rate
from camgraph.tools.lab.benchmarks.gpu_smoke.task import Bench, Failed

_AT_LEAST_SAME = 0.95
"""The least share of people that both find, of those of the CPU and of those of the GPU: TF32 moves scores a little."""


def people(bench: Bench) -> str:
    """The same people on the GPU as on the CPU."""
    return _same_people(bench, bench.task.model)


def prepared(bench: Bench) -> str:
    """The same people where the preparation of pixels is in the model."""
    file = bench.folder / "prepared.onnx"
    bench.command("model", "prepare", bench.task.model, str(file))
    if not file.exists():
        return "this model cannot be prepared: not tried"
    return _same_people(bench, str(file))


def fp16(bench: Bench) -> str:
    """The same people in half precision as in float on the CPU, and more of them a second."""
    file = bench.folder / "fp16.onnx"
    bench.command("model", "fp16", bench.task.model, str(file))
    if not file.exists():
        return "this model cannot be halved: not tried"
    halved = replace(bench, task=replace(bench.task, model=str(file)))
    bench.figures |= {"float": rate(bench, 8, 2), "half": rate(halved, 8, 2)}
    faster = bench.figures["half"]["fps"] / bench.figures["float"]["fps"]
    return f"{_same_people(bench, str(file), bench.task.model)}; batches of 8: {faster:.2f} of the rate in float"


def _same_people(bench: Bench, model: str, reference: str = "") -> str:
    """``reference``: the model for the CPU, if it is another one."""
    from camgraph.tools.models.chain import Chain  # noqa: PLC0415
    from camgraph.tools.models.compare.agreement import Agreement  # noqa: PLC0415
    from camgraph.tools.models.frames import frames_of  # noqa: PLC0415

    found = Agreement()
    options = {"cuda": {"device_id": bench.task.device}}
    on_gpu: dict[str, Any] = {"providers": ["cuda"], "options": options, "candidates": CANDIDATES}
    with Chain(Path(reference or model)) as cpu, Chain(Path(model), **on_gpu) as gpu:
        for frame in frames_of([bench.task.clip], bench.task.frames):
            tensor = cpu.prepared(frame)
            found.add(cpu.people(cpu.inferred(tensor)), gpu.people(gpu.inferred(tensor)))
    apart = sorted(found.apart_px)
    bench.figures |= {
        "cpu": found.first, "gpu": found.other, "both": found.both,
        "apart_px_median": apart[len(apart) // 2] if apart else None, "apart_px_most": apart[-1] if apart else None,
    }  # fmt: skip
    message = f"{found.first} on the CPU, {found.other} on the GPU, {found.both} in both"
    if not found.first or found.both < _AT_LEAST_SAME * max(found.first, found.other):
        raise Failed(message)
    return f"{message}; joints at most {apart[-1]:.2f} px apart" if apart else message
