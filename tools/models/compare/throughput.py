"""How many runs a second models make with all cores: in turns, so that all meet the same machine."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from statistics import median

from pipeline.system.cores import usable_cores
from stages.messages import Tensor
from tools.models.chain import Chain

_ROUNDS = 5
_ROUND_S = 0.6


def runs_a_second(chains: Sequence[Chain], prepared: Sequence[Tensor]) -> list[float]:
    """The median over rounds, for each of the opened chains, with a picture of its own in ``prepared``."""
    threads = usable_cores()
    found: list[list[float]] = [[] for _ in chains]
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(_ROUNDS):
            for rates, chain, picture in zip(found, chains, prepared, strict=True):
                rates.append(_round(pool, threads, chain, picture))
    return [median(rates) for rates in found]


def _round(pool: ThreadPoolExecutor, threads: int, chain: Chain, picture: Tensor) -> float:
    began = time.perf_counter()
    until = began + _ROUND_S

    def run() -> int:
        runs = 0
        while time.perf_counter() < until:
            chain.inferred(picture)
            runs += 1
        return runs

    runs = sum(future.result() for future in [pool.submit(run) for _ in range(threads)])
    return runs / (time.perf_counter() - began)
