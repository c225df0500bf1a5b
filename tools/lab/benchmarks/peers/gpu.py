"""How busy the GPUs are while a contestant runs: nvidia-smi is asked twice a second, by a thread.

Unverified on a GPU: the output of nvidia-smi is parsed as its manual and its users show it.
"""

from __future__ import annotations

import statistics
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from types import TracebackType
from typing import NamedTuple, Self

from camgraph.tools.lab.benchmarks.peers.environments import NotToBeHad
from camgraph.tools.measuring.nvidia_smi import BUSY, busy_of

_EVERY_S = 0.5
_ANSWER_S = 10.0
COMMAND = ("nvidia-smi", *BUSY)


class Look(NamedTuple):
    """At `at_s` (monotonic seconds): the share of the last moment in which this GPU was at work, 0 to 1."""

    at_s: float
    gpu: int
    busy: float


def busy_between(looks: Sequence[Look], begin_s: float, end_s: float) -> float | None:
    """The share of the time between two moments in which the GPU was at work: of the busiest one.

    None if there was no look in between.
    """
    of_each: dict[int, list[float]] = defaultdict(list)
    for look in looks:
        if begin_s < look.at_s <= end_s:
            of_each[look.gpu].append(look.busy)
    return max((statistics.fmean(shares) for shares in of_each.values()), default=None)


class GpuMeter:
    """Looks from `with` on until its end; `looks` has what was seen. Raises NotToBeHad without nvidia-smi."""

    def __init__(self, command: Sequence[str] = COMMAND) -> None:
        self.looks: list[Look] = []
        self._command = command
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look_again, name="gpu-meter")

    def __enter__(self) -> Self:
        try:
            self._look()
        except (OSError, subprocess.SubprocessError) as error:
            raise NotToBeHad(f"how busy the GPU is cannot be seen without nvidia-smi: {error}") from None
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _look_again(self) -> None:
        while not self._over.wait(_EVERY_S):
            try:
                self._look()
            except (OSError, subprocess.SubprocessError):  # no look at this moment
                continue

    def _look(self) -> None:
        done = subprocess.run(  # noqa: S603 - as found on PATH
            self._command, capture_output=True, text=True, timeout=_ANSWER_S, check=True
        )
        now_s = time.monotonic()
        self.looks += [Look(now_s, *seen) for line in done.stdout.splitlines() if (seen := busy_of(line))]
