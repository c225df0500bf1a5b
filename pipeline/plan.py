"""Which process runs which stages, and who sends to whom: the completed graph as plain values.

`pipeline.graph` makes a `RunPlan` out of a graph file; the supervisor starts its processes; each worker gets its own
`ProcessPlan` through an inherited socket (`to_wire` / `from_wire`). A plan holds passwords: it is never logged or
written to disk.

    RunPlan
      processes: capture.front | capture.yard | prepare.0 | prepare.1 | infer.0 ...   one process each
      edges: capture>prepare, prepare>infer ...                                   stage to stage

A stage's copies (its processes) share the graph's cameras; a camera's frames always go through the same process.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from math import ceil
from typing import Any, Literal

from camgraph.pipeline.messages import Event
from camgraph.pipeline.system.file_access import ReadableBy

EVERY_CAMERA = "*"
"""The name under which the outbox hands all cameras' events to a sink: one partition, so that their order holds."""
BLOCKED_LIMIT_S = 30.0
"""A graph of files does not wait longer for a disk or a receiver."""
DROPPING_AT_WORK = 2
"""How many frames of one live camera a process works on at once."""

Policy = Literal["block", "drop_oldest", "drop_newest"]


@dataclass(frozen=True, slots=True)
class StagePlan:
    """One stage of a process. `settings` are plain values, validated by the stage's own Settings when it is built."""

    name: str
    use: str
    settings: Mapping[str, Any] = field(repr=False)
    batch_max: int = 1
    wait_ms: float = 0.0
    threads: int = 1
    workers: int = 1
    """How many processes have it."""
    large_messages: int = 1
    """The most messages with large arrays that it makes of one item."""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variables to set in its process, in addition to those that every process gets."""
    awaited: bool = True
    """Whether the run begins only once this stage is open (`Stage.awaited`)."""
    follows_cameras: bool = False
    """Whether the stage is told the states of the cameras (`Stage.follows_cameras`)."""


@dataclass(frozen=True, slots=True)
class EdgePlan:
    """One arrow of the graph, from stage to stage.

    `port` is "" if the reader has one unnamed input. `depth` is the number of messages of one camera that a reader may
    hold unread. `tombstones`: the reader must be told of every frame, even if no message was made of it. `inner`: both
    ends always run in the same process, and the edge is a direct call.
    """

    sender: str
    reader: str
    port: str
    type: str
    policy: Policy
    depth: int
    tombstones: bool = False
    inner: bool = False
    name: str = field(init=False)
    """`sender>reader`, followed by `:port` if it has one. Unique in a graph. Stored: it is read for each message."""

    def __post_init__(self) -> None:
        name = f"{self.sender}>{self.reader}" + (f":{self.port}" if self.port else "")
        object.__setattr__(self, "name", name)

    @property
    def credits(self) -> int:
        """How many messages of one camera may be on the way to one reader or in its hands.

        On edges that drop, a newer message must always be able to reach the mailbox and replace the unread one, even
        while the reader is busy with others. So there are credits for the messages at work, and one for a message on
        the way.
        """
        return self.depth if self.policy == "block" else self.depth + DROPPING_AT_WORK + 1

    @property
    def drop_counter(self) -> str:
        """The counter for drops on this edge. A frame that only a join misses is `skipped`: the frame itself went its
        way.
        """
        return "skipped.queue_full" if self.port else "dropped.queue_full"


@dataclass(frozen=True, slots=True)
class ProcessPlan:
    """One process: its stages in topological order, its cameras, and the edges that touch it.

    `window`: how many frames of one camera this process and those after it may hold.
    `routes`: edge name -> camera -> name of the reading process, for the edges that leave the process.
    `senders`: edge name -> names of the processes that may send on it, for the edges that come in.
    `priorities`: camera -> its weight if not all frames can be taken; 1 for cameras that are not named.
    `sources`: names of the stages (0 or 1, more if everything is one process) that are sources.
    `live`: its cameras are live ones, which never wait for their readers.
    `expects_more`, for the outbox: more cameras are about to come, so the run does not end with those that are there.
    `run_cameras`, for a process that has the partition of every camera: the cameras of the run.
    """

    name: str
    stages: tuple[StagePlan, ...]
    cameras: tuple[str, ...]
    window: int
    edges: tuple[EdgePlan, ...]
    routes: Mapping[str, Mapping[str, str]]
    sources: tuple[str, ...] = ()
    senders: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    priorities: Mapping[str, int] = field(default_factory=dict)
    live: bool = False
    expects_more: bool = False
    run_cameras: tuple[str, ...] = ()

    @property
    def seen_cameras(self) -> tuple[str, ...]:
        """The cameras whose messages come here, by name."""
        return self.run_cameras or self.cameras

    @property
    def worker(self) -> int:
        """Which of the processes of the same stages it is, from 0; 0 for the process of one camera."""
        number = self.name.rpartition(".")[2]
        return int(number) if number.isascii() and number.isdigit() else 0

    @property
    def incoming(self) -> tuple[EdgePlan, ...]:
        own = {stage.name for stage in self.stages}
        return tuple(e for e in self.edges if not e.inner and e.reader in own)

    @property
    def outgoing(self) -> tuple[EdgePlan, ...]:
        own = {stage.name for stage in self.stages}
        return tuple(e for e in self.edges if not e.inner and e.sender in own)

    @property
    def ends_frames(self) -> bool:
        """True if frames come in and leave to no other process: only events, if anything, leave this one."""
        own = {stage.name for stage in self.stages}
        takes_frames = any(edge.reader in own and edge.type != Event.TYPE for edge in self.edges)
        return takes_frames and all(edge.type == Event.TYPE for edge in self.outgoing)

    @property
    def is_awaited(self) -> bool:
        """Whether the run begins only once this process is open."""
        return any(stage.awaited for stage in self.stages)

    @property
    def follows_cameras(self) -> bool:
        """Whether a stage of this process is told the states of the cameras."""
        return any(stage.follows_cameras for stage in self.stages)

    @property
    def delivers_events(self) -> bool:
        """True for sinks of events. The outbox keeps what they have not taken, so nobody else waits for them."""
        return bool(self.incoming) and all(edge.type == Event.TYPE for edge in self.incoming) and not self.outgoing


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """How the cameras are dealt out among the `processes` that run the same stages.

    They are dealt out evenly among `workers`; or, if that is 0, `cameras` to each, into as many processes as that
    takes. Both are 0 if one process has the partition of every camera. `by_default`: the graph does not say it.
    """

    name: str
    processes: tuple[str, ...]
    workers: int = 0
    cameras: int = 0
    by_default: bool = False


def priorities_of(cameras: Iterable[str], camera_settings: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    """The `priorities` of a `ProcessPlan` with these cameras."""
    found = {camera: int(camera_settings.get(camera, {}).get("priority", 1)) for camera in cameras}
    return {camera: priority for camera, priority in found.items() if priority != 1}


def slots_of(process: ProcessPlan) -> int:
    """How many messages of a process may be alive at once, by the rules of flow.

    Per camera: its window, for each stage whose messages leave; on each edge that drops, the messages that a reader may
    hold, one that waits and one that is being replaced. In addition, the messages that each thread is making. A live
    camera fills no window if all edges drop, because no frame waits until it is done: besides the frames on the edges
    there are only the one that the loop has not taken yet and the one that is being made.
    """
    dropping = sum(edge.credits + 2 for edge in process.outgoing if edge.policy != "block")
    only_sources = all(stage.name in process.sources for stage in process.stages)
    if process.live and only_sources and all(edge.policy != "block" for edge in process.outgoing):
        return len(process.cameras) * (dropping + 2)
    large = {stage.name: stage.large_messages for stage in process.stages}
    leaving = max(1, sum(large[name] for name in {edge.sender for edge in process.outgoing}))
    making = sum(max(1, stage.threads) * stage.batch_max * stage.large_messages for stage in process.stages)
    return len(process.cameras) * (leaving * (process.window + 1) + dropping) + making


def slots_of_camera(process: ProcessPlan) -> int:
    """How many of `slots_of` there are for each camera of a process."""
    return ceil(slots_of(process) / max(1, len(process.cameras)))


@dataclass(frozen=True, slots=True)
class RunPlan:
    """A whole run. `camera_settings`: camera -> plain values for the source's `camera_type`.

    `live_cameras` never wait for their readers, whatever the policy of the edges.
    `file`: the path it was read from, "" if there is none.
    `camera_defaults`: the settings that further cameras of this file start with.
    `event_filters`: event sink -> names of the stages whose events it wants, () for all.
    `in_process`: everything is one process, run by the caller itself, without shared memory and sockets between stages.
    """

    graph: str
    base_folder: str
    processes: tuple[ProcessPlan, ...]
    camera_settings: Mapping[str, Mapping[str, Any]] = field(repr=False)
    event_filters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ordered_sinks: tuple[str, ...] = ()
    live_cameras: tuple[str, ...] = ()
    groups: tuple[GroupPlan, ...] = ()
    in_process: bool = False
    hang_s: float = 10.0
    open_s: float = 120.0
    drain_s: float = 20.0
    file: str = ""
    camera_defaults: Mapping[str, Any] = field(default_factory=dict, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Values that nobody may see, wherever they occur."""
    tracing: Mapping[str, Any] | None = field(default=None, repr=False)
    """`endpoint`, `share` and `headers`, as in the graph file; None if nobody wants traces."""
    readable_by: ReadableBy = "group"
    """Who may read the files that its processes make."""

    @property
    def source(self) -> str:
        """The kind of its source stage."""
        process = next(process for process in self.processes if process.sources)
        return next(stage.use for stage in process.stages if stage.name in process.sources)

    @property
    def expects_more(self) -> bool:
        """True if its outbox waits for cameras that are about to come."""
        return any(process.expects_more for process in self.processes)

    @property
    def edges_drop(self) -> bool:
        """True if the graph allows an edge to drop frames."""
        return any(edge.policy != "block" for process in self.processes for edge in process.edges)


