"""The base classes of stages and sources, and all that the runtime gives them.

    import cv2
    from pydantic import Field

    from camgraph.pipeline.stage import Settings, Stage
    from camgraph.stages.messages import Frame


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

`camgraph help write_a_stage`, `write_a_sink` and `write_a_source` build whole packages; this file is the contract.

The runtime calls `open` once, then `process`, `tick` and `finish` as messages come, then `close` once:

- `process` gets 1 to `batch.max` items. They may be of several cameras; those of one camera are in order.
- `tick` runs before an item whose time has reached `due_ns`, `finish` after the last item of a camera.
- One thread makes all calls, unless the stage says `own_thread` or `thread_safe`.
- An output carries the stamp of the item it was made from. Outputs of one camera leave in the order of its items.
- Arrays of items are read-only and valid only during the call. Copy what you keep.

An error of `process` says what becomes of the items:

- `BadItem`: the item is dropped and counted. If there were several, each is handed in again by itself.
- `Unavailable`, `EnvironmentProblem`: the outside does not take it now. The same call is made again each second, until
  it does, and later items wait. The same holds for OSError and MemoryError if the items are events: a committed event
  is never lost because a disk is full. A sink raises `BadItem` only for an event that can never be delivered.
- `UserError`: the run ends.
- Anything else is a bug: its traceback is logged, the item dropped and counted as `dropped.error`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field

from camgraph.pipeline.dead_letters import DeadLetters
from camgraph.pipeline.messages import Array, End, Event, Message, Stamp

LOWEST_PRIORITY, HIGHEST_PRIORITY = 1, 100


DROPPED = "dropped."
"""How the counters of lost items begin: `dropped.<reason>`. They show as drops, and the run ends with status 1."""

SKIPPED = "skipped."
"""How the counters of items begin that a stage leaves out on purpose: `skipped.<reason>`. The run still ends well."""


class Definition(BaseModel):
    """Base of all that people write in YAML: settings, cameras and the graph file itself."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    stand_ins: ClassVar[Mapping[tuple[str, ...], Any]] = {}
    """Stand-ins for values that are wrong or missing, so that all the rest can be checked: path (`*` for any key or
    index) -> the value, or a function that makes it of the wrong one. Everything else that is wrong is left out."""

    @classmethod
    def hint_at_key(cls, data: Any, path: tuple[str | int, ...]) -> str:
        """What follows "unknown key `x`" in the message about such a key; "" for the usual hint.

        ``data`` is what is written as a whole, ``path`` leads to the key in it.
        """
        return ""


class Settings(Definition):
    """Base of all settings: unknown keys are refused, values are frozen, every field has a description."""


class CameraSettings(Settings):
    """Base of a camera's settings under `cameras:`; the source in the graph declares the concrete type."""

    priority: int = Field(
        1,
        ge=LOWEST_PRIORITY,
        le=HIGHEST_PRIORITY,
        description="Its weight if a stage cannot take the frames of all cameras: one of priority 3 is taken three "
        "times as often as one of priority 1, as far as it has new frames",
    )


class Stop(Protocol):
    """Tells a source to end. Ask `is_set` between frames, and call `wait` instead of sleeping."""

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
"""How a live camera is, as its source reports it; `camgraph help operations` explains each."""


