"""A source in its thread: what it hands over, how it ends, and when it counts as silent."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from camgraph_test_stages.parts import process_parts, stage_context
from camgraph_test_stages.waiting import until

from camgraph.pipeline.errors import BadItem, EnvironmentProblem, Shortage, UserError
from camgraph.pipeline.execution.collector import Collector
from camgraph.pipeline.execution.context import Pulse
from camgraph.pipeline.execution.source_thread import Silence, SourceThread
from camgraph.pipeline.messages import End, Message, Stamp
from camgraph.pipeline.stage import CameraSettings, Settings, Source, Stop
from camgraph.pipeline.testing import stamp


class Scripted(Source[Settings]):
    """A source whose frames a test writes."""

    outputs = (Message,)

    script: Callable[[Scripted, Stop], Iterator[Message]]

    live: bool

    def frames(self, stop: Stop, resume: Stamp | None) -> Iterator[Message]:
        return self.script(self, stop)

    def is_live(self, camera_settings: Any) -> bool:
        return self.live


def fed(
    folder: Path,
    script: Any,
    *,
    window: int = 9,
    live: bool = False,
    begun: bool = True,
    collector: Collector | None = None,
) -> SourceThread:
    pulse = Pulse()
    parts = process_parts(collector=collector)
    context = stage_context("src", "cam", folder, parts, pulse=pulse)
    source = Scripted(Settings(), "cam", CameraSettings(), context)
    source.script, source.live = script, live
    feed = SourceThread(source, pulse, parts, window=window)
    if begun:
        feed.start(None)
    return feed


def the_end(feed: SourceThread) -> End:
    feed.join(10)
    end = feed.take()[-1].message
    assert isinstance(end, End)
    return end


def test_a_source_that_blocks_is_silent_since_it_was_asked(tmp_path: Path) -> None:
    gates = [threading.Event(), threading.Event()]

    def script(source: Scripted, stop: Stop) -> Iterator[Message]:
        for number, gate in enumerate(gates):
            gate.wait(20)
            yield Message(stamp(number))

    begun = time.monotonic_ns()
    feed = fed(tmp_path, script)
    until(lambda: feed.silence.since_ns)
    first = feed.silence
    assert begun <= first.since_ns <= time.monotonic_ns()
    assert first.opening
    threading.Event().wait(0.1)
    assert feed.silence == first
    gates[0].set()
    until(lambda: feed.silence.since_ns > first.since_ns)
    assert not feed.silence.opening
    gates[1].set()
    assert the_end(feed).reason == "end"
    assert feed.silence == Silence()


def test_a_source_that_waits_with_signs_of_life_is_not_silent(tmp_path: Path) -> None:
    over = threading.Event()

    def script(source: Scripted, stop: Stop) -> Iterator[Message]:
        while not over.wait(0.01):
            source.context.alive()
        yield Message(stamp())

    feed = fed(tmp_path, script)
    until(lambda: feed.silence.since_ns)
    until_ns = time.monotonic_ns() + 300_000_000
    longest = 0
    while time.monotonic_ns() < until_ns:
        longest = max(longest, time.monotonic_ns() - feed.silence.since_ns)
        threading.Event().wait(0.01)
    over.set()
    assert the_end(feed).reason == "end"
    assert longest < 200_000_000


def test_a_full_graph_is_not_the_sources_silence(tmp_path: Path) -> None:
    feed = fed(tmp_path, lambda source, stop: (Message(stamp(n)) for n in range(9)), window=1)
    until(lambda: len(feed.take()) == 1)
    until(lambda: feed.silence == Silence())
    threading.Event().wait(0.1)
    assert feed.silence == Silence()
    assert feed.take() == []
    feed.give_back()
    until(lambda: len(feed.take()) == 1)
    feed.stop()
    assert the_end(feed).reason == "stopped"


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (UserError("no such file"), 2, "no such file"),
        (EnvironmentProblem("no network"), 3, "no network"),
        (BadItem("truncated", "cut off"), 1, "truncated: cut off"),
        (RuntimeError("oh"), 1, "RuntimeError in the source src of camera cam; the log has the details"),
        (KeyboardInterrupt(), 1, "KeyboardInterrupt in the source src of camera cam; the log has the details"),
        (SystemExit(0), 1, "SystemExit in the source src of camera cam; the log has the details"),
    ],
)
def test_an_end_says_whose_fault_it_is(tmp_path: Path, error: BaseException, status: int, text: str) -> None:
    def script(source: Scripted, stop: Stop) -> Iterator[Message]:
        yield Message(stamp(4))
        raise error

    end = the_end(fed(tmp_path, script))
    assert (end.reason, end.status, end.error, end.stamp.seq) == ("error", status, text, 4)


def test_a_frame_that_gives_way_to_a_newer_one_frees_its_memory(tmp_path: Path) -> None:
    """Otherwise a live camera that brings frames too fast has no memory for any, after a while."""
    freed: list[Any] = []
    collector = Collector(freed.append)

    def script(source: Scripted, stop: Stop) -> Iterator[Message]:
        for number in range(3):
            assert collector.slots is not None
            collector.slots.append(number)  # type: ignore[arg-type]  # as the context does for arrays
            yield Message(stamp(number))

    feed = fed(tmp_path, script, live=True, collector=collector)
    feed.join(60)
    newest, end = feed.take()
    assert isinstance(end.message, End)
    assert (newest.message.stamp.seq, newest.slots, freed) == (2, [2], [0, 1])


def test_a_live_source_begins_again_when_a_shortage_is_over(tmp_path: Path) -> None:
    enough = threading.Event()
    begun: list[int] = []

    def script(source: Scripted, stop: Stop) -> Iterator[Message]:
        begun.append(len(begun))
        yield Message(stamp(len(begun)))
        if len(begun) == 1:
            raise Shortage("no room", is_over=enough.is_set)
        stop.wait(10)

    feed = fed(tmp_path, script, live=True)
    until(feed.take)
    assert begun == [0]
    assert feed.silence == Silence(), "nobody waits for a sign of it"
    enough.set()
    until(feed.take)
    assert begun == [0, 1]
    feed.stop()
    assert the_end(feed).reason == "stopped"


def test_a_shortage_does_not_outlast_the_stop_and_ends_a_file(tmp_path: Path) -> None:
    def script(source: Scripted, stop: Stop) -> Iterator[Message]:
        yield Message(stamp(0))
        raise Shortage("no room", is_over=lambda: False)

    feed = fed(tmp_path, script, live=True)
    until(feed.take)
    feed.stop()
    assert the_end(feed).reason == "stopped"
    end = the_end(fed(tmp_path, script))
    assert (end.reason, end.error, end.status) == ("error", "no room", 3)


def test_source_stopped_before_begin_ends_unasked(
    tmp_path: Path,
) -> None:
    asked: list[Stamp | None] = []

    def script(source: Scripted, stop: Stop) -> Iterator[Message]:
        asked.append(None)
        yield Message(stamp(0))

    feed = fed(tmp_path, script, begun=False)
    feed.stop("removed")
    assert feed.take() == [], "where its readers are is not known yet"
    feed.start(stamp(7, epoch=3))
    feed.join(10)
    [handed] = feed.take()
    assert isinstance(handed.message, End)
    assert (handed.message.reason, handed.message.stamp[1:3]) == ("removed", (3, 7))
    assert asked == []


@pytest.mark.parametrize("ask", [SourceThread.stop, SourceThread.pause])
@pytest.mark.parametrize("begun", [False, True])
def test_stop_waits_for_frames_a_reader_had_before(
    tmp_path: Path, ask: Callable[[SourceThread], None], begun: bool
) -> None:
    gate = threading.Event()

    def script(source: Scripted, stop: Stop) -> Iterator[Message]:
        for seq in range(3, 9):
            if seq > 3:
                gate.wait(10)
            if stop.is_set():
                return
            yield Message(stamp(seq))

    feed = fed(tmp_path, script, begun=False)
    if begun:
        feed.start(stamp(2), owed=stamp(5))
        until(feed.take)
        ask(feed)
    else:
        ask(feed)
        feed.start(stamp(2), owed=stamp(5))
    gate.set()
    feed.join(10)
    assert [handed.message.stamp.seq for handed in feed.take()][-2:] == ([5, 5] if ask is SourceThread.stop else [4, 5])


def test_a_live_source_owes_nothing(tmp_path: Path) -> None:
    feed = fed(tmp_path, lambda source, stop: iter([Message(stamp(0))]), live=True, begun=False)
    feed.stop()
    feed.start(None, owed=stamp(5))
    assert the_end(feed).stamp.seq == 0


def test_what_is_owed_is_not_waited_for_where_the_process_closes(tmp_path: Path) -> None:
    def script(source: Scripted, stop: Stop) -> Iterator[Message]:
        yield Message(stamp(0))
        stop.wait(10)

    feed = fed(tmp_path, script, begun=False)
    feed.start(None, owed=stamp(5))
    feed.abandon()
    assert the_end(feed).reason == "stopped"


class Interrupted:
    """A lock: whenever a source's thread has let go of it, somebody else does something before it goes on."""

    def __init__(self, other: Callable[[], None]) -> None:
        self._lock = threading.Lock()
        self._other = other
        self._meanwhile = False

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
        if threading.current_thread().name.startswith("source") and not self._meanwhile:
            self._meanwhile = True
            self._other()
            self._meanwhile = False


def test_resuming_during_pause_is_no_end(tmp_path: Path) -> None:
    begun: list[int] = []

    def script(source: Scripted, stop: Stop) -> Iterator[Message]:
        begun.append(len(begun))
        yield Message(stamp(len(begun)))
        stop.wait(10)

    feed = fed(tmp_path, script, begun=False)
    feed._lock = Interrupted(feed.attend)  # type: ignore[assignment]  # as the loop does, at the worst moment
    feed.start(None)
    until(lambda: begun == [0])
    feed.pause()
    feed.go_on()
    until(lambda: begun == [0, 1])
    feed.stop()
    feed.join(10)
    messages = [handed.message for handed in feed.take()]
    assert [isinstance(message, End) for message in messages] == [False, False, True]
