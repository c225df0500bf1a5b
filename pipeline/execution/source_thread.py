"""Runs a source's `frames` in a thread of its own and hands them to the loop.

On graphs that must not lose a frame the thread takes a place in the camera's window before each frame, and the loop
gives it back when everything made of the frame is done: so a slow graph slows the source. A live source never waits;
the loop takes the present frame, and an older frame that it has not taken gives way to a newer one.

One reader may have had frames of a dead predecessor that another has not. So a source that loses nothing is not stopped
before it has sent again all frames that any of them had (`owed`).
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from camgraph.pipeline.errors import EXIT_DONE, EXIT_GAVE_UP, BadItem, EnvironmentProblem, Shortage, UserError
from camgraph.pipeline.execution.context import Pulse
from camgraph.pipeline.execution.process_parts import ProcessParts
from camgraph.pipeline.execution.runner import BUGS
from camgraph.pipeline.messages import End, EndReason, Message, Stamp
from camgraph.pipeline.stage import Source
from camgraph.pipeline.system.redaction import redact_urls
from camgraph.pipeline.traces import captured

if TYPE_CHECKING:
    from camgraph.pipeline.shm.slots import Slot

FILES_AT_ONCE = 8
"""So many files of a process are judged at a time. Others wait, so that memory does not grow with their number."""
_LOOK_S = 0.1
_SHORT_S = 1.0


@dataclass(slots=True, eq=False)
class Handed:
    """One frame (or the end) on its way from the thread to the loop, with the slots that it lies in."""

    message: Message
    slots: list[Slot] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Silence:
    """Since when (monotonic ns) a source has given no sign of life, 0 if none is due.

    `opening`: no frame has come of it yet; opening a file or a camera may take longer than a frame.
    """

    since_ns: int = 0
    opening: bool = False


def may_start(threads: Iterable[SourceThread]) -> list[SourceThread]:
    """Those that have not started and may: all live ones, and of files as many as are judged at a time."""
    every = list(threads)
    waiting = [thread for thread in every if not thread.started]
    if not waiting:
        return []
    room = FILES_AT_ONCE - sum(thread.is_running for thread in every if thread.takes_turns)
    files = [thread for thread in waiting if thread.takes_turns and not thread.is_ending]
    return [thread for thread in waiting if thread not in files] + files[: max(0, room)]


def queued(threads: Iterable[SourceThread]) -> list[str]:
    """The cameras whose files wait until others have been judged."""
    return [thread.camera for thread in threads if thread.takes_turns and not thread.started]


class SourceThread:
    """One camera. `window`: how many frames may be on their way. `traced`: frames carry when they were captured."""

    def __init__(
        self, source: Source[Any], pulse: Pulse, parts: ProcessParts, *, window: int, traced: bool = False
    ) -> None:
        self.camera = source.camera
        self.stage = source.context.stage
        self._source = source
        self._context = source.context
        self._pulse = pulse
        self._opening = True
        self._collector = parts.collector
        self.live = source.is_live(source.camera_settings)
        self.takes_turns = source.takes_turns(source.camera_settings)
        self._wake = parts.wake
        self._traced = traced
        self._window = threading.Semaphore(window)
        self._stop = threading.Event()
        self._handed: deque[Handed] = deque()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._last: Stamp | None = None
        self._owed: Stamp | None = None
        self._ending: EndReason | None = None
        self._paused = False
        self._resting = False
        self._frames_given = 0
        self._frames_returned = 0

    @property
    def started(self) -> bool:
        return self._thread is not None

    @property
    def is_running(self) -> bool:
        """Whether it is at work: started, and not at its end, or with frames that are on their way."""
        is_alive = self._thread is not None and self._thread.is_alive()
        return is_alive or self._frames_given > self._frames_returned

    @property
    def is_ending(self) -> bool:
        """Whether it was asked to end; it may not have begun."""
        return self._ending is not None

    @property
    def silence(self) -> Silence:
        """How the source is: waiting for the graph, which is full, is not its silence."""
        since_ns = self._pulse.silent_since_ns
        return Silence(since_ns, self._opening) if since_ns else Silence()

    def start(self, resume: Stamp | None, gave_up: str = "", owed: Stamp | None = None) -> None:
        """Begin, after the frame `resume` if there is one; with `gave_up`, only tell that the camera ends, and why.

        `owed`: the last frame that a reader has had already.
        """
        self._last = resume
        self._owed = None if self.live else owed or self._owed
        if self._owes:
            self._stop.clear()
        name = f"source {self.camera}"
        self._thread = threading.Thread(target=self._run, args=(resume, gave_up), name=name, daemon=True)
        self._thread.start()

    def stop(self, reason: EndReason = "stopped") -> None:
        """Ask the source to end; its end comes through `take` like everything else.

        One that has not begun ends when it is started, and only sends the frames that it owes.
        """
        with self._lock:
            first, self._ending = not self._ending, self._ending or reason
            resting = self._resting
        self._stop_unless_owing()
        if first and resting:
            self._hand(Handed(self._end(reason)))

    def pause(self) -> None:
        """Ask the source to end for now, without a last word."""
        self._paused = True
        self._stop_unless_owing()

    def abandon(self) -> None:
        """The process closes: nothing more is wanted, not even owed frames."""
        self.stop()
        self._stop.set()

    def _stop_unless_owing(self) -> None:
        if not self._owes:
            self._stop.set()

    @property
    def _owes(self) -> bool:
        """True until all is sent that some reader has had, and another perhaps not."""
        return self._owed is not None and (self._last is None or self._last.place < self._owed.place)

    def go_on(self) -> None:
        """After a pause: begin again behind the last frame, as soon as the source has ended (see `attend`)."""
        self._paused = False

    def attend(self) -> None:
        """Call this often: it starts paused sources again that may go on."""
        if not self._resting:
            return
        with self._lock:
            if not self._resting or self._paused or self._ending:
                return
            self._resting = False
        self._stop.clear()
        self.start(self._last)

    def give_back(self) -> None:
        """All that was made of one frame is done."""
        self._frames_returned += 1
        self._window.release()

    def take(self) -> list[Handed]:
        """The frames handed over since the last call."""
        if not self._handed:
            return []
        with self._lock:
            taken = list(self._handed)
            self._handed.clear()
        return taken

    def join(self, timeout_s: float) -> None:
        """Wait for the thread's end, but not for ever."""
        if self._thread is not None:
            self._thread.join(timeout_s)

    # ---- in the thread

    def _run(self, resume: Stamp | None, gave_up: str) -> None:
        end = self._end("error", gave_up, EXIT_GAVE_UP, "process-died") if gave_up else self._until_end(resume)
        with self._lock:
            self._resting = resting = end.reason == "stopped" and not self._ending
        if not resting:  # once it rests, `attend` may have begun again
            self._hand(Handed(self._end(self._ending) if self._ending and end.reason == "stopped" else end))

    def _until_end(self, resume: Stamp | None) -> End:
        """Hand over frame after frame; how it ended."""
        try:
            while self._is_short(resume):
                resume = self._last
        except (UserError, EnvironmentProblem, BadItem) as problem:
            return self._end("error", redact_urls(str(problem)), problem.exit_status, problem.error_id)
        except BUGS as bug:
            self._context.log.exception("source_failed", stage=self.stage, camera=self.camera)
            message = (
                f"{type(bug).__name__} in the source {self.stage} of camera {self.camera}; the log has the details"
            )
            return self._end("error", message, EXIT_GAVE_UP, "bug")
        return self._end("stopped" if self._stop.is_set() else "end")

    def _is_short(self, resume: Stamp | None) -> bool:
        """Hand over frames until the source ends; True if it is to start again after a shortage of the machine."""
        try:
            self._hand_over(resume)
        except Shortage as shortage:
            if not self.live:
                raise
            return self._outlasted(shortage)
        return False

    def _outlasted(self, shortage: Shortage) -> bool:
        """Wait for the end of a shortage: the camera goes on filming. False if the stop came first."""
        self._context.camera_is(self.camera, "lost", str(shortage))
        while not self._stop.wait(_SHORT_S):
            if shortage.is_over():
                return True
        return False

    def _hand_over(self, resume: Stamp | None) -> None:
        frames = self._begin(resume)
        while self._place():
            with self._collector.collecting() as slots, self._pulse.asked():
                message = next(frames, None)
            if message is None:
                return
            if type(message) not in self._source.outputs:
                raise TypeError(f"made {type(message).__name__}, which is not among its declared outputs")
            self._last, self._opening = message.stamp, False
            self._frames_given += 1
            self._hand(Handed(captured(message, self.stage) if self._traced else message, slots))
            if self._ending or self._paused:
                self._stop_unless_owing()

    def _begin(self, resume: Stamp | None) -> Iterator[Message]:
        with self._pulse.asked():
            return iter(self._source.frames(self._stop, resume))

    def _end(self, reason: EndReason, error: str = "", status: int = EXIT_DONE, error_id: str = "") -> End:
        return End(self._last or Stamp(self.camera, 0, 0, 0, 0, 0), reason, error, status, error_id)

    def _place(self) -> bool:
        """Wait for a place in the window; False when the stop came first."""
        while not self._stop.is_set():
            if self.live or self._window.acquire(timeout=_LOOK_S):
                return True
        return False

    def _hand(self, handed: Handed) -> None:
        with self._lock:
            if self.live and self._handed and not isinstance(handed.message, End):
                self._drop_untaken()
            self._handed.append(handed)
        self._wake()

    def _drop_untaken(self) -> None:
        old = self._handed.popleft()
        self._context.count("frames", self.camera)
        self._context.count("dropped.queue_full", self.camera)
        self._collector.let_go(old.slots)
