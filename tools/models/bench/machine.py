"""The machine on which a model is measured, and its other load meanwhile; also on systems without /proc."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from camgraph.pipeline.system.cores import usable_cores
from camgraph.tools.models.bench.record import Machine

if TYPE_CHECKING:
    from camgraph.tools.measuring.processor_time import CpuTime

_PROCESSORS = Path("/proc/cpuinfo")


def processor() -> str:
    """Its name."""
    if _PROCESSORS.exists():
        names = [line for line in _PROCESSORS.read_text().splitlines() if line.startswith("model name")]
        if names:
            return names[0].partition(":")[2].strip()
    return platform.processor() or platform.machine()


class Watch:
    """Notes, whenever `sample` is called, how busy the machine is."""

    def __init__(self) -> None:
        self._loads: list[float] = []
        self._times: list[CpuTime] = []
        self.sample()

    def sample(self) -> None:
        """Now."""
        if hasattr(os, "getloadavg"):
            self._loads.append(os.getloadavg()[0])
        if Path("/proc/stat").exists():
            from camgraph.tools.measuring.processor_time import cpu_time  # noqa: PLC0415 - only Linux has what it reads

            self._times.append(cpu_time())

    def machine(self) -> Machine:
        """The machine, and how busy it was."""
        import onnxruntime as ort  # noqa: PLC0415 - slow to import

        return Machine(
            cores=usable_cores(),
            processor=processor(),
            system=platform.platform(terse=True),
            python=platform.python_version(),
            onnxruntime=ort.__version__,
            offered=tuple(ort.get_available_providers()),
            load=(round(self._loads[0], 2), round(max(self._loads), 2)) if self._loads else None,
            other_cores=_others(self._times),
        )


def _others(times: Sequence[CpuTime]) -> float | None:
    if len(times) < 2:
        return None
    from camgraph.tools.measuring.processor_time import other_cores  # noqa: PLC0415 - as above

    return round(other_cores(times[0], times[-1]), 2)


def lines(machine: Machine) -> list[str]:
    """The lines above a table."""
    found = [
        f"{machine.cores} cores of {machine.processor}, {machine.system}, Python {machine.python}, "
        f"ONNX Runtime {machine.onnxruntime} with {', '.join(machine.offered)}",
        f"load average {machine.load[0]:g} before, up to {machine.load[1]:g} meanwhile" if machine.load else "",
        disturbance(machine),
    ]
    return [line for line in found if line]


def disturbance(machine: Machine) -> str:
    """A warning if other processes took so much that the figures mean little; "" if they did not."""
    if machine.other_cores is None:
        return ""
    from camgraph.tools.measuring.load import MOST_OTHER  # noqa: PLC0415 - as above

    if machine.other_cores <= MOST_OTHER * machine.cores:
        return ""
    return (
        f"warning: other processes took {machine.other_cores:.2f} of {machine.cores} cores meanwhile: "
        "trust the ratios within this run at most, and measure again on a quiet machine"
    )