def outline(plan: RunPlan) -> dict[str, Any]:
    """What runs where, and who sends to whom: plain values without any settings, which may hold passwords."""
    stages: dict[str, dict[str, Any]] = {}
    edges: dict[str, dict[str, Any]] = {}
    for process in plan.processes:
        for stage in process.stages:
            known = stages.setdefault(stage.name, _outline_of(stage, is_source=stage.name in process.sources))
            known["processes"].append(process.name)
        edges.update((edge.name, _outline_of_edge(edge)) for edge in process.edges)
    return {"graph": plan.graph, "stages": [*stages.values()], "edges": [*edges.values()]}


def _outline_of(stage: StagePlan, *, is_source: bool) -> dict[str, Any]:
    return {
        "name": stage.name, "use": stage.use, "is_source": is_source, "batch_max": stage.batch_max,
        "threads": stage.threads, "processes": [],
    }  # fmt: skip


def _outline_of_edge(edge: EdgePlan) -> dict[str, Any]:
    return {
        "from": edge.sender, "to": edge.reader, "port": edge.port, "type": edge.type, "policy": edge.policy,
        "depth": edge.depth, "inside_process": edge.inner,
    }  # fmt: skip


def to_wire(process: ProcessPlan) -> dict[str, Any]:
    """Plain values for msgpack."""
    return asdict(process)


