"""The settings that a process gets from the supervisor before it starts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from camgraph.pipeline.messages import Message, Stamp
from camgraph.pipeline.plan import EdgePlan, ProcessPlan, from_wire
from camgraph.pipeline.registry import find_stage
from camgraph.pipeline.stage import CameraState, Stage
from camgraph.pipeline.system.file_access import ReadableBy


@dataclass(frozen=True, slots=True)
class Boot:
    """A process of the plan and its place in this run. Holds passwords: never logged."""

    plan: ProcessPlan = field(repr=False)
    graph: str
    run: str
    incarnation: int
    run_folder: str
    endpoint: str
    shm_prefix: str
    base_folder: str
    camera_settings: Mapping[str, Mapping[str, Any]] = field(repr=False)
    frames_done: Mapping[str, Any] = field(default_factory=dict)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Values in these settings to hide wherever they occur."""
    confidential: bool = False
    """Whether there are credentials in these settings: then the memory of the process is hidden, too."""
    gave_up: str = ""
    """Not empty: the source kept dying, and only reports that its cameras have ended, and this reason."""

    cameras_now: Mapping[str, CameraState] = field(default_factory=dict)
    """See `pipeline.stage.Context`."""
    switches: Mapping[str, bool] = field(default_factory=dict)
    """The switches that somebody has set since the run began."""
    resets: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """See `pipeline.stage.Context`."""
    outbox_folder: str = ""
    """The folder of the run's outbox, "" if it has none."""
    hang_s: float = 10.0
    """See `pipeline.plan.RunPlan`."""
    tracing: Mapping[str, Any] | None = field(default=None, repr=False)
    """See `pipeline.plan.RunPlan`."""
    readable_by: ReadableBy = "group"

    @property
    def gives_way(self) -> bool:
        """Whether all its stages let others go first."""
        return all(getattr(find_stage(stage.use), "gives_way", False) for stage in self.plan.stages)

    def resume_of(self, camera: str) -> Stamp | None:
        """The frame up to which an earlier incarnation knew all of a camera to be done."""
        stamp = self.frames_done.get(camera)
        return Stamp.from_wire(stamp) if stamp else None

    def to_wire(self) -> dict[str, Any]:
        """Plain values for msgpack."""
        return asdict(self)

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> Boot:
        """The inverse of `to_wire`."""
        return cls(**{**data, "plan": from_wire(data["plan"])})

    def accepted(self, edge: EdgePlan) -> list[type[Message]]:
        """The message types that the reader of an incoming edge takes on its port."""
        use = next(stage.use for stage in self.plan.stages if stage.name == edge.reader)
        stage_class = find_stage(use)
        assert issubclass(stage_class, Stage)
        inputs = stage_class.inputs
        return [inputs] if isinstance(inputs, type) else [inputs[edge.port]]


def shm_prefix(run: str, token: str, process: str, incarnation: int) -> str:
    """The beginning of the names of all segments of one process. `token`: random, and so of this run alone."""
    return f"camgraph-{os.getuid()}-{run}-{token}-{process}.{incarnation}"
