"""What the parts of one process share: who the process is, where it reports, and how it waits.

`pipeline.worker.worker` or `pipeline.local` makes the `ProcessParts`, once. A part takes them beside its own values and
reads the few that it needs when it is made. Parts that need one of them only, such as `Retry` and `StageChain`, take
that one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from camgraph.pipeline.execution.collector import Allocate, Collector
from camgraph.pipeline.execution.emissions import Emissions
from camgraph.pipeline.execution.retry import Retry
from camgraph.pipeline.monitoring.metrics import Counters
from camgraph.pipeline.stage import Logger


@dataclass(frozen=True, slots=True, eq=False)
class ProcessParts:
    """The shared parts of one process; none of them is exchanged while the process lives."""

    incarnation: int
    """Which life of the process this is, from 1."""
    log: Logger
    counters: Counters
    collector: Collector
    retry: Retry
    emissions: Emissions
    wake: Callable[[], None]
    """Has the loop of the process turn once more. May be called from any thread."""
    allocate: Allocate | None = None
    """Makes arrays in the shared memory of the process; None if no message leaves the process."""
    report_opening: Callable[[str, float], object] | None = None
    """Called with a slow step of opening, and the seconds that the step may take."""
    one_at_a_time: bool = False
    """Whether the stages are called one after the other in one thread, each with the cores of its threads."""
