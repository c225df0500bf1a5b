"""Runs of graphs for programs: `run` and `watch` make a `Run`, `Items` iterates over its events and frames."""

from __future__ import annotations

import asyncio
import itertools
import os
import threading
import time
import weakref
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Any, Generic, Literal, Self, TypeVar, cast, overload

from camgraph.background import Background
from camgraph.events import Event, event_of
from camgraph.graphs import Graph, build, load
from camgraph.inbox import Board, Inbox, Selection
from camgraph.logs import log_lines
from camgraph.pictures import Picture, TrackedFrame, frame_of
from camgraph.pipeline.errors import (
    EXIT_ENVIRONMENT,
    EXIT_USER,
    CamgraphError,
    EnvironmentProblem,
    UserError,
)
from camgraph.pipeline.monitoring.run_status import RunStatus
from camgraph.pipeline.system.found_runs import found_runs
from camgraph.readers import EVENTS_KIND, FRAMES_KIND, KINDS, TRACKS_KIND, Wishes, addressed, require_frame_settings
from camgraph.threads import Latch, start_thread

T = TypeVar("T")
Status = RunStatus
"""The name under which programs know the status of a run."""
Item = Event | TrackedFrame

_WINDOWS: Mapping[str, int] = {EVENTS_KIND: 64, TRACKS_KIND: 32, FRAMES_KIND: 3}
"""How many unread items of each kind a graph of files may have waiting before its sink blocks."""
_LOOK_S = 5.0
_CLOSE_S = 10.0
_KILLED_S = 15.0
_starting = threading.Lock()
"""Held while a run picks its name, so that two unnamed runs never pick the same one."""


class GaveUp(CamgraphError):
    """The run has ended incomplete: it gave up frames, a camera, or events on their way."""


@dataclass(frozen=True, slots=True)
class Result:
    """How a run ended. `status`: the exit status of the command; `problems`: the problems that the command prints.

    `unread`: the number of events that were dropped unread. `last`: the run's last status.
    """

    status: int
    problems: tuple[str, ...]
    unread: int
    last: Status = field(repr=False)


