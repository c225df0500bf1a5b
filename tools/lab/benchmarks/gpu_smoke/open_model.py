"""A model opened on chosen providers, with noise to run it on and clocks for its runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from camgraph.tools.lab.benchmarks.gpu_smoke.task import Bench, Failed

if TYPE_CHECKING:
    from camgraph.stages.people.inference.engines.engine import ProviderName

CANDIDATES = {"most": 1000, "min_score": 0.3}
"""The candidates that `decode` asks for in a graph."""


class Runs:
    """The model, opened on these providers, and pictures of noise for it."""

    def __init__(self, bench: Bench, providers: tuple[Any, ...], of: ProviderName = "cuda", /, **options: str) -> None:
        from camgraph.stages.people.inference.selection.opening import Asked, open_model  # noqa: PLC0415
        from camgraph.tools.models.declaration import DeclaredModel  # noqa: PLC0415

        device = {"device_id": str(bench.task.device)}
        options_of: dict[ProviderName, dict[str, str]] = {"cuda": device, of: device | options}
        path = Path(bench.task.model)
        self.engine, self.passed_over = open_model(path, Asked(providers, options=options_of))
        self._contract = DeclaredModel(path).contract()
        self._inputs: dict[int, Mapping[str, Any]] = {}

    def run(self, rows: int = 1) -> Mapping[str, Any]:
        """The outputs for so many pictures."""
        return self.engine.run(self.inputs(rows))

    def inputs(self, rows: int) -> Mapping[str, Any]:
        """Made once for each number of pictures."""
        from camgraph.stages.vision.model_contract import Converter  # noqa: PLC0415

        if rows not in self._inputs:
            width, height = self._contract.width or 640, self._contract.height or 640
            noise = np.random.default_rng(0).integers(0, 256, (rows, height, width, 3), dtype=np.uint8)
            new_array = getattr(self.engine, "new_array", None)
            converter = Converter(self._contract, new_array) if new_array else Converter(self._contract)
            self._inputs[rows] = {self._contract.name: converter.batch([noise])}
        return self._inputs[rows]


def rate(bench: Bench, batch: int, threads: int, **options: str) -> dict[str, float]:
    """Frames a second, and milliseconds of processor time of a frame."""
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415

    from camgraph.stages.people.inference.selection.rates import runs_per_s  # noqa: PLC0415

    runs = Runs(bench, ("cuda",), **options)
    inputs = runs.inputs(batch)
    with ThreadPoolExecutor(threads) as pool:
        runs_per_s(runs.engine, inputs, threads, 0.2, pool)
        cpu_s, began = time.process_time(), time.monotonic()
        fps = batch * runs_per_s(runs.engine, inputs, threads, bench.task.seconds, pool)
        frames = fps * (time.monotonic() - began)
        return {"fps": fps, "cpu_ms": 1000 * (time.process_time() - cpu_s) / frames}


def seconds_a_run(bench: Bench, call: Callable[[], object]) -> float:
    """The mean of as many calls as the time allows, two at the least."""
    began, calls = time.monotonic(), 0
    while calls < 2 or time.monotonic() < began + bench.task.seconds / 2:
        call()
        calls += 1
    return (time.monotonic() - began) / calls


def timed(call: Callable[[], object]) -> float:
    began = time.monotonic()
    call()
    return time.monotonic() - began


def check_same(bench: Bench, one: Mapping[str, Any], other: Mapping[str, Any]) -> float:
    """How far outputs are apart at most. Raises Failed if that is more than rounding."""
    worst = max(float(np.abs(other[name] - array).max()) for name, array in one.items() if array.size)
    largest = max(float(np.abs(array).max()) for array in one.values() if array.size)
    bench.figures["differ_by"] = worst
    if worst > 1e-6 + 1e-2 * largest:
        raise Failed(f"outputs differ by {worst:g}")
    return worst
