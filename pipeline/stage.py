"""The base classes of stages and sources, and all that the runtime gives them.

    import cv2
    from pydantic import Field

    from pipeline.stage import Settings, Stage
    from stages.messages import Frame


    class BlurSettings(Settings):
        radius: int = Field(5, ge=1, le=100, description="How far it blurs, in pixels")


    class Blur(Stage[BlurSettings]):
        settings_type = BlurSettings
        inputs = Frame
        outputs = (Frame,)

        def process(self, items):
            side = 2 * self.settings.radius + 1
            for frame in items:
                yield Frame.of_bgr(frame.stamp, cv2.GaussianBlur(frame.bgr(), (side, side), 0))

`camgraph help write_a_stage` and `write_a_sink` build whole packages step by step; this file is the contract.

The runtime calls, in this order and from one thread: `open` once, then `process` with 1 to `batch.max` items
(each camera's in order; items of several cameras may be mixed), `tick` when `due_ns` is reached, `finish` after a
camera's last item, `close` once. Only a stage that says `thread_safe` has `process` called from several threads at
once. An output carries the stamp of the item it was made from, and outputs of one camera come in the order of its
items. Input arrays are read-only and valid only during the call: what a stage keeps, it copies.

Raising `BadItem` from `process` when it was handed one item drops that item and counts it; with several items
the runtime hands them in again one by one. `Unavailable` and `EnvironmentProblem` say that the outside does not take
it now: the same call is made again each second until it does, and what comes behind waits. So is a call with events
that raises an OSError or a MemoryError: a committed event is not lost because a descriptor or a disk is missing. A sink
that knows an event to be one that can never be delivered raises `BadItem`. A `UserError` ends the run. Any other
exception is a bug of the stage: logged with its traceback, the item dropped and counted as `error`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field

from pipeline.messages import Array, End, Message, Stamp

LOWEST_PRIORITY, HIGHEST_PRIORITY = 1, 100


DROPPED = "dropped."
"""How the counters of lost items begin: `dropped.<reason>`. They show as drops, and the run ends with status 1."""

SKIPPED = "skipped."
"""How the counters of items begin that a stage leaves out on purpose: `skipped.<reason>`. The run still ends well."""


class Definition(BaseModel):
    """Base of all that people write in YAML: settings, cameras and the graph file itself."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    stand_ins: ClassVar[Mapping[tuple[str, ...], Any]] = {}
    """What takes the place of a value that is wrong or missing, so that all the rest can be checked: its path (`*` for
    any key or index) -> the value, or a function that makes it of the wrong one. Everything else that is wrong is left
    out."""


class Settings(Definition):
    """Base of all settings: unknown keys are refused, values are frozen, every field has a description."""


class CameraSettings(Settings):
    """Base of what stands under one name in `cameras:`; the source in the graph declares the concrete type."""

    priority: int = Field(
        1,
        ge=LOWEST_PRIORITY,
        le=HIGHEST_PRIORITY,
        description="Its weight where a stage cannot take the frames of all cameras: one of priority 3 is taken three "
        "times as often as one of priority 1, as far as it has new frames",
    )


class Stop(Protocol):
    """Asked by a source between frames (`is_set`), and waited on instead of sleeping (`wait`)."""

    def is_set(self) -> bool: ...

    def wait(self, timeout: float) -> bool:
        """Sleep at most `timeout` seconds; True at once when the stop has come."""


class Logger(Protocol):
    """The part of structlog that stages use: an event name plus keys."""

    def info(self, event: str, **keys: Any) -> Any: ...
    def warning(self, event: str, **keys: Any) -> Any: ...
    def error(self, event: str, **keys: Any) -> Any: ...
    def exception(self, event: str, **keys: Any) -> Any: ...


FrameSize = tuple[int, int]
"""Width and height in pixels."""

AwayState = Literal["stalled", "lost", "unauthorised", "gone"]
AWAY: frozenset[AwayState] = frozenset(get_args(AwayState))
CameraState = Literal["connecting", "live", AwayState]
"""How a live camera is, as its source says it; docs/operations.md has what each of them means."""


