"""How much of a GPU's memory the limits of a stage allow, all of them together. Pure.

gpu_mem_limit x sessions (one for each size of batches) x workers on this GPU     against its memory
"""

from __future__ import annotations

from typing import NamedTuple


class MemoryLimits(NamedTuple):
    """`limit_bytes` for each of the `sessions` of one process on GPU `device`, which has `device_bytes`."""

    limit_bytes: int
    sessions: int
    device: int
    device_bytes: int

    def together(self, workers: int) -> int:
        """Bytes for the sessions of this many processes."""
        return self.limit_bytes * self.sessions * workers

    def why_too_much(self, workers: int) -> str:
        """By how much the limits exceed the GPU's memory, in words; "" if they do not.

        Within the limits the memory may be used up all the same: inputs, outputs, the plans of cuDNN and a context of
        some hundred MB for each process come on top.
        """
        if self.together(workers) <= self.device_bytes:
            return ""
        processes = f" of each of {workers} workers" if workers > 1 else ""
        return (
            f"{self.limit_bytes / 1e6:,.0f} MB for each of {self.sessions} sizes of batches{processes} are "
            f"{self.together(workers) / 1e6:,.0f} MB, and GPU {self.device} has {self.device_bytes / 1e6:,.0f}; set a "
            "smaller `gpu_mem_limit`, or fewer `batch_sizes` or `workers`"
        )