class Run:
    """A run, made by `run` or `watch`. It starts when you ask for its first item, or call `start`.

    It ends when its cameras end, when you stop or close it, when it is garbage-collected, and when Python exits. An
    event counts as delivered when you ask for the next one. You may call the methods from any thread. A run with
    callbacks is not garbage-collected while it goes on, because its own thread calls them.
    """

    def __init__(
        self,
        graph: Graph,
        *,
        in_process: bool = False,
        on_event: Callable[[Event], object] | None = None,
        on_tracks: Callable[[TrackedFrame], object] | None = None,
        on_frame: Callable[[Picture], object] | None = None,
    ) -> None:
        self.graph = graph
        self.name = graph.name
        self._in_process = in_process
        self._callbacks = {
            kind: cast(Callable[[Any], object], callback)
            for kind, callback in zip(KINDS, (on_event, on_tracks, on_frame), strict=True)
            if callback is not None
        }
        self._wishes: set[str] = set(self._callbacks)
        self._stage = ""
        self._annotated = True
        self._max_width: int | None = None
        self._trail_s = 0.0
        self._board = Board()
        self._inboxes: dict[str, Inbox[Any]] = {}
        self._background: Background | None = None
        self._caller: threading.Thread | None = None
        self._all_called = Latch()
        self._failure: BaseException | None = None
        self._lock = threading.RLock()  # a signal handler may call a method while the same thread starts the run
        self._closed = self._stop_wanted = False

    def __repr__(self) -> str:
        state = "not started" if self._background is None else "over" if self._background.wait(0) else "running"
        return f"<camgraph.Run {self.name}: {state}>"

    # ---- reading

    def __iter__(self) -> Iterator[Event]:
        return self.events()

    def __aiter__(self) -> AsyncIterator[Event]:
        return self.events()

    def events(self) -> Items[Event]:
        """Iterate over the events as they arrive. Raises UserError if the graph makes none."""
        return Items(self, self._wish(EVENTS_KIND))

    def tracks(self, *, stage: str | None = None) -> Items[TrackedFrame]:
        """Iterate over the people of each frame; for live cameras, of the newest frame.

        `stage`: the stage to read, if several make tracks.
        """
        self._stage = stage or self._stage
        return Items(self, self._wish(TRACKS_KIND))

    def frames(
        self, *, annotated: bool = True, max_width: int | None = None, trail_s: float = 0, stage: str | None = None
    ) -> Items[Picture]:
        """Iterate over the picture and the people of each frame; for live cameras, of the newest frame.

        `annotated`: draw people, zones and incidents as `sink_video` does. `max_width`: scale wider pictures down to
        this width, in pixels. `trail_s`: also draw the ways that people have gone in the last seconds. `stage`: the
        stage whose people to draw, if several make tracks. Raises UserError for a value that is none of these.
        """
        require_frame_settings(annotated=annotated, max_width=max_width, trail_s=trail_s)
        asked = (annotated, max_width, trail_s, stage or self._stage)
        if self._background is not None and asked != (self._annotated, self._max_width, self._trail_s, self._stage):
            raise UserError(
                f"the run {self.name} has started, so its pictures stay as they are: "
                "call frames() with these options before start()",
                error_id="run-started",
            )
        self._annotated, self._max_width, self._trail_s, self._stage = asked
        return Items(self, self._wish(FRAMES_KIND))

    @overload
    def items(self, *, events: Literal[True], tracks: Literal[True]) -> Items[Event | TrackedFrame]: ...

    @overload
    def items(self, *, events: Literal[True], frames: Literal[True]) -> Items[Event | Picture]: ...

    @overload
    def items(self, *, events: bool = False, tracks: bool = False, frames: bool = False) -> Items[Item]: ...

    def items(self, *, events: bool = False, tracks: bool = False, frames: bool = False) -> Items[Any]:
        """Iterate over several kinds in one loop, in the order of arrival. Raises ValueError if you name none."""
        wanted = [kind for kind, wish in zip(KINDS, (events, tracks, frames), strict=True) if wish]
        if not wanted:
            raise ValueError("name what you want: items(events=True, tracks=True, frames=True)")
        return Items(self, self._wish(*wanted))

    def _wish(self, *kinds: str) -> tuple[str, ...]:
        with self._lock:
            missing = [kind for kind in kinds if kind not in self._inboxes]
            if self._background is not None and missing:
                raise UserError(
                    f"the run {self.name} has started without a reader of its {missing[0]}: call `{missing[0]}()` "
                    "before you ask for its first item and before start()",
                    error_id="run-started",
                )
            self._wishes.update(kinds)
        return kinds

    # ---- starting and ending

    def start(self) -> Self:
        """Start the run, unless it has started. Raises CamgraphError if the graph or this machine cannot run."""
        with self._lock:
            if self._background is None:
                self._begin()
        return self

    def _begin(self) -> None:
        if self._closed:
            raise UserError(
                f"the run {self.name} is closed: make a new one with camgraph.run or camgraph.watch",
                error_id="run-over",
            )
        log_lines()
        wishes = Wishes(
            frozenset(self._wishes),
            self._stage,
            self._annotated,
            self._max_width,
            self._trail_s,
            in_process=self._in_process,
        )
        with _starting:
            if self.graph.passing:
                self.name = _free_name(self.graph.name)
            plan = self.graph.planned(wishes, self.name if self.graph.passing else None)
            inboxes = {kind: self._inbox(kind) for kind in self._wishes}
            background: Background
            loader = self.graph.loader(wishes, lambda plan: addressed(plan, background.addresses))
            background = Background(
                plan,
                loader,
                self._board,
                list(inboxes.values()),
                owner=weakref.ref(self),
                anew=self.graph.passing,
            )
            try:
                background.start()
                self._inboxes, self._background = inboxes, background
                self._obey(background)
                if self._callbacks:
                    start_thread(self._call_back, f"camgraph-{self.name}-calls")
            except BaseException:  # Ctrl-C: the program may keep this `Run`, but the run has started in part
                background.abandon()
                self._all_called.set()
                raise

    def _obey(self, background: Background) -> None:
        """Do as was said while the run was starting."""
        if self._closed:
            self._drop_unread()
        if self._stop_wanted or self._closed:
            background.stop()

    def _inbox(self, kind: str) -> Inbox[Any]:
        if kind == EVENTS_KIND:
            return Inbox(
                kind, self._board, window=_WINDOWS[kind], read=event_of, identity=lambda e: (e.id, e.earlier_run)
            )
        return Inbox(
            kind, self._board, window=_WINDOWS[kind], read=frame_of, identity=lambda f: (f.camera, f.epoch, f.seq)
        )

    def _call_back(self) -> None:
        """Call the callbacks with each item, in a thread of the run."""
        self._caller = threading.current_thread()
        kinds = tuple(self._callbacks)
        try:
            items: Items[Item] = Items(self, kinds)
            for item in items:
                kind = EVENTS_KIND if isinstance(item, Event) else self._kind_of(item)
                self._callbacks[kind](item)
        except BaseException as error:  # noqa: BLE001 - raised again by `wait`
            self._failure = error
            assert self._background
            self._background.abandon()
        finally:
            self._all_called.set()

    @staticmethod
    def _kind_of(item: object) -> str:
        return FRAMES_KIND if isinstance(item, Picture) else TRACKS_KIND

    def status(self) -> Status:
        """Return the run's status: cameras, stages, troubles, the last events."""
        if self._background is None:
            return Status.before_start(self.name, self.graph.cameras)
        return self._background.status()

    @property
    def result(self) -> Result | None:
        """How the run ended; None while it goes on."""
        background = self._background
        if background is None or not background.wait(0):
            return None
        unread = sum(inbox.discarded for kind, inbox in self._inboxes.items() if kind == EVENTS_KIND)
        outcome, error = background.outcome, background.error
        if outcome is None:
            status = error.exit_status if isinstance(error, CamgraphError) else 1
            return Result(status, (str(error),), unread, self.status())
        return Result(outcome.status, tuple(outcome.problems), unread, self.status())

    def switch(self, name: str, *, on: bool) -> None:
        """Turn a switch of the rules on or off, as `camgraph switch` does. Raises UserError if there is none."""
        self.start()
        assert self._background
        self._background.switch(name, on=on)

    def counters(self) -> dict[str, dict[str, dict[str, int]]]:
        """Return the numbers of the rules' counters: camera -> counter -> name, such as `inside`, -> number."""
        known = self.status().counters
        return {camera: {name: dict(one) for name, one in counters.items()} for camera, counters in known.items()}

    def reset_counter(self, name: str, camera: str | None = None) -> None:
        """Set a counter to zero, of one camera or of all, as `camgraph counter NAME reset` does.

        It happens at the next frame of the camera. Raises UserError if there is no such counter or camera.
        """
        self.start()
        assert self._background
        self._background.reset_counter(name, camera)

    def stop(self) -> None:
        """End the cameras. Items on their way still arrive, then your loops end. Returns at once."""
        self._stop_wanted = True
        if self._background is not None:
            self._background.stop()

    @overload
    def wait(self) -> Result: ...

    @overload
    def wait(self, timeout_s: float) -> Result | None: ...

    def wait(self, timeout_s: float | None = None) -> Result | None:
        """Wait for the end and the last callback. None if the run goes on after `timeout_s`. Raises as a loop does.

        If you have asked for items, read them in another thread meanwhile: a graph of files waits for its readers.
        """
        self.start()
        assert self._background
        until = None if timeout_s is None else time.monotonic() + timeout_s
        if self._callbacks and self._caller is not threading.current_thread() and not self._all_called.wait(timeout_s):
            return None
        if not self._background.wait(until if until is None else max(0.0, until - time.monotonic())):
            return None
        self._raise_problems()
        return self.result

    def close(self, within_s: float = _CLOSE_S) -> None:
        """Stop the run and drop your unread items; they are not kept for a later run.

        Returns when all processes and threads of the run have ended. After `within_s` the run gives up the items on
        their way; 5 s later it kills any process that is left. You may call it again.
        """
        self._closed = True
        with self._lock:  # a start that is under way in another thread ends first
            if self._background is None:
                return
        self._drop_unread()
        self._background.stop()
        self._end(within_s)

    def _drop_unread(self) -> None:
        with self._board.lock:
            for inbox in self._inboxes.values():
                inbox.discard()

    def _leave(self) -> None:
        """Stop the run, and keep unread events for the next run of its name."""
        self._closed = True
        with self._lock:
            if self._background is None:
                return
        self._background.abandon()
        self._end(_CLOSE_S)

    def _end(self, within_s: float) -> None:
        assert self._background
        if not self._background.wait(within_s):
            self._background.hurry()
            self._background.wait(_KILLED_S)

    def _raise_problems(self) -> None:
        """Raise the error with which the run or a callback has ended."""
        if self._failure is not None:
            raise self._failure
        assert self._background
        if self._background.error is not None:
            raise self._background.error
        outcome = self._background.outcome
        if outcome is None or not outcome.status or self._closed:
            return
        kind = {EXIT_USER: UserError, EXIT_ENVIRONMENT: EnvironmentProblem}.get(outcome.status, GaveUp)
        error = kind("\n".join(outcome.problems), error_id="run-failed")
        if len(outcome.error_ids) == 1:
            error.error_id = outcome.error_ids[0]
        raise error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self._leave()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.close if kind is None else self._leave)

    def select(self, kinds: Sequence[str]) -> Selection:
        """Start the run and return the inboxes of these kinds. `Items` uses it."""
        self.start()
        return Selection([self._inboxes[kind] for kind in kinds], list(self._inboxes.values()))


