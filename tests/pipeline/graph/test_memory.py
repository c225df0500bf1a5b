"""What `check` says of shared memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.graph import Graph, memory
from pipeline.graph.memory import in_words, memory_need

Parse = Callable[..., Graph]

GRAPH = """\
version: 1
processes: separate
cameras: {a: {bytes: 1000000}, b: {bytes: 500000}}
stages:
  count: {use: count_source}
  twice: {use: double, from: count}
  end: {use: collect, from: twice, with: {path: x}}
"""


def test_every_camera_has_a_window_of_slots_and_one_being_written(parse: Parse) -> None:
    graph = parse(GRAPH)
    need = memory_need(graph)
    assert graph.window == 6
    assert (need.slots, need.known_bytes) == (14, 10_500_000)
    assert need.free_bytes == memory.free_shared_memory() > 0
    assert next(iter(in_words(need))) == "shared memory of the sources: 10.5 MB in 14 slots"


@pytest.mark.parametrize("processes", ["one", "compact"])
def test_frames_that_never_leave_their_process_need_none(parse: Parse, processes: str) -> None:
    need = memory_need(parse(GRAPH.replace("separate", processes)))
    assert (need.slots, need.known_bytes, need.unknown, need.fits) == (0, 0, (), True)
    assert list(in_words(need)) == []


def test_what_only_opening_would_tell_is_said_to_be_unknown(parse: Parse, monkeypatch: pytest.MonkeyPatch) -> None:
    from camgraph_test_stages.source import CountSource

    monkeypatch.setattr(CountSource, "slot_bytes", classmethod(lambda cls, settings, folder: None))
    need = memory_need(parse(GRAPH))
    assert need.unknown == ("a", "b")
    assert "  not known before it is opened: a, b" in list(in_words(need))


def test_without_shared_memory_nothing_fits(parse: Parse, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(memory, "SHARED_MEMORY", tmp_path / "none")
    assert not memory_need(parse(GRAPH)).fits
