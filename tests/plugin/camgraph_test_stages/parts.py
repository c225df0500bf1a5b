"""The shared parts of a process, and the settings that it starts with, for tests of one of its parts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import structlog

from camgraph.pipeline.boot import Boot
from camgraph.pipeline.execution.collector import Collector
from camgraph.pipeline.execution.context import Pulse, StageContext
from camgraph.pipeline.execution.emissions import Emissions
from camgraph.pipeline.execution.process_parts import ProcessParts
from camgraph.pipeline.execution.retry import Retry
from camgraph.pipeline.monitoring.metrics import Counters
from camgraph.pipeline.plan import ProcessPlan, StagePlan
from camgraph.pipeline.stage import Logger


def process_parts(
    counters: Counters | None = None,
    *,
    log: Logger | None = None,
    collector: Collector | None = None,
    pause: Callable[[float], bool] = lambda _: True,
    wake: Callable[[], None] = lambda: None,
    incarnation: int = 1,
) -> ProcessParts:
    """The parts of a process that gives up a blocked stage at once, unless `pause` lets it wait."""
    log, collector = log or structlog.get_logger(), collector or Collector()
    return ProcessParts(
        incarnation=incarnation,
        log=log,
        counters=counters or Counters(),
        collector=collector,
        retry=Retry(pause, collector, log),
        emissions=Emissions(lambda stage, event: None),
        wake=wake,
    )


def boot_of(plan: ProcessPlan, folder: Path) -> Boot:
    """The settings of a process whose files are in `folder`, dead letters included."""
    name, at = plan.name, str(folder)
    return Boot(
        plan, "g", "g", 1, at, "", f"camgraph-{name}", at, {camera: {} for camera in plan.cameras}, outbox_folder=at
    )


def stage_context(
    stage: str, camera: str, folder: Path, parts: ProcessParts | None = None, *, pulse: Pulse | None = None
) -> StageContext:
    """The context of a stage in a process of its own, which has one camera."""
    plan = StagePlan(stage, stage, {})
    boot = boot_of(ProcessPlan(f"{stage}.0", (plan,), (camera,), 9, (), {}), folder)
    return StageContext(plan, boot, parts or process_parts(), pulse=pulse)