class Context(Protocol):
    """What the runtime gives a stage. Plain values; nothing here blocks."""

    stage: str
    """The stage's name in the graph."""
    graph: str
    """The graph's name: the `site` of its events."""
    cameras: tuple[str, ...]
    """The cameras whose items this instance may see."""
    worker: int
    """Which of the processes of its stage this one is, from 0."""
    workers: int
    """How many processes its stage has."""
    beside_sources: bool
    """True where the sources of its cameras are in its process."""
    threads: int
    """In how many threads `process` may be called at once."""
    batch_max: int
    """The most items of one call of `process`."""
    cores: int
    """How many cores one call of `process` may use: 1, but where one process runs the whole graph, call by call."""
    incarnation: int
    """1 at the start of a run; grows when the process had to be started again."""
    state_folder: Path
    """A folder of this stage in this run; it outlives a restart of the process, not the run."""
    outputs_leave: bool
    """True where something that this stage makes goes to another process: see `new_arrays`."""
    slots: int
    """So many large outputs of one camera may lie in shared memory at once, and for each there is room for the largest;
    0 where they stay in the process."""
    base_folder: Path
    """The folder of the graph file: relative paths in settings are relative to it."""
    log: Logger

    def new_arrays(self, specs: Mapping[str, tuple[tuple[int, ...], str]]) -> dict[str, Array]:
        """Writable arrays (uninitialised) of the given shape and dtype name, for one output.

        One call per output message: they lie in shared memory where the output leaves the process, and an output whose
        large arrays are all from one call is sent without a copy.
        Any other array is copied when it is sent, which is right for small ones.
        """

    def count(self, name: str, camera: str, n: int = 1) -> None:
        """Add to a counter of a camera ("" for none); `camgraph status --json` shows it in `counts`.

        Two beginnings have a meaning: `DROPPED` for an item that was lost, which makes the run end with status 1, and
        `SKIPPED` for one that was left out on purpose. Any other name is the stage's own (`read`, `written`). The
        runtime counts as well, under `frames`, `repeated` and `failed.<stage>`: do not use these.
        """

    def trouble(self, why: str, camera: str = "") -> None:
        """Say what the stage cannot do at present although it goes on, and "" once it can again.

        Status shows it by the stage's name, with since when, and `camgraph status --check` is not healthy meanwhile. A
        stage that raises `Unavailable` or `EnvironmentProblem` need not say anything. `why` is for people, and without
        secrets; `camera`: whose items it concerns, if not all.
        """

    def opening(self, doing: str, within_s: float = 0.0) -> None:
        """Say in `open` what takes long (`building engine 2 of 4`), and for how many seconds from now it may.

        Until then the process does not count as hung, whatever `open_s` is, and status shows what it is doing. ""
        once it is done.
        """

    def alive(self) -> None:
        """A sign of life: for a source that waits, in bounded pieces, for its next frame (see `Source.frames`)."""

    def camera_is(self, camera: str, state: CameraState, why: str = "") -> None:
        """A source says how its live camera is, whenever that changes; `why` is for people, and without secrets.

        Raises ValueError for a state that there is not. One that never says it is live with its first frame.
        """

    def camera_shows(self, camera: str, **facts: str | float) -> None:
        """A source says what it has found out about its camera (codec, size, clock, ...): status shows the latest.

        Texts and numbers only, at most 32 of them, without secrets. Raises TypeError or ValueError for anything else.
        """

    def wrote(self, path: Path) -> None:
        """Name a file that the user will look for: the summary shows it."""


@dataclass(frozen=True, slots=True)
class Upstream:
    """What stands before a stage in its graph, in their own words: plain values without secrets."""

    stages: Mapping[str, Mapping[str, Any]]
    """Stage -> what it says in `describe`, in the order of the graph."""
    before: Mapping[str, frozenset[str]] | None = None
    """Stage -> all those before it; None where they are a chain."""
    beside: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """For a stage that makes nothing: the other readers of those that it reads from -> what they say."""

    def nearest(self, *facts: str) -> Mapping[str, Mapping[str, Any]]:
        """Of the stages that say one of these facts, those from which one comes without passing another of them.

        One in a chain; several where a stage merges or joins.
        """
        saying = [name for name, said in self.stages.items() if not said.keys().isdisjoint(facts)]
        passed = frozenset().union(*map(self._before, saying))
        return {name: self.stages[name] for name in saying if name not in passed}

    def _before(self, name: str) -> frozenset[str]:
        names = list(self.stages)
        return frozenset(names[: names.index(name)]) if self.before is None else self.before[name]


S = TypeVar("S", bound=Settings)

Ports = type[Message] | Mapping[str, type[Message]]


