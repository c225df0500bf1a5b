"""The sources of a process: when they start, how many frames they have on the way, and how far all is done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from camgraph_test_stages.parts import process_parts
from hypothesis import given
from hypothesis import strategies as st

from camgraph.pipeline.execution.source_thread import Handed, Silence
from camgraph.pipeline.items import END_SEQ, Item, Key
from camgraph.pipeline.messages import End, Message, Stamp
from camgraph.pipeline.monitoring.metrics import Counters
from camgraph.pipeline.testing import stamp
from camgraph.pipeline.worker.sources import Sources

WINDOW = 3


class ByHand:
    """Stands for the thread of one camera: a test writes what it hands over, and reads what was asked of it."""

    takes_turns = is_running = is_ending = False

    def __init__(self, camera: str) -> None:
        self.camera, self.stage = camera, "capture"
        self.handed: list[Handed] = []
        self.asked: list[Any] = []
        self.silence = Silence()

    @property
    def started(self) -> bool:
        return any(call[0] == "start" for call in self.asked)

    def hand(self, *messages: Message) -> None:
        self.handed += [Handed(message) for message in messages]

    def take(self) -> list[Handed]:
        taken, self.handed = self.handed[:1], self.handed[1:]
        return taken

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *arguments: self.asked.append((name, *arguments))


class Process:
    """The sources of two cameras, and what was submitted of them. `done` tells that all made of a frame is done."""

    def __init__(self) -> None:
        self.threads = {camera: ByHand(camera) for camera in ("front", "yard")}
        self.submitted: list[tuple[Item, Callable[[Item], None]]] = []
        self.ended: list[str] = []
        self.frames_done: list[Stamp] = []
        self.counters = Counters()
        chain: Any = SimpleNamespace(
            plan=SimpleNamespace(window=WINDOW),
            spread=lambda stage, items, rows: [],
            end=lambda stage, item: [],
            frame_done=self.frames_done.append,
        )
        threads: Any = self.threads.values()
        self.sources = Sources(
            threads,
            chain=chain,
            emitter=self,  # type: ignore[arg-type]
            parts=process_parts(self.counters),
            on_end=lambda item: self.ended.append(item.camera),
        )

    def submit(self, items: Sequence[Item], made: Any, on_done: Callable[[Item], None]) -> None:
        self.submitted.append((items[0], on_done))

    def done(self, index: int) -> None:
        item, on_done = self.submitted[index]
        on_done(item)

    def sent(self) -> list[tuple[str, int]]:
        return [(item.camera, item.key.seq) for item, _ in self.submitted]

    def start(self) -> None:
        self.sources.start(lambda camera: stamp(4, camera), lambda camera: stamp(6, camera), "")


@pytest.fixture
def process() -> Process:
    return Process()


def frames(camera: str, *seqs: int) -> list[Message]:
    return [Message(stamp(seq, camera)) for seq in seqs]


def test_a_source_starts_once_and_only_with_its_camera_allowed(process: Process) -> None:
    process.start()
    assert not process.threads["front"].started
    process.sources.allow(["front"])
    process.start()
    process.start()
    assert process.threads["front"].asked == [("start", stamp(4, "front"), "", stamp(6, "front"))]
    assert not process.threads["yard"].started


def test_frames_on_the_way_are_bounded_by_the_window(process: Process) -> None:
    process.threads["front"].hand(*frames("front", *range(9)))
    process.threads["yard"].hand(*frames("yard", 0))
    for _ in range(6):
        process.sources.take()
    assert process.sent() == [("front", 0), ("yard", 0), ("front", 1), ("front", 2)]
    process.done(0)
    process.sources.take()
    assert process.sent()[-1] == ("front", WINDOW)
    assert process.counters.get("frames", "front") == WINDOW + 1


@given(order=st.permutations(range(WINDOW)), done=st.integers(0, WINDOW))
def test_a_camera_is_done_up_to_the_first_frame_that_is_not(order: list[int], done: int) -> None:
    process = Process()
    process.threads["front"].hand(*frames("front", *range(WINDOW)))
    for _ in range(WINDOW):
        process.sources.take()
    for index in order[:done]:
        process.done(index)
    first_open = min(order[done:], default=WINDOW)
    expected = {"front": stamp(first_open - 1, "front")} if first_open else {}
    assert process.sources.frames_done == expected
    assert len(process.frames_done) == done
    assert process.threads["front"].asked.count(("give_back",)) == done


def test_an_end_follows_all_frames_and_is_reported_when_done(process: Process) -> None:
    process.threads["front"].hand(End(stamp(8, "front"), "end"))
    process.sources.take()
    [(item, _)] = process.submitted
    assert item.key == Key(0, END_SEQ, 0)
    assert process.ended == []
    process.done(0)
    assert process.ended == ["front"]
    assert process.counters.snapshot() == [], "an end is no frame"


def test_a_camera_that_has_left_is_forgotten(process: Process) -> None:
    process.sources.allow(["front", "yard"])
    process.threads["front"].hand(*frames("front", 0))
    process.sources.take()
    process.done(0)
    process.sources.keep_only(["yard"])
    assert process.sources.frames_done == {}
    process.start()
    assert not process.threads["front"].started
    assert process.threads["yard"].started


def test_a_camera_that_comes_again_must_be_allowed_again(process: Process) -> None:
    process.sources.allow(["front"])
    process.sources.keep_only(["yard"])
    again: Any = ByHand("front")
    process.sources.add(again)
    process.start()
    assert not again.started


def test_paused_cameras_rest_and_all_others_go_on(process: Process) -> None:
    process.sources.pause(["yard"])
    assert {camera: thread.asked for camera, thread in process.threads.items()} == {
        "front": [("go_on",)],
        "yard": [("pause",)],
    }


def test_a_removed_camera_is_asked_to_end_with_that_reason(process: Process) -> None:
    process.sources.remove("yard")
    assert process.threads["yard"].asked == [("stop", "removed")]
    assert process.threads["front"].asked == []


def test_the_longest_silence_of_all_sources_is_reported(process: Process) -> None:
    assert process.sources.silence == Silence()
    process.threads["front"].silence = Silence(since_ns=700)
    process.threads["yard"].silence = Silence(since_ns=300, opening=True)
    assert process.sources.silence == Silence(since_ns=300, opening=True)
