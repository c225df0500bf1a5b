"""The sources of a process: started when their readers are there, sent on as the window allows, known to be done."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from camgraph.pipeline.execution.process_parts import ProcessParts
from camgraph.pipeline.execution.source_thread import Handed, Silence, SourceThread, may_start, queued
from camgraph.pipeline.execution.stage_chain import StageChain
from camgraph.pipeline.items import END_SEQ, Item, Key
from camgraph.pipeline.messages import End, Stamp
from camgraph.pipeline.worker.emitter import Emitter

StampOf = Callable[[str], Stamp | None]
"""Camera -> one of its frames."""


@dataclass(slots=True)
class _Frame:
    """A source's frame on its way through the graph."""

    stamp: Stamp
    done: bool = False


class Sources:
    """The source threads of a process, by camera. `on_end(item)` is called when all of a camera is done."""

    def __init__(
        self,
        threads: Iterable[SourceThread],
        *,
        chain: StageChain,
        emitter: Emitter,
        parts: ProcessParts,
        on_end: Callable[[Item], None],
    ) -> None:
        self._threads = {thread.camera: thread for thread in threads}
        self._chain = chain
        self._emitter = emitter
        self._collector = parts.collector
        self._counters = parts.counters
        self._on_end = on_end
        self._allowed: set[str] = set()
        self._on_the_way: dict[str, deque[_Frame]] = defaultdict(deque)
        self.frames_done: dict[str, Stamp] = {}
        """Camera -> the frame up to which all are done: there a later incarnation can go on."""

    @property
    def silence(self) -> Silence:
        """The silence of the source that has given no sign of life for longest."""
        silent = [silence for thread in self._threads.values() if (silence := thread.silence).since_ns]
        return min(silent, key=lambda silence: silence.since_ns, default=Silence())

    @property
    def queued(self) -> list[str]:
        """See `source_thread.queued`."""
        return queued(thread for camera, thread in self._threads.items() if camera in self._allowed)

    def allow(self, cameras: Collection[str]) -> None:
        """All readers have a plan with these cameras: they may start."""
        self._allowed.update(cameras)

    def start(self, resume_of: StampOf, owed_of: StampOf, gave_up: str) -> None:
        """Start those that may and have not: of files, the next ones as others end.

        `resume_of(camera)` says behind which frame to go on, `owed_of(camera)` up to which some reader has had all.
        """
        for thread in may_start(self._threads[camera] for camera in self._threads if camera in self._allowed):
            thread.start(resume_of(thread.camera), gave_up, owed_of(thread.camera))

    def add(self, thread: SourceThread) -> None:
        """One more camera, which may not start yet."""
        self._threads[thread.camera] = thread

    def remove(self, camera: str) -> None:
        """Ask one to end for good."""
        self._threads[camera].stop("removed")

    def keep_only(self, cameras: Collection[str]) -> None:
        """Forget all of the other cameras: everything of theirs is done."""
        self._allowed.intersection_update(cameras)
        for camera in [camera for camera in self._threads if camera not in cameras]:
            self._threads.pop(camera).join(0)
            self._on_the_way.pop(camera, None)
            self.frames_done.pop(camera, None)

    def pause(self, cameras: Collection[str]) -> None:
        """Let these rest, and all others go on."""
        for camera, thread in self._threads.items():
            thread.pause() if camera in cameras else thread.go_on()

    def take(self) -> None:
        """Send the next frames of the sources, of each as many as its window allows."""
        for thread in self._threads.values():
            thread.attend()
        threads = [one for one in self._threads.values() if len(self._on_the_way[one.camera]) < self._chain.plan.window]
        for thread in threads:  # a taken frame can no longer be replaced: each is taken only when it is sent
            for handed in thread.take():
                self._send(thread, handed)

    def _send(self, thread: SourceThread, handed: Handed) -> None:
        message, camera = handed.message, thread.camera
        if isinstance(message, End):
            item = Item(camera, Key(message.stamp.epoch, END_SEQ, 0), message)
            self._emitter.submit([item], self._chain.end(thread.stage, item), self._on_end)
            return
        item = Item(camera, Key(message.stamp.epoch, message.stamp.seq, 0), message)
        self._counters.add("frames", camera)
        with self._collector.collecting() as slots:
            made = self._chain.spread(thread.stage, [item], [[message]])
        frame = _Frame(message.stamp)
        self._on_the_way[camera].append(frame)
        self._emitter.submit([item], made, lambda _: self._frame_done(thread, frame))
        self._collector.let_go([*handed.slots, *slots])

    def _frame_done(self, thread: SourceThread, frame: _Frame) -> None:
        thread.give_back()
        frame.done = True
        self._chain.frame_done(frame.stamp)
        frames = self._on_the_way[thread.camera]
        while frames and frames[0].done:
            self.frames_done[thread.camera] = frames.popleft().stamp

    def stop(self) -> None:
        """Ask all to end; their ends come as everything else does."""
        for thread in self._threads.values():
            thread.stop()

    def abandon(self) -> None:
        """The process closes: nothing more is wanted of them."""
        for thread in self._threads.values():
            thread.abandon()

    def join(self, timeout_s: float) -> None:
        """Wait for their threads, but not for ever."""
        for thread in self._threads.values():
            thread.join(timeout_s)
