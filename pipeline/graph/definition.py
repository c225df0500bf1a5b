"""The keys of a graph file: the definitions behind its check, its JSON Schema and its reference.

Names on the left are the keys of the file. The stages define the keys under a camera and under `with`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import AfterValidator, ConfigDict, Discriminator, Field, Tag, WithJsonSchema
from pydantic_core import PydanticCustomError

from pipeline.plan import Policy
from pipeline.stage import Definition
from pipeline.system.names import A_CAMERA_NAME, ANY_SCRIPT_PATTERN, MAX_NAME, NAME_PATTERN, is_camera_name, nfc

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
        description="How many messages of one camera may wait unread. Default: 4 on edges that block, 1 on edges that "
        "drop, and as much as the longest parallel path needs on the ports of a join.",
    )
    policy: Policy | None = Field(
        None,
        title="When full",
        description="What happens when the queue is full: the sender waits (block), the oldest message goes "
        "(drop_oldest), or the new one does (drop_newest). Default: block behind files, drop_oldest behind live "
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
    """How messages are gathered before the stage is called."""

    max: int = Field(1, ge=1, le=1024, title="Largest batch", description="How many messages at most, of all cameras.")
    wait_ms: float = Field(
        0.0,
        ge=0,
        le=10_000,
        allow_inf_nan=False,
        title="Patience",
        description="How long to wait for a batch to fill up, in milliseconds; 0 takes what is there.",
    )


class StageEntry(Entry):
    """One stage of the graph."""

    use: str = Field(
        min_length=1, max_length=100, title="Kind", description="Which stage this is; `camgraph stages` lists them."
    )
    from_: From | None = Field(
        None,
        alias="from",
        title="Input",
        description="Where its messages come from: a stage; a list of stages that make the same type (merge); or "
        "`port: stage` lines (join by frame). `events` stands for all stages that make events. In the long form "
        "`{stage: NAME, depth: N, policy: P}` stands in place of a name.",
    )
    with_: dict[str, Any] | None = Field(
        None, alias="with", title="Settings", description="The stage's own settings; `camgraph stages NAME` lists them."
    )
    each: Literal["cameras"] | None = Field(
        None, title="Copies", description="`cameras`: one process per camera. Sources only, where it is the default."
    )
    cameras_per_process: int | None = Field(
        None,
        ge=1,
        le=256,
        title="Cameras per process",
        description="Sources: how many cameras share a process at most. Default: 1. More save memory; what goes wrong "
        "in native code then costs the neighbours a restart.",
    )
    workers: int | None = Field(
        None,
        ge=1,
        le=64,
        title="Workers",
        description="Among how many processes the cameras are dealt out. Default: 1; for sources, one per camera.",
    )
    threads: int = Field(
        1,
        ge=1,
        le=64,
        title="Threads",
        description="How many threads of each worker process messages at once, where the stage can.",
    )
    batch: BatchEntry | None = Field(None, title="Batch", description="Hand the stage several messages at once.")
    group: Name | None = Field(
        None,
        title="Group",
        description="Stages of one group run in one process, as a chain without queues between them.",
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
        description="The site's name: part of every event's id, and of the run's. Default: the file's name.",
    )
    processes: Literal["separate", "compact", "one"] = Field(
        "separate",
        title="Placement",
        description="separate: a process per stage. compact: chains share a process. one: everything runs in the "
        "process that was started, for debugging. The results are the same.",
    )
    cameras: dict[CameraName, dict[str, Any] | None] = Field(
        title="Cameras", description="Name -> settings, as the source stage takes them."
    )
    camera_defaults: dict[str, Any] | None = Field(
        None, title="Camera defaults", description="Settings of every camera that does not say otherwise."
    )
    stages: dict[Name, StageEntry] = Field(title="Stages", description="Name -> stage.")
    pass_environment: list[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*\*?$")]] = Field(
        default=[],
        title="Environment",
        description="Names of variables of the environment that all processes of the run get, besides the usual ones; "
        "`*` at the end stands for any letters.",
    )
    hang_s: float = Field(
        10.0,
        ge=1,
        le=3600,
        title="Hang time",
        description="A process that has taken work and finished none for so many seconds is started again.",
    )
    open_s: float = Field(
        120.0, ge=1, le=3600, title="Opening time", description="How many seconds opening a stage may take."
    )
    drain_s: float = Field(
        20.0, ge=0, le=3600, title="Drain time", description="How many seconds a stop waits for what is on its way."
    )