class Stage(Generic[S]):
    """Turns messages into messages. See the module's docstring for the contract."""

    settings_type: ClassVar[type[Settings]] = Settings
    inputs: ClassVar[Ports]
    """One type, or the ports of a join: then each item is a mapping port -> message of the same frame."""
    outputs: ClassVar[tuple[type[Message], ...]] = ()
    stateful: ClassVar[bool] = False
    """True if what came before matters: a restart loses something, and is reported. Items then come one by one."""
    thread_safe: ClassVar[bool] = False
    """True where `process` may run in several threads at once."""
    own_thread: ClassVar[bool] = False
    """True where `process` takes long: it runs beside the loop, so that the next batch is gathered meanwhile."""

    lighter: ClassVar[str] = "`max_fps`"
    """What gives it less to do, for people: said where it limits a run, and no core is free for more of it."""

    adapts: ClassVar[tuple[str, ...]] = ()
    """Its settings that follow from what its readers want of it (`wants`), where nobody wrote them."""

    adapts_to_all: ClassVar[tuple[str, ...]] = ()
    """Those that follow only if all its readers want the same; else they stay as they are."""

    due_ns: int | None = None
    """The stream time (`Stamp.time_ns` of its cameras) at which `tick` is wanted, or None."""

    def __init__(self, settings: S, context: Context) -> None:
        self.settings = settings
        self.context = context

    @classmethod
    def check(cls, settings: Any, base_folder: Path) -> Iterable[tuple[tuple[str | int, ...], str]]:
        """Problems that only the files named in the settings show: ((path of the key), text). Runs in `check`."""
        return ()

    @classmethod
    def check_cameras(
        cls, settings: Any, base_folder: Path, cameras: Mapping[str, FrameSize | None]
    ) -> Iterable[tuple[tuple[str | int, ...], str]]:
        """Problems of settings that are for certain cameras, as `check` has them. Runs in `check`, and when a camera is
        added to a run. `cameras`: all that there are, with the size of their frames as far as it is known.
        """
        return ()

    @classmethod
    def remarks(cls, settings: Any, base_folder: Path, cameras: Mapping[str, FrameSize | None]) -> Iterable[str]:
        """Sentences on settings that are right, and perhaps not meant so. Asked when `check_cameras` has no problem."""
        return ()

    @classmethod
    def remarks_alone(cls, settings: Any, base_folder: Path, cameras: Sequence[str]) -> Iterable[str]:
        """As `remarks`, on what cannot work for these cameras, whose frames are each a moment by itself."""
        return ()

    @classmethod
    def follow(cls, settings: Any, base_folder: Path, upstream: Upstream) -> Mapping[str, Any]:
        """Settings that follow from the graph, as plain values: they take the place of those of the same name.

        Called once, for a graph without mistakes; what somebody wrote must stay. May look at files.
        """
        return {}

    @classmethod
    def wants(cls, settings: Any, base_folder: Path) -> Mapping[str, Any]:
        """What it wants of the stage that it reads from: values for settings that are in that stage's `adapts` or
        `adapts_to_all`.

        Asked from the last stages of a graph to the source: the settings hold already what its own readers want of it.
        May look at files.
        """
        return {}

    @classmethod
    def describe(cls, settings: Any) -> Mapping[str, Any]:
        """Facts for the stages behind this one, by name: they find them in the `upstream` of their `follow`.

        Only what is certain before it runs. `stages/facts.py` has the names that camgraph's own stages use.
        """
        return {}

    @classmethod
    def unknown_before_run(cls, settings: Any) -> str:
        """What `camgraph check` cannot know of this stage, such as a model on a server; "" if it knows all."""
        return ""

    @classmethod
    def ordered_by_time(cls, settings: Any) -> bool:
        """For sinks of events: whether they want the events of all cameras in the order of their time.

        Then each event waits until no earlier one can come, and the sink gets the same sequence in every run.
        """
        return False

    @classmethod
    def environment(cls, settings: Any) -> Iterable[str]:
        """Names of variables of the environment that it reads: no others of the user's reach its process.

        `*` at the end stands for any letters. They are set before the stage is made, and before its module is imported.
        """
        return ()

    @classmethod
    def large_messages(cls, settings: Any) -> int:
        """The most messages with arrays over 16 kB that it makes of one item: so much shared memory is set aside."""
        return 1

    @classmethod
    def least_workers(cls, settings: Any) -> int:
        """With fewer processes, something that the settings name would lie idle: `check` refuses that."""
        return 1

    @classmethod
    def usual_threads(cls, settings: Any, workers: int) -> int:
        """Threads of each of so many processes, where the graph does not say how many."""
        return 1

    def open(self) -> None:
        """Get what is needed (a model, a file). Raises UserError or EnvironmentProblem; may take seconds."""

    def process(self, items: Sequence[Any]) -> Iterable[Message]:
        """Outputs made of 1 or more items. Must not wait for anything but its own work."""
        raise NotImplementedError

    def finish(self, camera: str, end: End) -> Iterable[Message]:
        """What is still to be said about a camera after its last item; stamped with its last frame's stamp."""
        return ()

    def tick(self, camera: str, now_ns: int) -> Iterable[Message]:
        """Called before an item of `camera` whose time is at or past `due_ns`."""
        return ()

    def cameras_changed(self) -> None:
        """`context.cameras` is another: called in a run whose cameras come and go, between two calls of the others.

        A camera that is gone has had its `finish`; one of the same name may come later, and is a new one.
        """

    def close(self) -> None:
        """Let go of everything. Called once, also after a failure."""


