"""How many runs a second an engine does here, several at once."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from camgraph.pipeline.messages import Array
from camgraph.stages.people.inference.engines.engine import Engine, ProviderName

RIVALS: tuple[ProviderName, ...] = ("openvino",)
"""Providers on the CPU itself: worth taking only if they are faster than ONNX Runtime's own there."""
_LOOK_S = 0.4


def measured_rate(engine: Engine, inputs: Mapping[str, Array], at_once: int) -> float:
    """Runs a second, by the better of two short looks. Raises RunFailed."""
    with ThreadPoolExecutor(at_once) as pool:
        runs_per_s(engine, inputs, at_once, 0.0, pool)  # work that is put off until a thread's first run
        return max(runs_per_s(engine, inputs, at_once, _LOOK_S / 2, pool) for _ in range(2))


def runs_per_s(
    engine: Engine, inputs: Mapping[str, Array], at_once: int, seconds: float, pool: ThreadPoolExecutor
) -> float:
    """Of so many threads of ``pool`` that run it again and again, once each at the least. Raises RunFailed."""
    began = time.monotonic()

    def again(_: int) -> int:
        done = 0
        while not done or time.monotonic() < began + seconds:
            engine.run(inputs)
            done += 1
        return done

    done = sum(pool.map(again, range(at_once)))
    return done / (time.monotonic() - began)
