"""The keys of a graph file: the definitions behind its check, its JSON Schema and its reference.

Names on the left are the keys of the file. The stages define the keys under a camera and under `with`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import AfterValidator, ConfigDict, Discriminator, Field, Tag, WithJsonSchema
from pydantic_core import PydanticCustomError

from camgraph.pipeline.plan import Policy
from camgraph.pipeline.stage import Definition
from camgraph.pipeline.system.file_access import ReadableBy
from camgraph.pipeline.system.names import (
    A_CAMERA_NAME,
    ANY_SCRIPT_PATTERN,
    MAX_NAME,
    NAME_PATTERN,
    is_camera_name,
    nfc,
)

UNKNOWN_USE = "?"
"""Stands for a missing `use` of a stage, after the mistake has been reported."""

FROM_SHAPES = "a stage's name, a list of them, or `port: stage` lines"

Name = Annotated[str, Field(pattern=NAME_PATTERN, max_length=MAX_NAME)]

CAMERA_NAME_ERROR: Final = "camera_name"


def _camera_name(text: str) -> str:
    name = nfc(text)
    if not is_camera_name(name):
        raise PydanticCustomError(CAMERA_NAME_ERROR, "expected {name}", {"name": A_CAMERA_NAME})
    return name


CameraName = Annotated[
    str,
    AfterValidator(_camera_name),
    WithJsonSchema({"type": "string", "pattern": ANY_SCRIPT_PATTERN, "maxLength": MAX_NAME}),
]


class Entry(Definition):
    """Base of all parts of a graph file."""

    model_config = ConfigDict(populate_by_name=False)


class EdgeEntry(Entry):
    """The long form of a stage's name under `from`, for a queue with settings of its own."""

    stage: Name = Field(title="Sender", description="The stage to read from.")
    depth: int | None = Field(
        None,
        ge=1,
        le=1024,
        title="Depth",
        description="How many messages of one camera may wait unread. Default: on edges that block one more than "
        "the frames of a camera that are on their way at once; on edges that drop 1, or at the port of a join as many "
        "as the longest parallel path needs.",
    )
    policy: Policy | None = Field(
        None,
        title="When full",
        description="When the queue is full, the sender waits (block), or the oldest message is dropped "
        "(drop_oldest), or the new one (drop_newest). Default: block behind files, drop_oldest behind live "
        "cameras. Edges that carry events always block.",
    )


def _shape_of_end(value: Any) -> str:
    return "edge" if isinstance(value, dict | EdgeEntry) else "name"


def _shape_of_from(value: Any) -> str | None:
    if isinstance(value, list):
        return "merge"
    if isinstance(value, dict) and "stage" not in value:
        return "join"
    if isinstance(value, str | dict | EdgeEntry):
        return _shape_of_end(value)
    return None


End = Annotated[Annotated[Name, Tag("name")] | Annotated[EdgeEntry, Tag("edge")], Discriminator(_shape_of_end)]
From = Annotated[
    Annotated[Name, Tag("name")]
    | Annotated[EdgeEntry, Tag("edge")]
    | Annotated[list[End], Field(min_length=1), Tag("merge")]
    | Annotated[dict[Name, End], Field(min_length=1), Tag("join")],
    Discriminator(_shape_of_from, custom_error_type="from_shape", custom_error_message=FROM_SHAPES),
]


class BatchEntry(Entry):
    """How to collect messages into one call of the stage."""

    max: int = Field(
        1, ge=1, le=1024, title="Largest batch", description="The most messages of one batch, of all cameras together."
    )
    wait_ms: float = Field(
        0.0,
        ge=0,
        le=10_000,
        allow_inf_nan=False,
        title="Patience",
        description="How long to wait for a batch to fill up, in milliseconds; 0 takes the waiting messages at once.",
    )


class StageEntry(Entry):
    """One stage of the graph."""

    use: str = Field(
        min_length=1, max_length=100, title="Kind", description="The stage to run; `camgraph stages` lists them."
    )
    from_: From | None = Field(
        None,
        alias="from",
        title="Input",
        description="The sender of its messages: a stage; a list of stages that make the same type (merge); or "
        "`port: stage` lines (join by frame). `events` means all stages that make events. In the long form, "
        "write `{stage: NAME, depth: N, policy: P}` in place of a name.",
    )
    with_: dict[str, Any] | None = Field(
        None,
        alias="with",
        title="Settings",
        description="The settings of the stage itself; `camgraph stages NAME` lists them.",
    )
    each: Literal["cameras"] | None = Field(
        None, title="Copies", description="`cameras`: one process per camera. For sources only, and their default."
    )
    cameras_per_process: int | None = Field(
        None,
        ge=1,
        le=256,
        title="Cameras per process",
        description="Sources: the most cameras that share a process. Default: 1; more than eight files share as many "
        "processes as there are cores. A larger number saves memory; if native code crashes, all cameras of the "
        "process restart.",
    )
    workers: int | None = Field(
        None,
        ge=1,
        le=64,
        title="Workers",
        description="The number of processes that share the cameras among them, never more than there are cameras. "
        "Default: 1; sources have `cameras_per_process`.",
    )
    threads: int = Field(
        1,
        ge=1,
        le=64,
        title="Threads",
        description="How many threads of each worker process messages at once, if the stage allows several. By "
        "default `infer` uses one for each core, and any other stage one.",
    )
    batch: BatchEntry | None = Field(None, title="Batch", description="Hand the stage several messages at once.")
    group: Name | None = Field(
        None,
        title="Group",
        description="Stages with the same group run in one process, as a chain without queues between them.",
    )


