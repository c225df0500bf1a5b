"""The sink that keeps nothing takes all that a graph can carry, and says nothing at the end."""

from __future__ import annotations

from pathlib import Path

from camgraph.pipeline.messages import Event, Message
from camgraph.pipeline.testing import feed, opened, stamp
from camgraph.stages.sinks.sink_null import SinkNull


def test_it_takes_anything_and_makes_nothing(tmp_path: Path) -> None:
    items = [Message(stamp(0)), Event(stamp(1), "id", "id", "single", b"{}")]
    with opened(SinkNull, {}, folder=tmp_path) as stage:
        assert feed(stage, items, batch=2, end=True) == []
        assert stage.context.counts == {}
    assert all(issubclass(type(item), SinkNull.inputs) for item in items)
