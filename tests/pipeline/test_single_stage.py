"""One stage by hand: what `feed` calls, and what it refuses as the runtime would."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from camgraph_test_stages.parts import stage_context

from camgraph.pipeline.errors import BadItem
from camgraph.pipeline.messages import End, Event, Message, Tombstone
from camgraph.pipeline.stage import Counts, Settings, Stage
from camgraph.pipeline.testing import feed, opened, reports_of, stamp


class Echo(Stage[Settings]):
    """Gives back what it gets, and an event at the end."""

    inputs = Message
    outputs = (Message, Event)

    def open(self) -> None:
        self.batches: list[int] = []

    def process(self, items: Sequence[Any]) -> Iterable[Message]:
        self.batches.append(len(items))
        return items

    def finish(self, camera: str, end: End) -> Iterable[Message]:
        return [Event(end.stamp, camera, camera, "single", b"{}")]


def test_feed_batches_items_and_ends_each_camera(tmp_path: Path) -> None:
    items = [Message(stamp(seq, camera)) for seq in range(2) for camera in ("left", "right")]
    with opened(Echo, {}, folder=tmp_path) as stage:
        outputs = feed(stage, items, batch=3, end=True)
        assert stage.batches == [3, 1]
    assert outputs[:4] == items
    assert [(type(last), last.stamp) for last in outputs[4:]] == [(Event, stamp(1, "left")), (Event, stamp(1, "right"))]


def test_an_output_of_another_type_than_declared_is_refused(tmp_path: Path) -> None:
    expected = r"made Tombstone, which is not among its declared outputs \(Message, Event\)"
    with opened(Echo, {}, folder=tmp_path) as stage, pytest.raises(TypeError, match=expected):
        feed(stage, [Message(stamp()), Tombstone(stamp())])


class Counting(Echo):
    counts: ClassVar[Counts] = {"seen": "Messages, each twice.", "batches": "Calls.", "of.CAMERA": "Of this one."}

    def process(self, items: Sequence[Any]) -> Iterable[Message]:
        for item in items:
            self.context.count("seen", item.stamp.camera, 2)
            self.context.count(f"of.{item.stamp.camera}", "")
        self.context.count("batches", "")
        self.context.wrote(Path("a.mp4"))
        return ()


def test_reports_hold_all_that_a_stage_has_counted_and_written(tmp_path: Path) -> None:
    with opened(Counting, {}, folder=tmp_path) as stage:
        feed(stage, [Message(stamp(seq)) for seq in range(3)], batch=2)
    reports = reports_of(stage)
    assert reports.counts == {("seen", "cam"): 6, ("of.cam", ""): 3, ("batches", ""): 2}
    assert reports.files == [Path("a.mp4")] * 2


class Undeclared(Counting):
    counts: ClassVar[Counts] = {"seen": "Messages, each twice.", "of.CAMERA": "Of this one."}


def test_a_counter_that_is_not_declared_is_refused(tmp_path: Path) -> None:
    expected = r"counted batches, which is not among its declared `counts` \(seen, of\.CAMERA\)"
    with pytest.raises(TypeError, match=expected):
        with opened(Undeclared, {}, folder=tmp_path) as stage:
            feed(stage, [Message(stamp())])


class Refusing(Echo):
    counts: ClassVar[Counts] = {"dropped.odd": "A message of an odd number."}

    def process(self, items: Sequence[Any]) -> Iterable[Message]:
        raise BadItem("odd" if items[0].stamp.seq % 2 else "even")


def test_a_reason_that_is_not_declared_is_refused(tmp_path: Path) -> None:
    with opened(Refusing, {}, folder=tmp_path) as stage:
        with pytest.raises(BadItem, match="odd"):
            feed(stage, [Message(stamp(1))])
        with pytest.raises(TypeError, match=r"counted dropped\.even, which is not among .* \(dropped\.odd\)"):
            feed(stage, [Message(stamp(2))])


def test_a_stage_in_a_graph_has_no_reports_to_look_at(tmp_path: Path) -> None:
    of_a_run = stage_context("echo", "cam", tmp_path)
    with pytest.raises(TypeError, match="echo was not opened by `opened`"):
        reports_of(Echo(Settings(), of_a_run))