class Items(Generic[T], Iterator[T], AsyncIterator[T]):
    """An iterator over the items of a run, for `for` and `async for`. Starts the run. Use it from one thread."""

    def __init__(self, run: Run, kinds: tuple[str, ...]) -> None:
        self._run = run
        self._kinds = kinds
        self._selection: Selection | None = None

    def __iter__(self) -> Self:
        return self

    def __aiter__(self) -> Self:
        return self

    def __next__(self) -> T:
        selection = self._selected()
        with selection.board.lock:
            selection.confirm()
        changed: Latch | None = None
        while True:
            with selection.board.lock:
                selection.ask()
                inbox = selection.ready()
                if inbox is not None:
                    return cast(T, inbox.take())
                if selection.board.over:
                    break
                if changed is None:
                    changed = Latch()
                    selection.board.call_once(changed.set)
                else:
                    selection.warn_of_unread()
            if changed.wait(_LOOK_S):
                changed = None
        self._run._raise_problems()
        raise StopIteration

    async def __anext__(self) -> T:
        if self._selection is None:
            self._selection = await asyncio.to_thread(self._selected)
        selection, loop = self._selection, asyncio.get_running_loop()
        with selection.board.lock:
            selection.confirm()
        while True:
            changed = asyncio.Event()
            with selection.board.lock:
                selection.ask()
                inbox = selection.ready()
                if inbox is not None:
                    return cast(T, inbox.take())
                if selection.board.over:
                    break
                selection.board.call_once(partial(_wake, loop, changed))
            await changed.wait()
        self._run._raise_problems()
        raise StopAsyncIteration

    def _selected(self) -> Selection:
        if self._selection is None:
            self._selection = self._run.select(self._kinds)
        return self._selection