class Context(Protocol):
    """Given by the runtime to each stage. Plain values; nothing here blocks."""

    stage: str
    """The stage's name in the graph."""
    graph: str
    """The graph's name: the `site` of its events."""
    cameras: tuple[str, ...]
    """The cameras whose items this instance may see; of a sink of events, all cameras of the run."""
    cameras_now: Mapping[str, CameraState]
    """Camera -> its present state (`live` for a recording); empty unless the stage sets `follows_cameras`."""
    switches: Mapping[str, bool]
    """Those that somebody has set since the run began; the others are as the stage declares (`Stage.switches`)."""
    resets: Mapping[str, Mapping[str, int]]
    """Counter -> camera -> the number of the last command that set it to zero. Each command has a higher number."""
    worker: int
    """The number of this process among those of its stage, from 0."""
    workers: int
    """How many processes its stage has."""
    beside_sources: bool
    """True if the sources of its cameras are in the same process."""
    threads: int
    """In how many threads `process` may be called at once."""
    batch_max: int
    """The most items of one call of `process`."""
    cores: int
    """How many cores one call of `process` may use: 1, or more if one process runs the whole graph, call by call."""
    incarnation: int
    """1 at the start of a run; grows when the process had to be started again."""
    state_folder: Path
    """A folder of this stage in this run; it outlives a restart of the process, not the run."""
    outputs_leave: bool
    """True if outputs of this stage go to another process: see `new_arrays`."""
    slots: int
    """How many large outputs of one camera fit into shared memory at once; 0 if they stay in the process."""
    base_folder: Path
    """The folder of the graph file: relative paths in settings are relative to it."""
    log: Logger

    @property
    def dead_letters(self) -> DeadLetters:
        """For sinks of events: the place of those that can never be delivered. It outlives the run, as the outbox does.

        `add` keeps an event with the reason; then count it, and return as if it were delivered.
        """

    def new_arrays(self, specs: Mapping[str, tuple[tuple[int, ...], str]]) -> dict[str, Array]:
        """Return writable, uninitialised arrays for one output: name -> (shape, name of the dtype).

        Call it once for each output message. If outputs leave the process, the arrays lie in shared memory, and an
        output whose large arrays all come from one call is sent without a copy. Any other array is copied when it is
        sent, which is fine for small ones.
        """

    def count(self, name: str, camera: str, n: int = 1) -> None:
        """Add to a counter of a camera ("" for none); `camgraph status --json` shows it in `counts`.

        Two beginnings have a meaning: `DROPPED` for an item that was lost, which makes the run end with status 1, and
        `SKIPPED` for one that was left out on purpose. Any other name is the stage's own (`read`, `written`).
        Declare each with its meaning in `Stage.counts`. The runtime counts as well, under `frames`, `repeated` and
        `failed.<stage>`: do not use these.
        """

    def counters_are(self, camera: str, counters: Mapping[str, Mapping[str, int]]) -> None:
        """Report the present numbers of the counters of a camera (`Stage.counters`): counter -> name -> number."""

    def trouble(self, why: str, camera: str = "") -> None:
        """Report that something does not work although the stage goes on; "" once it works again.

        Until then status shows it with its beginning, and `camgraph status --check` is not healthy. A stage that raises
        `Unavailable` or `EnvironmentProblem` need not report anything. `why` is for people, and holds no secrets.
        `camera`: whose items it concerns, if not all.
        """

    def opening(self, doing: str, within_s: float = 0.0) -> None:
        """Report in `open` that something takes long (`building engine 2 of 4`): up to `within_s` seconds from now.

        Until then the process is not taken for hung, whatever `open_s` is, and status shows `doing`. "": it is done.
        """

    def alive(self) -> None:
        """Give a sign of life: a source that waits for its next frame does so every few seconds (`Source.frames`)."""

    def camera_is(self, camera: str, state: CameraState, why: str = "") -> None:
        """Report the state of a live camera, whenever it changes. For sources; `why` is for people, without secrets.

        Raises ValueError for an unknown state. A camera of which nothing is reported is live from its first frame.
        """

    def camera_shows(self, camera: str, **facts: str | float) -> None:
        """Report facts about a camera (codec, size, clock, ...), of which status shows the latest. For sources.

        Texts and numbers only, at most 32 of them, without secrets. Raises TypeError or ValueError for anything else.
        """

    def shows(self, **facts: str | float) -> None:
        """Report facts about this stage that only the run can know (its provider, ...), as `camera_shows` does."""

    def wrote(self, path: Path) -> None:
        """Name a file that the user will look for; the summary of the run shows it."""

    def traceparent(self, event_id: str) -> str | None:
        """The W3C trace context for an event with this id, to put into its body; None if events are not traced."""

    def emit(self, event: Event) -> None:
        """Give the outbox an event that comes later than the item that it is about, such as "the clip is ready".

        For sinks of events that say so (`Stage.emits`), from any of their threads. Returns once the event is committed;
        the other sinks get it if they read from a stage that this sink reads from. Its id must be the same each time it
        is made. Raises Unavailable if the outbox does not commit it within 5 s: call it again. An event that no sink
        could take (no line of JSON, say, or too large) is logged, counted and dropped.
        """


@dataclass(frozen=True, slots=True)
class Upstream:
    """The facts that other stages of the graph tell in `describe`: plain values without secrets."""

    stages: Mapping[str, Mapping[str, Any]]
    """Stage before this one -> its facts, in the order of the graph."""
    before: Mapping[str, frozenset[str]] | None = None
    """Stage -> all stages before it; None if they are a chain."""
    beside: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """For a stage without outputs: the stages that read from the same senders as it -> their facts. Of those that have
    no outputs either, the facts that hold before their own `follow`."""
    makers: frozenset[str] = frozenset()
    """The stages before this one that make events."""

    def nearest(self, *facts: str) -> Mapping[str, Mapping[str, Any]]:
        """Return the nearest stages that tell one of these facts: one in a chain, perhaps several before a merge."""
        declaring = [name for name, stage_facts in self.stages.items() if not stage_facts.keys().isdisjoint(facts)]
        passed = frozenset().union(*map(self._before, declaring))
        return {name: self.stages[name] for name in declaring if name not in passed}

    def _before(self, name: str) -> frozenset[str]:
        names = list(self.stages)
        return frozenset(names[: names.index(name)]) if self.before is None else self.before[name]


