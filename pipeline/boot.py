"""What a process gets from the supervisor before it starts, and how its stages are built from it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pipeline.context import Allocate, Collector, StageContext
from pipeline.errors import UserError
from pipeline.messages import Message, Stamp
from pipeline.metrics import Counters
from pipeline.plan import EdgePlan, StagePlan, UnitPlan, from_wire
from pipeline.registry import find_stage
from pipeline.stage import Logger, Source, Stage
from pipeline.unit import StageRunner, Unit


@dataclass(frozen=True, slots=True)
class Boot:
    """A unit of the plan and its place in this run. Holds passwords: never logged."""

    unit: UnitPlan = field(repr=False)
    graph: str
    run: str
    incarnation: int
    run_folder: str
    endpoint: str
    shm_prefix: str
    base_folder: str
    camera_settings: Mapping[str, Mapping[str, Any]] = field(repr=False)
    frames_done: Mapping[str, Any] = field(default_factory=dict)
    gave_up: str = ""
    """Not empty: a source that kept dying only tells that its cameras have ended, and why."""

    def resume_of(self, camera: str) -> Stamp | None:
        """The frame up to which an earlier incarnation knew all of a camera to be done."""
        stamp = self.frames_done.get(camera)
        return Stamp._make([*stamp[:-1], tuple(stamp[-1])]) if stamp else None

    def to_wire(self) -> dict[str, Any]:
        """Plain values for msgpack."""
        return asdict(self)

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> Boot:
        """The inverse of `to_wire`."""
        return cls(**{**data, "unit": from_wire(data["unit"])})

    def accepted(self, edge: EdgePlan) -> list[type[Message]]:
        """The message types that the reader of an incoming edge takes on its port."""
        use = next(stage.use for stage in self.unit.stages if stage.name == edge.reader)
        stage_class = find_stage(use)
        assert issubclass(stage_class, Stage)
        inputs = stage_class.inputs
        return [inputs] if isinstance(inputs, type) else [inputs[edge.port]]


def build_unit(
    boot: Boot, counters: Counters, log: Logger, collector: Collector, allocate: Allocate | None
) -> tuple[Unit, list[Source[Any]]]:
    """The stages of a process, not opened yet, and its sources, one for each camera."""
    runners: dict[str, StageRunner] = {}
    sources: list[Source[Any]] = []
    leaving = {edge.sender for edge in boot.unit.outgoing}
    for plan in boot.unit.stages:
        context = StageContext(
            stage=plan.name,
            graph=boot.graph,
            cameras=boot.unit.cameras,
            incarnation=boot.incarnation,
            state_folder=_state_folder(boot, plan.name),
            base_folder=Path(boot.base_folder),
            log=log,
            counters=counters,
            collector=collector,
            allocate=allocate if plan.name in leaving else None,
        )
        stage_class = find_stage(plan.use)
        settings = _settings(plan, stage_class.settings_type)
        if issubclass(stage_class, Source):
            sources += [_source(stage_class, settings, camera, boot, context) for camera in boot.unit.cameras]
        else:
            runners[plan.name] = StageRunner(plan, stage_class(settings, context), counters, log)
    return Unit(boot.unit, runners, log), sources


def _settings(plan: StagePlan, settings_type: type[Any]) -> Any:
    try:
        return settings_type.model_validate(dict(plan.settings))
    except ValueError as error:
        raise UserError(f"stage {plan.name}: {error}") from None


def _source(
    stage_class: type[Source[Any]], settings: Any, camera: str, boot: Boot, context: StageContext
) -> Source[Any]:
    camera_settings = stage_class.camera_type.model_validate(dict(boot.camera_settings[camera]))
    return stage_class(settings, camera, camera_settings, context)


def _state_folder(boot: Boot, stage: str) -> Path:
    folder = Path(boot.run_folder) / "state" / stage
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def shm_prefix(run: str, unit: str, incarnation: int) -> str:
    """The beginning of the names of all segments of one process. No two runs share it: it holds the supervisor's id."""
    return f"camgraph-{os.getuid()}-{run}-{os.getpid()}-{unit}.{incarnation}"