def _wake(loop: asyncio.AbstractEventLoop, changed: asyncio.Event) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(changed.set)


def _free_name(name: str) -> str:
    """Return `name`, or `name` with a number if a run of this user has that name now."""
    taken = {run.name for run in found_runs() if run.own}
    candidates = itertools.chain([name], (f"{name}-{n}" for n in itertools.count(2)))
    return next(one for one in candidates if one not in taken)


def run(
    graph: Graph | str | os.PathLike[str],
    *,
    name: str | None = None,
    env_files: Sequence[str | os.PathLike[str]] = (),
    in_process: bool = False,
    on_event: Callable[[Event], object] | None = None,
    on_tracks: Callable[[TrackedFrame], object] | None = None,
    on_frame: Callable[[Picture], object] | None = None,
) -> Run:
    """Make a run of a graph, or of the graph file at this path; `name` and `env_files` are for a path, as in `load`.

    `in_process`: run all stages in a thread of this program instead of in processes of their own. A thread of the run
    calls the callbacks, one at a time. Raises GraphError with all mistakes in the file.
    """
    made = graph if isinstance(graph, Graph) else load(graph, name=name, env_files=env_files)
    return Run(made, in_process=in_process, on_event=on_event, on_tracks=on_tracks, on_frame=on_frame)


def watch(
    *sources: str | os.PathLike[str],
    model: str | os.PathLike[str] | None = None,
    size: int | None = None,
    rules: str | os.PathLike[str] | None = None,
    events: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    video: str | os.PathLike[str] | None = None,
    tracks: str | os.PathLike[str] | None = None,
    max_fps: float | None = None,
    name: str | None = None,
    env_files: Sequence[str | os.PathLike[str]] = (),
    in_process: bool = False,
    on_event: Callable[[Event], object] | None = None,
    on_tracks: Callable[[TrackedFrame], object] | None = None,
    on_frame: Callable[[Picture], object] | None = None,
) -> Run:
    """Make a run of the graph of `camgraph watch`: `run(build(...))`. See `build` for the options.

    Without a `name`, the run keeps no unread events for a later one, and several may run at once.
    """
    made = build(
        *sources,
        model=model,
        size=size,
        rules=rules,
        events=events,
        overwrite=overwrite,
        video=video,
        tracks=tracks,
        max_fps=max_fps,
        name=name,
        env_files=env_files,
    )
    return Run(made, in_process=in_process, on_event=on_event, on_tracks=on_tracks, on_frame=on_frame)