class Source(Generic[S]):
    """Where frames come from. One instance for each camera of its process."""

    settings_type: ClassVar[type[Settings]] = Settings
    camera_type: ClassVar[type[CameraSettings]] = CameraSettings
    outputs: ClassVar[tuple[type[Message], ...]] = ()
    stateful: ClassVar[bool] = False
    """A source goes on from `resume`: its restart loses nothing."""

    def __init__(self, settings: S, camera: str, camera_settings: Any, context: Context) -> None:
        self.settings = settings
        self.camera = camera
        self.camera_settings = camera_settings
        self.context = context

    @classmethod
    def environment(cls, settings: Any) -> Iterable[str]:
        """As `Stage.environment`."""
        return ()

    @classmethod
    def is_live(cls, camera_settings: Any) -> bool:
        """Live sources must never wait for their readers; others never lose a frame. Decides the edges' policies."""
        return False

    @classmethod
    def still_s(cls, camera_settings: Any) -> float:
        """For how many seconds no frame may come of a camera that is well; behind that, status shows it as stalled."""
        return 5.0

    @classmethod
    def check(cls, settings: Any, base_folder: Path) -> Iterable[tuple[tuple[str | int, ...], str]]:
        """As `Stage.check`."""
        return ()

    @classmethod
    def check_camera(cls, camera_settings: Any, base_folder: Path) -> Iterable[tuple[tuple[str | int, ...], str]]:
        """Problems with one camera's settings that need a look at the disk: ((path of the key), text)."""
        return ()

    @classmethod
    def unreadable(cls, camera_settings: Any, base_folder: Path) -> Iterable[tuple[tuple[str | int, ...], str]]:
        """Why no frame can come of this camera although its settings are right: ((path of the key), text).

        `camgraph check` takes it for a mistake; a run goes on with the other cameras. Not what `check_camera` says.
        """
        return ()

    @classmethod
    def frame_size(cls, camera_settings: Any, base_folder: Path) -> FrameSize | None:
        """Width and height of all frames of this camera, or None where only opening it would tell."""
        return None

    @classmethod
    def frames_alone(cls, camera_settings: Any, base_folder: Path) -> bool:
        """Whether each frame of this camera is a moment by itself (`Stamp.alone`). May look at the disk."""
        return False

    @classmethod
    def camera_remarks(cls, camera_settings: Any, base_folder: Path) -> Iterable[str]:
        """Sentences on a camera that is right, for whoever checks the graph. Asked when `check_camera` is content."""
        return ()

    @classmethod
    def slot_bytes(cls, camera_settings: Any, base_folder: Path) -> int | None:
        """Bytes of one output of this camera, or None where only opening it would tell."""
        return None

    def frames(self, stop: Stop, resume: Stamp | None) -> Iterator[Message]:
        """The camera's frames in order, until its end or `stop`.

        Runs in a thread of its own. `resume` is the last frame that every reader has (after a restart of this process):
        go on with the one after it, with the same `seq` and times as if nothing had happened. Raises UserError or
        EnvironmentProblem when the source cannot be opened, BadItem when it broke: the camera ends with that error.

        Between two frames it calls `context.alive()` at least every few seconds, from wherever it waits or passes
        frames over: a source that gives neither a frame nor a sign for `hang_s` (before its first frame: `open_s`) is
        taken for hung, and its process is started again. Waiting for a graph that is full is not the source's.
        """
        raise NotImplementedError