def run_to_wire(plan: RunPlan) -> dict[str, Any]:
    """Plain values, as for JSON."""
    return asdict(plan)


def run_from_wire(data: Mapping[str, Any]) -> RunPlan:
    """The inverse of `run_to_wire`. Raises KeyError, TypeError or ValueError if the data is no plan."""
    values = dict(data)
    values["processes"] = tuple(from_wire(process) for process in data["processes"])
    values["groups"] = tuple(GroupPlan(**{**group, "processes": tuple(group["processes"])}) for group in data["groups"])
    values["event_filters"] = {sink: tuple(stages) for sink, stages in data["event_filters"].items()}
    for name in ("ordered_sinks", "live_cameras", "secrets"):
        values[name] = tuple(data[name])
    return RunPlan(**values)


def from_wire(data: Mapping[str, Any]) -> ProcessPlan:
    """The inverse of `to_wire`."""
    return ProcessPlan(
        name=data["name"],
        stages=tuple(StagePlan(**stage) for stage in data["stages"]),
        cameras=tuple(data["cameras"]),
        window=data["window"],
        edges=tuple(_edge_of(edge) for edge in data["edges"]),
        routes=data["routes"],
        sources=tuple(data["sources"]),
        senders={edge: tuple(processes) for edge, processes in data["senders"].items()},
        priorities=data["priorities"],
        live=data["live"],
        expects_more=data["expects_more"],
        run_cameras=tuple(data["run_cameras"]),
    )


def _edge_of(data: Mapping[str, Any]) -> EdgePlan:
    return EdgePlan(**{name: value for name, value in data.items() if name != "name"})