class OutboxEntry(Entry):
    """How long events wait for a sink that does not take them, and how surely they are on the disk."""

    keep_days: float = Field(
        7.0,
        gt=0,
        le=3650,
        allow_inf_nan=False,
        title="Longest wait",
        description="An event that has waited for a sink for so many days is given up for that sink. Only the time "
        "counts in which the outbox is open, so an event is never too old because the machine was off.",
    )
    keep_events: int = Field(
        1_000_000,
        ge=1,
        le=1_000_000_000,
        title="Most events",
        description="If more events than this wait for a sink, the oldest of them are given up for that sink.",
    )
    keep_gb: float = Field(
        2.0,
        ge=0.01,
        le=100_000,
        allow_inf_nan=False,
        title="Largest file",
        description="If the file of the outbox is larger than so many GB, the oldest events of the sink with the "
        "longest backlog are given up.",
    )
    sync: Literal["full", "normal", "none"] = Field(
        "full",
        title="Durability",
        description="When the disk must have an event. `full`: before it counts as committed, so it outlives a power "
        "cut. `normal`: soon, so a power cut costs the last moments. `none`: when the system likes, so a power cut may "
        "break the file. With any of them, an event outlives the death of every process.",
    )


class TracingEntry(Entry):
    """Traces of events, by OpenTelemetry: where the time went, from the packet to the sinks."""

    endpoint: Annotated[str, Field(pattern=r"^https?://[^\s@]+$")] = Field(
        title="Collector",
        description="Where a collector takes OTLP over HTTP, such as http://localhost:4318.",
    )
    share: float = Field(
        1.0, gt=0, le=1, allow_inf_nan=False, title="Share", description="The share of the events that are traced."
    )
    headers: dict[str, str] = Field(
        default={}, title="Headers", description="Headers of each request, such as `Authorization: ${secret:NAME}`."
    )


class GraphFile(Entry):
    """A graph: the cameras, the stages that their frames go through, and how these are spread over processes."""

    stand_ins: ClassVar[Mapping[tuple[str, ...], Any]] = {
        ("version",): 1,
        ("cameras",): {},
        ("stages",): {},
        ("stages", "*", "use"): UNKNOWN_USE,
    }

    version: Literal[1] = Field(title="Version", description="The version of this file format: 1.")
    name: Name | None = Field(
        None,
        title="Name",
        description="The site's name: part of each event's id, and the name of the run. Default: the file's name.",
    )
    processes: Literal["separate", "compact", "one"] = Field(
        "separate",
        title="Placement",
        description="`separate`: a process per stage. `compact`: chains of stages share a process. `one`: everything "
        "runs in the process that you started, for debugging. The results are the same.",
    )
    cameras: dict[CameraName, dict[str, Any] | None] = Field(
        title="Cameras", description="The cameras: a name, and the settings that the source takes."
    )
    camera_defaults: dict[str, Any] | None = Field(
        None, title="Camera defaults", description="Settings for all cameras; a camera's own settings win."
    )
    stages: dict[Name, StageEntry] = Field(title="Stages", description="The stages: a name, and a stage.")
    outbox: OutboxEntry | None = Field(
        None,
        title="Outbox",
        description="Events wait in the outbox, a file of the run, until every sink has taken them.",
    )
    tracing: TracingEntry | None = Field(
        None,
        title="Tracing",
        description="Traces of events: where the time went, from the packet to the sinks. Needs "
        "`pip install 'camgraph[tracing]'`.",
    )
    pass_environment: list[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*\*?$")]] = Field(
        default=[],
        title="Environment",
        description="More environment variables for the processes of the run, beside the usual ones; `NAME*` means "
        "all names that begin with NAME.",
    )
    readable_by: ReadableBy = Field(
        "group",
        title="Readable by",
        description="Who may read the files and folders that the run makes: `owner` (0600, 0700), `group` (0640, "
        "0750), or `everyone`, as far as the umask of the process that starts it allows. A stricter umask stays, and "
        "files that are there keep their mode.",
    )
    hang_s: float = Field(
        10.0,
        ge=1,
        le=3600,
        title="Hang time",
        description="A process that has taken work and finished none for this many seconds is started again.",
    )
    open_s: float = Field(
        120.0,
        ge=1,
        le=3600,
        title="Opening time",
        description="How many seconds a stage may take to open, with a model's first picture.",
    )
    drain_s: float = Field(
        20.0,
        ge=0,
        le=3600,
        title="Drain time",
        description="How many seconds a stop waits for frames and events that are still on their way.",
    )