SettingProblems = Iterable[tuple[tuple[str | int, ...], str]]
"""Problems of settings: the path of the key, and a text for people: `("zones", 0, "name"), "there are two of it"`.

A `pipeline.errors.ProblemText` says as well which kind of mistake it is, if not that of a value (`setting-value`).
"""

S = TypeVar("S", bound=Settings)

Ports = type[Message] | Mapping[str, type[Message]]

Counts = Mapping[str, str]
"""Counters and their meanings, for people: `"dropped.torn_page": "A page could not be read whole."`.

A last part in capitals stands for any text: `judged.RULE`.
"""


class Stage(Generic[S]):
    """Turns messages into messages. The docstring of this module is the contract.

    The class methods are the hooks of planning: `camgraph check` and `camgraph run` ask them before any process starts.
    They get the validated settings, and `base_folder`, the folder of the graph file.
    """

    settings_type: ClassVar[type[Settings]] = Settings
    inputs: ClassVar[Ports]
    """One type, or the ports of a join: then each item is a mapping port -> message of the same frame."""
    outputs: ClassVar[tuple[type[Message], ...]] = ()
    counts: ClassVar[Counts] = {}
    """Its counters (`Context.count`), and `dropped.REASON` for each reason of its `BadItem`. A subclass with more
    counters repeats those of its base: `{**Base.counts, "more": "..."}`. `camgraph stages NAME` shows them."""
    stateful: ClassVar[bool] = False
    """True if the stage remembers earlier items: a restart loses that, and is reported. Items then come one by one."""
    thread_safe: ClassVar[bool] = False
    """True if `process` may run in several threads at once, as many as the graph's `threads`."""
    emits: ClassVar[bool] = False
    """True for a sink of events that gives events of its own to the outbox (`Context.emit`). It ends before others."""
    own_thread: ClassVar[bool] = False
    """True if `process` takes long: it then runs in a thread of its own, while the loop gathers the next batch."""

    awaited: ClassVar[bool] = True
    """False for a stage that only observes a run, such as the page: cameras start before the stage is open."""

    gives_way: ClassVar[bool] = False
    """True if others come first: a process with such stages alone has a lower priority (a higher nice value)."""

    takes_settings: ClassVar[bool] = False
    """True if it goes on with other settings while it lives (`change_settings`): then a reload costs it nothing."""

    follows_cameras: ClassVar[bool] = False
    """True if it wants to know the states of all cameras (`Context.cameras_now`)."""

    added_by_itself: ClassVar[bool] = False
    """True where nobody writes it into a graph: lists and editors leave it out."""

    lighter: ClassVar[str] = "`max_fps`"
    """The setting that gives it less to do, for people: named if this stage limits a run and all cores are busy."""

    adapts: ClassVar[tuple[str, ...]] = ()
    """Settings that follow from the wishes of its readers (`wants`), if nobody wrote them."""

    only_for_models: ClassVar[bool] = False
    """Nothing that people could look at comes out of its inputs: it may read messages that another stage withholds."""
    adapts_to_all: ClassVar[tuple[str, ...]] = ()
    """Settings that follow only if all its readers wish the same."""

    due_ns: int | None = None
    """The stream time (`Stamp.time_ns`) from which `tick` is called before the next item; None for never."""

    def __init__(self, settings: S, context: Context) -> None:
        self.settings = settings
        self.context = context

    @classmethod
    def check(cls, settings: Any, base_folder: Path) -> SettingProblems:
        """Return problems that only a look at the disk shows, such as a missing file. Runs in `camgraph check`."""
        return ()

    @classmethod
    def check_cameras(
        cls, settings: Any, base_folder: Path, cameras: Mapping[str, FrameSize | None]
    ) -> SettingProblems:
        """Return problems of settings that name cameras or depend on the size of their frames.

        `cameras`: all cameras, with the size of their frames or None if only opening them would tell. Runs in
        `camgraph check`, and when a camera is added to a run.
        """
        return ()

    @classmethod
    def remarks(cls, settings: Any, base_folder: Path, cameras: Mapping[str, FrameSize | None]) -> Iterable[str]:
        """Return sentences on settings that are right but perhaps not meant so. Asked if there are no problems."""
        return ()

    @classmethod
    def remarks_alone(cls, settings: Any, base_folder: Path, cameras: Sequence[str]) -> Iterable[str]:
        """As `remarks`, on settings that cannot work for `cameras` whose frames are photographs (`Stamp.alone`)."""
        return ()

    @classmethod
    def remarks_on_rates(cls, settings: Any, base_folder: Path, rates: Mapping[str, float]) -> Iterable[str]:
        """As `remarks`, on settings that need more frames than `rates` (camera -> frames a second, at most)."""
        return ()

    @classmethod
    def follow(cls, settings: Any, base_folder: Path, upstream: Upstream) -> Mapping[str, Any]:
        """Return settings that follow from the facts of other stages: they replace those of the same name.

        Return plain values, and leave alone whatever somebody wrote. Called once, for a graph without mistakes; may
        read files. Raises UserError, or SettingError with the key, if the stages do not go together.
        """
        return {}

    @classmethod
    def wants(cls, settings: Any, base_folder: Path) -> Mapping[str, Any]:
        """Return wishes for settings of the stage that it reads from, those in its `adapts` or `adapts_to_all`.

        Asked from the last stages of a graph to the first, so `settings` hold the wishes of its own readers already.
        May read files.
        """
        return {}

    @classmethod
    def gives_away(cls, settings: Any) -> Collection[type[Message]]:
        """Return the messages that people may see by this stage although it does not read them."""
        return ()

    @classmethod
    def withholds(cls, settings: Any) -> Mapping[type[Message], str]:
        """Return the messages that only stages with `only_for_models` may read in this graph, each with the reason.

        For promises about the whole graph, such as that no picture leaves it.
        """
        return {}

    @classmethod
    def describe(cls, settings: Any) -> Mapping[str, Any]:
        """Return facts for the stages behind this one, by name; they get them as `upstream` in `follow`.

        Tell only facts that are certain before the run. `stages/facts.py` has the names that camgraph's stages use.
        """
        return {}

    @classmethod
    def switches(cls, settings: Any) -> Mapping[str, bool]:
        """Return the names of switches that people may set while it runs, and their states at the start.

        `camgraph switch` sets them, and `context.switches` has those that were set. Raises nothing for settings that
        have passed `check`.
        """
        return {}

    @classmethod
    def kept_switches(cls, settings: Any) -> Collection[str]:
        """Return the switches whose state outlives the run: the next run of its name begins with it."""
        return ()

    @classmethod
    def counters(cls, settings: Any) -> Collection[str]:
        """Return the names of counters that people may look at, and set to zero, while it runs.

        `camgraph counter` shows the numbers that it reports (`context.counters_are`), and `context.resets` tells which
        of them to set to zero. Raises nothing for settings that have passed `check`.
        """
        return ()

    @classmethod
    def unknown_before_run(cls, settings: Any) -> str:
        """Return the part that `camgraph check` cannot know, for people, such as a model on a server; else ""."""
        return ""

    @classmethod
    def ordered_by_time(cls, settings: Any) -> bool:
        """Return whether a sink wants the events of all cameras in the order of their time.

        Each event then waits until no earlier one can come, and the sink gets the same sequence in every run.
        """
        return False

    @classmethod
    def environment(cls, settings: Any) -> Iterable[str]:
        """Return the names of environment variables that it reads; no others of the user's reach its process.

        `*` at the end stands for any letters. They are set before the stage's module is imported.
        """
        return ()

    @classmethod
    def written_folders(cls, settings: Any, base_folder: Path) -> Iterable[Path]:
        """Return the folders in which it writes files, whether they exist or not; its state folder is not among them.

        `camgraph service install` lets the service write these, and nothing else.
        """
        return ()

    @classmethod
    def large_messages(cls, settings: Any) -> int:
        """Return how many messages with arrays over 16 kB it makes of one item at most; shared memory is set aside."""
        return 1

    @classmethod
    def least_workers(cls, settings: Any) -> int:
        """Return the fewest processes with which nothing that the settings name lies idle; `check` refuses fewer."""
        return 1

    @classmethod
    def usual_threads(cls, settings: Any, workers: int) -> int:
        """Return how many threads each of `workers` processes gets if the graph does not say it."""
        return 1

    def open(self) -> None:
        """Load models, open files. May take seconds (see `Context.opening`). Raises UserError or EnvironmentProblem."""

    def process(self, items: Sequence[Any]) -> Iterable[Message]:
        """Return or yield the outputs made of one or more items. Must not wait for anything but its own work."""
        raise NotImplementedError

    def finish(self, camera: str, end: End) -> Iterable[Message]:
        """Return or yield the last outputs for a camera, after its last item, with the stamp of its last frame.

        Forget the camera: one of the same name that comes later is a new one. A sink of events gets one end, of all
        cameras: its reason is "end" only if each camera came to its own end, and "stopped" if somebody stopped the run.
        """
        return ()

    def tick(self, camera: str, now_ns: int) -> Iterable[Message]:
        """Return or yield outputs that are due. Called before an item of `camera` whose time is at or past `due_ns`."""
        return ()

    def cameras_changed(self) -> None:
        """Take note that `context.cameras` has changed, in a run whose cameras come and go, or `context.cameras_now`.

        A camera that is gone has had its `finish` before; but a sink of events hears only of the end of them all, and
        events of the camera may still come. Of a stage with a thread of its own, `process` perhaps runs meanwhile.
        """

    def change_settings(self, settings: S) -> None:
        """Go on with other settings, as they are after a reload. Only called if it `takes_settings`.

        Called after `open`, between two calls of `process`; of a stage with a thread of its own perhaps during one. If
        it raises anything, the process closes, and the next one begins with these settings.
        """
        self.settings = settings

    def close(self) -> None:
        """Release everything. Called once, also if `open` has failed half-way."""


class Source(Generic[S]):
    """Makes the frames of one camera. A process has an instance for each of its cameras."""

    settings_type: ClassVar[type[Settings]] = Settings
    camera_type: ClassVar[type[CameraSettings]] = CameraSettings
    outputs: ClassVar[tuple[type[Message], ...]] = ()
    counts: ClassVar[Counts] = {}
    """As `Stage.counts`. A `BadItem` of `frames` ends the camera and is not counted."""
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
        """Return whether the camera is live: it then never waits for its readers. Others never lose a frame."""
        return False

    @classmethod
    def takes_turns(cls, camera_settings: Any) -> bool:
        """Return whether the camera may wait until others have ended: it must end by itself, as files do."""
        return False

    @classmethod
    def still_s(cls, camera_settings: Any) -> float:
        """Return after how many seconds without a frame status shows the camera as stalled."""
        return 5.0

    @classmethod
    def check(cls, settings: Any, base_folder: Path) -> SettingProblems:
        """As `Stage.check`."""
        return ()

    @classmethod
    def check_camera(cls, camera_settings: Any, base_folder: Path) -> SettingProblems:
        """Return problems of one camera's settings that only a look at the disk shows."""
        return ()

    @classmethod
    def unreadable(cls, camera_settings: Any, base_folder: Path) -> SettingProblems:
        """Return why this camera can give no frame although its settings are right, such as a damaged file.

        `camgraph check` takes that for a mistake; a run goes on with the other cameras.
        """
        return ()

    @classmethod
    def frame_size(cls, camera_settings: Any, base_folder: Path) -> FrameSize | None:
        """Return width and height of all frames of this camera, or None if only opening it would tell."""
        return None

    @classmethod
    def most_fps(cls, camera_settings: Any) -> float | None:
        """Return how many frames a second its settings let this camera bring, or None if they set no limit."""
        return None

    @classmethod
    def frames_alone(cls, camera_settings: Any, base_folder: Path) -> bool:
        """Return whether the frames of this camera are photographs (`Stamp.alone`). May look at the disk."""
        return False

    @classmethod
    def camera_remarks(cls, camera_settings: Any, base_folder: Path) -> Iterable[str]:
        """Return sentences on a camera that is right but perhaps not meant so. Asked if there are no problems."""
        return ()

    @classmethod
    def slot_bytes(cls, camera_settings: Any, base_folder: Path) -> int | None:
        """Return the bytes of one output of this camera, or None if only opening it would tell."""
        return None

    def frames(self, stop: Stop, resume: Stamp | None) -> Iterator[Message]:
        """Yield the camera's frames in order, until its end or `stop`. Runs in a thread of its own.

        `resume`: after a restart of this process, the last frame that every reader has. Go on with the one after it,
        with the same `seq` and times as if nothing had happened.

        Call `context.alive()` at least every few seconds, from wherever you wait or pass frames over. A source without
        a frame or a sign of life for `hang_s` (before its first frame: `open_s`) is taken for hung, and its process is
        started again. Time in which it waits for a graph that is full does not count.

        Raises UserError or EnvironmentProblem if the source cannot be opened, BadItem if it broke: the camera ends with
        that error.
        """
        raise NotImplementedError
